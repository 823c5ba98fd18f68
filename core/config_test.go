package core_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/route"
)

func goodConfig() core.Config {
	return core.Config{
		Models: models(2), Algorithm: route.Recorded{}, Policy: core.Eager{}, Admission: core.Reserve,
		Requests: 8, LiveMax: 4, ContextMax: 100, PageTokens: 4,
	}
}

func me(t testing.TB, weights ...float64) route.ME {
	t.Helper()
	a, err := route.NewME(weights)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestNewRefuses: what a configuration must not be, each with the number that is wrong.
func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(c *core.Config)
		errHas string // nothing: accepted
	}{
		{"nothing", func(*core.Config) {}, ""},
		{"no model", func(c *core.Config) { c.Models = nil }, "0 models"},
		{"too many models", func(c *core.Config) { c.Models = models(9) }, "9 models, want 1 to 8"},
		{"no algorithm", func(c *core.Config) { c.Algorithm = nil }, "Algorithm"},
		{"no algorithm for one model", func(c *core.Config) { c.Algorithm, c.Models = nil, models(1) }, ""},
		{"no policy", func(c *core.Config) { c.Policy = nil }, "Policy"},
		{"no admission", func(c *core.Config) { c.Admission = 0 }, "Admission = 0"},
		{"no slots", func(c *core.Config) { c.Requests, c.LiveMax = 0, 0 }, "Requests = 0"},
		{"live above slots", func(c *core.Config) { c.LiveMax = 9 }, "LiveMax = 9"},
		{"live negative", func(c *core.Config) { c.LiveMax = -1 }, "LiveMax = -1"},
		{"no context", func(c *core.Config) { c.ContextMax = 1 }, "ContextMax = 1"},
		{"context wraps an int32", func(c *core.Config) { c.ContextMax = math.MaxInt32 },
			"ContextMax = 2147483647"},
		{"no page", func(c *core.Config) { c.PageTokens = 0 }, "PageTokens = 0"},
		{"budget of a page", func(c *core.Config) { c.TokenBudget = 7 }, "TokenBudget = 7"},
		{"budget of two pages", func(c *core.Config) { c.TokenBudget = 8 }, ""},
		{"budget negative", func(c *core.Config) { c.TokenBudget = -8 }, "TokenBudget = -8"},
		{"a front into the past", func(c *core.Config) { c.FrontNs = -1 }, "FrontNs = -1"},
		{"a front of months", func(c *core.Config) { c.FrontNs = core.DelayMax + 1 }, "FrontNs = 1000000000000001"},
		{"dispatch into the past", func(c *core.Config) { c.Models[1].DispatchNs = -1 }, `"m1": DispatchNs = -1`},
		{"dispatch of days", func(c *core.Config) { c.Models[1].DispatchNs = core.DelayMax }, ""},
		{"empty pool", func(c *core.Config) { c.Models[1].Pages = 0 }, `model 1 "m1": Pages = 0`},
		{"pages wrap an int32", func(c *core.Config) { c.Models[1].Pages = 1 << 31 }, "Pages = 2147483648"},
		{"node negative", func(c *core.Config) { c.Models[1].Node = -1 }, "Node = -1"},
		{"node without model", func(c *core.Config) { c.Node = 3 }, "node 3 has no model"},
		{"rows negative", func(c *core.Config) { c.Models[0].RowsMax = -1 }, "RowsMax = -1"},
		{"too few slots for two nodes", func(c *core.Config) { c.Models[1].Node, c.LiveMax = 1, 5 },
			"Requests = 8"},
		{"step-sync over two nodes", func(c *core.Config) { c.Models[1].Node, c.Policy = 1, core.StepSync{} },
			"node 0 owns 1 of 2"},
		{"model-sync over two nodes", func(c *core.Config) { c.Models[1].Node, c.Policy = 1, core.ModelSync{} },
			"node 0 owns 1 of 2"},
		{"no thresholds", func(c *core.Config) { c.Policy = core.Delayed{} }, "thresholds for 0 models, want 2"},
		{"weights of three models", func(c *core.Config) { c.Algorithm = me(t, 1, 1, 1) },
			"route.ME for 3 models, want 2"},
		{"matrix of one model", func(c *core.Config) {
			one, err := route.NewMatrix([][]float64{{1}}, [][]float64{{1}})
			if err != nil {
				t.Fatal(err)
			}
			c.Algorithm = one
		}, "route.Matrix for 1 models, want 2"},
		{"thresholds of three models", func(c *core.Config) {
			c.Policy = core.Delayed{Thresholds: fixed(t, 4, 1, 1, 2)}
		}, "thresholds for 3 models, want 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := goodConfig()
			c.change(&config)
			_, err := core.New(config)
			if (err == nil) != (c.errHas == "") || err != nil && !strings.Contains(err.Error(), c.errHas) {
				t.Errorf("error %v, want one with %q", err, c.errHas)
			}
		})
	}
}

// TestPanics: a driver's mistakes stop it at once, with the numbers.
func TestPanics(t *testing.T) {
	start := func(config core.Config) (*core.Scheduler, *core.Actions) {
		s, err := core.New(config)
		if err != nil {
			t.Fatal(err)
		}
		out := new(core.Actions)
		s.Turn(10, []core.Event{{Kind: core.Submitted, Submission: &core.Submission{
			ID: 1, PromptTokens: 1, TokensMax: 5,
		}}}, out)
		return s, out
	}
	for _, c := range []struct {
		name string
		has  string
		do   func(s *core.Scheduler, out *core.Actions)
	}{
		{"time goes back", "Turn at 9 after Turn at 10",
			func(s *core.Scheduler, out *core.Actions) { s.Turn(9, nil, out) }},
		{"idle model ends", "model 1, which is not running", func(s *core.Scheduler, out *core.Actions) {
			s.Turn(10, []core.Event{{Kind: core.BatchDone, Model: 1}}, out)
		}},
		{"no such model", "model 2, which is not running", func(s *core.Scheduler, out *core.Actions) {
			s.Turn(10, []core.Event{{Kind: core.BatchDone, Model: 2}}, out)
		}},
		{"wrong number of results", "2 results for 1 rows", func(s *core.Scheduler, out *core.Actions) {
			s.Turn(10, []core.Event{{Kind: core.BatchDone, Results: make([]core.Result, 2)}}, out)
		}},
		{"algorithm leaves the models", "to model 5, which it may not visit",
			func(s *core.Scheduler, out *core.Actions) {
				s.Turn(10, []core.Event{{Kind: core.BatchDone, Results: []core.Result{{Next: 5}}}}, out)
			}},
		{"event of no kind", "event of kind 0",
			func(s *core.Scheduler, out *core.Actions) { s.Turn(10, make([]core.Event, 1), out) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, out := start(goodConfig())
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, c.has) {
					t.Errorf("panic %q, want one with %q", text, c.has)
				}
			}()
			c.do(s, out)
		})
	}
}

// astray is an Algorithm that goes to and fro until position from, and then sends every request
// to one number, whatever there is.
type astray struct {
	route.Recorded
	from int32
	to   int
}

func (a astray) Route(v *core.Visit, _ *core.Result) int {
	if v.Position < a.from {
		return int(1 - v.Model)
	}
	return a.to
}

// TestRouteAstray: no number that is not a model of the request is taken for one, in however
// few bits the core keeps it, on the first pass or when both models have been visited.
func TestRouteAstray(t *testing.T) {
	for _, to := range []int{-1, -2, 2, 8, 9, 127, 128, 255, 256, 257, 1 << 32, 1<<32 + 1, -1 << 63} {
		for _, from := range []int32{0, 3} {
			t.Run(fmt.Sprint(to, from), func(t *testing.T) {
				config := core.Config{Models: models(3), Policy: core.Eager{}, Algorithm: astray{from: from, to: to}}
				w := newWorld(t, config, ms, ms, ms)
				w.result = func(uint64, int, int, int) core.Result { return core.Result{} }
				w.submit(0, core.Submission{ID: 7, PromptTokens: 1, TokensMax: 9, Models: 0b011})
				defer func() {
					want := fmt.Sprintf("sent request 7 to model %d, which it may not visit", to)
					text, _ := recover().(string)
					if !strings.Contains(text, want) || w.passes[7] != int(from)+1 {
						t.Errorf("panic %q after %d passes, want one with %q after %d", text, w.passes[7], want, from+1)
					}
				}()
				w.run()
			})
		}
	}
}

// backwards is a policy that asks to be woken at a time that has come.
type backwards struct{}

func (backwards) Start(_ int, v *core.View) bool {
	v.WakeBy(v.Now())
	return false
}

func TestWakeByMustLieAhead(t *testing.T) {
	config := goodConfig()
	config.Policy = backwards{}
	s, err := core.New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "WakeBy(10) at 10") {
			t.Errorf("panic %q", text)
		}
	}()
	s.Turn(10, []core.Event{{Kind: core.Submitted, Submission: &core.Submission{
		ID: 1, PromptTokens: 1, TokensMax: 5,
	}}}, new(core.Actions))
}
