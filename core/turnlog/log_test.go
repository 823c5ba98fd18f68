package turnlog_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tokenrouter/core"
	"tokenrouter/core/route"
	"tokenrouter/core/turnlog"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", path, diff)
	}
}

// config is a system of some models, two of them on node 1 if it is split.
func config(models int, policy core.Policy, algorithm core.Algorithm) core.Config {
	c := core.Config{
		Algorithm: algorithm, Policy: policy, Admission: core.Reserve,
		Requests: 16, LiveMax: 6, ContextMax: 64, PageTokens: 4,
	}
	for m := range models {
		c.Models = append(c.Models, core.Model{Name: fmt.Sprintf("m%d", m), Pages: 48})
	}
	return c
}

func requests(n int) []request {
	rs := make([]request, n)
	for i := range rs {
		rs[i] = request{
			at: core.Time(i * 35),
			Submission: core.Submission{
				ID: uint64(i), Arrival: core.Time(i * 35), PromptTokens: int32(4 + i%7), TokensMax: int32(4 + i%9),
				Draw: float64(i%10) / 10, Prefix: []uint64{7},
			},
		}
		if i%5 == 4 {
			rs[i].leaveAt = rs[i].at + 90
		}
	}
	return rs
}

// record runs a world and returns its log.
func record(t testing.TB, configs []core.Config, n int) []byte {
	t.Helper()
	var log bytes.Buffer
	w, err := turnlog.NewWriter(&log, configs...)
	if err != nil {
		t.Fatal(err)
	}
	world := newWorld(t, configs, 10, 35, 20, 15)
	world.eosBelow = 0.02
	world.observe = w.Turn
	world.run(t, requests(n))
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return log.Bytes()
}

func open(t testing.TB, log []byte) *turnlog.Reader {
	t.Helper()
	r, err := turnlog.NewReader("run.jsonl", bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func delayed(t testing.TB, maxWait core.Time, b ...int) core.Policy {
	t.Helper()
	thresholds, err := core.FixedThresholds(b, 6)
	if err != nil {
		t.Fatal(err)
	}
	return core.Delayed{Thresholds: thresholds, MaxWait: maxWait}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var third = 1.0 / 3

// systems are the runs that replay must give again: every named policy and algorithm, one to
// three models, one and two nodes, both admissions, chunked prompts.
func systems(t testing.TB) map[string][]core.Config {
	me := must(route.NewME([]float64{0.5, 0.3, 0.2}))
	matrix := must(route.NewMatrix([][]float64{{1 - third, third}, {1, 0}}, [][]float64{{1, 0}, {1, 0}}))
	one := func(c core.Config) []core.Config { return []core.Config{c} }
	chunked := config(2, core.Eager{}, route.R2R{Threshold: 0.65})
	chunked.TokenBudget, chunked.Admission, chunked.Models[0].RowsMax = 8, core.Optimistic, 3
	others := config(2, core.Eager{}, route.R2R{Threshold: 0.65})
	others.Static, others.Models[0].TokenCalls, others.Models[1].Forgets = true, true, true
	others.Unmixed, others.Ahead, others.FrontNs, others.Models[1].DispatchNs = true, true, 7, 5
	split := func(c core.Config) []core.Config {
		c.Requests = 32
		c.Models[len(c.Models)-1].Node = 1
		other := c
		other.Node = 1
		return []core.Config{c, other}
	}
	return map[string][]core.Config{
		"alone":            one(config(1, core.Eager{}, nil)),
		"other engines":    one(others),
		"step-sync r2r":    one(config(2, core.StepSync{}, route.R2R{Threshold: 0.65})),
		"eager born":       one(config(2, core.Eager{}, must(route.NewBorn([]float64{0.5, 0.5})))),
		"model-sync citer": one(config(2, core.ModelSync{}, route.CITER{Threshold: third})),
		"eager co-llm":     one(config(2, core.Eager{}, route.CoLLM{Threshold: 0.65})),
		"delayed r-stitch": one(config(2, delayed(t, 0, 1, 3), route.RStitch{Threshold: 0.65})),
		"max wait matrix":  one(config(2, delayed(t, 50, 2, 4), matrix)),
		"delayed me":       one(config(3, delayed(t, 0, 1, 2, 3), me)),
		"optimistic":       one(chunked),
		"two nodes":        split(config(3, core.Eager{}, me)),
		"two nodes, delay": split(config(2, delayed(t, 0, 1, 3), route.R2R{Threshold: 0.65})),
	}
}

func TestReplayGivesTheLogAgain(t *testing.T) {
	for name, configs := range systems(t) {
		t.Run(name, func(t *testing.T) {
			log := record(t, configs, 40)
			turns, err := turnlog.Replay(open(t, log))
			if err != nil {
				t.Fatal(err)
			}
			if want := bytes.Count(log, []byte("\n")) - 1 - len(configs); turns != uint64(want) || want < 40 {
				t.Errorf("replayed %d turns, want %d, of at least 40", turns, want)
			}
		})
	}
}

func TestReadingAndWritingGivesTheSameBytes(t *testing.T) {
	for name, configs := range systems(t) {
		t.Run(name, func(t *testing.T) {
			log := record(t, configs, 20)
			r := open(t, log)
			var again bytes.Buffer
			w, err := turnlog.NewWriter(&again, r.Configs()...)
			if err != nil {
				t.Fatal(err)
			}
			for {
				turn, err := r.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				w.Turn(turn.Node, turn.Now, turn.In, &turn.Out)
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(log), again.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEventsInAnyOrderAreTheSameLog(t *testing.T) {
	c := config(2, core.Eager{}, route.R2R{Threshold: 0.65})
	logs := make([]string, 3)
	for i := range logs {
		var log bytes.Buffer
		w := must(turnlog.NewWriter(&log, c))
		world := newWorld(t, []core.Config{c}, 10, 30)
		random := rand.New(rand.NewPCG(1, uint64(i)))
		world.observe = func(node int, now core.Time, in []core.Event, out *core.Actions) {
			random.Shuffle(len(in), func(a, b int) { in[a], in[b] = in[b], in[a] })
			w.Turn(node, now, in, out)
		}
		rs := requests(20)
		for k := range rs {
			rs[k].at = core.Time(k / 4 * 60) // four at a time, with completions
		}
		world.run(t, rs)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		logs[i] = log.String()
	}
	if logs[0] != logs[1] || logs[0] != logs[2] {
		t.Error("the log depends on the order of a turn's events")
	}
}

func TestReplayCatchesAlterations(t *testing.T) {
	log := record(t, []core.Config{config(2, core.Eager{}, route.R2R{Threshold: 0.65})}, 12)
	for _, c := range []struct{ name, from, to, field string }{
		{"a row's tokens", `"rows":[[0,0,0,0,4,1,1,0]]`, `"rows":[[0,0,0,0,3,1,1,0]]`,
			"launches[0].rows[0].fresh: replayed 4, logged 3"},
		{"an action left out", `"admits":[[0,0,0,0]],`, ``, "admits[0]: replayed {"},
		{"another result", `"score":0.9`, `"score":0.1`, ""},
		{"a wake-up", `"out":{"admits":[[0,0,0,0]],`, `"out":{"wake":5,"admits":[[0,0,0,0]],`,
			"wake: replayed 0, logged 5"},
		{"a completion of another model", `"event":"done","model":0`, `"event":"done","model":1`,
			"can not have happened"},
	} {
		t.Run(c.name, func(t *testing.T) {
			altered := bytes.ReplaceAll(log, []byte(c.from), []byte(c.to))
			if bytes.Equal(altered, log) {
				t.Fatalf("%q is not in the log:\n%s", c.from, log[:2000])
			}
			_, err := turnlog.Replay(open(t, altered))
			if err == nil || !strings.Contains(err.Error(), c.field) || !strings.Contains(err.Error(), "run.jsonl:") {
				t.Errorf("error %v, want one that names the file and %q", err, c.field)
			}
		})
	}
}

func TestReplayWithAnotherPolicyIsADifference(t *testing.T) {
	c := config(2, core.Eager{}, route.R2R{Threshold: 0.65})
	log := record(t, []core.Config{c}, 12)
	c.Policy = core.StepSync{}
	_, err := turnlog.ReplayWith(open(t, log), []core.Config{c})
	var d *turnlog.Difference
	if !errors.As(err, &d) || d.Turn < 2 || d.Got == d.Want || d.Field == "" {
		t.Errorf("error %v, want a Difference", err)
	}
}

// own is a policy that no log can name.
type own struct{ core.Eager }

func TestCustomPolicy(t *testing.T) {
	c := config(2, own{}, route.R2R{Threshold: 0.65})
	log := record(t, []core.Config{c}, 8)
	_, err := turnlog.Replay(open(t, log))
	if err == nil || !strings.Contains(err.Error(), "policy turnlog_test.own, which a log cannot rebuild") {
		t.Errorf("error %v, want the type of the policy", err)
	}
	if _, err := turnlog.ReplayWith(open(t, log), []core.Config{c}); err != nil {
		t.Errorf("with the policy given: %v", err)
	}
	if same, err := turnlog.Diff(io.Discard, open(t, log), open(t, log)); !same || err != nil {
		t.Errorf("Diff = %v, %v, want true, nil", same, err)
	}
}

// fill sets every field of a struct to something that is not its zero value.
func fill(random *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(random, v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(random, v.Index(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fill(random, v.Index(i))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(random.NormFloat64())
	case reflect.Uint8:
		v.SetUint(1 + random.Uint64N(3))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(random.Uint64()>>random.UintN(64)>>(64-v.Type().Bits()) | 1)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(random.Uint64()>>random.UintN(64))>>(64-v.Type().Bits()) | 1)
	default:
		panic(v.Type().String())
	}
}

func TestNoFieldOfCoreIsMissing(t *testing.T) {
	var log bytes.Buffer
	w := must(turnlog.NewWriter(&log, config(8, core.Eager{}, route.Recorded{})))
	random := rand.New(rand.NewPCG(2, 3))
	var want []turnlog.Turn
	for n := range 50 {
		turn := turnlog.Turn{Number: uint64(n + 1), Now: core.Time(n), Line: n + 3}
		fill(random, reflect.ValueOf(&turn.Out).Elem())
		for i := range turn.Out.Launches {
			turn.Out.Launches[i].Model = i
		}
		done := core.Event{Kind: core.BatchDone, Failed: true, Model: n % 8}
		fill(random, reflect.ValueOf(&done.Results).Elem())
		arrived := core.Event{Kind: core.Arrived, Handoff: new(core.Handoff)}
		fill(random, reflect.ValueOf(arrived.Handoff).Elem())
		news := core.Event{Kind: core.NewsCame}
		fill(random, reflect.ValueOf(&news.News).Elem())
		cancelled := core.Event{Kind: core.Cancelled, ID: random.Uint64(), Reason: core.TimedOut}
		submitted := core.Event{Kind: core.Submitted, Submission: new(core.Submission)}
		fill(random, reflect.ValueOf(submitted.Submission).Elem())
		turn.In = []core.Event{done, arrived, news, cancelled, submitted, {Kind: core.Woken}}
		w.Turn(turn.Node, turn.Now, turn.In, &turn.Out)
		want = append(want, turn)
	}
	if got := reflect.TypeFor[core.Event]().NumField(); got != 9 {
		t.Errorf("core.Event has %d fields, of which this test fills 9", got)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	r := open(t, log.Bytes())
	for i := range want {
		got, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want[i], got); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestConfigurations(t *testing.T) {
	for name, configs := range systems(t) {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			w := must(turnlog.NewWriter(&log, configs...))
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			exported := cmp.Exporter(func(reflect.Type) bool { return true })
			if diff := cmp.Diff(configs, open(t, log.Bytes()).Configs(), exported, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFloatsKeepTheirBits(t *testing.T) {
	result := func(v float64) core.Result { return core.Result{Score: v, LogProb: float32(v)} }
	var log bytes.Buffer
	w := must(turnlog.NewWriter(&log, config(1, core.Eager{}, nil)))
	values := []float64{
		0.1, math.Copysign(0, -1), 5e-324, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(), 1e-7, third,
	}
	e := core.Event{Kind: core.BatchDone}
	for _, v := range values {
		e.Results = append(e.Results, result(v))
	}
	w.Turn(0, 0, []core.Event{e}, &core.Actions{})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	turn, err := open(t, log.Bytes()).Next()
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range turn.In[0].Results {
		want := result(values[i])
		if math.Float64bits(got.Score) != math.Float64bits(want.Score) ||
			math.Float32bits(got.LogProb) != math.Float32bits(want.LogProb) {
			t.Errorf("%v came back as %v and %v", values[i], got.Score, got.LogProb)
		}
	}
}

func TestWriterAllocatesNothing(t *testing.T) {
	c := config(2, core.Eager{}, route.R2R{Threshold: 0.65})
	r := open(t, record(t, []core.Config{c}, 40))
	var turns []*turnlog.Turn
	for {
		turn, err := r.Next()
		if err != nil {
			break
		}
		turns = append(turns, turn)
	}
	w := must(turnlog.NewWriter(io.Discard, c))
	write := func() {
		for _, turn := range turns {
			w.Turn(turn.Node, turn.Now, turn.In, &turn.Out)
		}
	}
	for range 20 {
		write() // until its buffer is as large as it gets
	}
	if got := testing.AllocsPerRun(20, write); got > 0 {
		t.Errorf("%v allocations in %d turns, want 0", got, len(turns))
	}
}

func BenchmarkWriter(b *testing.B) {
	c := config(2, core.Eager{}, route.R2R{Threshold: 0.65})
	log := record(b, []core.Config{c}, 40)
	r := open(b, log)
	var turns []*turnlog.Turn
	for {
		turn, err := r.Next()
		if err != nil {
			break
		}
		turns = append(turns, turn)
	}
	w := must(turnlog.NewWriter(io.Discard, c))
	b.SetBytes(int64(len(log) / len(turns)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		turn := turns[i%len(turns)]
		w.Turn(turn.Node, turn.Now, turn.In, &turn.Out)
	}
}
