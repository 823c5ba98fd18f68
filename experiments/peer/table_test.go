package main

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"
)

// steps makes times of whole milliseconds.
func steps(ms ...int) times {
	var t times
	for _, n := range ms {
		t = append(t, time.Duration(n)*time.Millisecond)
	}
	return t
}

func TestTable(t *testing.T) {
	m := &measured{weightBytes: 1_000_000_000, read: steps(50, 40, 50), results: []*result{
		{work: decode(1), ours: steps(50, 60, 55), theirs: steps(60, 66, 70)},
		{work: decode(8), ours: steps(51, 60, 61), theirs: steps(101, 102, 180)},
		{work: decode(16), ours: steps(72, 70, 71), theirs: steps(140, 150, 160)},
		{work: prefill, ours: steps(600, 600, 600), theirs: steps(500, 510, 520)},
	}}
	var b strings.Builder
	printResults(&b, formats[1], m)
	for _, c := range []struct{ name, line string }{
		{"reached exactly", "| decode, batch 1 | 50.0 (55.0) | 60.0 (66.0) | 1.20 (1.20) | at least 1.2 | yes |"},
		{"best counts", "| decode, batch 8 | 51.0 (60.0) | 101.0 (102.0) | 1.98 (1.70) | at least 2.0 | no |"},
		{"twice", "| decode, batch 16 | 70.0 (71.0) | 140.0 (150.0) | 2.00 (2.11) | at least 2.0 | yes |"},
		{"slower", "| prefill of 512 tokens | 600.0 (600.0) | 500.0 (510.0) | 0.83 (0.85) | at least 1.0 | no |"},
		{"read", "| decode, batch 1, over a read of 1000 MB at 25.0 GB/s | 1.25 (1.10) | at most 1.25 | yes |"},
		{"over read", "| decode, batch 8, over a read of 1000 MB at 25.0 GB/s | 1.27 (1.22) | at most 1.25 | no |"},
		{"batch", "| decode, batch 16, over decode, batch 1 | 1.40 (1.29) | at most 1.40 | yes |"},
	} {
		if !strings.Contains(b.String(), c.line) {
			t.Errorf("%s: no line\n%s\nin\n%s", c.name, c.line, &b)
		}
	}
}

func TestSpreads(t *testing.T) {
	// -1 and 1 have the standard deviation 1. Both are off by 0.5.
	var raw []byte
	for _, x := range []float32{-1.5, 1.5} {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	if got, err := spreads([]float32{-1, 1}, raw); got != 0.5 || err != nil {
		t.Errorf("%v, %v, want 0.5", got, err)
	}
	if _, err := spreads([]float32{1}, raw); err == nil {
		t.Error("rows of 1 and 2 numbers were compared")
	}
}
