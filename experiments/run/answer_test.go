package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core"
	"tokenrouter/exec"
	"tokenrouter/exec/cpu"
	"tokenrouter/exec/model"
	"tokenrouter/exec/model/router"
	"tokenrouter/exec/model/tokenizer"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
	"tokenrouter/experiments/task"
	"tokenrouter/sim/outcome/trace"
)

// tinyShape is that of the tests' models, which have a byte tokenizer.
const tinyShape = "tiny,layers=1,hidden=64,heads=2,head_dim=32,intermediate=64"

// answered is a spec of two concurrencies and policies; routings follow.
const answered = `name = "answered"
seed = 1
[workload]
kind = "task"
task = "arith"
level = 1
problems = 12
plan_problems = 4
max_tokens = 24
warmup_requests = 2
[policy]
kind = "delayed"
thresholds = [1, 2]
[sweep]
policy = ["eager", "delayed"]
concurrency = [2, 4]
`

// routings are every kind of them, with thresholds beyond all scores first and last.
const routings = `[[routing]]
name = "small"
system = "small.toml"
[[routing]]
name = "large"
system = "large.toml"
[[routing]]
name = "R2R"
system = "r2r.toml"
thresholds = [2, 0.5, -1]
[[routing]]
name = "CITER"
system = "citer.toml"
thresholds = [-1, 0.5, 2]
[[routing]]
name = "Co-LLM"
system = "collm.toml"
thresholds = [2, 0.5, -1]
[[routing]]
name = "R-Stitch"
system = "rstitch.toml"
thresholds = [2, 0.91, -1]
[[routing]]
name = "ME"
system = "me.toml"
weights = [[1, 0], [1, 1], [0, 1]]
[[routing]]
name = "query"
system = "query.toml"
shares = [0, 0.5, 1]
`

// tinyModels makes model and router folders and the systems of routings, and returns their folder.
func tinyModels(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	c, err := model.ParseShape(tinyShape)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"slm", "llm"} {
		if err := model.Make(t.Context(), filepath.Join(dir, name), c, uint64(i+1), nil); err != nil {
			t.Fatal(err)
		}
	}
	const pair = "[[models]]\nname = \"SLM\"\ndir = \"slm\"\n[[models]]\nname = \"LLM\"\ndir = \"llm\"\n"
	put(t, dir, "small.toml", pair+"[router]\nalgorithm = \"small\"\n")
	put(t, dir, "large.toml", pair+"[router]\nalgorithm = \"large\"\n")
	put(t, dir, "rstitch.toml", pair+"[router]\nalgorithm = \"rstitch\"\nthreshold = 0.5\n")
	put(t, dir, "me.toml", pair+"[router]\nalgorithm = \"me\"\n")
	put(t, dir, "query.toml", pair+"[router]\nalgorithm = \"query\"\ndir = \"slm\"\n")
	for name, a := range map[string]router.Algorithm{"r2r": router.R2R, "citer": router.CITER,
		"collm": router.CoLLM} {
		shape := router.PublishedShape(a, 64)
		if a == router.R2R {
			shape.Top, shape.Width, shape.Blocks, shape.Expanded = 10, 32, 1, 64
		}
		if err := router.Make(filepath.Join(dir, name), shape, 3); err != nil {
			t.Fatal(err)
		}
		put(t, dir, name+".toml", pair+fmt.Sprintf("[router]\nalgorithm = %q\ndir = %q\n", name, name))
	}
	return dir
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// answeringSpec loads a spec beside the models.
func answeringSpec(t *testing.T, dir, text string) *spec.Spec {
	t.Helper()
	put(t, dir, "answered.toml", text)
	s, err := spec.Load(filepath.Join(dir, "answered.toml"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// byHash is a router of prompts without sense: half of them score 1.
type byHash struct{}

func (byHash) Score(ids []int32) (float64, error) {
	sum := int32(0)
	for _, id := range ids {
		sum += id
	}
	return float64(sum % 2), nil
}

func (byHash) Threshold(name string, share float64) (float64, error) {
	if name != "arith" {
		return 0, fmt.Errorf("no validation prompts of %s", name)
	}
	return map[float64]float64{0: 2, 0.5: 1, 1: 0}[share], nil
}

// answersOf are the tokens and origins of all answers, by point and problem.
func answersOf(t *testing.T, dir string) map[string]map[string]result.AnswerRow {
	t.Helper()
	all := make(map[string]map[string]result.AnswerRow)
	err := result.EachAnswer(filepath.Join(dir, result.AnswersFile), func(a *result.AnswerRow) error {
		if all[a.Point] == nil {
			all[a.Point] = make(map[string]result.AnswerRow)
		}
		all[a.Point][a.ID] = *a
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAnswersDegenerate: at thresholds beyond all scores, every routing gives the answers of the small or the
// large model alone, token by token; in between, both make tokens. Policy and concurrency change no answer.
func TestAnswersDegenerate(t *testing.T) {
	dir, out := tinyModels(t), t.TempDir()
	s := answeringSpec(t, dir, answered+routings)
	summary := mustRun(t, s, Options{Out: out, Backend: cpu.Backend(), scorer: byHash{}}).Summary
	// small and large 2 each, five of tokens 3 x 2 x 2, of requests 3 x 2.
	if want := 2 + 2 + 5*12 + 6; len(summary.Rows) != want {
		t.Fatalf("%d rows, want %d", len(summary.Rows), want)
	}
	all := answersOf(t, out)
	small := all["routing=small policy=eager concurrency=2"]
	large := all["routing=large policy=eager concurrency=2"]
	tokens := func(of map[string]result.AnswerRow) map[string][]int32 {
		m := make(map[string][]int32)
		for id, a := range of {
			m[id] = a.Tokens
		}
		return m
	}
	made := map[string]string{} // by routing and threshold: tokens and origins
	for i := range summary.Rows {
		r := &summary.Rows[i]
		routing, threshold := r.Text("routing"), r.Text("routing_threshold")
		got := all[r.Point]
		share, _ := summary.Value(r, "large_share")
		if len(got) != 12 {
			t.Fatalf("%s: %d answers, want 12", r.Point, len(got))
		}
		want := map[string]map[string]result.AnswerRow{"2": small, "-1": large, "1,0": small, "0,1": large,
			"0": small, "1": large}[threshold]
		if routing == "CITER" {
			want = map[string]map[string]result.AnswerRow{"-1": small, "2": large}[threshold]
		}
		switch {
		case routing == "small" || routing == "large":
			if share != map[string]float64{"small": 0, "large": 1}[routing] {
				t.Errorf("%s: large share %v", r.Point, share)
			}
		case want != nil:
			if diff := cmp.Diff(tokens(want), tokens(got)); diff != "" {
				t.Errorf("%s (-alone +got):\n%s", r.Point, diff)
			}
		case share <= 0 || share >= 1:
			t.Errorf("%s: large share %v, want both models", r.Point, share)
		}
		text := fmt.Sprint(got)
		text = strings.ReplaceAll(text, r.Point, "")
		if key := routing + threshold; made[key] == "" {
			made[key] = text
		} else if made[key] != text {
			t.Errorf("%s: other answers than at the first policy and concurrency", r.Point)
		}
	}
}

// TestAnswersMetrics: counts of one point by hand, from its answers: shares, p, tokens, and nothing right.
func TestAnswersMetrics(t *testing.T) {
	dir, out := tinyModels(t), t.TempDir()
	s := answeringSpec(t, dir, answered+`[[routing]]
name = "R-Stitch"
system = "rstitch.toml"
thresholds = [0.814]
`)
	summary := mustRun(t, s, onFake(out)).Summary
	all := answersOf(t, out)
	for i := range summary.Rows {
		r := &summary.Rows[i]
		made, dropped, total := map[rune]float64{}, 0.0, 0.0
		for _, a := range all[r.Point] {
			for _, model := range a.Origin {
				made[model]++
			}
			dropped += float64(a.Dropped)
			total += float64(len(a.Tokens))
			if len(a.Origin) != len(a.Tokens) {
				t.Errorf("%s: %d origins for %d tokens", a.ID, len(a.Origin), len(a.Tokens))
			}
		}
		v := func(metric string) float64 { x, _ := summary.Value(r, metric); return x }
		// End tokens count where tokens are counted for throughput, and are no part of an answer.
		ends := v("tokens_total") - total
		if v("p") <= 0 || math.Abs(v("p")-dropped/(made['0']+dropped)) > ends/total+1e-9 {
			t.Errorf("%s: p %v, want about %v", r.Point, v("p"), dropped/(made['0']+dropped))
		}
		if math.Abs(v("large_share")-made['1']/total) > ends/total+1e-9 {
			t.Errorf("%s: large share %v, want about %v", r.Point, v("large_share"), made['1']/total)
		}
		for metric, want := range map[string]float64{
			"problems": 12, "right": 0, "accuracy": 0, "accuracy_low": 0, "answer_tokens_mean": total / 12,
			"drafts_dropped": dropped,
		} {
			if got := v(metric); math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: %s = %v, want %v", r.Point, metric, got, want)
			}
		}
		// 0 of 12: Wilson's upper end is z^2 / (n + z^2), z = 1.96.
		if want := 3.8415 / (12 + 3.8415); math.Abs(v("accuracy_high")-want) > 1e-4 {
			t.Errorf("%s: accuracy_high %v, want %v", r.Point, v("accuracy_high"), want)
		}
	}
	rows := 0
	err := result.EachRequest(filepath.Join(out, result.RequestsFile), func(result.RequestRow) error {
		rows++
		return nil
	})
	if err != nil || rows != 4*12 {
		t.Errorf("%d requests, %v; want 48", rows, err)
	}
}

// knowing is a device that knows answers: of every third problem a wrong one.
type knowing struct{ answers [][]int32 }

func (d knowing) Step(p *exec.Pass) error {
	for i, row := range p.Launch.Rows {
		if row.Head {
			answer := d.answers[row.ID]
			at := int(row.Start+row.Fresh) - p.Contexts[i].Prompt
			p.Results[i] = core.Result{Token: answer[at], EOS: at == len(answer)-1}
		}
	}
	return nil
}

// TestAnswersScored: answers of a device that knows them are scored: 8 of 12 are right.
func TestAnswersScored(t *testing.T) {
	dir, out := tinyModels(t), t.TempDir()
	s := answeringSpec(t, dir, strings.NewReplacer("max_tokens = 24", "max_tokens = 600",
		"level = 1\n", "").Replace(answered)+"[[routing]]\nname = \"small\"\nsystem = \"small.toml\"\n")
	tokens, err := tokenizer.Load(filepath.Join(dir, "slm", "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	arith, err := task.Find("arith")
	if err != nil {
		t.Fatal(err)
	}
	const end = 258 // <|im_end|> of the byte tokenizer
	var know knowing
	total := 0
	for i, p := range arith.Fixed()[:12] {
		text := p.Answer
		if i%3 == 2 {
			text += "0"
		}
		ids := tokens.Encode(text, tokenizer.Options{})
		total += len(ids)
		know.answers = append(know.answers, append(ids, end))
	}
	o := onFake(out)
	o.device = func(int, exec.Device) exec.Device { return know }
	summary := mustRun(t, s, o).Summary
	for i := range summary.Rows {
		r := &summary.Rows[i]
		for metric, want := range map[string]float64{
			"right": 8, "problems": 12, "accuracy": 8.0 / 12, "final_share": 1, "tokens_total": float64(total + 12),
			"answer_tokens_mean": float64(total) / 12,
			// Wilson for 8 of 12, R's prop.test(8, 12, correct = FALSE).
			"accuracy_low": 0.3906, "accuracy_high": 0.8619,
		} {
			if got, _ := summary.Value(r, metric); math.Abs(got-want) > 5e-5 {
				t.Errorf("%s: %s = %v, want %v", r.Point, metric, got, want)
			}
		}
	}
	for id, a := range answersOf(t, out)[summary.Rows[0].Point] {
		if a.Right == (a.Request%3 == 2) || a.Finish != "stop" || a.Final == "" {
			t.Errorf("%s: %+v", id, a)
		}
	}
}

// TestAnswersAloneAndTogether: an answer is the same alone and among others, drawn models included.
func TestAnswersAloneAndTogether(t *testing.T) {
	dir := tinyModels(t)
	change := strings.NewReplacer("[2, 4]", "[1, 6]", "[\"eager\", \"delayed\"]", "[\"eager\"]")
	text := change.Replace(answered) + `[[routing]]
name = "ME"
system = "me.toml"
weights = [[2, 1]]
[[routing]]
name = "CITER"
system = "citer.toml"
thresholds = [0.5]
`
	out := t.TempDir()
	summary := mustRun(t, answeringSpec(t, dir, text), Options{Out: out, Backend: cpu.Backend()}).Summary
	all := answersOf(t, out)
	for i := 0; i < len(summary.Rows); i += 2 {
		alone, together := all[summary.Rows[i].Point], all[summary.Rows[i+1].Point]
		for id, a := range alone {
			if b := together[id]; !slices.Equal(a.Tokens, b.Tokens) || a.Origin != b.Origin {
				t.Errorf("%s, %s:\nalone    %v %s\ntogether %v %s", summary.Rows[i].Point, id, a.Tokens, a.Origin,
					b.Tokens, b.Origin)
			}
		}
	}
}

// TestAnswersPlanned: step times and p are measured first; then thresholds are planned, and prediction and
// simulation stand beside what was measured.
func TestAnswersPlanned(t *testing.T) {
	dir, out := tinyModels(t), t.TempDir()
	text := strings.Replace(answered, "thresholds = [1, 2]",
		"thresholds = \"planned\"\n[system]\ncalibrate = true\n[output]\ntrace = true", 1)
	s := answeringSpec(t, dir, text+`[[routing]]
name = "large"
system = "large.toml"
[[routing]]
name = "R-Stitch"
system = "rstitch.toml"
thresholds = [0.9]
[[routing]]
name = "query"
system = "query.toml"
shares = [0.5]
`)
	summary := mustRun(t, s, Options{Out: out, Backend: cpu.Backend(), scorer: byHash{}}).Summary
	for i := range summary.Rows {
		r := &summary.Rows[i]
		want := []string{"throughput_tok_s", "simulated_tok_s", "simulated_own_tok_s", "simulated_order_tok_s"}
		if r.Text("routing") != "query" {
			want = append(want, "predicted_tok_s", "llm_step_mean_ms", "simulated_llm_step_mean_ms")
		}
		if r.Text("routing") == "R-Stitch" {
			want = append(want, "planned_p", "p", "p_return")
		}
		for _, metric := range want {
			if v, _ := summary.Value(r, metric); !(v > 0) {
				t.Errorf("%s: %s = %v, want above 0", r.Point, metric, v)
			}
		}
		infeasible := len(r.Thresholds) != 2 || core.Feasible(r.Thresholds, r.Concurrency) != nil
		if r.Policy == "delayed" && infeasible {
			t.Errorf("%s: thresholds %v", r.Point, r.Thresholds)
		}
	}
	for _, name := range []string{"calibration-large.toml", "calibration-rstitch.csv"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
	traces, _ := filepath.Glob(filepath.Join(out, TraceDir, "*.jsonl"))
	steps, _ := filepath.Glob(filepath.Join(out, TraceDir, "*.steps.csv"))
	if len(traces) != len(s.Points) || len(steps) != len(s.Points) {
		t.Fatalf("%d traces and %d files of steps, want one a point", len(traces), len(steps))
	}
	reader, err := trace.Open(traces[len(traces)-1])
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var request trace.Request
	requests := 0
	for ; err == nil; err = reader.Read(&request) {
		requests++
	}
	if h := reader.Header(); requests-1 != 12 || len(h.Pair.Weights) == 0 || h.Signals[0] == 0 {
		t.Errorf("%d requests, header %+v; want 12, hashes and signals", requests-1, h)
	}
}

// TestAnswersResume: finished points are kept, and the end is that of a run in one go.
func TestAnswersResume(t *testing.T) {
	dir, out := tinyModels(t), t.TempDir()
	s := answeringSpec(t, dir, answered+routings)
	ctx, stop := context.WithCancel(t.Context())
	o := onFake(out)
	o.scorer, o.Progress = byHash{}, func(done, _ int) {
		if done == 7 {
			stop()
		}
	}
	report, err := Run(ctx, s, o)
	if !errors.Is(err, context.Canceled) || report.Done != 7 || report.Summary != nil {
		t.Fatalf("report %+v, error %v, want 7 jobs and a cancelled context", report, err)
	}
	jobs := 0
	o.Resume, o.Progress = true, func(_, total int) { jobs = total }
	resumed := mustRun(t, s, o).Summary
	if jobs != len(s.Points)-7 {
		t.Errorf("%d jobs went on, want %d", jobs, len(s.Points)-7)
	}
	whole := t.TempDir()
	o = onFake(whole)
	o.scorer = byHash{}
	mustRun(t, s, o)
	diff := cmp.Diff(answersOf(t, whole), answersOf(t, out))
	if diff != "" || len(resumed.Rows) != len(s.Points) {
		t.Errorf("answers (-whole +resumed):\n%s", diff)
	}
}

// TestWithoutPlan: where the chain does not describe a point, its thresholds are 1 for every N, and that is
// said.
func TestWithoutPlan(t *testing.T) {
	r := &runner{plans: newPlanner()}
	p := spec.Point{Concurrency: 3, Models: []spec.Model{{Name: "a"}, {Name: "b"}}}
	p.Policy = spec.Policy{Kind: "delayed", Planned: true}
	got, warning := r.planned(t.Context(), &p)
	want := [][]int{{1, 1}, {1, 1}, {1, 1}}
	if diff := cmp.Diff(want, got.Policy.Table); diff != "" || got.Policy.Planned || !p.Policy.Planned ||
		warning != "thresholds are 1, not planned: the chain does not describe the point: verdicts are not"+
			" independent draws" {
		t.Errorf("warning %q, table (-want +got):\n%s", warning, diff)
	}
	p.Policy = spec.Policy{Kind: "eager"}
	if got, warning := r.planned(t.Context(), &p); got != &p || warning != "" {
		t.Errorf("eager: warning %q", warning)
	}
}
