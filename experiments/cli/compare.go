package cli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tokenrouter/experiments/report"
	"tokenrouter/experiments/result"
)

// compareFlags are the flags of compare as given.
type compareFlags struct {
	report string
	json   bool
}

func newCompare() *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use:   "compare DIR...",
		Short: "Put predicted, simulated and measured values side by side",
		Long: `Put the predicted, simulated and measured values of results folders side by side: errors of each
point, and whether they agree on the best thresholds. Measured values are those of the run itself, if
real models ran it, and the reference series that the spec names; what they are and where they come
from is printed. Of values measured here, thresholds within the best one's interval are as good.

Published values that a constant was fitted to are kept apart from those that check something. Of
variants it is said whether they follow each other as published, and of published ratios whether
they hold. --report writes all of it with every figure as OUT.md and OUT.html.`,
		Example: `  tokenrouter compare experiments/results/threshold/0123456789ab
  tokenrouter compare experiments/results/threshold/0123456789ab --json
  tokenrouter compare experiments/results/*/* --report docs/paper`,
		Args: between(1, math.MaxInt, "a results folder, or several"),

		ValidArgsFunction: folders,
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(args, c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&f.report, "report", "", "write OUT.md, OUT.html and the figures in OUT")
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return c
}

// run compares each folder, and writes the report of all.
func (f *compareFlags) run(dirs []string, stdout io.Writer) error {
	var summaries []*result.Summary
	for _, dir := range dirs {
		s, err := readResults(dir)
		if err != nil {
			return err
		}
		summaries = append(summaries, s)
	}
	if f.report != "" {
		files, err := report.Write(strings.TrimSuffix(strings.TrimSuffix(f.report, ".html"), ".md"), summaries)
		if err != nil {
			return badInput(err)
		}
		defer func() {
			if !f.json {
				fmt.Fprintf(stdout, "\nreport:  %s\n", strings.Join(files, ", "))
			}
		}()
	}
	if f.json {
		return printJSON(stdout, comparedJSON(summaries))
	}
	for i, s := range summaries {
		if i > 0 {
			fmt.Fprintln(stdout)
		}
		if err := printComparisons(stdout, s, compare(s)); err != nil {
			return err
		}
	}
	if len(summaries) == 1 {
		return nil
	}
	fmt.Fprintf(stdout, "\nall %d experiments:", len(summaries))
	return printPublished(stdout, summaries...)
}

// comparedJSON is the document of one folder, or of several.
func comparedJSON(summaries []*result.Summary) any {
	all := make([]comparisonsJSON, len(summaries))
	for i, s := range summaries {
		all[i] = comparisonsJSON{s.Experiment, compare(s), publishedOf(s), measurementOf(s)}
	}
	if len(all) == 1 {
		return all[0]
	}
	return severalComparedJSON{all, publishedOf(summaries...)}
}

// severalComparedJSON is what compare --json prints of several folders.
type severalComparedJSON struct {
	Experiments []comparisonsJSON `json:"experiments"`
	Published   *publishedJSON    `json:"published,omitempty"` // over all
}

// throughput is the metric that the throughput model predicts.
const throughput = "throughput_tok_s"

// comparisonsJSON is what compare --json prints.
type comparisonsJSON struct {
	Experiment  string         `json:"experiment"`
	Comparisons []comparison   `json:"comparisons"`
	Published   *publishedJSON `json:"published,omitempty"`
	Measurement *measurement   `json:"measurement,omitempty"`
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
	if err := printPublished(w, s); err != nil {
		return err
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
