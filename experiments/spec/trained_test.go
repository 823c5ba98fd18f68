package spec

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/BurntSushi/toml"
)

// trained loads an experiment of the repository.
func trained(t *testing.T, name string) *Spec {
	t.Helper()
	s, err := Load(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTrainedThresholds: the places of the experiments on arith and on symbols are those that validation
// problems gave for the shares of experiments/train/routers/calibrate.py.
func TestTrainedThresholds(t *testing.T) {
	type routing struct {
		Thresholds []float64   `toml:"thresholds"`
		Weights    [][]float64 `toml:"weights"`
	}
	var calibrated map[string]toml.Primitive
	read, err := toml.DecodeFile("../models/arith-thresholds.toml", &calibrated)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"R2R": "r2r", "CITER": "citer", "Co-LLM": "collm", "R-Stitch": "rstitch",
		"ME": "me"}
	for file, task := range map[string]string{"pareto.toml": "arith", "pareto-symbols.toml": "symbols"} {
		var family map[string]toml.Primitive
		if err := read.PrimitiveDecode(calibrated[task], &family); err != nil {
			t.Fatal(err)
		}
		var spec struct {
			Routing []struct {
				Name string `toml:"name"`
				routing
			} `toml:"routing"`
		}
		if _, err := toml.DecodeFile(filepath.Join("..", file), &spec); err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, r := range spec.Routing {
			if names[r.Name] == "" {
				continue
			}
			found++
			var of routing
			if err := read.PrimitiveDecode(family[names[r.Name]], &of); err != nil {
				t.Fatal(err)
			}
			for _, threshold := range r.Thresholds {
				if !slices.Contains(of.Thresholds, threshold) {
					t.Errorf("%s: %s at %v, calibrated are %v", file, r.Name, threshold, of.Thresholds)
				}
			}
			if !slices.EqualFunc(r.Weights, of.Weights, slices.Equal) {
				t.Errorf("%s: %s with %v, calibrated are %v", file, r.Name, r.Weights, of.Weights)
			}
		}
		if found < 2 {
			t.Errorf("%s: %d routings by tokens", file, found)
		}
	}
}

// TestTrained: the experiment has the models alone, five algorithms by tokens and four by requests, each at 6
// places at least, on the fixed test problems; what may wait is delayed, too.
func TestTrained(t *testing.T) {
	s := trained(t, "pareto.toml")
	places := make(map[string][]string) // by routing
	delayed := make(map[string]int)
	for i := range s.Points {
		p := &s.Points[i]
		routing, place := p.Values[0].Text, p.Values[1].Text
		if !slices.Contains(places[routing], place) {
			places[routing] = append(places[routing], place)
		}
		if p.Policy.Kind == "delayed" {
			delayed[routing]++
			if !p.Policy.Planned {
				t.Errorf("%s: thresholds %v, want them planned", p.Key, p.Policy.Table)
			}
		}
		if k := p.Task; k.Problems != 500 || k.Split != "test" || k.Task.Name != "arith" || k.Level != 0 {
			t.Errorf("%s: problems %+v", p.Key, k)
		}
	}
	alone := []string{"small", "mid", "large"}
	tokens := []string{"R2R", "CITER", "Co-LLM", "R-Stitch", "ME"}
	requests := []string{"query: mf", "query: sw", "query: bert", "query: causal"}
	if want := slices.Concat(alone, tokens, requests); !slices.Equal(s.Axes[0].Values, want) {
		t.Errorf("routings %q, want %q", s.Axes[0].Values, want)
	}
	for routing, at := range places {
		want, late := 6, 0
		if slices.Contains(alone, routing) {
			want = 1
		}
		if slices.Contains(tokens, routing) {
			late = 2 * len(at)
		}
		if len(at) < want || delayed[routing] != late {
			t.Errorf("%s at %q, %d points delayed; want %d places and %d points", routing, at, delayed[routing],
				want, late)
		}
	}
	if want := []string{"arith-small", "arith-mid", "arith-large"}; !slices.Equal(s.ModelNames(), want) {
		t.Errorf("models %q, want %q", s.ModelNames(), want)
	}
}

// TestTrainedShort: the short form is of the same routings, and small.
func TestTrainedShort(t *testing.T) {
	full, short := trained(t, "pareto.toml"), trained(t, "pareto-short.toml")
	var keys []string
	for i := range full.Points {
		keys = append(keys, full.Points[i].Key)
	}
	answers := 0
	for i := range short.Points {
		p := &short.Points[i]
		if !slices.Contains(keys, p.Key) {
			t.Errorf("point %s is none of the full form", p.Key)
		}
		answers += p.Task.Problems
	}
	const answersMax = 1000
	if answers > answersMax || len(short.Figures) != 1 || short.Figures[0].Kind != "pareto" {
		t.Errorf("%d answers, want at most %d; figures %+v", answers, answersMax, short.Figures)
	}
}

// TestTrainedThreshold: every set of every concurrency, of one routing.
func TestTrainedThreshold(t *testing.T) {
	s := trained(t, "pareto-threshold.toml")
	// N = 2, 3, 4, 6 and 8 have as many sets each.
	if want := 2 + 3 + 4 + 6 + 8; len(s.Points) != want || s.Figures[0].Kind != "threshold" {
		t.Errorf("%d points, want %d; figures %+v", len(s.Points), want, s.Figures)
	}
}
