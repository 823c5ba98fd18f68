package native_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
	"tokenrouter/exec"
	"tokenrouter/exec/model/router"
	"tokenrouter/exec/native"
	"tokenrouter/exec/native/nativetest"
)

// TestRouter: a router of each kind is put whole, and its score comes with each token; another router, other
// bits.
func TestRouter(t *testing.T) {
	for _, s := range []router.Shape{
		{Algorithm: router.R2R, Hidden: 32, Top: 10, Width: 16, Blocks: 2, Expanded: 24},
		{Algorithm: router.CITER, Hidden: 32, Width: 64},
		{Algorithm: router.CoLLM, Hidden: 32},
	} {
		t.Run(s.Algorithm.String(), func(t *testing.T) {
			dir := t.TempDir()
			if err := router.Make(dir, s, 1); err != nil {
				t.Fatal(err)
			}
			r, err := router.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			c := configOf(t, shape)
			load := native.Load{Name: "small", Config: c, Limits: limits(), Router: r,
				Source: &native.Random{Config: c.Model, Seed: 1}}
			d := opened(t, 0)
			m, err := d.Load(t.Context(), load)
			if err != nil {
				t.Fatal(err)
			}
			if m.Config().Router != s {
				t.Errorf("router %v, want %v", m.Config().Router, s)
			}
			first := forward(t, m, &native.Batch{Grants: []native.Grant{{Page: 1}}}, native.Request{}, 8, 9)
			r.Tensors[0].Data[0]++
			changed, err := d.Load(t.Context(), load)
			if err != nil {
				t.Fatal(err)
			}
			grants := []native.Grant{{Page: 1}}
			second := forward(t, changed, &native.Batch{Grants: grants}, native.Request{}, 8, 9)
			if !(first.Score >= 0 && first.Score < 1) || first.Score == second.Score {
				t.Errorf("scores %v and, of another router, %v", first.Score, second.Score)
			}
			r.Tensors = r.Tensors[1:]
			if _, err := d.Load(t.Context(), load); !errors.Is(err, native.ErrInvalid) {
				t.Errorf("a tensor is missing: %v, want %v", err, native.ErrInvalid)
			}
			r.Shape.Hidden = 33
			_, err = d.Load(t.Context(), load)
			if !errors.Is(err, native.ErrInvalid) || !strings.Contains(err.Error(), "hidden 33") {
				t.Errorf("a router of another width: %v, want %v", err, native.ErrInvalid)
			}
		})
	}
}

// TestScore: an executor hands on the router's score, or the draw in its place, or 0 where there is neither.
func TestScore(t *testing.T) {
	r := &router.Router{Shape: router.Shape{Algorithm: router.CoLLM, Hidden: 32},
		Tensors: []router.Tensor{{Part: router.Output, Rows: 1, Columns: 32, Data: make([]float32, 32)}}}
	draw := keyed.Float(keyed.Hash(5, 7, 1, 0, keyed.Route)) // after two tokens, of which one is the prompt
	for _, test := range []struct {
		name   string
		router *router.Router
		keyed  bool
		want   float64 // NaN: the model's own
	}{
		{"router", r, false, math.NaN()}, {"router and keyed", r, true, draw},
		{"keyed", nil, true, draw}, {"neither", nil, false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := configOf(t, shape)
			m, err := opened(t, 0).Load(t.Context(), native.Load{Config: c, Limits: limits(),
				Router: test.router, Source: &native.Random{Config: c.Model}})
			if err != nil {
				t.Fatal(err)
			}
			if math.IsNaN(test.want) {
				grants := []native.Grant{{Page: 1}}
				test.want = forward(t, m, &native.Batch{Grants: grants}, native.Request{}, 8, 9).Score
			}
			ids := []int32{8, 9}
			pass := &exec.Pass{
				Launch: core.Launch{Fresh: 2, Rows: []core.Row{{ID: 7, Fresh: 2, Head: true}}}, Tokens: [][]int32{ids},
				Contexts: []exec.Context{{Prompt: 1, IDs: ids}}, Grants: []core.Grant{{Page: 2}},
				Results: make([]core.Result, 1), Top: make([][]exec.Candidate, 1),
			}
			e := native.NewExecutor(m, native.Execution{Seed: 5, Keyed: test.keyed})
			if err := e.Step(pass); err != nil {
				t.Fatal(err)
			}
			if got := pass.Results[0]; got.Score != test.want || got.Draw != draw {
				t.Errorf("%+v, want the score %v and the draw %v", got, test.want, draw)
			}
		})
	}
}

// TestScoreNotANumber: a row whose router's score is none fails, and says why; another in the pass does not.
// Without a router, or with draws in its place, nothing is amiss.
func TestScoreNotANumber(t *testing.T) {
	r := &router.Router{Shape: router.Shape{Algorithm: router.CoLLM, Hidden: 32},
		Tensors: []router.Tensor{{Part: router.Output, Rows: 1, Columns: 32, Data: make([]float32, 32)}}}
	for _, test := range []struct {
		name   string
		router *router.Router
		keyed  bool
		fails  bool
	}{{"router", r, false, true}, {"keyed", r, true, false}, {"no router", nil, false, false}} {
		t.Run(test.name, func(t *testing.T) {
			c := configOf(t, shape)
			m, err := opened(t, 0).Load(t.Context(), native.Load{Config: c, Limits: limits(),
				Router: test.router, Source: &native.Random{Config: c.Model}})
			if err != nil {
				t.Fatal(err)
			}
			pass := full(2)
			pass.Errors = make([]error, 2)
			pass.Tokens[0][7] = nativetest.ScoreToken
			e := native.NewExecutor(m, native.Execution{Keyed: test.keyed})
			if err := e.Step(pass); err != nil {
				t.Fatal(err)
			}
			first, second := pass.Results[0], pass.Results[1]
			if first.Failed != test.fails || (pass.Errors[0] != nil) != test.fails || second.Failed ||
				pass.Errors[1] != nil {
				t.Errorf("rows fail: %t (%v) and %t (%v), want %t and false", first.Failed, pass.Errors[0],
					second.Failed, pass.Errors[1], test.fails)
			}
			if test.fails && pass.Errors[0].Error() != "the router's score is not a number" {
				t.Errorf("said of the score: %v", pass.Errors[0])
			}
		})
	}
}
