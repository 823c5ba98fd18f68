package core_test

import (
	"reflect"
	"strings"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/route"
)

// TestFeasible: a set is feasible if sum (B_i - 1) < N (TokenRouter, arXiv 2610.12242,
// appendix D); otherwise all N can wait below their thresholds for ever.
func TestFeasible(t *testing.T) {
	for _, c := range []struct {
		name   string
		b      []int
		n      int
		errHas []string // nothing: accepted
	}{
		{"1+3 is not below 4", []int{2, 4}, 4, []string{"N = 4", "sum of (B - 1) is 4"}},
		{"1+2 is below 4", []int{2, 3}, 4, nil},
		{"0+3 is below 4", []int{1, 4}, 4, nil},
		{"1+1+1 is below 4", []int{2, 2, 2}, 4, nil},
		{"1+1+2 is not below 4", []int{2, 2, 3}, 4, []string{"N = 4", "sum of (B - 1) is 4"}},
		{"one request, all ones", []int{1, 1}, 1, nil},
		{"one request, a two", []int{1, 2}, 1, []string{"model 1 is 2", "N = 1"}},
		{"one request, a two first", []int{2, 1}, 1, []string{"model 0 is 2", "N = 1"}},
		{"more than N", []int{1, 5}, 4, []string{"model 1 is 5", "N = 4"}},
		{"zero", []int{1, 0}, 4, []string{"model 1 is 0", "at least 1"}},
		{"negative", []int{-1, 2}, 4, []string{"model 0 is -1", "at least 1"}},
		{"dead at N = 2", []int{2, 2}, 2, []string{"N = 2", "sum of (B - 1) is 2"}},
		{"near the largest int", []int{1 << 62, 1 << 62}, 4, []string{"N = 4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := core.Feasible(c.b, c.n)
			if (err != nil) != (c.errHas != nil) {
				t.Fatalf("Feasible(%v, %d) = %v", c.b, c.n, err)
			}
			for _, has := range c.errHas {
				if !strings.Contains(err.Error(), has) {
					t.Errorf("error %q does not name %q", err, has)
				}
			}
			if _, err := core.FixedThresholds(c.b, c.n); (err != nil) != (c.errHas != nil) {
				t.Errorf("FixedThresholds(%v, %d): %v", c.b, c.n, err)
			}
		})
	}
}

// TestFixedThresholdsBelowN: below liveMax a set is cut to N, and then its largest value, the
// last of equals, is lowered until the set is feasible.
func TestFixedThresholdsBelowN(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []int
		want [][]int
	}{
		{"one model waits", []int{1, 3}, [][]int{{1, 1}, {1, 2}, {1, 3}, {1, 3}}},
		{"both wait", []int{2, 3}, [][]int{{1, 1}, {2, 1}, {2, 2}, {2, 3}}},
		{"three models", []int{2, 2, 2}, [][]int{{1, 1, 1}, {2, 1, 1}, {2, 2, 1}, {2, 2, 2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := fixed(t, 4, c.b...)
			if !reflect.DeepEqual(got.Rows(), c.want) {
				t.Errorf("rows %v, want %v", got.Rows(), c.want)
			}
			for n := 1; n <= 9; n++ { // also beyond liveMax
				if err := core.Feasible(got.Row(n), n); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestTableThresholds: row n-1 is for N = n. N = 0 is idle and looks nothing up; beyond the
// table its last row counts; it is never entry -1 and never a crash.
func TestTableThresholds(t *testing.T) {
	table, err := core.TableThresholds([][]int{{1, 1}, {1, 2}, {1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []int{1, 1, 2, 2, 2, 2} {
		if got := table.At(n, 1); got != want {
			t.Errorf("threshold at N = %d is %d, want %d", n, got, want)
		}
	}
	if got := table.At(-1, 1); got != 1 {
		t.Errorf("threshold at N = -1 is %d, want 1", got)
	}
	for _, c := range []struct {
		name   string
		rows   [][]int
		errHas string
	}{
		{"empty", nil, "empty"},
		{"uneven", [][]int{{1, 1}, {1}}, "N = 2 has 1 values, want 2"},
		{"infeasible row", [][]int{{1, 1}, {2, 2}}, "row for N = 2"},
		{"zero", [][]int{{1, 0}}, "at least 1"},
		{"first row above 1", [][]int{{1, 2}}, "N = 1"},
	} {
		if _, err := core.TableThresholds(c.rows); err == nil || !strings.Contains(err.Error(), c.errHas) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.errHas)
		}
	}
}

// TestTableDoesNotAlias: changing the caller's slices later changes no threshold.
func TestTableDoesNotAlias(t *testing.T) {
	rows := [][]int{{1, 1}, {1, 2}}
	table, err := core.TableThresholds(rows)
	if err != nil {
		t.Fatal(err)
	}
	rows[1][1] = 7
	if got := table.At(2, 1); got != 2 {
		t.Errorf("threshold is %d, want 2", got)
	}
}

// TestScalarThresholdChangesBatching: the official R2R server took a scalar for 1. Four
// requests that go to the large model one by one make 4 launches under 1, 2 under 3 and 1
// under 4.
func TestScalarThresholdChangesBatching(t *testing.T) {
	for _, c := range []struct{ threshold, first int }{{1, 1}, {2, 2}, {3, 3}, {4, 4}} {
		w := newWorld(t, core.Config{
			Models: models(2), Algorithm: route.Recorded{}, LiveMax: 4,
			Policy: core.Delayed{Thresholds: fixed(t, 4, 1, c.threshold)},
		}, 10*ms, 1*ms)
		w.strings(map[uint64]string{1: "SLSSSS", 2: "SSLSSS", 3: "SSSLSS", 4: "SSSSLS"})
		first := 0
		w.observe = func(_ *node, _ []core.Event, out *core.Actions) {
			for _, l := range out.Launches {
				if l.Model == 1 && first == 0 {
					first = len(l.Rows)
				}
			}
		}
		for id := range uint64(4) {
			w.submit(0, core.Submission{ID: id + 1, PromptTokens: 1, TokensMax: 9})
		}
		w.run().settled()
		if first != c.first {
			t.Errorf("threshold %d: the first large batch has %d rows, want %d", c.threshold, first, c.first)
		}
	}
}
