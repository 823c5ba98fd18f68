package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestLoad is end to end: load against serve with a pair of tiny models, streamed and not, chats and
// completions, closed and open.
func TestLoad(t *testing.T) {
	small, large := tinyPair(t)
	s := serving(t, "--small", small, "--large", large, "--algorithm", "me", "-n", "3", "--context-max", "256",
		"--name", "duo")
	defer s.stop()
	prompts := filepath.Join(t.TempDir(), "prompts.jsonl")
	lines := `{"id": "a", "prompt": "Hello"}
{"id": "b", "messages": [{"role": "user", "content": "How are you?"}]}
{"id": "c", "task": "arith", "level": 1, "prompt": "1 + 1", "answer": "Answer: 2", "final": "2"}
`
	if err := os.WriteFile(prompts, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name           string
		args           []string
		sent           int
		prompt, tokens float64 // of all finished requests
		stream         bool
	}{
		// The template adds 16 tokens to the bytes of a message; random prompts have 10 tokens each.
		{"chats", []string{"--prompts", prompts, "--requests", "6", "--max-tokens", "9", "-n", "2", "--field",
			"ignore_eos=true"}, 6, 2 * (5 + 12 + 5 + 3*19), 54, true},
		{"open", []string{"--prompt-tokens", "10", "--output-tokens", "7", "--rate", "500", "--requests", "5",
			"--field", "return_origin=true"}, 5, 50, 35, true},
		{"whole", []string{"--prompt-tokens", "10", "--output-tokens", "4..4", "--no-stream", "--requests", "4",
			"--steady=false", "--field", "temperature=0", "--model", "slm"}, 4, 40, 16, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.jsonl")
			var d loadJSON
			decode(t, mustRun(t, append([]string{"load", s.url, "--json", "--out", out}, c.args...)...), &d)
			v := func(name string) float64 {
				if d.Values[name] == nil {
					t.Fatalf("no %s in %v", name, d.Values)
				}
				return *d.Values[name]
			}
			if d.RequestsSent != c.sent || v("requests_finished") != float64(c.sent) || d.Cut || len(d.Failed) > 0 {
				t.Fatalf("%+v, want %d finished", d, c.sent)
			}
			if v("prompt_tokens") != c.prompt || v("tokens_total") != c.tokens {
				t.Errorf("%v prompt tokens, %v tokens, want %v and %v", v("prompt_tokens"), v("tokens_total"), c.prompt,
					c.tokens)
			}
			if share := v("slm_share") + v("llm_share"); share != 1 {
				t.Errorf("shares add up to %v, want 1", share)
			}
			if (d.Values["ttft_mean_ms"] != nil) != c.stream || v("latency_n") != float64(c.sent) {
				t.Errorf("TTFT %v, %v latencies, want %v and %d", d.Values["ttft_mean_ms"], v("latency_n"), c.stream,
					c.sent)
			}
			if len(d.Values) != len(d.Metrics) {
				t.Errorf("%d values, %d definitions", len(d.Values), len(d.Metrics))
			}
			checkKept(t, out, c.sent, c.name == "open")
		})
	}
}

// checkKept reads what --out has written.
func checkKept(t *testing.T, path string, sent int, open bool) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(readText(t, path)), "\n")
	if len(lines) != sent {
		t.Errorf("%d lines, want %d", len(lines), sent)
	}
	for _, line := range lines {
		var r keptRequest
		decode(t, line, &r)
		if r.Error != "" || r.Finish != "length" || r.EndMs < r.SentMs || (r.PlannedMs != nil) != open ||
			open && (len(r.Origin) != r.Tokens || r.ByModel["slm"]+r.ByModel["llm"] != r.Tokens) {
			t.Errorf("%s", line)
		}
	}
}

// TestLoadTable: what people see, and the first model of the list.
func TestLoadTable(t *testing.T) {
	small, _ := tinyPair(t)
	s := serving(t, "--small", small, "--context-max", "128")
	defer s.stop()
	o := runCLI(t, "load", s.url+"/v1/", "--prompt-tokens", "5", "--output-tokens", "3", "-n", "2", "--requests",
		"9", "--warmup", "2")
	blanks := regexp.MustCompile(` +`)
	for _, want := range []string{"model tokenrouter, completions, streamed\n",
		"closed loop, 2 in flight: 9 requests sent\n", "opened after 2 had left; 3 left out as warm-up",
		"6 finished, 0 failed, 0 refused, 0 open, 0 never sent\n", "made by slm 100.0 %\n",
		"\nms mean p50 p90 p95 p99 n\n", "\nTTFT ", "\nwait to be sent - - - - - 0\n"} {
		if !strings.Contains(blanks.ReplaceAllString(o.stdout, " "), want) {
			t.Errorf("no %q in:\n%s", want, o.stdout)
		}
	}
	if o.code != ExitDone || !strings.Contains(o.stderr, "warning: tails that rest on fewer") {
		t.Errorf("exit %d, stderr %q", o.code, o.stderr)
	}
}

// TestLoadFailed: nothing finished is an error of its own; what went wrong is in the table.
func TestLoadFailed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"message":"no place"}}`)
	}))
	defer server.Close()
	o := runCLI(t, "load", server.URL, "--model", "m", "--prompt-tokens", "5", "--requests", "3")
	if o.code != ExitFailed || !strings.Contains(o.stdout, "3 x http_429: no place") ||
		!strings.Contains(o.stderr, "no request finished") {
		t.Errorf("exit %d, %s, %s", o.code, o.stdout, o.stderr)
	}
	o = runCLI(t, "load", server.URL, "--prompt-tokens", "5")
	if o.code != ExitFailed || !strings.Contains(o.stderr, "status 429: no place") {
		t.Errorf("exit %d, %s", o.code, o.stderr)
	}
}

// TestLoadInterrupted: an interrupt ends with what was measured, marked as cut, and exit 1.
func TestLoadInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or a server does not see that its client leaves
		if asked++; asked > 3 {
			interrupt()
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, `{"choices":[{"text":"a","finish_reason":"stop"}],"usage":{"completion_tokens":1}}`)
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	code := Main(ctx, []string{"load", server.URL, "--model", "m", "--prompt-tokens", "5", "--no-stream",
		"-n", "1", "--json"}, &stdout, &stderr)
	var d loadJSON
	if err := json.Unmarshal(stdout.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if code != ExitFailed || !d.Cut || *d.Values["requests_finished"] != 3 || *d.Values["requests_open"] != 1 ||
		!strings.Contains(stderr.String(), "interrupted: 4 requests sent") {
		t.Errorf("exit %d, %s, %s", code, stdout.String(), stderr.String())
	}
}

func TestLoadRefused(t *testing.T) {
	dir := t.TempDir()
	chats := filepath.Join(dir, "chats.jsonl")
	line := `{"messages": [{"role": "user", "content": "x"}]}` + "\n"
	if err := os.WriteFile(chats, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(args ...string) []string {
		return append([]string{"load", "http://127.0.0.1:1", "--model", "m"}, args...)
	}
	random := func(args ...string) []string { return with(append([]string{"--prompt-tokens", "4"}, args...)...) }
	refuse(t, []refusal{
		{"no URL", []string{"load"}, []string{"want the base URL of a server"}},
		{"no scheme", []string{"load", "127.0.0.1:8080", "--task", "arith"},
			[]string{"URL = ", "http://127.0.0.1:8080/v1"}},
		{"nothing to ask", with(), []string{"--prompts, --task and --prompt-tokens: want one of them"}},
		{"two things to ask", random("--task", "arith"), []string{"want one of them"}},
		{"no such task", with("--task", "chess"), []string{`--task = "chess", want arith, symbols`}},
		{"no such file", with("--prompts", "/none"), []string{`"/none" does not exist`}},
		{"messages for completions", with("--prompts", chats, "--endpoint", "completions"),
			[]string{"--endpoint completions: want prompts"}},
		{"endpoint", random("--endpoint", "embeddings"), []string{"want chat, completions"}},
		{"no tokens", with("--prompt-tokens", "0"), []string{`--prompt-tokens = "0", want a whole number from 1`}},
		{"backwards", with("--prompt-tokens", "9..3"), []string{"from 1, or two such as 64..256"}},
		{"ids in a chat", random("--endpoint", "chat", "--token-ids", "1..2"), []string{"--token-ids: want"}},
		{"both lengths", random("--max-tokens", "3", "--output-tokens", "3"), []string{"want one of them"}},
		{"rate", random("--rate", "0"), []string{`--rate = "0", want a number above 0`}},
		{"rate of words", random("--rate", "nan"), []string{"want a number above 0"}},
		{"nobody", random("-n", "0"), []string{"-n", "want a whole number from 1"}},
		{"bare time", random("--until", "5"), []string{"--until", "has no unit"}},
		{"field", random("--field", "temperature"), []string{"want NAME=VALUE"}},
		{"limits of whole answers", random("--no-stream", "--good-ttft", "1s"), []string{"--no-stream: want none"}},
		{"out", random("--out", "/none/x"), []string{`--out = "/none/x", want a file`}},
	})
}

// TestLoadCounts: -n, --until and the defaults say how many requests there are.
func TestLoadCounts(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(time.Millisecond)
		fmt.Fprint(w, `{"choices":[{"text":"a","finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	base := []string{"load", server.URL, "--model", "m", "--no-stream", "--json", "--endpoint", "completions"}
	for _, c := range []struct {
		name        string
		args        []string
		least, most int
	}{
		{"random", []string{"--prompt-tokens", "3"}, 100, 100},
		{"task", []string{"--task", "symbols", "-n", "20"}, 500, 500},
		{"time", []string{"--prompt-tokens", "3", "--until", "50ms", "-n", "2"}, 1, 200},
		{"time and count", []string{"--prompt-tokens", "3", "--until", "10m", "--requests", "7"}, 7, 7},
	} {
		var d loadJSON
		decode(t, mustRun(t, append(base, c.args...)...), &d)
		if d.RequestsSent < c.least || d.RequestsSent > c.most || d.Cut {
			t.Errorf("%s: %d requests sent, cut %v, want %d to %d", c.name, d.RequestsSent, d.Cut, c.least, c.most)
		}
	}
}
