package latency

import (
	"fmt"
	"math"
	"slices"
)

// NewTableOf makes a table of samples. Its axes are the values that occur; repeated shapes are averaged,
// and every combination must occur. A quantity that is 0 in every sample was not recorded and gets no
// axis. Fresh tokens that equal the rows in every sample (pure decoding) get none either, but their span
// still bounds the range.
func NewTableOf(points []Point, outside Outside) (*Table, error) {
	if len(points) == 0 {
		return nil, fmt.Errorf("latency: table of no samples, want at least 1")
	}
	if err := checkPoints(points); err != nil {
		return nil, err
	}
	box := boxOf(points)
	decoding := true
	for _, point := range points {
		decoding = decoding && point.Shape.FreshTokens == point.Shape.Rows
	}
	grid := Grid{Rows: axisOf(points, func(s Shape) int { return s.Rows })}
	if box.Fresh.Bound && !decoding {
		grid.Fresh = axisOf(points, func(s Shape) int { return s.FreshTokens })
	}
	if box.Context.Bound {
		grid.Context = axisOf(points, func(s Shape) int { return s.ContextTokens })
	}
	if err := grid.average(points); err != nil {
		return nil, err
	}
	table, err := NewTable(grid, outside)
	if err != nil {
		return nil, err
	}
	table.valid = box
	return table, nil
}

func axisOf(points []Point, value func(Shape) int) []int {
	axis := make([]int, len(points))
	for i, point := range points {
		axis[i] = value(point.Shape)
	}
	slices.Sort(axis)
	return slices.Compact(axis)
}

// average fills Ns with the mean of the samples at each point of the axes.
func (g *Grid) average(points []Point) error {
	along := max(len(g.Context), 1)
	across := max(len(g.Fresh), 1) * along
	size := len(g.Rows) * across
	if size > len(points) {
		return fmt.Errorf("latency: table of %d samples for %d combinations of rows, fresh and context tokens, "+
			"want one of each", len(points), size)
	}
	sums, counts := make([]float64, size), make([]int, size)
	for _, point := range points {
		at := place(g.Rows, point.Shape.Rows).index*across +
			place(g.Fresh, point.Shape.FreshTokens).index*along + place(g.Context, point.Shape.ContextTokens).index
		sums[at] += float64(point.Ns)
		counts[at]++
	}
	g.Ns = make([]int64, size)
	for at, count := range counts {
		if count == 0 {
			missing := Shape{Rows: g.Rows[at/across]}
			if g.Fresh != nil {
				missing.FreshTokens = g.Fresh[at%across/along]
			}
			if g.Context != nil {
				missing.ContextTokens = g.Context[at%along]
			}
			return fmt.Errorf("latency: table without a sample at %d rows, %d fresh and %d context tokens",
				missing.Rows, missing.FreshTokens, missing.ContextTokens)
		}
		g.Ns[at] = int64(math.Round(sums[at] / float64(count)))
	}
	return nil
}
