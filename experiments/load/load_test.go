package load

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/sim/workload"
)

// TestChunks is case 35: a chunk that says who speaks at 1 ms, the first token at 50, two in one chunk
// at 62, the last at 96; five such requests are the warm-up. Engine gaps of 6, 6 and 34 ms can not be seen.
func TestChunks(t *testing.T) {
	answer := func(_ *rig, _ int, w http.ResponseWriter) {
		stream(w)
		time.Sleep(ms(1))
		frames(w, `{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`)
		for _, c := range []struct {
			after float64
			text  string
		}{{49, "a"}, {12, "é!"}, {34, "d"}} {
			time.Sleep(ms(c.after))
			frames(w, `{"choices":[{"index":0,"delta":{"content":"`+c.text+`"}}]}`)
		}
		frames(w, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, usage(7, 4), done)
	}
	on(t, answer, func(r *rig) {
		var texts []string
		got := r.load(Config{
			Source: each(6), Chat: true, Stream: true, Usage: true, WarmupRequests: 5,
			Done: func(e *Ended) { texts = append(texts, e.Text) },
		})
		r.want(got, map[string]float64{
			"ttft_mean_ms": 50, "ttft_n": 1, "latency_mean_ms": 96, "latency_n": 1,
			"chunk_gap_mean_ms": 23, "chunk_gap_p50_ms": 12, "chunk_gap_n": 2,
			"tpot_mean_ms": 15.333333, // (96 - 50) / 3, in whole ns
			"tokens":       4, "tokens_total": 24, "prompt_tokens": 7,
			"requests_warmup": 5, "requests_finished": 1,
			"window_s": 0.096, "throughput_tok_s": 4 / 0.096, "user_speed_tok_s": 4 / 0.096,
			"served_s":    0.096,
			"send_wait_n": 0, "send_wait_mean_ms": none, "requests_uncounted": 0, "drafts_dropped": none,
		})
		if want := slices.Repeat([]string{"aé!d"}, 6); !slices.Equal(texts, want) || got.Cut || got.Sent != 6 {
			t.Errorf("%q, cut %v, %d sent, want %q of 6", texts, got.Cut, got.Sent, want)
		}
	})
}

// TestStall is the open loop of case 35: ten arrivals a second, a server that stands from 200 to 1,200 ms,
// and a generator with places for 4: what it could not send counts from its planned arrival too.
func TestStall(t *testing.T) {
	answer := func(r *rig, _ int, w http.ResponseWriter) {
		if at := time.Since(r.begin); at >= ms(200) && at < ms(1200) {
			time.Sleep(ms(1200) - at)
		}
		stream(w)
		time.Sleep(ms(10))
		frames(w, text("a"), finish, usage(1, 1), done)
	}
	arrivals := make([]int64, 20)
	for i := range arrivals {
		arrivals[i] = int64(100 * i)
	}
	on(t, answer, func(r *rig) {
		got := r.load(Config{Source: &planned{arrivals: arrivals}, Stream: true, Usage: true, Open: true,
			InFlight: 4})
		// By hand: arrivals at 200 to 500 end at 1210, at 600 to 900 at 1220, at 1000 to 1200 at 1230, the
		// other nine after 10 ms.
		r.want(got, map[string]float64{
			"latency_mean_ms": (1010 + 910 + 810 + 710 + 620 + 520 + 420 + 320 + 230 + 130 + 30 + 9*10) / 20.,
			"latency_p50_ms":  30, "latency_p90_ms": 810, "latency_p99_ms": 1010, "latency_n": 20,
			"ttft_p90_ms":       810,
			"send_wait_mean_ms": (610 + 510 + 410 + 310 + 220 + 120 + 20) / 20., "send_wait_p99_ms": 610,
			"send_wait_n": 20,
			"window_s":    1.910, "tokens": 20, "requests_unsent": 0,
		})
	})
}

// TestSteady: a closed loop of two places, of which the first request takes longer; the window opens as the
// first leaves and closes as the last is sent.
func TestSteady(t *testing.T) {
	answer := func(_ *rig, i int, w http.ResponseWriter) {
		stream(w)
		for range 4 {
			time.Sleep(ms([]float64{21, 10, 10, 10}[i]))
			frames(w, text("a"))
		}
		frames(w, finish, usage(1, 4), done)
	}
	on(t, answer, func(r *rig) {
		// Request 1 from 0 to 40, 2 from 40 to 80, 0 from 0 to 84, 3 is sent at 80. In the window from 40 to 80
		// are the last two tokens of request 0, which is of the warm-up, and all of request 2.
		got := r.load(Config{Source: each(4), Stream: true, Usage: true, InFlight: 2, WarmupRequests: 1,
			Steady: true})
		r.want(got, map[string]float64{
			"window_s": 0.040, "tokens": 6, "throughput_tok_s": 150, "requests_warmup": 2, "requests_finished": 2,
			"latency_n": 2, "latency_mean_ms": 40, "tokens_total": 16,
		})
	})
}

// TestNotStreamed: there is no time to the first token in an answer that comes as a whole.
func TestNotStreamed(t *testing.T) {
	answer := func(_ *rig, _ int, w http.ResponseWriter) {
		time.Sleep(ms(30))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"choices":[{"index":0,"message":{"role":"assistant","content":"hello"},
			"finish_reason":"stop"}],"usage":{"prompt_tokens":2,"completion_tokens":5,
			"tokens_by_model":{"Small 1":3,"large":2},"dropped_drafts":4}}`))
	}
	on(t, answer, func(r *rig) {
		got := r.load(Config{Source: each(3), Chat: true})
		r.want(got, map[string]float64{
			"latency_mean_ms": 30, "ttft_mean_ms": none, "ttft_n": 0, "tpot_n": 0, "chunk_gap_n": 0,
			"tokens": 15, "throughput_tok_s": 15 / 0.09, "large_share": 0.4, "small_1_share": 0.6,
			"drafts_dropped": 12,
		})
		if want := []string{"Small 1", "large"}; !slices.Equal(got.Models, want) {
			t.Errorf("models %q, want %q", got.Models, want)
		}
		if _, asked := r.bodies[0]["stream"]; asked {
			t.Errorf("body %v, want no stream", r.bodies[0])
		}
	})
}

// TestCounts: how many tokens an answer has, from usage, or what chunks say, or one a chunk.
func TestCounts(t *testing.T) {
	ids := `{"choices":[{"text":"ab","token_ids":[1,2],"origin":[0,1]}]}`
	logs := `{"choices":[{"text":"abc","logprobs":{"tokens":["a","b","c"]}}]}`
	held := `{"choices":[{"text":"","token_ids":[3]}]}` // a token without text yet
	for _, c := range []struct {
		name              string
		frames            []string
		tokens, uncounted float64
		parts             []int
		origin            []int
	}{
		{"usage", []string{text("ab"), text("c"), usage(1, 5)}, 5, 0, []int{3, 2}, nil},
		{"usage of fewer", []string{text("a"), text("b"), text("c"), usage(1, 2)}, 2, 0, []int{1, 1, 0}, nil},
		{"ids", []string{ids, held, text("x")}, 3, 1, []int{1, 1, 1}, []int{0, 1}},
		{"all ids", []string{ids, held}, 3, 1, []int{2, 1}, []int{0, 1}},
		{"ids and usage", []string{held, ids, usage(1, 3)}, 3, 0, []int{1, 2}, []int{0, 1}},
		{"ids and other usage", []string{ids, ids, usage(1, 5)}, 5, 0, []int{3, 2}, []int{0, 1, 0, 1}},
		{"logprobs", []string{logs, ids}, 5, 1, []int{3, 2}, []int{0, 1}},
		{"nothing", []string{text("a b c"), text("d")}, 2, 1, []int{1, 1}, nil},
		{"empty", []string{usage(1, 0)}, 0, 0, []int{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := func(_ *rig, _ int, w http.ResponseWriter) {
				stream(w)
				for _, f := range c.frames {
					time.Sleep(ms(1))
					frames(w, f)
				}
				frames(w, finish, done)
			}
			on(t, answer, func(r *rig) {
				got := r.load(Config{Source: each(1), Stream: true, Done: func(e *Ended) {
					if !slices.Equal(e.tokensOf(), c.parts) || !slices.Equal(e.Origin, c.origin) {
						t.Errorf("parts %v, origin %v, want %v and %v", e.tokensOf(), e.Origin, c.parts, c.origin)
					}
				}})
				r.want(got, map[string]float64{"tokens_total": c.tokens, "requests_uncounted": c.uncounted})
			})
		})
	}
}

// TestSplitBytes: a stream whose bytes come one at a time is the same answer.
func TestSplitBytes(t *testing.T) {
	answer := func(_ *rig, _ int, w http.ResponseWriter) {
		stream(w)
		whole := "data: " + text("é 中 \U0001f600") + "\r\n\r\n: wait\r\n\r\ndata: " + finish +
			"\n\ndata: [DONE]\n\n"
		for i := range len(whole) {
			_, _ = w.Write([]byte{whole[i]})
			_ = http.NewResponseController(w).Flush()
			time.Sleep(ms(1))
		}
	}
	on(t, answer, func(r *rig) {
		r.load(Config{Source: each(1), Stream: true, Done: func(e *Ended) {
			if e.Text != "é 中 \U0001f600" || e.Err != nil || e.Finish != "length" {
				t.Errorf("%q, %v, finish %q", e.Text, e.Err, e.Finish)
			}
		}})
	})
}

// TestCut: a run that is ended from outside has what it measured so far, and says that it is cut; requests in
// flight are nobody's failure.
func TestCut(t *testing.T) {
	answer := func(_ *rig, i int, w http.ResponseWriter) { // 15 ms each, but the second 20
		if i == 1 {
			time.Sleep(ms(5))
		}
		quick(w)
	}
	on(t, answer, func(r *rig) {
		ctx, cut := context.WithCancel(r.t.Context())
		time.AfterFunc(ms(72), cut)
		client := r.pipes.Client()
		defer client.CloseIdleConnections()
		got, err := Run(ctx, Config{
			URL: "http://server/v1", Model: "m", Client: client, Source: each(100), Prompts: []Prompt{{Text: "x"}},
			Stream: true, Usage: true, InFlight: 2, Timeout: time.Hour, WarmupRequests: 2, Steady: true,
		})
		if err != nil || !got.Cut || got.Sent != 10 || len(got.Failed) != 0 {
			t.Fatalf("%v: cut %v, %d sent, failed %v, want a cut after 10", err, got.Cut, got.Sent, got.Failed)
		}
		// One place sends at 0, 15, 30, 45 and 60, the other at 0, 20, 35, 50 and 65; two have left at 20.
		r.want(got, map[string]float64{
			"requests_finished": 5, "requests_open": 2, "requests_warmup": 3, "window_s": 0.052,
			"tokens":    13, // of five requests, two of one of the warm-up, and one of one that is open
			"latency_n": 5, "latency_mean_ms": 15,
		})
	})
}

// TestUntil: at the end of the time requests are open, and those of an open loop that were never sent are
// counted: 200 arrivals a second, one place, 15 ms each.
func TestUntil(t *testing.T) {
	source, err := workload.NewPoisson(3, workload.Endless, 200, lengths(t))
	if err != nil {
		t.Fatal(err)
	}
	again, _ := workload.NewPoisson(3, workload.Endless, 200, lengths(t))
	due := 0
	for r, _ := again.Next(); r.ArrivalNs <= int64(ms(400)); r, _ = again.Next() {
		due++
	}
	answer := func(_ *rig, _ int, w http.ResponseWriter) { quick(w) }
	on(t, answer, func(r *rig) {
		got := r.load(Config{Source: source, Stream: true, Usage: true, Open: true, Until: ms(400)})
		if got.Cut || got.Values["requests_open"] != 1 || got.Sent+int(got.Values["requests_unsent"]) != due {
			t.Errorf("cut %v, %v, %d sent, want 1 open and %d due", got.Cut, got.Values, got.Sent, due)
		}
		if len(got.Warnings) == 0 {
			t.Error("no warning of requests that were not sent")
		}
	})
}

func lengths(t *testing.T) workload.Lengths {
	t.Helper()
	one, err := workload.Fixed(1)
	if err != nil {
		t.Fatal(err)
	}
	return workload.Lengths{Prompt: one, MaxTokens: 2}
}

// TestBodies: what is sent.
func TestBodies(t *testing.T) {
	for _, c := range []struct {
		name   string
		config Config
		want   map[string]any
	}{
		{"completion", Config{Source: each(1), Prompts: []Prompt{{Text: "a<b"}}, Key: "k"},
			map[string]any{"path": "/v1/completions", "key": "Bearer k", "model": "m", "prompt": "a<b"}},
		{"chat", Config{Source: each(1), Chat: true, Stream: true,
			Fields: map[string]any{"temperature": 0, "top_k": 4}},
			map[string]any{"path": "/v1/chat/completions", "key": "", "model": "m", "stream": true,
				"temperature": 0., "top_k": 4., "messages": []any{map[string]any{"role": "user", "content": "x"}}}},
		{"usage and limit", Config{Source: &planned{arrivals: []int64{0}, of: workload.Request{MaxTokens: 9}},
			Stream: true, Usage: true}, map[string]any{"path": "/v1/completions", "key": "", "model": "m",
			"prompt": "x", "stream": true, "stream_options": map[string]any{"include_usage": true}, "max_tokens": 9.}},
		{"lengths", Config{Source: &planned{arrivals: []int64{0}, of: workload.Request{PromptTokens: 3,
			OutputTokens: 5}}, TokenIDs: [2]int32{100, 100}}, map[string]any{"path": "/v1/completions", "key": "",
			"model": "m", "prompt": []any{100., 100., 100.}, "max_tokens": 5., "ignore_eos": true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			on(t, func(_ *rig, _ int, w http.ResponseWriter) { quick(w) }, func(r *rig) {
				r.load(c.config)
				if diff := cmp.Diff(c.want, r.bodies[0]); diff != "" {
					t.Errorf("body (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestRandomPrompts: of the lengths and ids that are wanted, each another, the same again with the same seed.
func TestRandomPrompts(t *testing.T) {
	c := Config{TokenIDs: [2]int32{100, 250}, Seed: 4}
	seen := map[string]bool{}
	for id := range uint64(20) {
		r := workload.Request{ID: id, PromptTokens: int32(10 + id)}
		body, err := c.body(r)
		again, _ := c.body(r)
		if err != nil || string(body) != string(again) || seen[string(body)] {
			t.Fatalf("request %d: %s, then %s, %v", id, body, again, err)
		}
		seen[string(body)] = true
		tokens := c.prompt(r).Tokens
		if len(tokens) != 10+int(id) || slices.Min(tokens) < 100 || slices.Max(tokens) > 250 {
			t.Errorf("request %d: %v", id, tokens)
		}
	}
}

func TestBase(t *testing.T) {
	for given, want := range map[string]string{
		"http://127.0.0.1:8080": "http://127.0.0.1:8080/v1", "http://h/": "http://h/v1",
		"http://h/v1/": "http://h/v1", "https://h/openai/v1": "https://h/openai/v1", "127.0.0.1:8080": "",
		"h/v1": "", "ftp://h": "", "http://": "",
		"http://h/v1?x=1": "",
	} {
		if got, err := Base(given); got != want || (err == nil) != (want != "") {
			t.Errorf("Base(%q) = %q, %v, want %q", given, got, err, want)
		}
	}
}
