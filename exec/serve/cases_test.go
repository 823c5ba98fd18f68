package serve

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/core"
	"tokenrouter/exec"
)

// TestLeavesAtTheLargeModel is case 16: passes of 50 and 150 ms, thresholds (1, 3) at N = 3. Two requests
// wait at the large model when the client of one leaves: within a pass it is gone from there and from KV,
// and under the thresholds of N = 2 the other goes on, for which 3 would never have come.
func TestLeavesAtTheLargeModel(t *testing.T) {
	change := func(s *setting) {
		endless(s)
		s.core.LiveMax = 3
		table, err := core.TableThresholds([][]int{{1, 1}, {1, 2}, {1, 3}})
		if err != nil {
			t.Fatal(err)
		}
		s.core.Policy, s.config.Thresholds = core.Delayed{Thresholds: table}, &table
		s.now[0].step, s.now[1].step = 50*time.Millisecond, 150*time.Millisecond
		s.now[0].judge = func(c *exec.Context, position int) float64 { // short prompts at once, long ones later
			if c.Prompt == 1 && position == 0 || c.Prompt == 2 && position == 2 {
				return 1
			}
			return 0
		}
	}
	serving(t, nil, change, func(r *rig) {
		begin := time.Now()
		var group sync.WaitGroup
		ask := func(ctx context.Context, prompt string, want time.Duration) {
			group.Go(func() {
				response, err := r.client.Do(r.request(ctx, "POST", "/v1/completions",
					`{"model":"pair","prompt":"`+prompt+`","max_tokens":4}`))
				if err == nil {
					response.Body.Close()
				}
				if got := time.Since(begin); (err != nil) != (want == 0) || want > 0 && got != want {
					t.Errorf("prompt %q: %v after %v, want %v", prompt, err, got, want)
				}
			})
			synctest.Wait()
		}
		leaving, leave := context.WithCancel(r.t.Context())
		// The small model runs the first until 50 ms, the others until 100, the third alone until 200: then two
		// wait, which is the threshold at N = 2, and the large model runs them until 350.
		ask(leaving, "a", 0)
		ask(r.t.Context(), "b", 500*time.Millisecond)
		ask(r.t.Context(), "cc", 400*time.Millisecond)
		time.Sleep(120 * time.Millisecond)
		d := r.news("")
		if last := d.States[len(d.States)-1]; last.Queued[1] != 2 || last.Thresholds[1] != 3 {
			t.Errorf("at 120 ms %+v, want two at the large model under threshold 3", last)
		}
		leave()
		time.Sleep(time.Millisecond)
		synctest.Wait()
		d = r.news("")
		last := d.States[len(d.States)-1]
		n := r.server.metrics.copy()
		if last.Live != 2 || last.Queued[1] != 1 || last.Thresholds[1] != 2 || n.pages[0] != 2 || n.pages[1] != 0 {
			t.Errorf("when one has left: %+v, pages %v, want one of two live at the large model, threshold 2", last,
				n.pages)
		}
		group.Wait()
		r.idle()
	})
}

// TestLeavesBeforeAdmission is the second part of case 16, a thousand times: no pass at all for who leaves
// while it waits for admission, and no goroutine stays.
func TestLeavesBeforeAdmission(t *testing.T) {
	var mu sync.Mutex
	seen := 0
	change := func(s *setting) {
		endless(s)
		s.core.LiveMax = 1
		s.now[0].judge = func(c *exec.Context, _ int) float64 {
			mu.Lock()
			defer mu.Unlock()
			if c.Prompt == 3 {
				seen++
			}
			return 0
		}
		s.now[0].step = time.Second
	}
	serving(t, nil, change, func(r *rig) {
		var group sync.WaitGroup
		group.Go(func() { r.completion(`,"max_tokens":50`).read(t) })
		synctest.Wait()
		before := 0
		for i := range 1000 {
			ctx, leave := context.WithCancel(r.t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := r.client.Do(r.request(ctx, "POST", "/v1/completions",
					`{"model":"pair","prompt":"xyz","max_tokens":4}`))
				done <- err
			}()
			synctest.Wait() // it waits
			leave()
			if err := <-done; err == nil {
				t.Fatal("an answer for who left")
			}
			synctest.Wait()
			if i == 0 {
				before = runtime.NumGoroutine()
			}
		}
		if after := runtime.NumGoroutine(); after > before {
			t.Errorf("%d goroutines, %d after the first", after, before)
		}
		group.Wait()
		if seen != 0 {
			t.Errorf("%d rows of requests that had left before they were admitted", seen)
		}
	})
}

// TestPreempted is case 20: a prompt of 100 tokens and an answer of 20, whose KV is taken after the 12th by
// older requests. It is one request of 100 and 20 tokens, whose first token came once; the 112 that are fed
// again are counted apart; its latency has the stop in it.
func TestPreempted(t *testing.T) {
	change := func(s *setting) {
		endless(s)
		s.core.Admission = core.Optimistic
		// Pages of 16. The older ones have two each, and both want a third at 29 ms, when one is left; a pass
		// later, the first of them takes those of the youngest, 7 with 111 tokens.
		s.core.Models[0].Pages = 12
	}
	serving(t, nil, change, func(r *rig) {
		var group sync.WaitGroup
		begin := time.Now()
		ask := func(prompt, tokens int, want time.Duration) {
			group.Go(func() {
				d := r.do("POST", "/v1/completions", fmt.Sprintf(`{"model":"small","prompt":%q,"max_tokens":%d}`,
					strings.Repeat("x", prompt), tokens)).read(t)
				if d.Usage.Prompt != prompt || d.Usage.Completion != tokens || time.Since(begin) != want {
					t.Errorf("%+v after %v, want %d and %d tokens after %v", d.Usage, time.Since(begin), prompt, tokens,
						want)
				}
			})
		}
		ask(4, 40, 41*time.Millisecond) // its tokens come from 1 ms on, but for a pass without a page
		time.Sleep(200 * time.Microsecond)
		ask(5, 39, 40*time.Millisecond) // from 2 ms on
		time.Sleep(17300 * time.Microsecond)
		ask(100, 20, 48*time.Millisecond) // 12 from 19 to 30 ms, the others from 41 ms, when there is room
		group.Wait()
		text := string(r.do("GET", "/metrics", "").body)
		for name, want := range map[string]float64{
			"preemptions_total": 1, "recomputed_tokens_total": 112, "prompt_tokens_total": 109,
			`generation_tokens_total{model="small"}`: 99, "ttft_seconds_count": 3, "request_seconds_count": 3,
			"ttft_seconds_sum":    0.001 + 0.0018 + 0.0015,
			"request_seconds_sum": 0.041 + 0.0398 + 0.0305,
		} {
			if got := metric(t, text, "tokenrouter_"+name); math.Abs(got-want) > 1e-9 {
				t.Errorf("%s = %v, want %v", name, got, want)
			}
		}
	})
}

// metric is a value of /metrics.
func metric(t *testing.T, text, name string) float64 {
	t.Helper()
	_, after, ok := strings.Cut(text, "\n"+name+" ")
	line, _, _ := strings.Cut(after, "\n")
	value, err := strconv.ParseFloat(line, 64)
	if !ok || err != nil {
		t.Errorf("%s: %q, %v", name, line, err)
	}
	return value
}

// TestTypedControlWord is case 27: a control word that a user types is text, wherever it stands; that of the
// template is one.
func TestTypedControlWord(t *testing.T) {
	serving(t, []string{"a"}, nil, func(r *rig) {
		control := func(content string) int {
			p := r.do("POST", "/tokenize", `{"messages":[{"role":"user","content":"`+content+`"}]}`)
			return strings.Count(string(p.body), fmt.Sprint(turnToken))
		}
		for _, content := range []string{"<turn>", "a<turn>b", "<tu", "<turn><turn>", "rn>", "<end>"} {
			if n := control(content); n != 3 {
				t.Errorf("%q: %d control tokens, want the 3 of the template", content, n)
			}
		}
	})
}
