package outcome_test

import (
	"context"
	"strings"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/route"
	"tokenrouter/sim"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/outcome/trace"
)

// always is R2R at threshold 0: the small model drafts and the large one makes every token, so that both
// models' are known at every position of the large model's answers. In request 1 they agree but at position
// 1, in request 2 they always agree; the draft of position 2 in request 3 is an end.
const always = `{"format":"tokenrouter-trace","version":1,"models":["slm","llm"],` +
	`"signals":[["token","score","eos"],["token","eos"]]}
{"id":1,"prompt_tokens":2,"output_tokens":3,"tokens_max":9,"end":"eos","right":true,"path":"0x10x10x1",` +
	`"results":[{"token":[5,8,7],"score":[0.1,0.2,0.3],"eos":[false,false,false]},` +
	`{"token":[5,6,7],"eos":[false,false,true]}]}
{"id":2,"prompt_tokens":2,"output_tokens":2,"tokens_max":9,"end":"eos","right":false,"path":"0x10x1",` +
	`"results":[{"token":[5,1],"score":[0.1,0.6],"eos":[false,true]},{"token":[5,1],"eos":[false,true]}]}
{"id":3,"prompt_tokens":2,"output_tokens":4,"tokens_max":9,"end":"length","path":"0x10x10x10x1",` +
	`"results":[{"token":[5,6,1,8],"score":[0.1,0.1,0.4,0.1],"eos":[false,false,true,false]},` +
	`{"token":[5,6,7,8],"eos":[false,false,false,false]}]}
`

// TestStrayed: an answer is the recorded one as long as the tokens are, whoever makes them; what is known of
// it ends where they are not, and nothing is said of how right another answer is.
func TestStrayed(t *testing.T) {
	for _, c := range []struct {
		name      string
		threshold float64
		paths     []string
		strayed   outcome.Strayed
		answers   outcome.Answers
	}{
		{"as recorded", 0, []string{"0x10x10x1", "0x10x1", "0x10x10x10x1"}, outcome.Strayed{Of: 18},
			outcome.Answers{Right: 1, Wrong: 1, Unknown: 1}},
		// Request 1 keeps the draft of position 0, which is the recorded token; so does 3 all but one.
		{"drafts that are the recorded tokens", 0.15, []string{"00x10x1", "00x1", "000x10"},
			outcome.Strayed{Of: 13}, outcome.Answers{Right: 1, Wrong: 1, Unknown: 1}},
		// Request 1 keeps token 8 in place of 6, and goes on with what was said after 6.
		{"another token", 0.25, []string{"000x1", "00x1", "000x10"},
			outcome.Strayed{Requests: 1, Passes: 2, Of: 12}, outcome.Answers{Wrong: 1, Unknown: 2}},
		// Request 1 keeps a last draft that does not end it, request 3 one that does.
		{"past the end and before it", 2, []string{"0000", "00", "000"},
			outcome.Strayed{Requests: 2, Passes: 2, Past: 1, Of: 9}, outcome.Answers{Wrong: 1, Unknown: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			recorded := play(t, always, outcome.Signals)
			run := system(route.R2R{Threshold: c.threshold}, core.Eager{})
			run.Outcome, run.Workload = recorded, recorded
			got := recordRun(t, run, []trace.Signals{0, 0})
			for i, path := range c.paths {
				if line := strings.Split(got, "\n")[i+1]; !strings.Contains(line, `"path":"`+path+`"`) {
					t.Errorf("%s, want path %s", line, path)
				}
			}
			if recorded.Strayed() != c.strayed || recorded.Answers() != c.answers {
				t.Errorf("%+v, %+v; want %+v, %+v", recorded.Strayed(), recorded.Answers(), c.strayed, c.answers)
			}
			if w := recorded.Warning(); (w == "") != (c.strayed.Requests == 0) {
				t.Errorf("warning %q", w)
			}
		})
	}
}

// TestPathsKeepAnswers: the recorded answers are those of a replay by paths, and so is how right they are.
func TestPathsKeepAnswers(t *testing.T) {
	recorded := play(t, always+`{"id":9,"prompt_tokens":2,"pa`, outcome.Paths)
	run := system(route.Recorded{}, core.StepSync{})
	run.Outcome, run.Workload = recorded, recorded
	if _, err := sim.Run(context.Background(), run); err != nil {
		t.Fatal(err)
	}
	if got, want := recorded.Answers(), (outcome.Answers{Right: 1, Wrong: 1, Unknown: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	const want = "trace run.jsonl is cut off: only its whole requests were played"
	if w := recorded.Warning(); w != want || recorded.Err() != nil {
		t.Errorf("warning %q, error %v, want %q", w, recorded.Err(), want)
	}
}
