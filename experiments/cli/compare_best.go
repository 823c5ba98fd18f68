package cli

import (
	"fmt"
	"math"
	"slices"

	"tokenrouter/experiments/result"
)

// findArgmax finds the best thresholds of every group in which they are swept.
func (c *comparison) findArgmax() {
	var groups []string
	members := map[string][]*compared{}
	for i := range c.Rows {
		r := &c.Rows[i]
		if len(r.Thresholds) == 0 {
			continue
		}
		if members[r.group] == nil {
			groups = append(groups, r.group)
		}
		members[r.group] = append(members[r.group], r)
	}
	for _, group := range groups {
		if len(members[group]) < 2 {
			continue
		}
		a := argmaxOf(group, members[group])
		c.Argmax = append(c.Argmax, a)
		if a.Agree {
			c.ArgmaxAgree++
		}
	}
}

func argmaxOf(group string, rows []*compared) argmax {
	a := argmax{Group: group, Measured: map[string][]int{}, Agree: true}
	a.Predicted = best(rows, func(r *compared) *float64 { return r.Predicted })
	a.Simulated = best(rows, func(r *compared) *float64 { return r.Simulated })
	sets := [][]int{a.Predicted, a.Simulated}
	for _, r := range rows {
		for _, m := range r.Measured {
			if a.Measured[m.Name] != nil {
				continue
			}
			set := best(rows, func(r *compared) *float64 {
				at := slices.IndexFunc(r.Measured, func(other measured) bool { return other.Name == m.Name })
				if at < 0 {
					return nil
				}
				return &r.Measured[at].Value
			})
			a.Measured[m.Name] = set
			sets = append(sets, set)
		}
	}
	for _, set := range sets {
		a.Agree = a.Agree && (set == nil || slices.Equal(set, a.Simulated))
	}
	if a.Measured[here] != nil {
		a.PredictedAgrees, a.SimulatedAgrees = agrees(rows, a.Predicted), agrees(rows, a.Simulated)
		a.Agree = a.PredictedAgrees != "no" && a.SimulatedAgrees != "no"
	}
	return a
}

// here names what the run itself measured.
const here = "measured"

// agrees says how good a set of thresholds, best by another account, was when it was measured: the best
// ("yes"), within the interval of the best ("tie"), or less ("no").
func agrees(rows []*compared, set []int) string {
	var top, own *measured
	for _, r := range rows {
		m := &r.Measured[0]
		if top == nil || m.Value > top.Value {
			top = m
		}
		if set != nil && slices.Equal(r.Thresholds, set) {
			own = m
		}
	}
	switch {
	case own == nil:
		return ""
	case own == top:
		return "yes"
	case top.Interval != nil && own.Value >= top.Value-*top.Interval:
		return "tie"
	default:
		return "no"
	}
}

// best is the thresholds of the row with the largest value, nil if none has one.
func best(rows []*compared, value func(*compared) *float64) []int {
	var set []int
	most := math.Inf(-1)
	for _, r := range rows {
		if v := value(r); v != nil && *v > most {
			most, set = *v, r.Thresholds
		}
	}
	return set
}

// ties counts how often what was measured here agrees with each of the others, and how often by a tie.
func (c *comparison) ties() string {
	var predicted, simulated [2]int // yes, tie
	note := func(counts *[2]int, agrees string) {
		switch agrees {
		case "yes":
			counts[0]++
		case "tie":
			counts[1]++
		}
	}
	for _, a := range c.Argmax {
		if a.Measured[here] == nil {
			return ""
		}
		note(&predicted, a.PredictedAgrees)
		note(&simulated, a.SimulatedAgrees)
	}
	return fmt.Sprintf(" (the best measured is that predicted in %d and that simulated in %d; in %d and %d more"+
		" it is within the measured 95 %% interval, a tie)", predicted[0], simulated[0], predicted[1],
		simulated[1])
}

func (c *comparison) argmaxTable() *table {
	t := &table{}
	t.titles("", "predicted", "simulated")
	for _, reference := range c.References {
		t.head = append(t.head, reference.Name)
	}
	t.head = append(t.head, "agree")
	for _, a := range c.Argmax {
		cells := []string{a.Group, orDash(a.Predicted) + tie(a.PredictedAgrees),
			orDash(a.Simulated) + tie(a.SimulatedAgrees)}
		for _, reference := range c.References {
			cells = append(cells, orDash(a.Measured[reference.Name]))
		}
		agree := "yes"
		if !a.Agree {
			agree = "NO"
		}
		t.rows = append(t.rows, append(cells, agree))
	}
	return t
}

// tie marks thresholds that are as good as the best as far as can be told.
func tie(agrees string) string {
	if agrees == "tie" {
		return " (tie)"
	}
	return ""
}

func orDash(set []int) string {
	if set == nil {
		return "-"
	}
	return result.JoinInts(set)
}
