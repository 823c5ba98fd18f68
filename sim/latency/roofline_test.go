package latency

import (
	"math"
	"testing"
)

func mustRoofline(tb testing.TB, shape, device string, parallel int) *Roofline {
	tb.Helper()
	d, err := DimensionsNamed(shape)
	if err != nil {
		tb.Fatal(err)
	}
	peaks, err := DeviceNamed(device)
	if err != nil {
		tb.Fatal(err)
	}
	model, err := NewRoofline(RooflineSpec{
		Shape: d, Device: peaks, Parallel: parallel, FlopsEfficiency: 1, MemoryEfficiency: 1,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return model
}

// Parameter counts are those of the published weights with a tied head counted once; KV bytes are 2 x
// layers x KV heads x head dim x 2.
func TestPublishedShapes(t *testing.T) {
	tests := []struct {
		name       string
		parameters int64
		billions   float64 // as the name says
		kvKiB      int64
	}{
		{"Qwen3-0.6B", 596_049_920, 0.6, 112},
		{"Qwen3-1.7B", 1_720_574_976, 1.7, 112},
		{"Qwen3-4B", 4_022_468_096, 4, 144},
		{"Qwen3-8B", 8_190_735_360, 8, 144},
		{"Qwen3-14B", 14_768_307_200, 14, 160},
		{"Qwen3-32B", 32_762_123_264, 32, 256},
	}
	if len(tests) != len(DimensionNames()) {
		t.Errorf("%d shapes tested, %d known", len(tests), len(DimensionNames()))
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, err := DimensionsNamed(test.name)
			if err != nil {
				t.Fatal(err)
			}
			if got := d.Parameters(); got != test.parameters {
				t.Errorf("%d parameters, want %d", got, test.parameters)
			}
			if ratio := float64(d.Parameters()) / 1e9 / test.billions; math.Abs(ratio-1) > 0.06 {
				t.Errorf("%d parameters are not what the name says", d.Parameters())
			}
			if got := d.KVBytesPerToken(2); got != test.kvKiB<<10 {
				t.Errorf("%d KV bytes a token, want %d KiB", got, test.kvKiB)
			}
		})
	}
}

func TestNamesInAnyCase(t *testing.T) {
	d, err := DimensionsNamed("qwen3-0.6b")
	if err != nil || d.Name != "Qwen3-0.6B" {
		t.Errorf("qwen3-0.6b = %q, %v, want Qwen3-0.6B", d.Name, err)
	}
	for _, name := range []string{"A100-80G", "a100", "h100", "H200"} {
		if _, err := DeviceNamed(name); err != nil {
			t.Errorf("device %q: %v", name, err)
		}
	}
}

func TestUnknownNamesTellTheNearest(t *testing.T) {
	_, err := DimensionsNamed("Qwen3-0.6")
	refused(t, err, `unknown model shape "Qwen3-0.6"`, "nearest: Qwen3-0.6B")
	_, err = DimensionsNamed("qwen-32b")
	refused(t, err, "nearest: Qwen3-32B")
	_, err = DeviceNamed("H20")
	refused(t, err, `unknown device "H20"`, "nearest: H200")
	_, err = DeviceNamed("")
	refused(t, err, "A100-80G, H100, H200")
}

// TestRooflineByHand compares with sums done by hand.
func TestRooflineByHand(t *testing.T) {
	within := func(name string, model *Roofline, s Shape, wantNs float64) {
		t.Helper()
		ns, inRange := model.StepNs(s)
		if !inRange || math.Abs(float64(ns)/wantNs-1) > 1e-3 {
			t.Errorf("%s: %d ns, in range %t, want %.0f", name, ns, inRange, wantNs)
		}
	}
	small := mustRoofline(t, "Qwen3-0.6B", "H200", 1)
	// 1,192,099,840 bytes of weights at 4.8 TB/s, and one token's KV of 112 KiB.
	within("0.6B on H200, 1 row", small, rows(1), 1192099840.0/4800+114688.0/4800)
	// Ten thousand tokens of context: 112 KiB each.
	within("0.6B on H200, long context", small, Shape{Rows: 1, FreshTokens: 1, ContextTokens: 10_000},
		1192099840.0/4800+10_001*114688.0/4800)

	// 32B on two A100: all weights but the embedding of 777,912,320, in 2 bytes, at twice 2039 GB/s.
	large := mustRoofline(t, "Qwen3-32B", "A100", 2)
	within("32B on 2 A100, 1 row", large, rows(1), (32_762_123_264-777_912_320)*2/(2*2039.0)+262144/(2*2039.0)+
		128*2*5120*2*1.0/2/300) // 128 all-reduces of 5120 bf16 values, 2 (n-1)/n of them sent

	// A prefill of 8192 tokens on 0.6B is bound by arithmetic: 2 flops for each of the 440,401,920 weights of
	// the layers and each token, the head once, and attention 4 x 16 x 128 x 28 x 8192 x 8193/2.
	flops := 2*440_401_920.0*8192 + 2*1024*151936 + 4*16*128*28*8192*8193.0/2
	within("0.6B on H200, prefill of 8192", small, Shape{Rows: 1, FreshTokens: 8192}, flops/989_400)
}

func TestRooflineGrows(t *testing.T) {
	model := mustRoofline(t, "Qwen3-8B", "H100", 1)
	last := int64(0)
	for _, n := range []int{1, 2, 4, 64, 512, 4096} {
		ns, _ := model.StepNs(Shape{Rows: n, FreshTokens: n, ContextTokens: 1000 * n})
		if ns <= last {
			t.Errorf("%d rows take %d ns, no more than fewer rows' %d", n, ns, last)
		}
		last = ns
	}
	one, _ := model.StepNs(rows(1))
	two, _ := mustRoofline(t, "Qwen3-8B", "H100", 2).StepNs(rows(1))
	if !(two < one && two*2 > one) {
		t.Errorf("two devices take %d ns, one %d: want between half and all", two, one)
	}
	huge := Shape{Rows: math.MaxInt, FreshTokens: math.MaxInt, ContextTokens: math.MaxInt}
	if ns, inRange := model.StepNs(huge); ns != Refused || inRange {
		t.Errorf("an endless step = %d, %t, want refused", ns, inRange)
	}
}

func TestRooflineDefaults(t *testing.T) {
	d, _ := DimensionsNamed("Qwen3-0.6B")
	h200, _ := DeviceNamed("H200")
	model, err := NewRoofline(RooflineSpec{Shape: d, Device: h200, LaunchNs: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	if got := model.WeightBytes(); got != 1_192_099_840 {
		t.Errorf("%d bytes of weights, want 1192099840", got)
	}
	if got := model.KVBytesPerToken(); got != 112<<10 {
		t.Errorf("%d KV bytes a token, want 112 KiB", got)
	}
	want := (1192099840.0+114688)/4800/DefaultMemoryEfficiency + 100_000
	if ns, _ := model.StepNs(rows(1)); math.Abs(float64(ns)-want) > 1 {
		t.Errorf("a step takes %d ns, want %.0f", ns, want)
	}
}

func TestRooflineRefuses(t *testing.T) {
	d, _ := DimensionsNamed("Qwen3-32B")
	a100, _ := DeviceNamed("A100")
	tests := []struct {
		name   string
		change func(*RooflineSpec)
		want   string
	}{
		{"no shape", func(s *RooflineSpec) { s.Shape = Dimensions{Name: "mine"} }, "shape mine: layers = 0"},
		{"heads", func(s *RooflineSpec) { s.Shape.KVHeads = 7 }, "64 heads, want a multiple of the 7"},
		{"no device", func(s *RooflineSpec) { s.Device = Device{Name: "mine"} }, "device mine: flops/s = 0"},
		{"NaN bandwidth", func(s *RooflineSpec) { s.Device.BytesPerSecond = math.NaN() }, "bytes/s = NaN"},
		{"parallel 3", func(s *RooflineSpec) { s.Parallel = 3 }, "divisor of the 64 heads"},
		{"parallel -1", func(s *RooflineSpec) { s.Parallel = -1 }, "tensor parallel -1"},
		{"efficiency 1.5", func(s *RooflineSpec) { s.FlopsEfficiency = 1.5 }, "flops efficiency 1.5"},
		{"efficiency NaN", func(s *RooflineSpec) { s.MemoryEfficiency = math.NaN() }, "memory efficiency NaN"},
		{"weight bytes", func(s *RooflineSpec) { s.WeightBytes = -2 }, "-2 bytes a weight"},
		{"KV bytes", func(s *RooflineSpec) { s.KVBytes = -2 }, "-2 bytes a KV element"},
		{"launch", func(s *RooflineSpec) { s.LaunchNs = -1 }, "launch -1 ns"},
		{"does not fit", func(s *RooflineSpec) { s.WeightBytes = 8 }, "Qwen3-32B needs"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec := RooflineSpec{Shape: d, Device: a100}
			test.change(&spec)
			_, err := NewRoofline(spec)
			refused(t, err, test.want)
		})
	}
}
