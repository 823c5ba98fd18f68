package cli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tokenrouter/experiments/result"
)

func newCompare() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "compare DIR",
		Short: "Put predicted, simulated and measured values side by side",
		Long: `Put the predicted, simulated and measured values of a results folder side by side: errors of each
point, and whether they agree on the best thresholds. Measured values are those of the run itself, if
real models ran it, and the reference series that the spec names; what they are and where they come
from is printed. Of values measured here, thresholds within the best one's interval are as good.`,
		Example: `  tokenrouter compare experiments/results/threshold/0123456789ab
  tokenrouter compare experiments/results/threshold/0123456789ab --json`,
		Args: exactly(1, "a results folder"),

		ValidArgsFunction: folders,
		RunE: func(c *cobra.Command, args []string) error {
			summary, err := readResults(args[0])
			if err != nil {
				return err
			}
			comparisons := compare(summary)
			if asJSON {
				return printJSON(c.OutOrStdout(), comparisonsJSON{summary.Experiment, comparisons,
					measurementOf(summary)})
			}
			return printComparisons(c.OutOrStdout(), summary, comparisons)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

// throughput is the metric that the throughput model predicts.
const throughput = "throughput_tok_s"

// comparisonsJSON is what compare --json prints.
type comparisonsJSON struct {
	Experiment  string       `json:"experiment"`
	Comparisons []comparison `json:"comparisons"`
	Measurement *measurement `json:"measurement,omitempty"`
}

// comparison is all that is known of one metric.
type comparison struct {
	Metric     string            `json:"metric"`
	Rows       []compared        `json:"rows"`
	References []referenceErrors `json:"references"`
	// PredictedErrorMax and PredictedErrorMean are of |simulated / predicted - 1|; null without predictions.
	PredictedErrorMax  *float64 `json:"predicted_error_max"`
	PredictedErrorMean *float64 `json:"predicted_error_mean"`
	Argmax             []argmax `json:"argmax"`
	ArgmaxAgree        int      `json:"argmax_agree"`
}

// compared is one point.
type compared struct {
	Point       string     `json:"point"`
	Policy      string     `json:"policy"`
	Concurrency int        `json:"concurrency"`
	Thresholds  []int      `json:"thresholds"`
	Simulated   *float64   `json:"simulated"`
	Interval    *float64   `json:"simulated_ci95"`
	Predicted   *float64   `json:"predicted"`
	Error       *float64   `json:"predicted_error"` // simulated / predicted - 1
	Measured    []measured `json:"measured"`
	group       string     // all of its place but the thresholds
}

// measured is what a reference series has at a point.
type measured struct {
	Name           string   `json:"name"`
	Value          float64  `json:"value"`
	Interval       *float64 `json:"ci95,omitempty"`  // of what the run itself measured
	SimulatedError *float64 `json:"simulated_error"` // simulated / value - 1
	PredictedError *float64 `json:"predicted_error"` // predicted / value - 1
}

// referenceErrors sums up a reference series.
type referenceErrors struct {
	Name               string   `json:"name"`
	Source             string   `json:"source"`
	Points             int      `json:"points"`
	SimulatedErrorMean *float64 `json:"simulated_error_mean"` // of absolute values
	PredictedErrorMean *float64 `json:"predicted_error_mean"`
}

// argmax is the best thresholds of points that differ in nothing else.
type argmax struct {
	Group     string           `json:"group"`
	Predicted []int            `json:"predicted"`
	Simulated []int            `json:"simulated"`
	Measured  map[string][]int `json:"measured"`
	Agree     bool             `json:"agree"`
	// Of a run of real models: whether the best predicted, or simulated, thresholds are the best measured ones
	// ("yes"), within the 95 % interval of those ("tie"), or neither ("no"). Agree is then that neither says no.
	PredictedAgrees string `json:"predicted_agrees,omitempty"`
	SimulatedAgrees string `json:"simulated_agrees,omitempty"`
}

// compare compares the throughput, and every other metric that has references.
func compare(s *result.Summary) []comparison {
	metrics := []string{throughput}
	for _, r := range s.References {
		if !slices.Contains(metrics, r.Metric) {
			metrics = append(metrics, r.Metric)
		}
	}
	var all []comparison
	for _, metric := range metrics {
		c := comparison{Metric: metric, References: []referenceErrors{}, Argmax: []argmax{}}
		for i := range s.Rows {
			c.Rows = append(c.Rows, comparedRow(s, &s.Rows[i], metric))
		}
		c.sumUp(s)
		if metric == throughput {
			c.findArgmax()
		}
		all = append(all, c)
	}
	return all
}

func comparedRow(s *result.Summary, r *result.Row, metric string) compared {
	own, half := s.Value(r, metric)
	simulated, simulatedHalf := own, half
	measuredHere := s.Backend != "" && metric == throughput
	if measuredHere {
		simulated, simulatedHalf = s.Value(r, "simulated_tok_s")
	}
	predicted := math.NaN()
	if metric == throughput {
		predicted, _ = s.Value(r, "predicted_tok_s")
	}
	c := compared{
		Point: r.Point, Policy: r.Policy, Concurrency: r.Concurrency, Thresholds: r.Thresholds,
		Simulated: known(simulated), Interval: known(simulatedHalf), Predicted: known(predicted),
		Error: known(simulated/predicted - 1), Measured: []measured{}, group: groupOf(s, r),
	}
	note := func(name string, value, half float64) {
		c.Measured = append(c.Measured, measured{
			name, value, known(half), known(simulated/value - 1), known(predicted/value - 1),
		})
	}
	if measuredHere {
		note(here, own, half)
	}
	for i := range s.References {
		if reference := &s.References[i]; reference.Metric == metric {
			if value, ok := reference.At(r); ok {
				note(reference.Name, value, math.NaN())
			}
		}
	}
	return c
}

// groupOf names the place of a row without its thresholds.
func groupOf(s *result.Summary, r *result.Row) string {
	parts := []string{fmt.Sprintf("N = %d", r.Concurrency)}
	for _, axis := range s.Axes {
		if axis.Name != "concurrency" && axis.Name != "thresholds" {
			parts = append(parts, axis.Name+" = "+r.Text(axis.Name))
		}
	}
	return strings.Join(parts, ", ")
}

// sumUp fills in the errors over all points.
func (c *comparison) sumUp(s *result.Summary) {
	var errors []*float64
	for i := range c.Rows {
		errors = append(errors, c.Rows[i].Error)
	}
	c.PredictedErrorMean, c.PredictedErrorMax = absolute(errors)
	references := s.References
	if s.Backend != "" && c.Metric == throughput {
		own := result.Reference{
			Name: here, Source: "this run, on " + s.Backend, Metric: throughput,
		}
		references = append([]result.Reference{own}, references...)
	}
	for i := range references {
		reference := &references[i]
		if reference.Metric != c.Metric {
			continue
		}
		var simulated, predicted []*float64
		for j := range c.Rows {
			for _, m := range c.Rows[j].Measured {
				if m.Name == reference.Name {
					simulated, predicted = append(simulated, m.SimulatedError), append(predicted, m.PredictedError)
				}
			}
		}
		e := referenceErrors{Name: reference.Name, Source: reference.Source, Points: len(simulated)}
		e.SimulatedErrorMean, _ = absolute(simulated)
		e.PredictedErrorMean, _ = absolute(predicted)
		c.References = append(c.References, e)
	}
}

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

// absolute returns the mean and the largest of the absolute values of those that are known, nil if none is.
func absolute(values []*float64) (mean, most *float64) {
	sum, largest, n := 0.0, 0.0, 0
	for _, v := range values {
		if v != nil {
			sum += math.Abs(*v)
			largest = math.Max(largest, math.Abs(*v))
			n++
		}
	}
	if n == 0 {
		return nil, nil
	}
	sum /= float64(n)
	return &sum, &largest
}

// known is x for JSON: null if it is not a number.
func known(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// printComparisons writes a table a metric, with the errors and the best thresholds below.
func printComparisons(w io.Writer, s *result.Summary, comparisons []comparison) error {
	for i := range comparisons {
		c := &comparisons[i]
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s\n\n", s.Experiment, c.Metric)
		if err := rowsTable(s.Rows, c.columns(s)).write(w); err != nil {
			return err
		}
		if err := c.printErrors(w); err != nil {
			return err
		}
	}
	if m := measurementOf(s); m != nil {
		m.print(w)
	}
	return nil
}

func (c *comparison) columns(s *result.Summary) []column {
	row := func(of func(*compared) *float64, scale float64, decimals int) func(*result.Row) string {
		return func(r *result.Row) string {
			at := slices.IndexFunc(c.Rows, func(other compared) bool { return other.Point == r.Point })
			if v := of(&c.Rows[at]); v != nil {
				return fixed(*v*scale, decimals)
			}
			return ""
		}
	}
	columns := append(placeColumns(s),
		column{"predicted", row(func(r *compared) *float64 { return r.Predicted }, 1, 3)},
		column{"simulated", row(func(r *compared) *float64 { return r.Simulated }, 1, 3)},
		column{"+-95%", row(func(r *compared) *float64 { return r.Interval }, 1, 3)},
		column{"diff %", row(func(r *compared) *float64 { return r.Error }, 100, 3)})
	for _, reference := range c.References {
		of := func(field func(*measured) *float64) func(*compared) *float64 {
			return func(r *compared) *float64 {
				for i := range r.Measured {
					if r.Measured[i].Name == reference.Name {
						return field(&r.Measured[i])
					}
				}
				return nil
			}
		}
		columns = append(columns,
			column{reference.Name, row(of(func(m *measured) *float64 { return &m.Value }), 1, 3)},
			column{"+-95%", row(of(func(m *measured) *float64 { return m.Interval }), 1, 3)},
			column{"sim. %", row(of(func(m *measured) *float64 { return m.SimulatedError }), 100, 1)},
			column{"pred. %", row(of(func(m *measured) *float64 { return m.PredictedError }), 100, 1)})
	}
	return columns
}

func (c *comparison) printErrors(w io.Writer) error {
	if c.PredictedErrorMax == nil && len(c.References) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	if c.PredictedErrorMax != nil {
		fmt.Fprintf(w, "simulated against predicted: %.3f %% off on average, at most %.3f %%\n",
			100**c.PredictedErrorMean, 100**c.PredictedErrorMax)
	}
	for _, r := range c.References {
		fmt.Fprintf(w, "%s (%s), %d points", r.Name, r.Source, r.Points)
		if r.SimulatedErrorMean != nil {
			fmt.Fprintf(w, "; simulated is %.1f %% off on average", 100**r.SimulatedErrorMean)
		}
		if r.PredictedErrorMean != nil {
			fmt.Fprintf(w, ", predicted %.1f %%", 100**r.PredictedErrorMean)
		}
		fmt.Fprintln(w)
	}
	if len(c.Argmax) == 0 {
		return nil
	}
	fmt.Fprintf(w, "best thresholds agree in %d of %d cases%s:\n", c.ArgmaxAgree, len(c.Argmax), c.ties())
	return c.argmaxTable().write(w)
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
