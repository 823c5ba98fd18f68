package latency

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Dimensions are the sizes of a dense decoder-only transformer with grouped-query attention, gated
// feed-forward layers and query-key norms.
type Dimensions struct {
	Name         string
	Layers       int
	Hidden       int
	Heads        int // query heads
	KVHeads      int
	HeadDim      int
	Intermediate int  // feed-forward width
	Vocab        int  // rows of the embedding
	Tied         bool // the output head is the embedding
}

// dimensions holds the published Qwen3 dense models (Qwen3 technical report, arXiv 2505.09388, table 1, and
// the config.json of each).
var dimensions = []Dimensions{
	{"Qwen3-0.6B", 28, 1024, 16, 8, 128, 3072, 151936, true},
	{"Qwen3-1.7B", 28, 2048, 16, 8, 128, 6144, 151936, true},
	{"Qwen3-4B", 36, 2560, 32, 8, 128, 9728, 151936, true},
	{"Qwen3-8B", 36, 4096, 32, 8, 128, 12288, 151936, false},
	{"Qwen3-14B", 40, 5120, 40, 8, 128, 17408, 151936, false},
	{"Qwen3-32B", 64, 5120, 64, 8, 128, 25600, 151936, false},
}

// DimensionNames returns the names that DimensionsNamed knows, smallest model first.
func DimensionNames() []string {
	names := make([]string, len(dimensions))
	for i, d := range dimensions {
		names[i] = d.Name
	}
	return names
}

// DimensionsNamed returns the dimensions of a published model; case does not matter. The error for an
// unknown name tells the nearest known one.
func DimensionsNamed(name string) (Dimensions, error) {
	for _, d := range dimensions {
		if strings.EqualFold(d.Name, name) {
			return d, nil
		}
	}
	return Dimensions{}, unknownName("model shape", name, DimensionNames())
}

// check refuses sizes that are not positive or so large that products of them would overflow.
func (d Dimensions) check() error {
	const sizeMax = 1 << 20
	for _, size := range [...]struct {
		name  string
		value int
	}{
		{"layers", d.Layers}, {"hidden", d.Hidden}, {"heads", d.Heads}, {"KV heads", d.KVHeads},
		{"head dim", d.HeadDim}, {"intermediate", d.Intermediate}, {"vocab", d.Vocab},
	} {
		if size.value < 1 || size.value > sizeMax {
			return fmt.Errorf("latency: shape %s: %s = %d, want 1 to %d", d.Name, size.name, size.value, sizeMax)
		}
	}
	if d.Heads%d.KVHeads != 0 {
		return fmt.Errorf("latency: shape %s: %d heads, want a multiple of the %d KV heads",
			d.Name, d.Heads, d.KVHeads)
	}
	return nil
}

// layerMatrices returns the weights of the matrices of one layer: q, k, v, o and the three of the
// feed-forward part.
func (d Dimensions) layerMatrices() int64 {
	hidden, head := int64(d.Hidden), int64(d.HeadDim)
	attention := hidden * head * int64(2*d.Heads+2*d.KVHeads)
	return attention + 3*hidden*int64(d.Intermediate)
}

// embedding returns the weights of the embedding, which is also the size of the output head.
func (d Dimensions) embedding() int64 { return int64(d.Hidden) * int64(d.Vocab) }

// norms returns the weights of all norms: two of the hidden size and two of the head size a layer, and
// a last one.
func (d Dimensions) norms() int64 {
	return int64(d.Layers)*int64(2*d.Hidden+2*d.HeadDim) + int64(d.Hidden)
}

// Parameters returns how many weights the model has; a tied head counts once.
func (d Dimensions) Parameters() int64 {
	total := int64(d.Layers)*d.layerMatrices() + d.norms() + d.embedding()
	if !d.Tied {
		total += d.embedding()
	}
	return total
}

// StepWeights returns how many weights a step reads: all but an untied embedding, of which it gathers a
// few rows only.
func (d Dimensions) StepWeights() int64 {
	return int64(d.Layers)*d.layerMatrices() + d.norms() + d.embedding()
}

// KVBytesPerToken returns the bytes of keys and values of one token over all layers, for elements of
// the given size (2 for bf16).
func (d Dimensions) KVBytesPerToken(bytesPerElement int) int64 {
	return 2 * int64(d.Layers) * int64(d.KVHeads) * int64(d.HeadDim) * int64(bytesPerElement)
}

// Device holds the peaks of an accelerator.
type Device struct {
	Name               string
	FlopsPerSecond     float64 // bf16 dense tensor peak
	BytesPerSecond     float64 // memory bandwidth peak
	MemoryBytes        int64
	LinkBytesPerSecond float64 // to its neighbours, one direction
}

// devices holds data-sheet peaks of the SXM versions (NVIDIA A100 80GB, H100 and H200 data sheets; dense,
// without sparsity; NVLink halved to one direction). Memory is what the driver reports.
var devices = []Device{
	{"A100-80G", 312e12, 2039e9, 81920 << 20, 300e9},
	{"H100", 989.4e12, 3350e9, 81559 << 20, 450e9},
	{"H200", 989.4e12, 4800e9, 143771 << 20, 450e9},
}

// DeviceNames returns the names that DeviceNamed knows.
func DeviceNames() []string {
	names := make([]string, len(devices))
	for i, d := range devices {
		names[i] = d.Name
	}
	return names
}

// DeviceNamed returns the peaks of a device; case does not matter, and "A100" is the 80 GB one. The
// error for an unknown name tells the nearest known one.
func DeviceNamed(name string) (Device, error) {
	if strings.EqualFold(name, "A100") {
		name = "A100-80G"
	}
	for _, d := range devices {
		if strings.EqualFold(d.Name, name) {
			return d, nil
		}
	}
	return Device{}, unknownName("device", name, DeviceNames())
}

func (d Device) check(linked bool) error {
	for _, peak := range [...]struct {
		name   string
		value  float64
		needed bool
	}{
		{"flops/s", d.FlopsPerSecond, true}, {"bytes/s", d.BytesPerSecond, true},
		{"memory bytes", float64(d.MemoryBytes), true}, {"link bytes/s", d.LinkBytesPerSecond, linked},
	} {
		if peak.needed && !(peak.value > 0 && peak.value <= math.MaxFloat64) {
			return fmt.Errorf("latency: device %s: %s = %v, want a finite value above 0",
				d.Name, peak.name, peak.value)
		}
	}
	return nil
}

// unknownName makes the error for a name that is none of the known ones.
func unknownName(kind, name string, known []string) error {
	nearest := slices.MinFunc(known, func(a, b string) int {
		return editDistance(strings.ToLower(name), strings.ToLower(a)) -
			editDistance(strings.ToLower(name), strings.ToLower(b))
	})
	return fmt.Errorf("latency: unknown %s %q, want one of %s (nearest: %s)",
		kind, name, strings.Join(known, ", "), nearest)
}

// editDistance is Levenshtein's: how many bytes must be inserted, removed or replaced.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
