package latency

import (
	"fmt"
	"time"
)

// Falls says where the times of the table fall by more than a share of them from one point of an axis to the
// next, which more work does not do but for errors of measurement; empty if they do not.
func (t *Table) Falls(share float64) string {
	g := &t.grid
	along := max(len(g.Context), 1)
	for _, axis := range []struct {
		name   string
		points []int
		stride int // between neighbours on the axis
	}{
		{"rows", g.Rows, along * max(len(g.Fresh), 1)}, {"fresh tokens", g.Fresh, along},
		{"tokens in KV", g.Context, 1},
	} {
		for i, ns := range g.Ns {
			if len(axis.points) == 0 {
				break
			}
			at := i / axis.stride % len(axis.points)
			if at+1 == len(axis.points) || float64(g.Ns[i+axis.stride]) >= float64(ns)*(1-share) {
				continue
			}
			return fmt.Sprintf("%v at %d %s, %v at %d", time.Duration(ns), axis.points[at], axis.name,
				time.Duration(g.Ns[i+axis.stride]), axis.points[at+1])
		}
	}
	return ""
}
