package spec

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/experiments/task"
)

// TestTaskPoints: routing and its inner axis are outermost; where requests stay with one model, points with
// policy delayed are left out.
func TestTaskPoints(t *testing.T) {
	s, err := Load("testdata/task.toml")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for i := range s.Points {
		keys = append(keys, s.Points[i].Key)
	}
	want := []string{"routing=small policy=eager concurrency=2", "routing=small policy=eager concurrency=3"}
	for _, routing := range []string{"R-Stitch routing_threshold=0.3", "R-Stitch routing_threshold=0.9",
		"ME routing_threshold=1,1", "ME routing_threshold=3,1.5"} {
		for _, policy := range []string{"eager", "delayed"} {
			for _, n := range []string{"2", "3"} {
				want = append(want, "routing="+routing+" policy="+policy+" concurrency="+n)
			}
		}
	}
	for _, share := range []string{"0", "0.5"} {
		for _, n := range []string{"2", "3"} {
			want = append(want, "routing=query routing_threshold="+share+" policy=eager concurrency="+n)
		}
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"small", "large"}, s.ModelNames()); diff != "" || !s.Answered {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	values := []string{"", "0.3", "0.9", "1,1", "3,1.5", "0", "0.5"}
	if s.Axes[0].Name != "routing" || !slices.Equal(s.Axes[1].Values, values) {
		t.Errorf("axes %+v", s.Axes)
	}
	p := s.Points[2]
	if r := p.System.Router; r.Threshold != 0.3 || r.Algorithm != "rstitch" || p.Routing != nil {
		t.Errorf("router %+v, matrices %v", r, p.Routing)
	}
	if me := s.Points[14]; !slices.Equal(me.System.Router.Weights, []float64{3, 1.5}) ||
		!slices.Equal(me.Routing[1], []float64{2.0 / 3, 1.0 / 3}) {
		t.Errorf("ME: router %+v, matrices %v", me.System.Router, me.Routing)
	}
}

// TestTaskModels: smaller models come first, whatever is read first; circles do no harm.
func TestTaskModels(t *testing.T) {
	alone := func(name string) Point { return Point{Models: []Model{{Name: name}}} }
	of := func(p Point, names ...string) Point {
		p.System = &System{}
		for _, name := range names {
			p.System.Models = append(p.System.Models, SystemModel{Name: name})
		}
		return p
	}
	for _, c := range []struct {
		name   string
		points []Point
		want   []string
	}{
		{"large first", []Point{of(alone("large"), "small", "large"), of(alone("small"), "small", "large")},
			[]string{"small", "large"}},
		{"mid last", []Point{of(alone("small"), "small"), of(alone("large"), "mid", "large"),
			of(alone("mid"), "small", "mid", "large")}, []string{"small", "mid", "large"}},
		{"unused", []Point{of(alone("large"), "small", "large")}, []string{"large"}},
		{"circle", []Point{of(alone("a"), "a", "b"), of(alone("b"), "b", "a")}, []string{"a", "b"}},
		{"no system", []Point{alone("b"), alone("a")}, []string{"b", "a"}},
	} {
		s := Spec{Points: c.points}
		if got := s.ModelNames(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestTaskProblems: the problems are the fixed ones, and those to plan by are of the validation split and
// none of them.
func TestTaskProblems(t *testing.T) {
	arith, err := task.Find("arith")
	if err != nil {
		t.Fatal(err)
	}
	fixed := arith.Fixed()
	for _, c := range []struct {
		task        Task
		first, plan string
	}{
		{Task{Split: task.Test, Problems: 3, PlanProblems: 2}, fixed[0].ID, "arith/validation/1/0"},
		{Task{Split: task.Validation, Problems: 3, PlanProblems: 2}, "arith/validation/1/0",
			"arith/validation/2/0"},
	} {
		c.task.Task = arith
		asked, err := c.task.Open()
		if err != nil {
			t.Fatal(err)
		}
		plan, err := c.task.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if len(asked) != 3 || asked[0].ID != c.first || len(plan) != 2 || plan[0].ID != c.plan {
			t.Errorf("%d problems from %s and %d from %s, want %s and %s", len(asked), asked[0].ID, len(plan),
				plan[0].ID, c.first, c.plan)
		}
	}
}

// TestTaskCalibrated: each system has the step times of its own calibration, and with the matrices that a run
// has shown the chain can tell of the point.
func TestTaskCalibrated(t *testing.T) {
	s, err := Load("testdata/task.toml")
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, t.TempDir(), "pair.toml", provenance+`[[models]]
name = "small"
latency = { kind = "constant", step = "1ms" }
[[models]]
name = "large"
latency = { kind = "affine", base = "4ms", per_context_ns = 10 }
`)
	again, err := s.CalibratedSystems(map[string]string{"testdata/systems/rstitch.toml": path})
	if err != nil {
		t.Fatal(err)
	}
	if again.Hash != s.Hash || again.Points[0].Models[0].Latency != nil ||
		again.Points[2].Models[0].Latency == nil {
		t.Errorf("models %+v and %+v", again.Points[0].Models, again.Points[2].Models)
	}
	p := again.Points[2].Measured([][]float64{{0.9, 0.1}, {1, 0}}, [][]float64{{1, 0}, {1, 0}}, 100)
	if why := p.Unpredictable(); why != "" || p.Models[1].ByRows[1] != 4e6+2*100*10 {
		t.Errorf("unpredictable: %q; steps of %v ns, want 4 ms and 2 us a pair", why, p.Models[1].ByRows)
	}
	if again.Points[2].Unpredictable() == "" {
		t.Error("the point that was not measured can be predicted")
	}
}

// TestTaskRefused: what does not go together is refused where it stands.
func TestTaskRefused(t *testing.T) {
	text, err := os.ReadFile("testdata/task.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, text, want string }{
		{"task", `task = "arith"`, `task = "algebra"`, `:11: workload.task = "algebra", want one of "arith",` +
			` "symbols"`},
		{"no task", "task = \"arith\"\n", "", `:9: workload.task: missing, want one of "arith", "symbols"`},
		{"split", `"validation"`, `"train"`, `:12: workload.split = "train", want one of "test", "validation"`},
		{"level", "level = 1", "level = 7", ":13: workload.level = 7, want an integer of 0 to 6"},
		{"problems", "problems = 20", "problems = 3", ":17: workload.warmup_requests = 4, want fewer than the 3"},
		{"lengths", "level = 1", "prompt = 10", ":13: workload.prompt = 10, does not apply here"},
		{"kind", `kind = "task"`, `kind = "closed"`, `:10: workload.kind = "closed", want "task" beside` +
			` [[routing]]`},
		{"system file", "calibrate = true", "calibrate = true\nfile = \"systems/pair.toml\"",
			`:8: system.file = "systems/pair.toml", want none beside [[routing]]`},
		{"router", "[policy]", "[router]\nalgorithm = \"r2r\"\np = 0.5\n[policy]",
			`want none beside [[routing]], whose entries name their systems`},
		{"not planned", "calibrate = true", "", `policy.thresholds = "planned", want system.calibrate = true`},
		{"no system", `system = "systems/alone.toml"`, "", ":27: routing[0].system: missing, want the file of a"},
		{"lost system", "systems/alone", "systems/lost",
			`:29: routing[0].system = "systems/lost.toml", want a file`},
		{"no thresholds", "thresholds = [0.3, 0.9]", "", ":31: routing[1].thresholds: missing, want an array: the" +
			" algorithm of the system is rstitch"},
		{"threshold", "[0.3, 0.9]", "[0.3, 3]", ":34: routing[1].thresholds[1] = 3, want a number of -1 to 2"},
		{"twice", "[0.3, 0.9]", "[0.3, 0.30]", ":34: routing[1].thresholds[1] = 0.3, want no value twice"},
		{"shares of ME", "weights = [[1, 1], [3, 1.5]]", "weights = [[1, 1]]\nshares = [0.5]",
			":40: routing[2].shares = [0.5], want none: the algorithm of the system is me"},
		{"weights", "[3, 1.5]", "[3, 1, 2]", ":39: routing[2].weights[1] = [3, 1, 2], want 2 numbers"},
		{"no weight", "[3, 1.5]", "[0, 0]", "routing[2].weights[1] = [0, 0], want a number above 0 among them"},
		{"share", "[0, 0.5]", "[0, 50]", ":44: routing[3].shares[1] = 50, want a number of 0 to 1"},
		{"name", `name = "query"`, `name = "ME"`,
			`:42: routing[3].name = "ME", want a name that no other routing`},
		{"figure", "[[routing]]\nname = \"small\"", "[[figure]]\nkind = \"throughput-speed\"\n[[routing]]\n" +
			"name = \"small\"", `kind = "throughput-speed", want one routing at one place for this figure, not 4`},
		{"no router", "systems/rstitch", "systems/pair",
			`testdata/systems/pair.toml:1: router.algorithm: missing, want`},
	} {
		_, err := load("testdata/t.toml", func(path string) ([]byte, error) {
			if path != "testdata/t.toml" {
				return os.ReadFile(path)
			}
			return []byte(strings.Replace(string(text), c.old, c.text, 1)), nil
		}, calibrated{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error\n%v\nwant in it\n%s", c.name, err, c.want)
		}
	}
}
