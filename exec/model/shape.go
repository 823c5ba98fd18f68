package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ShapeTiny is the shape of a model for tests: it has a tokenizer, of bytes.
const ShapeTiny = "tiny"

// shapes has the published Qwen3 dense models (Qwen3 technical report, arXiv 2505.09388, table 1, and the
// config.json of each), smallest first, after one for tests.
var shapes = []struct {
	name                                                  string
	layers, hidden, heads, kvHeads, headDim, intermediate int
	vocab, positions                                      int
	tied                                                  bool
}{
	{ShapeTiny, 4, 256, 4, 2, 64, 768, 320, 4096, true},
	{"qwen3-0.6b", 28, 1024, 16, 8, 128, 3072, 151936, 40960, true},
	{"qwen3-1.7b", 28, 2048, 16, 8, 128, 6144, 151936, 40960, true},
	{"qwen3-4b", 36, 2560, 32, 8, 128, 9728, 151936, 40960, true},
	{"qwen3-8b", 36, 4096, 32, 8, 128, 12288, 151936, 40960, false},
	{"qwen3-14b", 40, 5120, 40, 8, 128, 17408, 151936, 40960, false},
	{"qwen3-32b", 64, 5120, 64, 8, 128, 25600, 151936, 40960, false},
}

// ShapeNames returns the names that ParseShape knows.
func ShapeNames() []string {
	names := make([]string, len(shapes))
	for i, s := range shapes {
		names[i] = s.name
	}
	return names
}

// ParseShape reads a shape: one of ShapeNames, sizes as KEY=VALUE, or a name and sizes that differ from it,
// with commas between, such as "qwen3-0.6b", "qwen3-0.6b,layers=4" or
// "layers=2,hidden=128,heads=4,intermediate=256,vocab=1000".
//
// Keys are architecture (qwen3, qwen2, llama), layers, hidden, heads, kv_heads, head_dim, intermediate,
// vocab, positions and tied. Without a name, layers, hidden, heads, intermediate and vocab must be given; the
// others are then qwen3, kv_heads = heads, head_dim = hidden / heads, positions 4096 and tied.
func ParseShape(text string) (Config, error) {
	parts := strings.Split(text, ",")
	c := Config{Architecture: Qwen3, NormEpsilon: 1e-6, Positions: 4096, Tied: true, BOS: -1,
		Rope: Rope{Theta: 1e6, Scaling: RopeUnscaled, AttentionFactor: 1}}
	if !strings.Contains(parts[0], "=") {
		if err := c.named(parts[0]); err != nil {
			return Config{}, err
		}
		parts = parts[1:]
	}
	given := map[string]bool{}
	for _, part := range parts {
		key, value, _ := strings.Cut(part, "=")
		if given[key] {
			return Config{}, fmt.Errorf("shape %q: %s is given twice", text, key)
		}
		given[key] = true
		if err := c.set(key, value); err != nil {
			return Config{}, fmt.Errorf("shape %q: %w", text, err)
		}
	}
	for _, need := range []struct {
		key  string
		size int
	}{{"layers", c.Layers}, {"hidden", c.Hidden}, {"heads", c.Heads}, {"intermediate", c.Intermediate},
		{"vocab", c.Vocab}} {
		if need.size == 0 {
			return Config{}, fmt.Errorf("shape %q: no %s", text, need.key)
		}
	}
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadDim == 0 {
		c.HeadDim = c.Hidden / c.Heads
	}
	c.QKNorm, c.QKVBias = c.Architecture == Qwen3, c.Architecture == Qwen2
	c.EOS = slices.DeleteFunc(c.EOS, func(id int) bool { return id >= c.Vocab })
	if c.BOS >= c.Vocab {
		c.BOS = -1
	}
	checked, err := ParseConfig(c.JSON(BF16), nil)
	if err != nil {
		return Config{}, fmt.Errorf("shape %q: %w", text, err)
	}
	return checked, nil
}

// named takes the sizes of a known shape. The end tokens are <|endoftext|> and <|im_end|>.
func (c *Config) named(name string) error {
	for _, s := range shapes {
		if !strings.EqualFold(s.name, name) {
			continue
		}
		c.Layers, c.Hidden, c.Heads, c.KVHeads, c.HeadDim = s.layers, s.hidden, s.heads, s.kvHeads, s.headDim
		c.Intermediate, c.Vocab, c.Positions, c.Tied = s.intermediate, s.vocab, s.positions, s.tied
		c.BOS, c.EOS = 151643, []int{151643, 151645}
		if s.name == ShapeTiny {
			c.BOS, c.EOS = byteEnd, []int{byteEnd, byteTurnEnd}
		}
		return nil
	}
	return fmt.Errorf("shape %q is unknown, want %s, or sizes such as layers=4,hidden=256,heads=4,"+
		"intermediate=768,vocab=320", name, strings.Join(ShapeNames(), ", "))
}

// set takes one size.
func (c *Config) set(key, value string) error {
	sizes := map[string]*int{"layers": &c.Layers, "hidden": &c.Hidden, "heads": &c.Heads, "kv_heads": &c.KVHeads,
		"head_dim": &c.HeadDim, "intermediate": &c.Intermediate, "vocab": &c.Vocab, "positions": &c.Positions}
	switch {
	case sizes[key] != nil:
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return fmt.Errorf("%s = %q, want a whole number above 0", key, value)
		}
		*sizes[key] = n
		return nil
	case key == "tied":
		if value != "true" && value != "false" {
			return fmt.Errorf("tied = %q, want true or false", value)
		}
		c.Tied = value == "true"
		return nil
	case key != "architecture":
		return fmt.Errorf("no key %q, want architecture, tied, %s", key, strings.Join(sortedKeys(sizes), ", "))
	}
	for _, known := range architectures {
		if known.kind == value {
			c.Architecture = known.architecture
			return nil
		}
	}
	return fmt.Errorf("architecture = %q, want qwen3, qwen2 or llama", value)
}
