package serve

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// odd sends places 1, 3, 5, ... of an answer to the large model.
func odd(s *setting) { s.now[0].score = func(at int) float64 { return float64(at % 2) } }

// TestAnswers: whole and streamed answers of both endpoints have the same text, and cases 7, 9 and 12 of the
// field: split characters, stop strings over tokens, how an answer ends.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		words  []string
		fields string
		text   string
		finish string
		tokens int
	}{
		{"words", []string{"Hello", " wor", "ld"}, "", "Hello world", "stop", 3},
		{"an emoji in two tokens", []string{"\xf0\x9f", "\x98\x80"}, "", "\U0001f600", "stop", 2},
		{"a character of three models", []string{"\xe4", "\xb8", "\xad"}, "", "\u4e2d", "stop", 3},
		{"half a character", []string{"a", "\xe4\xb8"}, "", "a\ufffd", "stop", 2},
		{"stop over tokens", []string{"DEF", "G", "HI", "J", "K"}, `,"stop":"DEFGHIJ"`, "", "stop", 4},
		{"stop within", []string{"end!more"}, `,"stop":["!"]`, "end", "stop", 1},
		{"overlapping stops", []string{"ab", "c"}, `,"stop":["bc","abc"]`, "", "stop", 2},
		{"a beginning that is none", []string{"ab", "x"}, `,"stop":["abc"]`, "abx", "stop", 2},
		{"length", []string{"a", "b", "c"}, `,"max_tokens":2`, "ab", "length", 2},
		{"one", []string{"a", "b"}, `,"max_tokens":1`, "a", "length", 1},
		{"nothing", nil, "", "", "stop", 0},
		{"what is empty is not set", []string{"a"}, `,"stop":"","logit_bias":{},"tools":[],"seed":null`, "a",
			"stop", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			words := func(s *setting) {
				odd(s)
				if c.words == nil {
					s.now[0].script, s.now[1].script = []int32{}, []int32{}
				}
			}
			serving(t, c.words, words, func(r *rig) {
				fields := c.fields
				if !strings.Contains(fields, "max_tokens") {
					fields += `,"max_tokens":40`
				}
				whole := r.chat(fields).read(t)
				got := whole.Choices[0]
				if got.Message.Content != c.text || *got.FinishReason != c.finish || whole.Usage.Completion != c.tokens {
					t.Errorf("%q, %s, %d tokens, want %q, %s, %d", got.Message.Content, *got.FinishReason,
						whole.Usage.Completion, c.text, c.finish, c.tokens)
				}
				if text, finish := r.chat(fields+`,"stream":true`).text(t, 0); text != c.text || finish != c.finish {
					t.Errorf("streamed: %q, %s", text, finish)
				}
				other := r.do("POST", "/v1/completions", `{"model":"pair","prompt":"x"`+fields+`,"stream":true}`)
				if text, finish := other.text(t, 0); text != c.text || finish != c.finish {
					t.Errorf("completion: %q, %s", text, finish)
				}
			})
		})
	}
}

// TestUsage: who made which token. Odd places are routed: their drafts are dropped and not counted.
func TestUsage(t *testing.T) {
	serving(t, []string{"a", "b", "c", "d", "e"}, odd, func(r *rig) {
		for _, c := range []struct {
			name, model, fields string
			origin              []int
			dropped             int
			share               float64
		}{
			{"routed", "pair", "", []int{0, 1, 0, 1, 0}, 3, 0.4}, // the end token of place 5 is the large model's
			{"off", "pair", `,"routing":false`, []int{1, 1, 1, 1, 1}, 0, 1},
			{"small alone", "small", "", []int{0, 0, 0, 0, 0}, 0, 0},
			{"large alone", "large", "", []int{1, 1, 1, 1, 1}, 0, 1},
			{"never", "pair", `,"routing_threshold":1.5`, []int{0, 0, 0, 0, 0}, 0, 0},
			{"always", "pair", `,"routing_threshold":0`, []int{1, 1, 1, 1, 1}, 6, 1},
		} {
			d := r.do("POST", "/v1/completions", `{"model":"`+c.model+`","prompt":"xyz","max_tokens":9,
				"return_origin":true,"return_token_ids":true`+c.fields+`}`).read(t)
			got := d.Choices[0]
			if diff := cmp.Diff(c.origin, got.Origin); diff != "" {
				t.Errorf("%s: origin (-want +got):\n%s", c.name, diff)
			}
			if diff := cmp.Diff([]int32{'a' + 1, 'b' + 1, 'c' + 1, 'd' + 1, 'e' + 1}, got.TokenIDs); diff != "" {
				t.Errorf("%s: ids (-want +got):\n%s", c.name, diff)
			}
			u := d.Usage
			large := int(math.Round(5 * c.share))
			if u.Prompt != 3 || u.Completion != 5 || u.Total != 8 || u.Dropped != c.dropped || u.Share != c.share ||
				u.ByModel["large"] != large || u.ByModel["small"] != 5-large {
				t.Errorf("%s: usage %+v, want 3 + 5 tokens, %d dropped, share %v", c.name, *u, c.dropped, c.share)
			}
		}
	})
}

// TestRouterScore: what the router said at the place of each token, of its draft, whoever made the token. 0
// is a score as any other; null says that there is none.
func TestRouterScore(t *testing.T) {
	scored := func(s *setting) {
		s.now[0].score = func(at int) float64 { return []float64{0.25, 0.75, 0, 0.125, 0}[at] }
	}
	serving(t, []string{"a", "b", "c", "d"}, scored, func(r *rig) {
		for _, c := range []struct{ fields, want string }{
			{`"model":"pair"`, `"router_score":[0.25,0.75,0,0.125]`},
			{`"model":"pair","routing_threshold":0`, `"router_score":[0.25,0.75,0,0.125]`}, // all drafts are dropped
			{`"model":"pair","routing":false`, `"router_score":[null,null,null,null]`},
			{`"model":"small"`, `"router_score":[null,null,null,null]`},
			{`"model":"large"`, `"router_score":[null,null,null,null]`},
		} {
			body := `{"prompt":"xyz","return_router_score":true,"logprobs":2,` + c.fields + `}`
			if p := r.do("POST", "/v1/completions", body); !strings.Contains(string(p.body), c.want) {
				t.Errorf("%s: %s, want %s", c.fields, p.body, c.want)
			}
		}
		var streamed []string
		for _, frame := range r.chat(`,"return_router_score":true,"stream":true`).frames {
			_, after, _ := strings.Cut(frame, `"router_score":[`)
			if score, _, found := strings.Cut(after, "]"); found {
				streamed = append(streamed, score)
			}
		}
		if got := strings.Join(streamed, " "); got != "0.25 0.75 0 0.125" {
			t.Errorf("streamed: %s", got)
		}
		if p := r.chat(""); strings.Contains(string(p.body), "router_score") {
			t.Errorf("not asked for: %s", p.body)
		}
	})
	unscored := func(s *setting) { s.config.Scores = false } // as by entropies
	serving(t, []string{"a", "b"}, unscored, func(r *rig) {
		p := r.completion(`,"return_router_score":true`)
		if !strings.Contains(string(p.body), `"router_score":[null,null]`) {
			t.Errorf("without a router: %s", p.body)
		}
	})
}

// TestStream: the frames of case 14 (a): the role once, null until the end, usage, [DONE].
func TestStream(t *testing.T) {
	serving(t, []string{"a", "b", "c"}, nil, func(r *rig) {
		p := r.chat(`,"stream":true,"stream_options":{"include_usage":true}`)
		if got := p.header.Get("Content-Type"); got != "text/event-stream" {
			t.Errorf("Content-Type %q", got)
		}
		var got []string
		for _, frame := range p.frames {
			if frame == "[DONE]" {
				got = append(got, frame)
				continue
			}
			var d struct {
				Choices []json.RawMessage
				Usage   json.RawMessage
			}
			if err := json.Unmarshal([]byte(frame), &d); err != nil {
				t.Fatal(err)
			}
			line := "usage " + string(d.Usage)
			for _, c := range d.Choices {
				line = string(c) + " " + line
			}
			got = append(got, line)
		}
		want := []string{
			`{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null} usage null`,
			`{"index":0,"delta":{"content":"a"},"logprobs":null,"finish_reason":null} usage null`,
			`{"index":0,"delta":{"content":"b"},"logprobs":null,"finish_reason":null} usage null`,
			`{"index":0,"delta":{"content":"c"},"logprobs":null,"finish_reason":null} usage null`,
			`{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"} usage null`,
			`usage {"prompt_tokens":21,"completion_tokens":3,"total_tokens":24,` +
				`"tokens_by_model":{"large":0,"small":3},"large_model_share":0,"dropped_drafts":0}`,
			"[DONE]",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// TestLogProbs is case 13: an entry a committed token, none of a dropped draft, bytes of half a character,
// -9999 for minus infinity, an empty list of others.
func TestLogProbs(t *testing.T) {
	change := func(s *setting) {
		odd(s)
		s.now[0].logs = func(int) float32 { return float32(math.Inf(-1)) }
	}
	serving(t, []string{"\xe4\xb8", "\xad"}, change, func(r *rig) {
		want := `{"content":[` +
			`{"token":"bytes:\\xe4\\xb8","logprob":-9999,"bytes":[228,184],"top_logprobs":[]},` +
			`{"token":"bytes:\\xad","logprob":-0.5,"bytes":[173],"top_logprobs":[]}],"refusal":null}`
		if got := string(r.chat(`,"logprobs":true`).read(t).Choices[0].LogProbs); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		d := r.chat(`,"logprobs":true,"top_logprobs":2`).read(t)
		top := `"top_logprobs":[{"token":"a","logprob":0,"bytes":[97]},{"token":"b","logprob":-1,"bytes":[98]}]`
		if got := string(d.Choices[0].LogProbs); strings.Count(got, top) != 2 {
			t.Errorf("%s, want twice %s", got, top)
		}
		// A character comes in one chunk with both its tokens.
		count := 0
		for _, frame := range r.chat(`,"logprobs":true,"stream":true`).frames {
			count += strings.Count(frame, `"top_logprobs":[]`)
			if strings.Contains(frame, "\u4e2d") && !strings.Contains(frame, `[228,184]`) {
				t.Errorf("chunk without its tokens: %s", frame)
			}
		}
		if count != 2 {
			t.Errorf("%d entries in the stream, want 2", count)
		}
		legacy := string(r.completion(`,"logprobs":1`).read(t).Choices[0].LogProbs)
		want = `{"tokens":["bytes:\\xe4\\xb8","bytes:\\xad"],"token_logprobs":[-9999,-0.5],` +
			`"top_logprobs":[{"a":0,"bytes:\\xe4\\xb8":-9999},{"a":0,"bytes:\\xad":-0.5}],"text_offset":[0,0]}`
		if legacy != want {
			t.Errorf("%s, want %s", legacy, want)
		}
	})
}

// TestSampling: what is asked for reaches the devices.
func TestSampling(t *testing.T) {
	serving(t, []string{"a"}, nil, func(r *rig) {
		r.completion(`,"temperature":0.7,"top_p":0.9,"top_k":40,"min_p":0.05,"presence_penalty":1,
			"frequency_penalty":-1,"logit_bias":{"5":-100,"3":2.5},"seed":-1,"ignore_eos":false`).read(t)
		p := r.machines[0].seen[0]
		if p.Seed == nil || *p.Seed != math.MaxUint64 {
			t.Errorf("seed %v, want that of -1", p.Seed)
		}
		p.Seed = nil
		got, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"Temperature":0.7,"TopK":40,"TopP":0.9,"MinP":0.05,"PresencePenalty":1,"FrequencyPenalty":-1,` +
			`"Bias":[{"Token":3,"Bias":2.5},{"Token":5,"Bias":-100}],"Seed":null,"IgnoreEOS":false,"Top":0}`
		if string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
		r.completion(`,"top_p":0`).read(t) // the most likely alone, which 0 is not for devices
		if p := r.machines[0].seen[len(r.machines[0].seen)-1]; p.TopP <= 0 || p.TopP > 1e-20 || p.Temperature != 1 {
			t.Errorf("top_p 0 is %v at temperature %v", p.TopP, p.Temperature)
		}
	})
}

// TestChoices: n choices are different answers of one seed, and the same ones each time; without a seed two
// requests differ (case 17).
func TestChoices(t *testing.T) {
	drawn := func(s *setting) { s.now[0].script, s.now[1].script = nil, nil }
	serving(t, nil, drawn, func(r *rig) {
		texts := func(fields string) (all []string) {
			for i, c := range r.completion(`,"max_tokens":12` + fields).read(t).Choices {
				if c.Index != i {
					t.Errorf("choice %d has index %d", i, c.Index)
				}
				all = append(all, c.Text)
			}
			return all
		}
		three := texts(`,"n":3,"seed":7`)
		if len(three) != 3 || three[0] == three[1] || three[1] == three[2] {
			t.Errorf("n = 3: %q", three)
		}
		if diff := cmp.Diff(three, texts(`,"n":3,"seed":7`)); diff != "" {
			t.Errorf("again (-first +second):\n%s", diff)
		}
		if one := texts(`,"seed":7`); one[0] != three[0] {
			t.Errorf("alone %q, among three %q", one[0], three[0])
		}
		if zero := texts(`,"seed":0`); zero[0] != texts(`,"seed":0`)[0] {
			t.Error("0 is a seed")
		}
		if a, b := texts(""), texts(""); a[0] == b[0] {
			t.Errorf("two requests without a seed are both %q", a[0])
		}
		stream := r.completion(`,"max_tokens":12,"n":3,"seed":7,"stream":true`)
		for i := range three {
			if text, finish := stream.text(t, i); text != three[i] || finish != "length" {
				t.Errorf("stream of choice %d: %q, %s, want %q", i, text, finish, three[i])
			}
		}
		several := r.do("POST", "/v1/completions", `{"model":"pair","prompt":["x",[98,99]],"n":2,"seed":7,
			"max_tokens":3}`).read(t)
		if len(several.Choices) != 4 || several.Usage.Prompt != 3 || several.Usage.Completion != 12 {
			t.Errorf("two prompts: %+v, %+v", several.Choices, several.Usage)
		}
	})
}
