package result

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Cell is a published value beside the one of the experiment.
type Cell struct {
	Experiment string
	Reference  string
	Metric     string
	Row        *Row
	Published  float64
	Own        float64 // NaN if the experiment has none
	Half       float64 // half the width of its confidence interval; NaN for none
	Error      float64 // Own / Published - 1
	Fit        bool    // a constant was fitted to it
}

// Cells lists the published values of a summary, in order of its references and rows.
func (s *Summary) Cells() []Cell {
	var cells []Cell
	for i := range s.References {
		reference := &s.References[i]
		for j := range s.Rows {
			r := &s.Rows[j]
			p := reference.point(r)
			if p == nil {
				continue
			}
			c := Cell{Experiment: s.Experiment, Reference: reference.Name, Metric: reference.Metric, Row: r,
				Published: p.Value, Fit: p.Fit}
			c.Own, c.Half = s.modelled(r, reference.Metric)
			c.Error = c.Own/c.Published - 1
			cells = append(cells, c)
		}
	}
	return cells
}

// modelled is a metric as simulated, even where the experiment measured.
func (s *Summary) modelled(r *Row, metric string) (value, half float64) {
	if s.Backend != "" && metric == "throughput_tok_s" {
		metric = "simulated_tok_s"
	}
	return s.Value(r, metric)
}

// Errors sums up the relative errors of cells.
type Errors struct {
	Count   int     // of those that have one
	Missing int     // cells for which the experiment has no value
	Median  float64 // of the absolute errors; NaN without any
	Worst   float64 // the largest, with its sign
	At      Cell    // that has it
}

// ErrorsOf sums up those of the cells that were fitted, or those that were not, which check something.
func ErrorsOf(cells []Cell, fit bool) Errors {
	e := Errors{Median: math.NaN(), Worst: math.NaN()}
	var sizes []float64
	for _, c := range cells {
		switch size := math.Abs(c.Error); {
		case c.Fit != fit:
		case math.IsNaN(size) || math.IsInf(size, 0):
			e.Missing++
		default:
			if len(sizes) == 0 || size > math.Abs(e.Worst) {
				e.Worst, e.At = c.Error, c
			}
			sizes = append(sizes, size)
		}
	}
	if e.Count = len(sizes); e.Count > 0 {
		slices.Sort(sizes)
		e.Median = (sizes[(e.Count-1)/2] + sizes[e.Count/2]) / 2
	}
	return e
}

// Order is how variants follow each other at one place, by a published metric and by the experiment.
type Order struct {
	Reference string
	Metric    string
	Place     string   // of the other axes, such as N = 4; empty if there are none
	Published []string // variants, the largest value first
	Own       []string
	Wrong     []Swap
	Tied      int // pairs that differ by no more than Summary.Noise as published
}

// Swap is a pair of variants of which the first is published as larger by more than the noise, and is not.
type Swap struct {
	Variants       [2]string
	Published, Own [2]float64
}

// Orders compares the order of the variants at every place at which two or more have published values.
func (s *Summary) Orders() []Order {
	var orders []Order
	for _, group := range s.groups("variant") {
		first := group[0]
		o := Order{Reference: first.Reference, Metric: first.Metric, Place: s.placeOf(first.Row, "variant")}
		for i, a := range group {
			for _, b := range group[i+1:] {
				high, low := a, b
				if b.Published > a.Published {
					high, low = b, a
				}
				switch {
				case high.Published <= low.Published*(1+s.Noise):
					o.Tied++
				case high.Own <= low.Own:
					o.Wrong = append(o.Wrong, Swap{
						Variants:  [2]string{high.Row.Text("variant"), low.Row.Text("variant")},
						Published: [2]float64{high.Published, low.Published}, Own: [2]float64{high.Own, low.Own},
					})
				}
			}
		}
		o.Published = namesBy(group, func(c Cell) float64 { return c.Published })
		o.Own = namesBy(group, func(c Cell) float64 { return c.Own })
		orders = append(orders, o)
	}
	return orders
}

// Best is the thresholds that give the most throughput at one place, as published and by the experiment.
type Best struct {
	Reference      string
	Place          string // of the other axes
	Published, Own string
	// Gap is how far, by the experiment, Own's throughput is above that of Published, over the latter.
	Gap float64
}

// Bests compares the best thresholds at every place at which two or more have published throughputs.
func (s *Summary) Bests() []Best {
	var bests []Best
	for _, group := range s.groups("thresholds") {
		if group[0].Metric != "throughput_tok_s" {
			continue
		}
		b := Best{Reference: group[0].Reference, Place: s.placeOf(group[0].Row, "thresholds")}
		top := func(value func(Cell) float64) Cell {
			return slices.MaxFunc(group, func(a, b Cell) int { return cmp.Compare(value(a), value(b)) })
		}
		published := top(func(c Cell) float64 { return c.Published })
		own := top(func(c Cell) float64 { return c.Own })
		b.Published, b.Own = published.Row.Text("thresholds"), own.Row.Text("thresholds")
		b.Gap = own.Own/published.Own - 1
		bests = append(bests, b)
	}
	return bests
}

// groups are the cells of each reference at each place, two or more, that differ on the axis only.
func (s *Summary) groups(axis string) [][]Cell {
	var groups [][]Cell
	where := make(map[string]int)
	for _, c := range s.Cells() {
		if c.Row.Text(axis) == "" || math.IsNaN(c.Own) {
			continue
		}
		key := strings.Join([]string{c.Reference, c.Metric, s.placeOf(c.Row, axis)}, "\x00")
		at, ok := where[key]
		if !ok {
			at = len(groups)
			where[key], groups = at, append(groups, nil)
		}
		groups[at] = append(groups[at], c)
	}
	return slices.DeleteFunc(groups, func(g []Cell) bool { return len(g) < 2 })
}

// placeOf names the values of a row on all axes but one.
func (s *Summary) placeOf(r *Row, but string) string {
	var parts []string
	for _, a := range s.Axes {
		if a.Name != but {
			parts = append(parts, axisValue(a.Name, r.Text(a.Name)))
		}
	}
	return strings.Join(parts, ", ")
}

func namesBy(cells []Cell, value func(Cell) float64) []string {
	sorted := slices.Clone(cells)
	slices.SortStableFunc(sorted, func(a, b Cell) int { return cmp.Compare(value(b), value(a)) })
	names := make([]string, len(sorted))
	for i, c := range sorted {
		names[i] = c.Row.Text("variant")
	}
	return names
}

// Ratio is a published ratio beside that of the experiment.
type Ratio struct {
	Check
	Own float64 // NaN if the experiment has none
	// Error is Own over the published value, or over the nearest end of the range, less 1; 0 within it.
	Error float64
}

// RatioTolerance is how far a ratio may be from a single published value to hold.
const RatioTolerance = 0.15

// Holds reports whether the ratio is within the published range or near the published value.
func (r *Ratio) Holds() bool {
	if r.High > r.Low {
		return r.Error == 0
	}
	return math.Abs(r.Error) <= RatioTolerance
}

// Ratios computes the checks of a summary.
func (s *Summary) Ratios() []Ratio {
	var ratios []Ratio
	for _, c := range s.Checks {
		r := Ratio{Check: c}
		over := math.NaN()
		for _, place := range c.Over {
			v := s.valueAt(c.Metric, place)
			if math.IsNaN(v) { // the largest is not known
				over = v
				break
			}
			if math.IsNaN(over) || v > over {
				over = v
			}
		}
		r.Own = s.valueAt(c.Metric, c.Of) / over
		r.Error = r.Own/min(max(r.Own, c.Low), c.High) - 1
		ratios = append(ratios, r)
	}
	return ratios
}

// valueAt is a metric at a place; NaN if there is no row.
func (s *Summary) valueAt(metric string, place map[string]string) float64 {
	for i := range s.Rows {
		if s.Rows[i].at(place) {
			v, _ := s.modelled(&s.Rows[i], metric)
			return v
		}
	}
	return math.NaN()
}
