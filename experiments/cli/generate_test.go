package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tokenrouter/exec/answer"
	"tokenrouter/exec/model"
	"tokenrouter/exec/model/router"
	"tokenrouter/exec/model/tokenizer"
	"tokenrouter/exec/native/nativetest"
	"tokenrouter/experiments/spec"
	"tokenrouter/experiments/system"
)

// tinyPair makes two model folders with a byte tokenizer and the ChatML template.
func tinyPair(t *testing.T) (small, large string) {
	t.Helper()
	parent := t.TempDir()
	c, err := model.ParseShape("tiny,layers=1")
	if err != nil {
		t.Fatal(err)
	}
	for i, dir := range []*string{&small, &large} {
		*dir = filepath.Join(parent, []string{"slm", "llm"}[i])
		if err := model.Make(t.Context(), *dir, c, uint64(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	return small, large
}

// generated runs generate --json and reads its document.
func generated(t *testing.T, args ...string) answerJSON {
	t.Helper()
	var a answerJSON
	decode(t, mustRun(t, append([]string{"generate", "--json"}, args...)...), &a)
	return a
}

// TestGenerate: one document with the contract's keys, whose parts fit together.
func TestGenerate(t *testing.T) {
	small, large := tinyPair(t)
	tokens, err := tokenizer.Load(filepath.Join(small, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name         string
		args         []string
		promptTokens int
		origins      []int
	}{
		// <|im_start|> user\n Hi <|im_end|> \n <|im_start|> assistant\n
		{"small", []string{"--small", small, "--prompt", "Hi"}, 21, []int{0}},
		{"no chat", []string{"--small", small, "--prompt", "Hi", "--no-chat"}, 2, []int{0}},
		{"control word of a user", []string{"--small", small, "--prompt", "<|im_end|>"}, 29, []int{0}},
		// <|im_start|> system\n Be. <|im_end|> \n before it
		{"system", []string{"--small", small, "--prompt", "Hi", "--system", "Be."}, 34, []int{0}},
		{"large of two", []string{"--small", small, "--large", large, "--algorithm", "large", "--prompt", "Hi"}, 21,
			[]int{1}},
		{"both", []string{"--small", small, "--large", large, "--algorithm", "me", "--prompt", "Hi"}, 21,
			[]int{0, 1}},
		{"the same twice", []string{"--small", small, "--large", small, "--algorithm", "me", "--prompt", "Hi"}, 21,
			[]int{0, 1}},
		{"three", []string{"--small", small, "--large", large, "--model", small, "--algorithm", "me",
			"--lambda", "1,0,1", "--prompt", "Hi"}, 21, []int{0, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append(c.args, "--max-tokens", "24", "--temperature", "1", "--seed", "5")
			a := generated(t, args...)
			if a.PromptTokens != c.promptTokens || a.CompletionTokens != len(a.Tokens) ||
				len(a.Origin) != len(a.Tokens) || len(a.LogProbs) != len(a.Tokens) || len(a.Tokens) > 24 {
				t.Errorf("%+v: want %d prompt tokens and lists of one length", a, c.promptTokens)
			}
			if a.Text != tokens.Decode(a.Tokens, true) || a.Throughput <= 0 {
				t.Errorf("text %q at %v tok/s of tokens %v", a.Text, a.Throughput, a.Tokens)
			}
			if want := map[bool]string{true: "length", false: "stop"}[len(a.Tokens) == 24]; a.FinishReason != want {
				t.Errorf("finish %q after %d tokens, want %q", a.FinishReason, len(a.Tokens), want)
			}
			made := map[int]bool{}
			for _, m := range a.Origin {
				made[m] = true
			}
			for _, m := range c.origins {
				if !made[m] || len(made) != len(c.origins) {
					t.Errorf("origins %v, want %v", a.Origin, c.origins)
				}
			}
			again := generated(t, args...)
			again.Throughput = a.Throughput
			if diff := cmp.Diff(a, again); diff != "" {
				t.Errorf("the same again (-first +second):\n%s", diff)
			}
		})
	}
}

// TestGenerateSampling: what is asked of the draws arrives.
func TestGenerateSampling(t *testing.T) {
	small, _ := tinyPair(t)
	base := []string{"--small", small, "--prompt", "Hi", "--max-tokens", "12"}
	with := func(args ...string) string {
		return fmt.Sprint(generated(t, append(append([]string(nil), base...), args...)...).Tokens)
	}
	greedy, hot := with(), with("--temperature", "2")
	for _, c := range []struct {
		name  string
		args  []string
		equal string
		same  bool
	}{
		{"seed 0 is the default", []string{"--temperature", "2", "--seed", "0"}, hot, true},
		{"seed 1 is another", []string{"--temperature", "2", "--seed", "1"}, hot, false},
		{"one to draw from", []string{"--temperature", "2", "--top-k", "1"}, greedy, true},
		{"little to draw from", []string{"--temperature", "2", "--top-p", "0.0001"}, greedy, true},
		{"nothing as likely", []string{"--temperature", "2", "--min-p", "1"}, greedy, true},
		{"no repetition", []string{"--frequency-penalty", "100"}, greedy, false},
	} {
		if got := with(c.args...); (got == c.equal) != c.same {
			t.Errorf("%s: %s, want it equal to %s: %v", c.name, got, c.equal, c.same)
		}
	}
}

// TestGenerateStop: the answer ends before a stop string.
func TestGenerateStop(t *testing.T) {
	small, _ := tinyPair(t)
	args := []string{"--small", small, "--prompt", "Hi", "--max-tokens", "30", "--temperature", "1"}
	whole := generated(t, args...)
	runes := []rune(whole.Text)
	stop := string(runes[len(runes)/2 : len(runes)/2+2])
	before, _, _ := strings.Cut(whole.Text, stop)
	got := generated(t, append(args, "--stop", "never there", "--stop", stop)...)
	if got.Text != before || got.FinishReason != "stop" || len(got.Tokens) >= len(whole.Tokens) {
		t.Errorf("stop %q: %+v\nof %+v", stop, got, whole)
	}
	if diff := cmp.Diff(whole.Tokens[:len(got.Tokens)], got.Tokens); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
}

// TestGenerateRouter: a router folder alone says algorithm and threshold, and drafts are dropped.
func TestGenerateRouter(t *testing.T) {
	small, large := tinyPair(t)
	dir := filepath.Join(t.TempDir(), "router")
	if err := router.Make(dir, router.PublishedShape(router.CoLLM, 256), 1); err != nil {
		t.Fatal(err)
	}
	args := []string{"--small", small, "--large", large, "--router", dir, "--prompt", "Hi", "--max-tokens", "20"}
	a := generated(t, args...)
	ofLarge := int32(0)
	for _, m := range a.Origin {
		ofLarge += int32(m)
	}
	if a.DroppedDrafts != ofLarge || ofLarge == 0 || ofLarge == int32(len(a.Tokens)) {
		t.Errorf("%d drafts dropped, %d tokens of the large model, of %d: want as many, and some", a.DroppedDrafts,
			ofLarge, len(a.Tokens))
	}
	never := generated(t, append(args, "--threshold", "1")...)
	only := generated(t, "--small", small, "--prompt", "Hi", "--max-tokens", "20")
	if diff := cmp.Diff(only.Tokens, never.Tokens); diff != "" || never.DroppedDrafts != 0 {
		t.Errorf("never routed, %d dropped (-small alone +got):\n%s", never.DroppedDrafts, diff)
	}
}

// TestGenerateMany: prompts of a file, several in flight, give the answers that they give alone; the turn log
// of the run replays.
func TestGenerateMany(t *testing.T) {
	small, large := tinyPair(t)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	asked := []string{"one", "two two", "a third prompt", "4", "five", "and six"}
	log := filepath.Join(dir, "turns.jsonl.gz")
	base := []string{"--small", small, "--large", large, "--algorithm", "me", "--temperature", "0.9",
		"--max-tokens", "16"}
	var all answersJSON
	prompts := file("p.txt", strings.Join(asked, "\n\n")+"\n")
	decode(t, mustRun(t, append([]string{"generate", "--json", "--prompts", prompts, "-n", "4", "--seed", "3",
		"--turnlog", log}, base...)...), &all)
	if len(all.Answers) != len(asked) {
		t.Fatalf("%d answers, want %d", len(all.Answers), len(asked))
	}
	tokens := 0
	for i, text := range asked {
		alone := generated(t, append([]string{"--prompt", text, "--seed", fmt.Sprint(3 + i)}, base...)...)
		alone.Throughput = all.Answers[i].Throughput
		if diff := cmp.Diff(alone, all.Answers[i]); diff != "" {
			t.Errorf("%q (-alone +together):\n%s", text, diff)
		}
		tokens += alone.CompletionTokens
	}
	if all.CompletionTokens != tokens || all.Shares[0]+all.Shares[1] != 1 || all.Shares[0] == 0 ||
		all.BookkeepingShare <= 0 || all.BookkeepingShare >= 1 {
		t.Errorf("%d tokens, shares %v, bookkeeping %v, want %d tokens of both", all.CompletionTokens, all.Shares,
			all.BookkeepingShare, tokens)
	}
	if out := mustRun(t, "trace", "replay", log); !strings.Contains(out, "all actions are equal") {
		t.Errorf("replay: %s", out)
	}

	lines := `{"prompt": "one", "id": "a1"}
{"messages": [{"role": "user", "content": "two two"}]}
`
	var two answersJSON
	prompts = file("p.jsonl", lines)
	args := []string{"generate", "--json", "--prompts", prompts, "--seed", "3"}
	decode(t, mustRun(t, append(args, base...)...), &two)
	for i := range two.Answers {
		two.Answers[i].Throughput = all.Answers[i].Throughput
		if want := []string{"a1", ""}[i]; two.Answers[i].ID != want {
			t.Errorf("id %q, want %q", two.Answers[i].ID, want)
		}
		two.Answers[i].ID = ""
	}
	if diff := cmp.Diff(all.Answers[:2], two.Answers); diff != "" {
		t.Errorf("JSON lines (-text +JSON):\n%s", diff)
	}
}

// TestGenerateText: without --json, text on standard output and a line about it on standard error.
func TestGenerateText(t *testing.T) {
	small, large := tinyPair(t)
	args := []string{"--small", small, "--large", large, "--algorithm", "rstitch", "--threshold", "2",
		"--prompt", "Hi", "--max-tokens", "8"}
	want := generated(t, args...)
	o := runCLI(t, append([]string{"generate", "--json=false"}, args...)...)
	if o.code != ExitDone || o.stdout != strings.TrimSuffix(want.Text, "\n")+"\n" {
		t.Errorf("exit %d, stdout %q, want %q", o.code, o.stdout, want.Text)
	}
	for _, part := range []string{"8 tokens, ", " tok/s, 0.0 % by llm, 0 drafts dropped, bookkeeping "} {
		if !strings.Contains(o.stderr, part) {
			t.Errorf("stderr %q, want %q in it", o.stderr, part)
		}
	}
}

func TestGenerateRefused(t *testing.T) {
	small, large := tinyPair(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	empty, bad := write("empty.txt", "\n"), write("bad.jsonl", "{\"prompt\": \"a\"}\n{\"promt\": \"b\"}\n")
	file := write("pair.toml", "[[models]]\ndir = \"none\"\n")
	one := []string{"generate", "--small", small, "--prompt", "Hi"}
	two := []string{"generate", "--small", small, "--large", large, "--prompt", "Hi"}
	with := func(base []string, args ...string) []string { return slices.Concat(base, args) }
	refuse(t, []refusal{
		{"no prompt", []string{"generate", "--small", small}, []string{"want --prompt or --prompts"}},
		{"no model", []string{"generate", "--prompt", "x"},
			[]string{"--small, --large, --model: want 1 to 8 models"}},
		{"no such folder", []string{"generate", "--small", "/none", "--prompt", "x"},
			[]string{`--small: want a model folder: "/none" does not exist`}},
		{"no model in it", []string{"generate", "--small", dir, "--prompt", "x"}, []string{"config.json"}},
		{"no algorithm", two, []string{"--algorithm: want one of r2r, citer"}},
		{"algorithm", with(two, "--algorithm", "r2d2"), []string{`--algorithm = "r2d2", want r2r, citer`}},
		{"no router", with(two, "--algorithm", "r2r"), []string{"--router: want a router folder: none is given"}},
		{"no threshold", with(two, "--algorithm", "rstitch"), []string{"--threshold: want a number"}},
		{"threshold", with(two, "--algorithm", "rstitch", "--threshold", "nan"),
			[]string{"want a number from -1 to 2"}},
		{"pair of one", with(one, "--algorithm", "rstitch", "--threshold", "1"), []string{"want 2 models for it"}},
		{"weights", with(two, "--algorithm", "me", "--lambda", "1,2,3"), []string{"--lambda: want 2 numbers"}},
		{"flags and file", with(one, file), []string{"--small and", "want flags or a file, not both"}},
		{"file", []string{"generate", file, "--prompt", "x"},
			[]string{"system ", "pair.toml:2: models[0].dir = \"none\", want a model folder"}},
		{"long prompt", with(one, "--context-max", "16"),
			[]string{"--prompt: the prompt has 21 tokens, want at most 15"}},
		{"long answer", with(one, "--context-max", "32", "--max-tokens", "12"),
			[]string{"--max-tokens = 12, want at most 11"}},
		{"context", with(one, "--context-max", "5000"), []string{`model "slm" can have 4096`}},
		{"no token", with(one, "--max-tokens", "0"), []string{"--max-tokens", "want a whole number from 1"}},
		{"empty prompt", []string{"generate", "--small", small, "--prompt", "", "--no-chat"},
			[]string{"the prompt is empty"}},
		{"temperature", with(one, "--temperature", "-1"), []string{"--temperature = -1, want 0 to 100"}},
		{"top-p", with(one, "--top-p", "2"), []string{"--top-p = 2, want 0 to 1"}},
		{"seed", with(one, "--seed", "-1"), []string{`--seed = "-1", want a whole number from 0`}},
		{"stop", with(one, "--stop", ""), []string{`--stop = "", want text`}},
		{"both chats", with(one, "--chat", "--no-chat"), []string{"want one of them"}},
		{"system without chat", with(one, "--no-chat", "--system", "x"), []string{"want a chat template for them"}},
		{"template argument", with(one, "--template-arg", "x"), []string{"want NAME=VALUE"}},
		{"in flight", with(one, "-n", "2"), []string{"-n: want it with --prompts only"}},
		{"no such prompts", []string{"generate", "--small", small, "--prompts", "/none"},
			[]string{`"/none" does not exist`}},
		{"no prompts", []string{"generate", "--small", small, "--prompts", empty}, []string{"has no prompt"}},
		{"bad line", []string{"generate", "--small", small, "--prompts", bad},
			[]string{"bad.jsonl:2: ", `"promt"`}},
		{"turn log", with(one, "--turnlog", "/none/x"), []string{`--turnlog = "/none/x", want a file`}},
	})
}

// TestGenerateInterrupted: an interrupt keeps what has come, and says so.
func TestGenerateInterrupted(t *testing.T) {
	small, _ := tinyPair(t)
	f := newGenerateFlags(nativetest.Fake())
	f.system.small = small
	f.tokensMax.of = 4000
	plan, err := f.prepare(nil, pflag.NewFlagSet("", pflag.ContinueOnError), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	prompts, err := f.encode(plan, []prompt{{text: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	prompts[0].Sampling.IgnoreEOS = true
	ctx, stop := context.WithCancel(t.Context())
	stdout, stderr := interrupting{stop: stop}, bytes.Buffer{}
	s := session{plan: plan, prompts: prompts, ids: make([]string, len(prompts)), inFlight: 1,
		stdout: &stdout, stderr: &stderr}
	if err := s.run(ctx, outputFiles{}, 0); err == nil || err.Error() != "interrupted; 0 of 1 answer whole" {
		t.Errorf("error %v", err)
	}
	a := s.document(0)
	if a.FinishReason != "cancelled" || len(a.Tokens) == 0 || len(a.Tokens) == 4000 ||
		strings.TrimSuffix(stdout.String(), "\n") != strings.TrimSuffix(a.Text, "\n") {
		t.Errorf("%+v with %q printed", a, stdout.String())
	}
	if !strings.Contains(stderr.String(), fmt.Sprint(len(a.Tokens), " tokens, ")) {
		t.Errorf("stderr %q, want %d tokens in it", stderr.String(), len(a.Tokens))
	}
}

// interrupting is an output whose first reader has seen enough.
type interrupting struct {
	bytes.Buffer
	stop func()
}

func (w *interrupting) WriteString(s string) (int, error) {
	w.stop()
	return w.Buffer.WriteString(s)
}

// TestGenerateFails: an error of a device or in a row is told with model and place, and exits 1.
func TestGenerateFails(t *testing.T) {
	small, _ := tinyPair(t)
	for _, c := range []struct {
		name        string
		last        rune // of the prompt: what the fake does
		error, told string
	}{
		{"device", nativetest.FailToken, "1 of 1 answer failed: model 0 (slm): ",
			"device failed at model slm after 0 tokens"},
		{"not a number", nativetest.NaNToken,
			"1 of 1 answer failed: model 0 (slm): step 1: request 0: the logits are not finite",
			"model 0 (slm): step 1: request 0: the logits are not finite"},
	} {
		root := &cobra.Command{Use: "tokenrouter", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(newGenerateOn(nativetest.Fake()))
		var stdout bytes.Buffer
		root.SetOut(&stdout)
		root.SetErr(&bytes.Buffer{})
		prompt := "x" + string(c.last)
		root.SetArgs([]string{"generate", "--small", small, "--no-chat", "--json", "--prompt", prompt})
		err := root.ExecuteContext(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), c.error) {
			t.Errorf("%s: error %v, want %s", c.name, err, c.error)
		}
		var a answerJSON
		decode(t, stdout.String(), &a)
		if a.FinishReason != "error" || a.Error != c.told || len(a.Tokens) != 0 {
			t.Errorf("%s: %+v, want error %q", c.name, a, c.told)
		}
	}
}

// TestGenerateFailsApart: of several answers each that fails says its own step, and the others are whole.
func TestGenerateFailsApart(t *testing.T) {
	small, _ := tinyPair(t)
	prompts := putFile(t, t.TempDir(), "prompts.txt", "x\x02\nabc\ny\x02\n")
	var stdout bytes.Buffer
	const first = "model 0 (slm): step 1: request 0: the logits are not finite"
	run := func(format string) {
		root := &cobra.Command{Use: "tokenrouter", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(newGenerateOn(nativetest.Fake()))
		stdout.Reset()
		root.SetOut(&stdout)
		root.SetErr(&bytes.Buffer{})
		root.SetArgs([]string{"generate", "--small", small, "--no-chat", format, "--prompts", prompts, "-n", "1",
			"--max-tokens", "4"})
		if err := root.ExecuteContext(t.Context()); err == nil || err.Error() != "2 of 3 answers failed: "+first {
			t.Errorf("error %v", err)
		}
	}
	run("--json=false")
	titles := slices.DeleteFunc(strings.Split(stdout.String(), "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "---")
	})
	want := []string{"--- 1 of 3, failed: " + first, "--- 2 of 3",
		"--- 3 of 3, failed: model 0 (slm): step 6: request 2: the logits are not finite"}
	if diff := cmp.Diff(want, titles); diff != "" {
		t.Errorf("titles of answers (-want +got):\n%s", diff)
	}
	run("--json")
	var all struct {
		Answers []answerJSON `json:"answers"`
		totalsJSON
	}
	decode(t, stdout.String(), &all)
	// The second prompt takes the steps 2 to 5: one token each.
	for i, want := range []string{first, "", "model 0 (slm): step 6: request 2: the logits are not finite"} {
		if a := all.Answers[i]; a.Error != want || (want == "") != (len(a.Tokens) == 4) {
			t.Errorf("answer %d: %+v, want error %q", i, a, want)
		}
	}
}

// TestPainter: a colour a model, switched where the model changes; control characters never reach a screen.
func TestPainter(t *testing.T) {
	small, large := tinyPair(t)
	y := spec.NewSystem(spec.Folder(small), spec.Folder(large))
	y.Router.Algorithm = "me"
	plan, err := system.Prepare(y, system.Choice{Backend: nativetest.Fake()})
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	for _, c := range []struct {
		name            string
		screen, colours bool
		pieces          []answer.Piece
		want            string
	}{
		{"colours", true, true, []answer.Piece{{Text: "a", Model: 0}, {Text: "b", Model: 0}, {Text: "c", Model: 1}},
			"\x1b[36mab\x1b[33mc\x1b[0m\n"},
		{"line ended", true, true, []answer.Piece{{Text: "a\n", Model: 1}}, "\x1b[33ma\n\x1b[0m"},
		{"plain", true, false, []answer.Piece{{Text: "a", Model: 0}, {Text: "c", Model: 1}}, "ac\n"},
		{"control", true, false, []answer.Piece{{Text: "\x1b[2Ja\r\tb\u009bc"}}, "\ufffd[2Ja\ufffd\tb\ufffdc\n"},
		{"control in a file", false, false, []answer.Piece{{Text: "\x1b[2J"}}, "\x1b[2J\n"},
		{"nothing", true, true, nil, ""},
	} {
		var b bytes.Buffer
		p := newPainter(&b, plan)
		p.screen, p.colours = c.screen, c.colours
		for _, piece := range c.pieces {
			p.piece(piece)
		}
		p.end()
		if b.String() != c.want {
			t.Errorf("%s: %q, want %q", c.name, b.String(), c.want)
		}
	}
}
