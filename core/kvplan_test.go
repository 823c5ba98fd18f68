package core_test

import (
	"math"
	"strings"
	"testing"

	"tokenrouter/core"
)

// The sizes of Qwen3-0.6B and 32B: 1.19 and 65.5 GB of bf16 weights, 112 and 256 KiB of KV a
// token (2 * layers * KV heads * 128 * 2 bytes; 28 and 64 layers, 8 KV heads).
var small, large = core.Footprint{Name: "0.6B", WeightBytes: 1_190_000_000, KVBytesPerTok: 112 << 10},
	core.Footprint{Name: "32B", WeightBytes: 65_500_000_000, KVBytesPerTok: 256 << 10}

// TestPlanPages: the largest T with sum W_i + T * sum c_i <= budget (TokenRouter, arXiv
// 2610.12242, section 3.2), in whole pages.
func TestPlanPages(t *testing.T) {
	const page = 16 * 368 << 10 // of both models, 16 tokens
	weights := small.WeightBytes + large.WeightBytes
	for _, c := range []struct {
		name   string
		budget int64
		want   int
	}{
		{"one page to the byte", weights + page, 1},
		{"a byte short of two", weights + 2*page - 1, 1},
		{"two", weights + 2*page, 2},
		// (0.9 * 143,771 MiB - weights) / (368 KiB * 16) = 11442.4: 183,072 tokens each
		{"an H200", 135_679_783_731, 11442},
	} {
		got, err := core.PlanPages(c.budget, []core.Footprint{small, large}, 16)
		if err != nil || got != c.want {
			t.Errorf("%s: %d pages, %v, want %d", c.name, got, err, c.want)
		}
		if used := weights + int64(got)*page; used > c.budget || used+page <= c.budget {
			t.Errorf("%s: %d pages use %d of %d bytes: not the most that fits", c.name, got, used, c.budget)
		}
	}
}

func TestPlanPagesRefuses(t *testing.T) {
	bad := small
	bad.KVBytesPerTok = 0
	huge := small
	huge.KVBytesPerTok = math.MaxInt64
	for _, c := range []struct {
		name   string
		budget int64
		models []core.Footprint
		page   int
		errHas string
	}{
		{"no page fits", small.WeightBytes + 1, []core.Footprint{small}, 16, "1190000000 (weights)"},
		{"weights do not fit", 1, []core.Footprint{small, large}, 16, "[0.6B 32B]"},
		{"negative budget", math.MinInt64, []core.Footprint{small}, 16, "-9223372036854775808 bytes"},
		{"no model", 1 << 40, nil, 16, "0 models"},
		{"no page size", 1 << 40, []core.Footprint{small}, 0, "pages of 0 tokens"},
		{"no KV", 1 << 40, []core.Footprint{bad}, 16, `"0.6B"`},
		{"products that wrap", 1 << 40, []core.Footprint{huge, huge}, 16, `"0.6B"`},
	} {
		if got, err := core.PlanPages(c.budget, c.models, c.page); err == nil || !strings.Contains(err.Error(),
			c.errHas) {
			t.Errorf("%s: %d pages, error %v, want one with %q", c.name, got, err, c.errHas)
		}
	}
}
