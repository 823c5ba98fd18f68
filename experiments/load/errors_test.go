package load

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// refuse answers with a status and an error of OpenAI's API.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"error":{"message":"`+message+`","type":"t","param":null,"code":null}}`)
}

// hangUp cuts the connection.
func hangUp(http.ResponseWriter) { panic(http.ErrAbortHandler) }

// begun begins a stream with these frames.
func begun(w http.ResponseWriter, list ...string) {
	stream(w)
	frames(w, list...)
}

// failing are ways to fail.
var failing = []struct {
	name, kind, message string
	rejected            float64
	answer              func(w http.ResponseWriter)
}{
	{"refused", "http_429", "too many", 1, func(w http.ResponseWriter) { refuse(w, 429, "too many") }},
	{"unavailable", "http_503", "it ends", 1, func(w http.ResponseWriter) { refuse(w, 503, "it ends") }},
	{"wrong key", "http_401", "want the key", 0, func(w http.ResponseWriter) { refuse(w, 401, "want the key") }},
	{"failed", "http_500", "<h1>oops</h1>", 0, func(w http.ResponseWriter) {
		w.WriteHeader(500)
		_, _ = io.WriteString(w, "<h1>oops</h1>\n")
	}},
	{"no answer", "connect", "EOF", 0, hangUp},
	{"error frame", "stream_error", "a fuse blew", 0, func(w http.ResponseWriter) {
		begun(w, text("a"), `{"error":{"message":"a fuse blew","type":"server_error"}}`)
	}},
	{"error frame, then an end", "stream_error", "a fuse blew", 0, func(w http.ResponseWriter) {
		begun(w, text("a"), `{"error":{"message":"a fuse blew"}}`, finish, done)
	}},
	{"error as text", "stream_error", `{"error":"oops"}`, 0, func(w http.ResponseWriter) {
		begun(w, `{"error":"oops"}`)
	}},
	{"error of another form", "stream_error", "no room", 0, func(w http.ResponseWriter) {
		begun(w, `{"object":"error","message":"no room","code":400}`)
	}},
	{"finished by an error", "stream_error", "finish_reason abort", 0, func(w http.ResponseWriter) {
		begun(w, text("a"), `{"choices":[{"text":"","finish_reason":"abort"}]}`, done)
	}},
	{"cut", "cut", "EOF", 0, func(w http.ResponseWriter) { begun(w, text("a"), text("b")); hangUp(w) }},
	{"cut in order", "cut", "EOF", 0, func(w http.ResponseWriter) { begun(w, text("a"), text("b")) }},
	{"cut in a frame", "cut", "unexpected EOF", 0, func(w http.ResponseWriter) {
		begun(w, text("a"), finish)
		_, _ = io.WriteString(w, "data: {\"choi")
	}},
	{"empty", "cut", "EOF", 0, func(w http.ResponseWriter) { begun(w) }},
	{"done too early", "bad_answer", "[DONE] before any finish_reason", 0, func(w http.ResponseWriter) {
		begun(w, text("a"), done)
	}},
	{"no JSON", "bad_answer", "invalid character", 0, func(w http.ResponseWriter) { begun(w, "hello") }},
	{"no stream", "bad_answer", `"text/html", want text/event-stream`, 0, func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<p>hello")
	}},
	{"too long", "timeout", "took longer", 0, func(w http.ResponseWriter) {
		begun(w, text("a"))
		time.Sleep(ms(2000))
		frames(w, finish, done)
	}},
	{"too long to begin", "timeout", "took longer", 0, func(http.ResponseWriter) { time.Sleep(ms(2000)) }},
}

// TestErrors: every way to fail is counted by its kind, and no time of it is used: only the two good answers
// around it are, of 15 ms each.
func TestErrors(t *testing.T) {
	for _, c := range failing {
		t.Run(c.name, func(t *testing.T) {
			answer := func(_ *rig, i int, w http.ResponseWriter) {
				if i == 1 {
					c.answer(w)
					return
				}
				w.Header().Set("Connection", "close") // the next one is the first of its connection
				quick(w)
			}
			on(t, answer, func(r *rig) {
				var ended []*Ended
				got := r.load(Config{Source: each(3), Stream: true, Usage: true, Timeout: ms(1000),
					Done: func(e *Ended) { ended = append(ended, e) }})
				if len(got.Failed) != 1 || got.Failed[0].Kind != c.kind || got.Failed[0].Count != 1 ||
					!strings.Contains(got.Failed[0].Example, c.message) {
					t.Errorf("failed %+v, want one of kind %s with %q", got.Failed, c.kind, c.message)
				}
				r.want(got, map[string]float64{
					"requests_finished": 2, "requests_failed": 1 - c.rejected, "requests_rejected": c.rejected,
					"latency_n": 2, "latency_mean_ms": 15, "ttft_n": 2, "ttft_mean_ms": 10,
					"tpot_n": 2, "tpot_mean_ms": 5, "prompt_tokens": 6, "requests_open": 0,
				})
				if len(ended) != 3 || ended[0].Err != nil || ended[1].Err == nil || ended[2].Err != nil {
					t.Errorf("%d requests, want 3 of which the second failed", len(ended))
				}
			})
		})
	}
}

// TestNotStreamedErrors: the same for answers that are no streams.
func TestNotStreamedErrors(t *testing.T) {
	for _, c := range []struct{ name, body, kind string }{
		{"cut", `{"choices":[{"text":"a`, "bad_answer"},
		{"error with status 200", `{"error":{"message":"oops"}}`, "stream_error"},
		{"no finish", `{"choices":[{"text":"a"}]}`, "bad_answer"},
		{"no choice", `{"choices":[]}`, "bad_answer"},
		{"good", `{"choices":[{"text":"a","finish_reason":"stop"}]}`, ""},
	} {
		answer := func(_ *rig, _ int, w http.ResponseWriter) { _, _ = io.WriteString(w, c.body) }
		on(t, answer, func(r *rig) {
			got := r.load(Config{Source: each(1)})
			if c.kind == "" && len(got.Failed) != 0 || c.kind != "" && got.Failed[0].Kind != c.kind {
				t.Errorf("%s: failed %+v, want %q", c.name, got.Failed, c.kind)
			}
		})
	}
}

// TestUnreachable: a server that is not there.
func TestUnreachable(t *testing.T) {
	got, err := Run(t.Context(), Config{URL: "http://127.0.0.1:1/v1", Model: "m", Source: each(2),
		Prompts: []Prompt{{Text: "x"}}, InFlight: 1, Timeout: time.Minute})
	if err != nil || got.Failed[0].Kind != "connect" || got.Failed[0].Count != 2 {
		t.Errorf("%v, %+v, want two of kind connect", err, got)
	}
}

// TestRetryAfter: a place of a closed loop stays empty as long as a server asks for; in an open loop requests
// keep to their arrivals.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		name, after string
		open        bool
		ms          float64 // when the second request is sent
	}{
		{"seconds", "2", false, 2000}, {"a date", "Sat, 01 Jan 2000 00:00:03 GMT", false, 3000},
		{"long ago", "Fri, 31 Dec 1999 00:00:03 GMT", false, 0}, {"words", "soon", false, 0},
		{"none", "", false, 0},
		{"hours", "7200", false, 60000}, {"negative", "-5", false, 0}, {"open", "2", true, 5},
	} {
		answer := func(_ *rig, i int, w http.ResponseWriter) { // synctest begins at 2000-01-01 00:00:00 UTC
			if i == 0 {
				w.Header().Set("Retry-After", c.after)
				refuse(w, 429, "later")
				return
			}
			quick(w)
		}
		on(t, answer, func(r *rig) {
			var second time.Duration
			source := each(2)
			if c.open {
				source.arrivals[1] = 5
			}
			r.load(Config{Source: source, Open: c.open, InFlight: 1, Stream: true,
				Done: func(e *Ended) { second = e.Sent }})
			if second != ms(c.ms) {
				t.Errorf("%s: the second was sent after %v, want %v ms", c.name, second, c.ms)
			}
		})
	}
}

// TestKeptConnectionClosed: a request on a kept connection that the server closes in place of an answer is
// sent again on another.
func TestKeptConnectionClosed(t *testing.T) {
	answer := func(_ *rig, i int, w http.ResponseWriter) {
		if i == 1 || i == 3 {
			hangUp(w)
		}
		quick(w)
	}
	on(t, answer, func(r *rig) {
		got := r.load(Config{Source: each(3), Stream: true})
		if got.Sent != 3 || got.Finished != 3 || r.asked != 5 {
			t.Errorf("%d sent, %d finished, %d came, %v: want 3, 3 and 5", got.Sent, got.Finished, r.asked, got.Failed)
		}
	})
}
