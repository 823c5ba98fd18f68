package cli

import (
	"fmt"
	"io"
	"strings"

	"tokenrouter/experiments/result"
)

// publishedJSON is what compare --json says of published values.
type publishedJSON struct {
	Predicted errorsJSON  `json:"predicted"` // cells that check something
	Fitted    errorsJSON  `json:"fitted"`    // those that a constant was fitted to
	Orders    []orderJSON `json:"orders"`
	Ratios    []ratioJSON `json:"ratios"`
	Constants int         `json:"constants"` // fitted ones
}

type errorsJSON struct {
	Cells   int      `json:"cells"`
	Missing int      `json:"missing"`
	Median  *float64 `json:"median_error"` // of absolute values
	Worst   *float64 `json:"worst_error"`
	WorstAt string   `json:"worst_at,omitempty"` // experiment and point
}

// orderJSON is how variants follow each other at a place, the largest first.
type orderJSON struct {
	Experiment string      `json:"experiment"`
	Reference  string      `json:"reference"`
	Metric     string      `json:"metric"`
	Place      string      `json:"place"`
	Published  []string    `json:"published"`
	Simulated  []string    `json:"simulated"`
	Wrong      [][2]string `json:"wrong"`
	Tied       int         `json:"tied"`
}

type ratioJSON struct {
	Experiment string     `json:"experiment"`
	Name       string     `json:"name"`
	Published  [2]float64 `json:"published"` // a range; of a value both are the same
	Simulated  *float64   `json:"simulated"`
	Error      *float64   `json:"error"`
	Holds      bool       `json:"holds"`
	Use        string     `json:"use"`
}

// publishedOf is nil for experiments without published values.
func publishedOf(summaries ...*result.Summary) *publishedJSON {
	out := publishedJSON{Orders: []orderJSON{}, Ratios: []ratioJSON{}}
	var cells []result.Cell
	constants := make(map[string]bool)
	for _, s := range summaries {
		cells = append(cells, s.Cells()...)
		for _, o := range s.Orders() {
			wrong := [][2]string{}
			for _, pair := range o.Wrong {
				wrong = append(wrong, pair.Variants)
			}
			out.Orders = append(out.Orders, orderJSON{s.Experiment, o.Reference, o.Metric, o.Place, o.Published, o.Own,
				wrong, o.Tied})
		}
		for _, r := range s.Ratios() {
			use := "check"
			if r.Fit {
				use = "fit"
			}
			out.Ratios = append(out.Ratios, ratioJSON{s.Experiment, r.Name, [2]float64{r.Low, r.High}, known(r.Own),
				known(r.Error), r.Holds(), use})
		}
		for _, c := range s.Calibrations {
			for _, k := range c.Constants {
				constants[c.File+"\x00"+k.Key] = true
			}
		}
	}
	if len(cells) == 0 && len(out.Ratios) == 0 {
		return nil
	}
	out.Predicted, out.Fitted = errorsOf(cells, false), errorsOf(cells, true)
	out.Constants = len(constants)
	return &out
}

func errorsOf(cells []result.Cell, fit bool) errorsJSON {
	e := result.ErrorsOf(cells, fit)
	out := errorsJSON{Cells: e.Count, Missing: e.Missing, Median: known(e.Median), Worst: known(e.Worst)}
	if e.Count > 0 {
		out.WorstAt = e.At.Experiment + ", " + e.At.Row.Point
	}
	return out
}

// printPublished says in a few lines how published values compare, where they are told apart by use, by
// variants or as ratios.
func printPublished(w io.Writer, summaries ...*result.Summary) error {
	p := publishedOf(summaries...)
	if p == nil || p.Fitted.Cells == 0 && len(p.Orders) == 0 && len(p.Ratios) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	for _, e := range []struct {
		name string
		errorsJSON
	}{{"predicted", p.Predicted}, {"fitted", p.Fitted}} {
		if e.Cells > 0 {
			fmt.Fprintf(w, "published, %s: %s, %.1f %% off in the median, %+.1f %% at worst (%s)\n", e.name,
				count(e.Cells, "cell"), 100**e.Median, 100**e.Worst, e.WorstAt)
		}
	}
	if len(p.Orders) > 0 {
		right := 0
		for _, o := range p.Orders {
			if len(o.Wrong) == 0 {
				right++
			}
			for _, pair := range o.Wrong {
				fmt.Fprintf(w, "order: %s, %s: published, %q is above %q; simulated, it is not\n", o.Experiment,
					strings.TrimSuffix(o.Metric+" at "+o.Place, " at "), pair[0], pair[1])
			}
		}
		fmt.Fprintf(w, "order of variants as published in %d of %d rows\n", right, len(p.Orders))
	}
	if len(p.Ratios) == 0 {
		return nil
	}
	t := &table{}
	t.titles("experiment", "ratio", "published", "simulated", "error %", "holds")
	for _, r := range p.Ratios {
		t.row(ratioCells(r)...)
	}
	return t.write(w)
}

func ratioCells(r ratioJSON) []string {
	published := fmt.Sprint(r.Published[0])
	if r.Published[1] > r.Published[0] {
		published += fmt.Sprintf(" to %v", r.Published[1])
	}
	cells := []string{r.Experiment, r.Name, published, "-", "-", "NO"}
	if r.Simulated != nil {
		cells[3], cells[4] = fixed(*r.Simulated, 3), fixed(100**r.Error, 1)
	}
	if r.Holds {
		cells[5] = "yes"
	}
	return cells
}
