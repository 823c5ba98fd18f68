package plots

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
)

// A SpeedCurve is what one policy reaches as the number of requests in flight grows. All slices have the
// length of Concurrency; the intervals may be nil.
type SpeedCurve struct {
	Policy         string
	Concurrency    []int
	Speed          []float64 // of a single user, tok/s
	Throughput     []float64 // of all together, tok/s
	ThroughputLow  []float64 // ends of the confidence interval, tok/s
	ThroughputHigh []float64
	Labelled       []int // concurrencies written beside their points; nil: 1, 2, 4, 8, 16, ...
}

// ThroughputSpeedData is throughput against single-user speed for N = 1, 2, ... requests in flight, a curve
// per policy.
type ThroughputSpeedData struct {
	Title  string
	Curves []SpeedCurve
}

// ThroughputSpeed draws the curves at column width, with N beside some of the points where it fits without
// touching anything. It fails if the slices of a curve differ in length.
func ThroughputSpeed(d ThroughputSpeedData) (*Figure, error) {
	series := make([]Series, len(d.Curves))
	looks := make([]look, len(d.Curves))
	names := make([]string, len(d.Curves))
	for i, q := range d.Curves {
		s := Series{Name: clean(q.Policy), X: q.Speed, Y: q.Throughput,
			Low: q.ThroughputLow, High: q.ThroughputHigh}
		if err := s.check("throughput against speed"); err != nil {
			return nil, err
		}
		if err := sameLength(q); err != nil {
			return nil, err
		}
		series[i], names[i] = s, s.Name
	}
	byName := looksFor(names)
	for i, name := range names {
		looks[i] = byName[name]
	}
	x := Axis{Label: "single-user speed (tok/s per request)"}
	p := newPanel("", x, Axis{Label: "throughput (tok/s)", Zero: true}, series, looks)
	labels := func(c *canvas, r vg.Rectangle) { drawConcurrency(c, r, p, d.Curves) }
	return single(clean(d.Title), p, "Numbers beside points: requests in flight, N", labels), nil
}

// drawConcurrency writes N beside the labelled points, once where points of several curves fall together.
func drawConcurrency(c *canvas, r vg.Rectangle, p panel, curves []SpeedCurve) {
	room := newRoom(p, r)
	type done struct {
		n     int
		place vg.Point
	}
	var written []done
	for i, l := range p.layers {
		style := plain()
		style.colour = darker(l.colour)
		for _, q := range l.points() {
			n, place := curves[i].Concurrency[q.index], p.at(r, q.x, q.y)
			if !labelled(n, curves[i].Labelled) || slices.ContainsFunc(written, func(d done) bool {
				return d.n == n && math.Hypot(float64(d.place.X-place.X), float64(d.place.Y-place.Y)) < 3
			}) {
				continue
			}
			text := strconv.Itoa(n)
			if corner, ok := room.find(style, place, text); ok {
				c.text(style, corner, text, atStart, atStart)
				written = append(written, done{n, place})
			}
		}
	}
}

func labelled(n int, chosen []int) bool {
	if chosen == nil {
		return n > 0 && n&(n-1) == 0
	}
	return slices.Contains(chosen, n)
}

func sameLength(q SpeedCurve) error {
	if len(q.Concurrency) != len(q.Speed) {
		return fmt.Errorf("plots: throughput against speed: curve %q has %d concurrencies for %d points",
			q.Policy, len(q.Concurrency), len(q.Speed))
	}
	return nil
}
