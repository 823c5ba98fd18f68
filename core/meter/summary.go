package meter

import (
	"tokenrouter/core"
	"tokenrouter/core/meter/quantile"
)

// Summary is what a run measured. A nil *Stats or a zero count means that there was nothing
// to measure, never a measured 0.
type Summary struct {
	OpenedNs  core.Time // the window
	ClosedNs  core.Time
	Warmups   uint64 // requests left out because they were admitted, or refused, before the window
	Committed uint64 // tokens in the window
	Total     uint64 // tokens in the whole run

	ThroughputTokS float64 // Committed / window
	GoodputTokS    float64 // tokens of finished requests within the limits / window
	Finished       uint64  // requests admitted since the window opened, by outcome
	Rejected       uint64  // refused since the window opened
	Cancelled      uint64
	Failed         uint64

	TTFT      *Stats // ns, from arrival to the first commit
	Gap       *Stats // ns, between commits of a request: inter-token latency
	TPOT      *Stats // ns, (last - first commit) / (tokens - 1), a request
	Latency   *Stats // ns, from arrival to the end
	Admission *Stats // ns, from arrival to admission

	Models []ModelSummary
}

// Stats are mean, extremes and nearest-rank percentiles.
type Stats struct {
	Count                                 int64
	Mean                                  float64
	P50, P90, P95, P99                    int64
	Min, Max                              int64
	Exact                                 bool // percentiles are exact, not within quantile.RelativeError
	P90Reliable, P95Reliable, P99Reliable bool
}

// ModelSummary is what the window showed of one model.
type ModelSummary struct {
	Launches    uint64
	Rows        uint64
	Fresh       uint64  // tokens fed
	Committed   uint64  // tokens that this model made
	Share       float64 // of all committed tokens
	BatchMean   float64 // rows a launch
	Utilisation float64 // busy / window
	QueueMeanNs float64 // a row, from joining the queue to its launch
	PendMeanNs  float64 // a return, from leaving the model to being back in its queue
	PagesMax    int     // KV peak
}

// Summary closes the books. The Meter must not be used afterwards.
func (m *Meter) Summary() Summary {
	if !m.closed {
		m.closeWithLastToken()
	}
	s := Summary{
		OpenedNs: m.openedAt, ClosedNs: m.closedAt, Warmups: m.warmups,
		Committed: m.committed, Total: m.total,
		Finished: m.outcomes[core.Finished], Rejected: m.outcomes[core.Rejected],
		Cancelled: m.outcomes[core.CancelledOutcome], Failed: m.outcomes[core.Failed],
		TTFT: StatsOf(&m.ttft), Gap: StatsOf(&m.gap), TPOT: StatsOf(&m.perToken),
		Latency: StatsOf(&m.latency), Admission: StatsOf(&m.admission),
	}
	window := float64(m.closedAt - m.openedAt)
	if window > 0 {
		s.ThroughputTokS = float64(m.committed) * 1e9 / window
		s.GoodputTokS = float64(m.good) * 1e9 / window
	}
	for i := range m.models {
		s.Models = append(s.Models, m.models[i].summary(window, m.committed))
	}
	return s
}

// closeWithLastToken closes the window at a time that has passed: what models did since then,
// for requests that were cancelled or failed, is not of the window.
func (m *Meter) closeWithLastToken() {
	for i := range m.models {
		p := &m.models[i]
		if p.tailAt == m.lastToken {
			p.busy -= p.tail
		}
		if p.since >= m.lastToken {
			p.since = -1
		}
	}
	m.Close(max(m.lastToken, m.openedAt))
}

func (p *perModel) summary(window float64, committed uint64) ModelSummary {
	s := ModelSummary{
		Launches: p.launches, Rows: p.rows, Fresh: p.fresh, Committed: p.committed, PagesMax: p.pagesMax,
		Share:       ratio(float64(p.committed), float64(committed)),
		BatchMean:   ratio(float64(p.rows), float64(p.launches)),
		Utilisation: ratio(float64(p.busy), window),
		QueueMeanNs: ratio(float64(p.wait), float64(p.rows)),
		PendMeanNs:  ratio(float64(p.pending), float64(p.pendings)),
	}
	return s
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// StatsOf is what a sample of times in ns shows; nil of an empty one.
func StatsOf(s *quantile.Sample) *Stats {
	mean, ok := s.Mean()
	if !ok {
		return nil
	}
	at := func(p float64) int64 {
		v, _ := s.Quantile(p)
		return v
	}
	n := s.Count()
	least, _ := s.Min()
	greatest, _ := s.Max()
	return &Stats{
		Count: n, Mean: mean, P50: at(0.5), P90: at(0.9), P95: at(0.95), P99: at(0.99),
		Min: least, Max: greatest, Exact: s.Exact(),
		P90Reliable: quantile.TailReliable(0.9, n), P95Reliable: quantile.TailReliable(0.95, n),
		P99Reliable: quantile.TailReliable(0.99, n),
	}
}
