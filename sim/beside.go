package sim

import (
	"fmt"

	"tokenrouter/core"
	"tokenrouter/sim/latency"
)

// contention is what models that run at the same time do to each other: a launch of model m gets on at
// the rate 1 / factors[m] while another model of its node runs, and at the rate 1 otherwise. The zero
// contention is none.
type contention struct {
	factors []float64 // a model; nil: none is above 1
	work    []work    // a model: of its launch in flight
}

// work is how far a launch has got.
type work struct {
	leftNs float64   // at since, as if it ran alone from there on
	since  core.Time // it has run at one rate from here on
	beside bool      // with another model
}

// newContention checks one factor a model; no factors mean none.
func newContention(factors []float64, models int) (contention, error) {
	if factors == nil {
		return contention{}, nil
	}
	if len(factors) != models {
		return contention{}, fmt.Errorf("sim: %d contention factors for %d models", len(factors), models)
	}
	any := false
	for m, f := range factors {
		if !(f >= 1 && f <= latency.BesideMax) {
			return contention{}, fmt.Errorf("sim: contention factor of model %d = %v, want 1 to %d", m, f,
				latency.BesideMax)
		}
		any = any || f > 1
	}
	if !any {
		return contention{}, nil
	}
	return contention{factors, make([]work, models)}, nil
}

// begin notes a launch of model m that takes ns alone. ok is false if it could take longer than any step may.
func (c *contention) begin(m int, t, ns core.Time) (ok bool) {
	if c.factors == nil {
		return true
	}
	c.work[m] = work{leftNs: float64(ns), since: t}
	return float64(ns)*c.factors[m] <= float64(latency.MaxStepNs)
}

// settle moves the ends of launches to where they are now that some have ended or begun at t. Times are whole
// nanoseconds, rounded to the nearest; a launch whose company does not change keeps its end to the bit.
func (c *contention) settle(doneAt []core.Time, t core.Time) {
	if c.factors == nil {
		return
	}
	busy := 0
	for _, done := range doneAt {
		if done != never {
			busy++
		}
	}
	for m, done := range doneAt {
		w := &c.work[m]
		if done == never || w.beside == (busy > 1) {
			continue
		}
		w.leftNs -= float64(t-w.since) / c.rate(m)
		w.since, w.beside = t, busy > 1
		doneAt[m] = t + max(core.Time(float64(w.leftNs*c.rate(m))+0.5), 1)
	}
}

// rate is how long a nanosecond of work takes.
func (c *contention) rate(m int) float64 {
	if c.work[m].beside {
		return c.factors[m]
	}
	return 1
}
