package spec

import (
	"fmt"
	"slices"
	"strings"

	"tokenrouter/sim/latency"
)

// beyond warns of models whose costs a point takes for more or fewer requests in flight, or for longer or
// shorter ones, than they were calibrated for. Models with the same limits share a warning.
func (l *loader) beyond(p *Point) {
	shortest, _ := p.Workload.Lengths.Prompt.Bounds()
	if p.Workload.Kind != "closed" && p.Workload.Kind != "poisson" && p.Workload.Kind != "gamma" {
		shortest = int32(p.ContextMax) // the prompts of a file may be anything
	}
	for _, c := range []struct {
		of              string
		span            func(m *Model) latency.Span
		least, greatest int
	}{
		{"requests in flight", func(m *Model) latency.Span { return m.InFlight }, p.Concurrency, p.Concurrency},
		{"tokens of a request", func(m *Model) latency.Span { return m.Context }, int(shortest), p.ContextMax},
	} {
		var spans []latency.Span
		names := make(map[latency.Span][]string)
		for i := range p.Models {
			span := c.span(&p.Models[i])
			if !span.Bound || c.least >= span.Min && c.greatest <= span.Max {
				continue
			}
			if !slices.Contains(spans, span) {
				spans = append(spans, span)
			}
			names[span] = append(names[span], p.Models[i].Name)
		}
		for _, span := range spans {
			l.warnings = append(l.warnings, fmt.Sprintf("costs of %s are extrapolated: calibrated for %s %s, here %s",
				strings.Join(names[span], ", "), ends(span.Min, span.Max), c.of, ends(c.least, c.greatest)))
		}
	}
}

// ends writes a range of counts.
func ends(least, greatest int) string {
	if least == greatest {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%d to %d", least, greatest)
}
