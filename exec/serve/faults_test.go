package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// endless makes answers that go on until they are cut.
func endless(s *setting) { s.now[0].script, s.now[1].script = nil, nil }

// TestAdmission: choices beyond the places are refused with 429 and Retry-After, all of a request or none,
// and a place is free again when its choice has left.
func TestAdmission(t *testing.T) {
	serving(t, nil, endless, func(r *rig) {
		var group sync.WaitGroup
		for range 6 {
			group.Go(func() { r.completion(`,"max_tokens":100`).read(t) })
		}
		time.Sleep(10 * time.Millisecond)
		p := r.completion(`,"n":3`)
		if _, message := p.failure(t); p.status != 429 || p.header.Get("Retry-After") == "" ||
			!strings.Contains(message, "6 of 8 places are taken, 3 are wanted") {
			t.Errorf("%d, Retry-After %q: %s", p.status, p.header.Get("Retry-After"), message)
		}
		health := r.do("GET", "/health", "")
		if !strings.Contains(string(health.body), `"live":4,"waiting":2,"places":8,"places_taken":6`) {
			t.Errorf("health %s", health.body)
		}
		if p := r.completion(`,"n":2,"max_tokens":1`); p.status != 200 {
			t.Errorf("two of two places: %d %s", p.status, p.body)
		}
		group.Wait()
		r.idle()
	})
}

// TestDisconnect is case 15: who leaves is gone within a pass, wherever the request is: running, waiting
// for a model, waiting for admission; the others go on, with their own tokens.
func TestDisconnect(t *testing.T) {
	serving(t, nil, endless, func(r *rig) {
		want := r.completion(`,"max_tokens":60,"seed":5`).read(t).Choices[0].Text
		ctx, leave := context.WithCancel(r.t.Context())
		var group sync.WaitGroup
		for i := range 7 { // 4 live, 3 waiting
			group.Go(func() {
				stream := []string{"", `,"stream":true`}[i%2]
				request := r.request(ctx, "POST", "/v1/completions",
					`{"model":"pair","prompt":"x","max_tokens":200`+stream+`}`)
				response, err := r.client.Do(request)
				if err == nil {
					_, err = io.ReadAll(response.Body)
					response.Body.Close()
				}
				if !errors.Is(err, context.Canceled) {
					t.Errorf("client %d: %v", i, err)
				}
			})
			time.Sleep(time.Millisecond)
		}
		group.Go(func() {
			if got := r.completion(`,"max_tokens":60,"seed":5`).read(t).Choices[0].Text; got != want {
				t.Errorf("who stays has %q, alone %q", got, want)
			}
		})
		time.Sleep(10 * time.Millisecond)
		before := r.machines[0].rowsSeen()
		leave()
		time.Sleep(3 * time.Millisecond) // the pass in flight, and one more
		synctest.Wait()
		if n := r.server.metrics.copy(); n.live != 1 || n.waiting != 0 {
			t.Errorf("3 ms later: %d live, %d waiting, want 1 and 0", n.live, n.waiting)
		}
		group.Wait()
		if after := r.machines[0].rowsSeen() - before; after > 60+8 {
			t.Errorf("%d rows after the others had left, want about 60", after)
		}
		r.idle()
	})
}

// TestEngineFailure is case 14 (b): the large model fails in the middle of a stream: one error frame, no
// reason to finish, no [DONE]; who was not in the pass goes on; later requests are served.
func TestEngineFailure(t *testing.T) {
	change := func(s *setting) {
		odd(s)
		s.now[1].fail = func(pass int) error {
			if pass == 1 {
				return errors.New("a fuse blew")
			}
			return nil
		}
	}
	serving(t, []string{"a", "b", "c"}, change, func(r *rig) {
		p := r.chat(`,"stream":true`)
		last := decoded(t, []byte(p.frames[len(p.frames)-1]))
		text, finish := p.text(t, 0)
		if text != "a" || finish != "" || last.Error == nil || last.Error.Type != "server_error" ||
			*last.Error.Code != "device_failed" ||
			last.Error.Message != "device failed at model large after 1 tokens" {
			t.Errorf("%q, finish %q: %s", text, finish, p.frames[len(p.frames)-1])
		}
		r.idle()
		if d := r.chat("").read(t); d.Choices[0].Message.Content != "abc" {
			t.Errorf("afterwards: %q", d.Choices[0].Message.Content)
		}
	})
}

// TestEntry: with routing by request a prompt is answered by the model that the router says, alone, at the
// request's own threshold if it has one. A router that fails is an error without what it said, and is asked
// nothing for who has no place.
func TestEntry(t *testing.T) {
	var judged atomic.Int32
	change := func(s *setting) {
		endless(s)
		s.config.Entry = func(ids []int32, threshold *float64) (int, error) {
			judged.Add(1)
			switch {
			case len(ids) > 2:
				return 0, errors.New("router /srv/router: score NaN")
			case threshold != nil && *threshold == 0.25:
				return 1, nil
			}
			return len(ids) - 1, nil
		}
	}
	serving(t, nil, change, func(r *rig) {
		ask := func(prompt string, tokens int) *reply {
			return r.do("POST", "/v1/completions", fmt.Sprintf(
				`{"model":"pair","prompt":%s,"max_tokens":%d,"return_origin":true}`, prompt, tokens))
		}
		if d := r.completion(`,"routing_threshold":0.25,"max_tokens":2`).read(t); d.Usage.ByModel["large"] != 2 {
			t.Errorf("at a threshold of its own: %+v", d.Usage)
		}
		for i, c := range ask(`["a","ab"]`, 2).read(t).Choices {
			if diff := cmp.Diff([]int{i, i}, c.Origin); diff != "" {
				t.Errorf("prompt of %d tokens: origin (-want +got):\n%s", i+1, diff)
			}
		}
		p := ask(`"abc"`, 2)
		if _, message := p.failure(t); p.status != 500 || strings.Contains(message, "/srv") {
			t.Errorf("a router that fails: %d %s", p.status, message)
		}
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() { ask(`"a"`, 20).read(t) })
		}
		time.Sleep(time.Millisecond)
		before := judged.Load()
		if p := ask(`"a"`, 1); p.status != 429 || judged.Load() != before {
			t.Errorf("without a place: %d, judged %d prompts", p.status, judged.Load()-before)
		}
		group.Wait()
		r.idle()
	})
}

// TestFatal: a device that will not run again: the touched request has status 500, later ones 503, and
// /health says so.
func TestFatal(t *testing.T) {
	broken := errors.New("gone for good")
	change := func(s *setting) {
		s.now[0].fail = func(int) error { return broken }
		s.config.Fatal = func(err error) bool { return errors.Is(err, broken) }
	}
	serving(t, []string{"a"}, change, func(r *rig) {
		for _, c := range []struct {
			status int
			retry  string // Retry-After
		}{{500, ""}, {503, "60"}} {
			if p := r.completion(""); p.status != c.status || p.header.Get("Retry-After") != c.retry {
				t.Errorf("%d, Retry-After %q: %s, want %d and %q", p.status, p.header.Get("Retry-After"), p.body,
					c.status, c.retry)
			}
		}
		p := r.do("GET", "/health", "")
		if p.status != 503 || !strings.Contains(string(p.body), `"status":"failed"`) ||
			!strings.Contains(string(p.body), "gone for good") {
			t.Errorf("health: %d %s", p.status, p.body)
		}
	})
}

// TestNotANumber: logits that are no numbers end their own request, and no other of the batch.
func TestNotANumber(t *testing.T) {
	change := func(s *setting) {
		s.now[0].empty = func(id uint64, position int) bool { return id == 0 && position == 1 }
	}
	serving(t, []string{"a", "b"}, change, func(r *rig) {
		var group sync.WaitGroup
		group.Go(func() {
			if p := r.completion(""); p.status != 500 || !strings.Contains(string(p.body), `"code":"not_a_number"`) {
				t.Errorf("%d %s", p.status, p.body)
			}
		})
		time.Sleep(100 * time.Microsecond)
		group.Go(func() {
			if got := r.completion("").read(t).Choices[0].Text; got != "ab" {
				t.Errorf("the other has %q", got)
			}
		})
		group.Wait()
	})
}

// TestTimeLimit: a request that takes longer than it may ends with 504, or an error frame where its stream
// has begun, one that waits for admission too.
func TestTimeLimit(t *testing.T) {
	serving(t, nil, endless, func(r *rig) {
		begun := time.Now()
		p := r.completion(`,"max_tokens":200,"timeout_s":0.02`)
		if _, message := p.failure(t); p.status != 504 || time.Since(begun) > 22*time.Millisecond {
			t.Errorf("%d after %v: %s", p.status, time.Since(begun), message)
		}
		p = r.completion(`,"max_tokens":200,"timeout_s":0.02,"stream":true`)
		if last := p.frames[len(p.frames)-1]; p.status != 200 || !strings.Contains(last, `"code":"time_limit"`) {
			t.Errorf("%d, last frame %s", p.status, last)
		}
	})
}

// TestLongStream is case 14 (c): a stream that takes longer than any piece of it may, and one that has
// nothing to say for a while.
func TestLongStream(t *testing.T) {
	change := func(s *setting) {
		s.now[0].step = 40 * time.Second
		s.config.WriteTimeout, s.config.KeepAlive = time.Second, 15*time.Second
	}
	serving(t, []string{"a", "b", "c"}, change, func(r *rig) {
		p := r.completion(`,"stream":true`)
		if text, finish := p.text(t, 0); text != "abc" || finish != "stop" {
			t.Errorf("%q, %q", text, finish)
		}
		if got := strings.Count(string(p.body), ": waiting\n\n"); got != 8 { // two in each of 4 steps
			t.Errorf("%d comments, want 8", got)
		}
	})
}

// TestSlowClient: one who takes nothing is cut off after WriteTimeout and its request ends; the loop and the
// others never wait for it.
func TestSlowClient(t *testing.T) {
	change := func(s *setting) {
		endless(s)
		s.config.WriteTimeout = 100 * time.Millisecond
	}
	serving(t, nil, change, func(r *rig) {
		response, err := r.client.Do(r.request(r.t.Context(), "POST", "/v1/completions",
			`{"model":"pair","prompt":"x","max_tokens":255,"stream":true,"ignore_eos":true}`))
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		r.completion(`,"max_tokens":100`).read(t)
		if took := time.Since(begun); took > 101*time.Millisecond {
			t.Errorf("another took %v, want 100 steps of 1 ms", took)
		}
		time.Sleep(200 * time.Millisecond)
		r.idle()
		if _, err := io.ReadAll(response.Body); err == nil {
			t.Error("the stream of who takes nothing ended in order")
		}
		response.Body.Close()
	})
}

// TestSlowBody: a body that does not come is given up.
func TestSlowBody(t *testing.T) {
	serving(t, []string{"a"}, nil, func(r *rig) {
		body, rest := io.Pipe()
		request := r.request(r.t.Context(), "POST", "/v1/completions", "")
		request.Body, request.ContentLength = body, 100
		go func() { _, _ = rest.Write([]byte(`{"model":`)) }()
		begun := time.Now()
		response, err := r.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(begun)
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		rest.Close()
		if response.StatusCode != 400 || took != ReadTimeoutDefault ||
			!strings.Contains(string(text), "it did not come within 30s") {
			t.Errorf("%d after %v: %s, want 400 after %v", response.StatusCode, took, text, ReadTimeoutDefault)
		}
	})
}

// TestDrain: told to end, the server refuses newcomers and lets those who are there end; those that take
// longer than it waits are cancelled, and told so.
func TestDrain(t *testing.T) {
	change := func(s *setting) {
		endless(s)
		s.config.DrainTime = 50 * time.Millisecond
	}
	serving(t, nil, change, func(r *rig) {
		var group sync.WaitGroup
		group.Go(func() { r.completion(`,"max_tokens":40`).read(t) })
		group.Go(func() {
			if p := r.completion(`,"max_tokens":200`); p.status != http.StatusServiceUnavailable ||
				p.header.Get("Retry-After") != "1" || !strings.Contains(string(p.body), "the server ends") {
				t.Errorf("who takes too long: %d, %v: %s", p.status, p.header, p.body)
			}
		})
		time.Sleep(5 * time.Millisecond)
		r.end()
		synctest.Wait()
		p := r.completion("")
		if p.status != 503 || p.header.Get("Retry-After") != "1" {
			t.Errorf("newcomer: %d, Retry-After %q", p.status, p.header.Get("Retry-After"))
		}
		if p := r.do("GET", "/health", ""); p.status != 503 || !strings.Contains(string(p.body), `"draining"`) {
			t.Errorf("health: %d %s", p.status, p.body)
		}
		group.Wait()
	})
}
