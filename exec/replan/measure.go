package replan

import (
	"math"

	"tokenrouter/core"
	"tokenrouter/core/chain"
)

const (
	// memory is how many of the last rows or passes of a model the measured values are of, about: each is
	// worth 1 - 1/memory of the next.
	memory = 512
	// least is how many rows and passes of each model it takes to plan.
	least = 16
)

// measured is what has been seen of the models.
type measured struct {
	moves [][]float64 // [from][to], weights
	keeps [][]float64 // of those, with the token committed
	rows  []float64   // of each model, in all
	steps []steps
	// Of the pass in flight: when it was launched and its rows, 0 of one that does not count.
	started []core.Time
	size    []int
}

func newMeasured(models int) *measured {
	m := &measured{
		rows: make([]float64, models), steps: make([]steps, models),
		started: make([]core.Time, models), size: make([]int, models),
	}
	for range models {
		m.moves = append(m.moves, make([]float64, models))
		m.keeps = append(m.keeps, make([]float64, models))
	}
	return m
}

// move counts a verdict.
func (m *measured) move(from, to int, keep bool) {
	for j := range m.moves[from] {
		m.moves[from][j] *= 1 - 1.0/memory
		m.keeps[from][j] *= 1 - 1.0/memory
	}
	m.rows[from]++
	m.moves[from][to]++
	if keep {
		m.keeps[from][to]++
	}
}

// launched notes a pass that begins. One that feeds a prompt, or any other text that the model has no KV of,
// does not count: a prompt comes once, and the chain knows steps that come again.
func (m *measured) launched(now core.Time, l *core.Launch) {
	m.started[l.Model], m.size[l.Model] = now, len(l.Rows)
	for i := range l.Rows {
		if row := &l.Rows[i]; row.Start == 0 || !row.Head {
			m.size[l.Model] = 0
		}
	}
}

// done notes a pass that has ended.
func (m *measured) done(now core.Time, model int, failed bool) {
	if n := m.size[model]; n > 0 && !failed {
		m.steps[model].add(float64(n), float64(now-m.started[model]))
	}
	m.size[model] = 0
}

// Figures are measured values.
type Figures struct {
	Routing [][]float64 // share of the rows of a model after which the request went on at another, or the same
	Commit  [][]float64 // share of those whose token was committed
	// Step is the time of a pass by its rows: a line through the passes seen.
	Step []chain.StepTime
}

// figures are nil while too little has been seen.
func (m *measured) figures() *Figures {
	f := &Figures{}
	for i, moves := range m.moves {
		total := 0.0
		for _, n := range moves {
			total += n
		}
		if m.rows[i] < least || m.steps[i].passes < least {
			return nil
		}
		routing, commit := make([]float64, len(moves)), make([]float64, len(moves))
		for j, n := range moves {
			if share := n / total; share > shareMin {
				routing[j], commit[j] = share, m.keeps[i][j]/n
			}
		}
		f.Routing, f.Commit = append(f.Routing, normalised(routing)), append(f.Commit, commit)
		f.Step = append(f.Step, m.steps[i].line())
	}
	return f
}

// shareMin is the least share that counts as one: what the memory of a move has faded to is none.
const shareMin = 1e-6

// normalised divides x by its sum.
func normalised(x []float64) []float64 {
	total := 0.0
	for _, v := range x {
		total += v
	}
	for i := range x {
		x[i] /= total
	}
	return x
}

// steps are moments of the passes of a model: x rows took y ns.
type steps struct {
	passes          float64
	w, x, y, xx, xy float64
}

func (s *steps) add(x, y float64) {
	const keep = 1 - 1.0/memory
	s.passes++
	s.w, s.x, s.y = s.w*keep+1, s.x*keep+x, s.y*keep+y
	s.xx, s.xy = s.xx*keep+x*x, s.xy*keep+x*y
}

// line is the least-squares line, with no slope below 0 and no time below 1 ns at any size: then it is the
// line through the origin and the mean, or the mean.
func (s *steps) line() chain.StepTime {
	meanX, meanY := s.x/s.w, s.y/s.w
	slope := 0.0
	if variance := s.xx/s.w - meanX*meanX; variance > 1e-9*meanX*meanX {
		slope = (s.xy/s.w - meanX*meanY) / variance
	}
	slope = min(max(slope, 0), meanY/meanX)
	base := math.Round(meanY - slope*meanX)
	if base+math.Round(slope) < 1 {
		base = 1
	}
	return chain.Affine(int64(base), int64(math.Round(slope)))
}
