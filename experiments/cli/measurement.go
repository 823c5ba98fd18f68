package cli

import (
	"fmt"
	"io"
	"math"

	"tokenrouter/experiments/result"
)

// measurement says of a run of real models how far it can be trusted, and where it differs from the
// simulation.
type measurement struct {
	Seeds    int `json:"seeds"`
	Tries    int `json:"tries"`
	TriesOff int `json:"tries_off"` // that do not count: the machine was not as fast as calibrated
	SeedsOff int `json:"seeds_off"` // of which no try counts
	// ProbeMin, ProbeMean and ProbeMax are of the kept tries: probe steps over those of the calibration.
	ProbeMin  *float64 `json:"probe_min"`
	ProbeMean *float64 `json:"probe_mean"`
	ProbeMax  *float64 `json:"probe_max"`
	// OthersMean and OthersMax are the shares of the processors' time that others took during a kept try.
	OthersMean *float64 `json:"others_share_mean"`
	OthersMax  *float64 `json:"others_share_max"`
	// SimulatedErrorMean is of |measured / simulated - 1| over points, with the calibrated step times;
	// RescaledErrorMean with these scaled to the measured means. The signed means tell the direction.
	SimulatedErrorMean *float64 `json:"simulated_error_mean"`
	SimulatedBias      *float64 `json:"simulated_bias"`
	RescaledErrorMean  *float64 `json:"rescaled_error_mean"`
	RescaledErrorMax   *float64 `json:"rescaled_error_max"`
	RescaledBias       *float64 `json:"rescaled_bias"`

	Steps []modelSteps `json:"steps"`
}

// modelSteps is of all launches of a model.
type modelSteps struct {
	Model         string   `json:"model"`
	MeanMs        *float64 `json:"mean_ms"`
	SimulatedMs   *float64 `json:"simulated_mean_ms"`
	Spread        *float64 `json:"spread"`      // standard deviation over mean, of equal shapes
	Bookkeeping   *float64 `json:"bookkeeping"` // share of a pass's time
	BookkeepingUs *float64 `json:"bookkeeping_us"`
}

// measurementOf is nil for a run that is only simulated.
func measurementOf(s *result.Summary) *measurement {
	if s.Backend == "" {
		return nil
	}
	m := &measurement{Seeds: len(s.SeedRows)}
	var probes, others, simulated, rescaled numbers
	for i := range s.SeedRows {
		r := &s.SeedRows[i]
		for metric, into := range map[string]*int{
			"tries": &m.Tries, "tries_off": &m.TriesOff, "seeds_off": &m.SeedsOff,
		} {
			if v, _ := s.Value(r, metric); v > 0 {
				*into += int(v)
			}
		}
		for _, metric := range []string{"probe_before", "probe_after"} {
			probes.add(s.Value(r, metric))
		}
		others.add(s.Value(r, "others_share"))
	}
	for i := range s.Rows {
		simulated.add(s.Value(&s.Rows[i], "simulated_error"))
		rescaled.add(s.Value(&s.Rows[i], "rescaled_error"))
	}
	m.ProbeMin, m.ProbeMean, m.ProbeMax = probes.least(), probes.mean(), probes.most()
	m.OthersMean, m.OthersMax = others.mean(), others.most()
	m.SimulatedBias, m.RescaledBias = simulated.mean(), rescaled.mean()
	m.SimulatedErrorMean, _ = absolute(simulated.pointers())
	m.RescaledErrorMean, m.RescaledErrorMax = absolute(rescaled.pointers())
	for _, model := range s.Models {
		m.Steps = append(m.Steps, stepsOf(s, model))
	}
	return m
}

// numbers are those that are known.
type numbers []float64

// add takes a value of a row, and what comes with it.
func (n *numbers) add(v, _ float64) {
	if !math.IsNaN(v) {
		*n = append(*n, v)
	}
}

func (n numbers) pointers() []*float64 {
	all := make([]*float64, len(n))
	for i := range n {
		all[i] = &n[i]
	}
	return all
}

// fold is nil of nothing.
func (n numbers) fold(f func(a, b float64) float64) *float64 {
	if len(n) == 0 {
		return nil
	}
	v := n[0]
	for _, x := range n[1:] {
		v = f(v, x)
	}
	return &v
}

func (n numbers) least() *float64 { return n.fold(math.Min) }
func (n numbers) most() *float64  { return n.fold(math.Max) }

func (n numbers) mean() *float64 {
	sum := n.fold(func(a, b float64) float64 { return a + b })
	if sum != nil {
		*sum /= float64(len(n))
	}
	return sum
}

// stepsOf takes means over all launches.
func stepsOf(s *result.Summary, model string) modelSteps {
	name := result.Slug(model) + "_"
	mean := func(metric string) *float64 {
		sum, weight := 0.0, 0.0
		for i := range s.Rows {
			v, _ := s.Value(&s.Rows[i], metric)
			launches, _ := s.Value(&s.Rows[i], name+"launches")
			if !math.IsNaN(v) && launches > 0 {
				sum, weight = sum+v*launches, weight+launches
			}
		}
		return known(sum / weight)
	}
	m := modelSteps{
		Model: model, MeanMs: mean(name + "step_mean_ms"), SimulatedMs: mean("simulated_" + name + "step_mean_ms"),
		Spread: mean(name + "step_spread"), Bookkeeping: mean(name + "bookkeeping"),
	}
	if m.MeanMs != nil && m.Bookkeeping != nil {
		m.BookkeepingUs = known(1000 * *m.MeanMs * *m.Bookkeeping)
	}
	return m
}

// print writes it for people.
func (m *measurement) print(w io.Writer) {
	fmt.Fprintln(w)
	for _, t := range m.Steps {
		spread := ""
		if t.Spread != nil {
			spread = fmt.Sprintf("; they vary by %s %% (standard deviation)", scaled(t.Spread, 100, 1))
		}
		fmt.Fprintf(w, "steps of %s: %s ms in the mean, %s ms as simulated%s; bookkeeping %s us, %s %% of the"+
			" time\n", t.Model, scaled(t.MeanMs, 1, 3), scaled(t.SimulatedMs, 1, 3), spread,
			scaled(t.BookkeepingUs, 1, 0), scaled(t.Bookkeeping, 100, 1))
	}
	if m.SimulatedErrorMean == nil {
		return
	}
	fmt.Fprintf(w, "measured / simulated - 1: %s %% in the mean, %s %% without sign\n",
		scaled(m.SimulatedBias, 100, 1), scaled(m.SimulatedErrorMean, 100, 1))
	if m.Tries == 0 {
		return
	}
	fmt.Fprintf(w, "the same, simulated with step times scaled to the measured means: %s %% in the mean, %s %%"+
		" without sign, at most %s %%; that much is not for step times\n", scaled(m.RescaledBias, 100, 1),
		scaled(m.RescaledErrorMean, 100, 1), scaled(m.RescaledErrorMax, 100, 1))
	fmt.Fprintf(w, "%d seeds in %d tries, of which %d do not count: the machine was not as fast as calibrated;"+
		" of %d seeds none counts, and the nearest is kept\n", m.Seeds, m.Tries, m.TriesOff, m.SeedsOff)
	fmt.Fprintf(w, "probes of the kept tries: %s of the calibration in the mean, %s to %s; others had %s %% of"+
		" the processors in the mean, at most %s %%\n", scaled(m.ProbeMean, 1, 3), scaled(m.ProbeMin, 1, 3),
		scaled(m.ProbeMax, 1, 3), scaled(m.OthersMean, 100, 1), scaled(m.OthersMax, 100, 1))
}

// scaled writes a number times a factor, a dash if it is not known.
func scaled(v *float64, factor float64, decimals int) string {
	if v == nil {
		return "-"
	}
	return fixed(*v*factor, decimals)
}
