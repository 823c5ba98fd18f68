package cli

import (
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"

	"tokenrouter/core/chain"
	"tokenrouter/experiments/result"
)

// prediction is the answer to one question.
type prediction struct {
	question
	solutions []*chain.Solution
	best      int
	searched  bool // all feasible sets, not one
}

// predictionJSON is the contract of predict --json.
type predictionJSON struct {
	System      string          `json:"system,omitempty"`
	Concurrency int             `json:"concurrency"`
	QuantumMs   float64         `json:"quantum_ms"`
	Rounding    *roundingJSON   `json:"rounding,omitempty"`
	Best        pointJSON       `json:"best"`
	Points      []fullPointJSON `json:"points"`
}

type roundingJSON struct {
	StepMs             []float64 `json:"step_ms"`      // as given, the batch size with the largest change
	StepUsedMs         []float64 `json:"step_used_ms"` // on the lattice
	ThroughputRelative float64   `json:"throughput_relative"`
}

type pointJSON struct {
	Thresholds     []int   `json:"thresholds"`
	ThroughputTokS float64 `json:"throughput_tok_s"`
}

type fullPointJSON struct {
	pointJSON
	States   int  `json:"states"`
	Feasible bool `json:"feasible"`
	Patterns int  `json:"patterns,omitempty"` // separate patterns that it may settle in, if several
}

func (p prediction) document() predictionJSON {
	best := p.solutions[p.best]
	d := predictionJSON{
		System:      p.system,
		Concurrency: best.Concurrency,
		QuantumMs:   milliseconds(best.QuantumNs),
		Best:        pointOf(best),
	}
	if p.moved() {
		d.Rounding = &roundingJSON{ThroughputRelative: digits(best.RoundingCost, 4)}
		for _, r := range best.Rounding {
			d.Rounding.StepMs = append(d.Rounding.StepMs, milliseconds(r.GivenNs))
			d.Rounding.StepUsedMs = append(d.Rounding.StepUsedMs, milliseconds(r.UsedNs))
		}
	}
	for _, s := range p.solutions {
		point := fullPointJSON{pointJSON: pointOf(s), States: s.States, Feasible: true}
		if len(s.Classes) > 1 {
			point.Patterns = len(s.Classes)
		}
		d.Points = append(d.Points, point)
	}
	return d
}

func pointOf(s *chain.Solution) pointJSON {
	return pointJSON{s.Thresholds, digits(s.ThroughputTokS, 10)}
}

// severalJSON is what predict --json prints for a spec with several systems.
type severalJSON struct {
	Experiment  string           `json:"experiment"`
	Predictions []predictionJSON `json:"predictions"`
}

// printPredictions writes one prediction as it is, and several as a list.
func printPredictions(w io.Writer, experiment string, predictions []prediction) error {
	var documents []predictionJSON
	for _, p := range predictions {
		documents = append(documents, p.document())
	}
	if len(documents) == 1 {
		return printJSON(w, documents[0])
	}
	return printJSON(w, severalJSON{experiment, documents})
}

// moved reports whether any step time was rounded.
func (p prediction) moved() bool {
	for _, r := range p.solutions[p.best].Rounding {
		if r.GivenNs != r.UsedNs {
			return true
		}
	}
	return false
}

// warn says what is not exact.
func (p prediction) warn(w io.Writer) {
	for _, text := range p.others {
		fmt.Fprintf(w, "note: %s\n", text)
	}
	best := p.solutions[p.best]
	place := placeOf(best.Concurrency, p.system)
	for _, text := range p.notes {
		fmt.Fprintf(w, "note: %s: %s\n", place, text)
	}
	if p.mean != "" {
		fmt.Fprintf(w, "note: %s: step times are those of the mean step: %s\n", place, p.mean)
	}
	if p.moved() {
		fmt.Fprintf(w, "note: step times do not fit the quantum of %s ms and were rounded:", number(best.QuantumNs))
		for i, r := range best.Rounding {
			if r.GivenNs != r.UsedNs {
				fmt.Fprintf(w, " model %d %s -> %s ms;", i, number(r.GivenNs), number(r.UsedNs))
			}
		}
		fmt.Fprintf(w, " this changes the throughput of one request alone by %+.2f %%\n", 100*best.RoundingCost)
	}
	var several []*chain.Solution
	for _, s := range p.solutions {
		if len(s.Classes) > 1 {
			several = append(several, s)
		}
	}
	if len(several) > 0 {
		first := several[0]
		fmt.Fprintf(w, "note: N = %d with thresholds %s settles in one of %d separate patterns, and %d other sets"+
			" in several too; figures are means by their chances\n", first.Concurrency,
			result.JoinInts(first.Thresholds), len(first.Classes), len(several)-1)
	}
}

// rowsMax is the most threshold sets in a table for people.
const rowsMax = 40

func (p prediction) print(w io.Writer) error {
	best := p.solutions[p.best]
	exact := ", exact"
	if p.moved() {
		exact = ", with rounding"
	}
	t := table{}
	t.titles("", "thresholds", "tok/s", "states")
	for _, i := range p.shown() {
		s := p.solutions[i]
		mark, note := "", ""
		if p.searched && i == p.best {
			mark, note = "*", "best"
		}
		t.row(mark, result.JoinInts(s.Thresholds), fmt.Sprintf("%.4f", s.ThroughputTokS),
			strconv.Itoa(s.States), note)
	}
	system := ""
	if p.system != "" {
		system = ", " + p.system
	}
	fmt.Fprintf(w, "N = %d%s, quantum %s ms%s\n\n", best.Concurrency, system, number(best.QuantumNs), exact)
	if err := t.write(w); err != nil {
		return err
	}
	if hidden := len(p.solutions) - rowsMax; hidden > 0 {
		fmt.Fprintf(w, "%d more sets are left out here; --json lists all\n", hidden)
	}
	fmt.Fprintf(w, "\nThresholds %s:\n", result.JoinInts(best.Thresholds))
	if err := figuresOf(best).write(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nThroughput %.4f tok/s, relative error at most %.1g, method: %s\n",
		best.ThroughputTokS, p.errorBound(), best.Method)
	return err
}

// shown are the sets of the table: all in order, or the best rowsMax in order.
func (p prediction) shown() []int {
	order := make([]int, len(p.solutions))
	for i := range order {
		order[i] = i
	}
	if len(order) <= rowsMax {
		return order
	}
	sort.SliceStable(order, func(i, j int) bool {
		if order[i] == p.best || order[j] == p.best {
			return order[i] == p.best && order[j] != p.best
		}
		return p.solutions[order[i]].ThroughputTokS > p.solutions[order[j]].ThroughputTokS
	})
	order = order[:rowsMax]
	sort.Ints(order)
	return order
}

// errorBound is the largest of all sets.
func (p prediction) errorBound() float64 {
	bound := 0.0
	for _, s := range p.solutions {
		bound = math.Max(bound, s.ErrorBound)
	}
	return bound
}

// figuresOf is a table of what each model does.
func figuresOf(s *chain.Solution) *table {
	t := &table{}
	t.titles("", "model", "busy %", "batches/s", "mean batch", "mean queue", "mean wait ms", "tok/s", "share %")
	for i, m := range s.Models {
		t.row("", strconv.Itoa(i), fmt.Sprintf("%.1f", 100*m.Utilisation), fmt.Sprintf("%.2f", m.StartsPerS),
			fmt.Sprintf("%.2f", m.MeanBatch), fmt.Sprintf("%.2f", m.MeanQueue), fmt.Sprintf("%.2f", m.MeanWaitNs/1e6),
			fmt.Sprintf("%.2f", m.TokensPerS), fmt.Sprintf("%.1f", 100*m.TokenShare))
	}
	return t
}

// milliseconds is exact to the nanosecond: the nearest float64 to a decimal of at most six places.
func milliseconds(ns int64) float64 { return float64(ns) / 1e6 }

// number writes nanoseconds as milliseconds without needless digits.
func number(ns int64) string { return strconv.FormatFloat(milliseconds(ns), 'f', -1, 64) }

// digits rounds x to that many significant digits, so that printed results do not depend on how a processor
// adds.
func digits(x float64, n int) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', n-1, 64), 64)
	if err != nil {
		panic(fmt.Sprintf("cli: %v does not survive printing: %v", x, err))
	}
	return rounded
}
