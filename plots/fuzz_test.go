package plots

import (
	"encoding/binary"
	"math"
	"testing"
)

// FuzzSweep reads points from bytes, eight for each number, and draws them on every kind of axis.
func FuzzSweep(f *testing.F) {
	for _, test := range logCases {
		var raw []byte
		for i := range test.y {
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(test.x[i]))
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(test.y[i]))
		}
		f.Add(raw, uint8(2))
	}
	f.Fuzz(func(t *testing.T, raw []byte, kind uint8) {
		if len(raw) > 2048 {
			return
		}
		var numbers []float64
		for ; len(raw) >= 8; raw = raw[8:] {
			numbers = append(numbers, math.Float64frombits(binary.LittleEndian.Uint64(raw)))
		}
		n := len(numbers) / 4
		s := Series{Name: "fuzz", X: numbers[:n], Y: numbers[n : 2*n],
			Low: numbers[2*n : 3*n], High: numbers[3*n : 4*n]}
		if kind&32 != 0 {
			n = len(numbers) / 2
			s = Series{Name: "fuzz", X: numbers[:n], Y: numbers[n : 2*n]}
		}
		figure, err := Sweep(SweepData{
			X:      Axis{Label: "x (s)", Log: kind&1 != 0, Integer: kind&4 != 0, Zero: kind&8 != 0},
			Y:      Axis{Label: "y (s)", Log: kind&2 != 0, Integer: kind&16 != 0},
			Series: []Series{s},
		})
		if err != nil {
			t.Fatal(err)
		}
		svg, err := figure.SVG()
		if err != nil {
			t.Fatal(err)
		}
		checkSVG(t, "fuzz", svg)
		checkText(t, figure)
	})
}
