package spec

import (
	"fmt"
	"math"
	"strings"

	"tokenrouter/sim/latency"
)

// byRows finds the step time of every batch size: as it is where nothing else counts, else the mean time in a
// steady state.
//
// A model is fed every token that is committed, by whichever model: of one row it is fed as many as all steps
// commit in the mean, over its own share of the steps. How many it is each time is geometric, as it is for
// R2R, whose requests come back after runs of one probability. Rows have the prompt and half of the answer
// in KV: context, NaN if that is not known.
//
// Host time that counts rows which begin a call is exact where all do: every token is a call, or no request
// goes on where it is, as at R2R's large model. Otherwise it is that of the mean share of rows, those that
// did not come from the same model.
//
// Time before a call is that of one request alone, which waits for it; of several it passes side by side,
// which the throughput model does not know.
func (p *Point) byRows(context float64) {
	var fresh []float64
	for i := range p.Models {
		m := &p.Models[i]
		if m.Latency == nil { // reported, or to be measured
			m.unknown = "the step time of " + m.Name + " is not known before it is measured"
			continue
		}
		if m.DispatchNs > 0 && p.Concurrency > 1 {
			m.unknown = "calls of " + m.Name + " take time outside its engine (dispatch), side by side"
			continue
		}
		calls := latency.CountsReturns(m.Latency) || m.DispatchNs > 0
		if p.Routing == nil && (calls || !rowsOnly(m.Latency)) {
			continue // nothing is known of steps
		}
		row := meanRow{fresh: 1}
		if calls {
			row.returns = 1
			if !m.TokenCalls {
				row.returns = 1 - p.Routing[i][i]
			}
			if row.returns > 0 && row.returns < 1 {
				m.ReturnMean = row.returns
			}
		}
		if !rowsOnly(m.Latency) {
			if m.unknown = p.noMean(m, context); m.unknown != "" {
				continue
			}
			if fresh == nil {
				fresh = freshMeans(p.Routing, p.Commit)
			}
			row.fresh, row.context = fresh[i], context
			m.FreshMean, m.ContextMean = fresh[i], context
		}
		m.timeRows(p.Concurrency, row)
	}
}

// noMean says why there is no mean row of a model whose steps depend on tokens; empty if there is.
func (p *Point) noMean(m *Model, context float64) string {
	why := ""
	switch {
	case math.IsNaN(context):
		why = "the workload is not generated: its mean lengths are not known"
	case m.Forgets:
		why = "it is fed all tokens again in every call (reuse = false): few rows are near the mean"
	default:
		return ""
	}
	return "the step time of " + m.Name + " depends on tokens, and " + why
}

// meanRow is a row in the mean: fresh tokens, tokens in KV, and the probability that it begins a call.
type meanRow struct{ fresh, context, returns float64 }

// timeRows fills in ByRows for such rows.
func (m *Model) timeRows(most int, row meanRow) {
	for rows := 1; rows <= most; rows++ {
		ns, ok := m.meanNs(rows, row)
		if !ok {
			m.ByRows = nil
			m.unknown = fmt.Sprintf("the step time of %s is not known for %d rows of %.4g fresh tokens and %.4g in KV",
				m.Name, rows, row.fresh, row.context)
			if valid, ok := latency.RangeOf(m.Latency); ok {
				m.unknown += fmt.Sprintf(": calibrated are %v", valid)
			}
			return
		}
		m.ByRows = append(m.ByRows, ns)
	}
}

// meanNs is the mean step time of so many rows, if the mean shape is within the latency's range. Rarer shapes
// may lie beyond it; they count as the latency has them, or not at all if it refuses them.
//
// Of rows with a geometric number of fresh tokens each, 1 or more, all together have rows + k with the
// negative binomial probability C(rows+k-1, k) (1/fresh)^rows (1 - 1/fresh)^k.
func (m *Model) meanNs(rows int, row meanRow) (ns int64, ok bool) {
	shape := latency.Shape{Rows: rows, ContextTokens: int(math.Round(float64(rows) * row.context))}
	shape.FreshTokens = int(math.Round(float64(rows) * row.fresh))
	middle, inRange := m.stepNs(shape, row.returns)
	if middle < 1 || !inRange {
		return 0, false
	}
	sum, weight, left := 0.0, 0.0, 1.0
	odds := math.Pow(1/row.fresh, float64(rows))
	if odds == 0 { // so many tokens that their spread does not matter
		return int64(math.Round(middle)), true
	}
	const tail = 1e-6
	for k := 0; left > tail; k++ {
		shape.FreshTokens = rows + k
		if ns, _ := m.stepNs(shape, row.returns); ns > 0 {
			sum, weight = sum+odds*ns, weight+odds
		}
		left -= odds
		odds *= float64(rows+k) / float64(k+1) * (1 - 1/row.fresh)
	}
	return int64(math.Round(sum / weight)), true
}

// stepNs is the mean step time of a shape of which each row begins a call with a probability: host time is
// linear in such rows and their tokens, and dispatch is that of the one row. It is negative if it is not
// known.
func (m *Model) stepNs(shape latency.Shape, returns float64) (ns float64, inRange bool) {
	none, inRange := m.Latency.StepNs(shape)
	if none < 0 || returns == 0 {
		return float64(none), inRange
	}
	shape.Returns, shape.ReturnTokens = shape.Rows, shape.ContextTokens+shape.FreshTokens
	all, inRange := m.Latency.StepNs(shape)
	if all < 0 {
		return float64(all), inRange
	}
	return float64(none) + returns*float64(all-none+m.DispatchNs), inRange
}

// MeanRows says in words for which rows the throughput model takes the step times; empty if they depend on
// nothing but their number.
func (p *Point) MeanRows() string {
	var parts []string
	context := 0.0
	for _, m := range p.Models {
		if m.ReturnMean > 0 {
			parts = append(parts, fmt.Sprintf("%.4g calls a row at %s", m.ReturnMean, m.Name))
		}
		if m.FreshMean > 0 {
			parts = append(parts, fmt.Sprintf("%.4g fresh tokens a row at %s", m.FreshMean, m.Name))
			context = m.ContextMean
		}
	}
	if context > 0 {
		parts = append(parts, fmt.Sprintf("%.4g tokens in KV", context))
	}
	return strings.Join(parts, ", ")
}

// freshMeans is the mean number of fresh tokens of a row of each model: tokens committed a step over the
// share of steps at the model, under the stationary law of the routing chain from model 0 on. It is 1 for a
// model that no request comes to.
func freshMeans(routing, commit [][]float64) []float64 {
	share := stationary(routing)
	committed := 0.0
	for i, row := range routing {
		for j, probability := range row {
			committed += share[i] * probability * commit[i][j]
		}
	}
	means := make([]float64, len(share))
	for i := range share {
		if means[i] = 1; share[i] > 1e-12 {
			means[i] = max(committed/share[i], 1)
		}
	}
	return means
}

// stationary is the share of steps at each model in the long run, from model 0 on: a row of the limit of
// powers of (P + 1) / 2, which has no period. Squared so often, any chain has mixed.
func stationary(routing [][]float64) []float64 {
	n := len(routing)
	power := make([][]float64, n)
	for i, row := range routing {
		power[i] = make([]float64, n)
		for j, probability := range row {
			power[i][j] = probability / 2
		}
		power[i][i] += 0.5
	}
	const squarings = 60
	for range squarings {
		next := make([][]float64, n)
		for i := range next {
			next[i] = make([]float64, n)
			sum := 0.0
			for j := range next[i] {
				for k := range n {
					next[i][j] += power[i][k] * power[k][j]
				}
				sum += next[i][j]
			}
			for j := range next[i] {
				next[i][j] /= sum // no error grows
			}
		}
		power = next
	}
	return power[0]
}

// contextMean is the mean number of tokens that a row has in KV; NaN if the workload is not generated.
func (w *Workload) contextMean() float64 {
	if w.Kind == "trace" || w.Kind == "recorded" || w.Kind == "task" {
		return math.NaN()
	}
	limit := w.Lengths.MaxTokens
	if limit == 0 {
		limit = math.MaxInt32
	}
	output := w.Lengths.Output.Mean(limit)
	if output == 0 { // max_tokens ends it
		output = float64(limit)
	}
	return w.Lengths.Prompt.Mean(math.MaxInt32) + output/2
}
