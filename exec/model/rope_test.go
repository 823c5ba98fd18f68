package model

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// near reports whether a and b differ by at most part of b.
func near(a, b, part float64) bool { return math.Abs(a-b) <= part*math.Abs(b) }

// TestInverseFrequencies compares with transformers, which computes in float32; testdata/rope.json names the
// versions and has every configuration.
func TestInverseFrequencies(t *testing.T) {
	text, err := os.ReadFile("testdata/rope.json")
	if err != nil {
		t.Fatal(err)
	}
	var published struct {
		Cases []struct {
			Name        string          `json:"name"`
			HeadDim     int             `json:"head_dim"`
			Theta       json.RawMessage `json:"rope_theta"`
			Positions   json.RawMessage `json:"max_position_embeddings"`
			Scaling     json.RawMessage `json:"rope_scaling"`
			Attention   float64         `json:"attention_factor"`
			Frequencies []float64       `json:"inverse_frequencies"`
		} `json:"cases"`
	}
	if err := json.Unmarshal(text, &published); err != nil {
		t.Fatal(err)
	}
	if len(published.Cases) < 9 {
		t.Fatalf("%d cases, want 9", len(published.Cases))
	}
	for _, test := range published.Cases {
		t.Run(test.Name, func(t *testing.T) {
			c := parsed(t, map[string]string{"rope_theta": string(test.Theta), "rope_scaling": string(test.Scaling),
				"max_position_embeddings": string(test.Positions)})
			if !near(c.Rope.AttentionFactor, test.Attention, 1e-12) {
				t.Errorf("attention factor %v, want %v", c.Rope.AttentionFactor, test.Attention)
			}
			got := c.Rope.InverseFrequencies(test.HeadDim)
			if len(got) != len(test.Frequencies) {
				t.Fatalf("%d frequencies, want %d", len(got), len(test.Frequencies))
			}
			for i, want := range test.Frequencies {
				if !near(got[i], want, 1e-6) {
					t.Errorf("pair %d: %v, want %v", i, got[i], want)
				}
			}
		})
	}
}

// TestLlama3Frequencies has the pairs at both edges of the blend, worked out by hand from the formula of
// meta-llama/llama-models (apply_scaling).
func TestLlama3Frequencies(t *testing.T) {
	base := func(headDim, i int) float64 { return math.Pow(500000, -2*float64(i)/float64(headDim)) }
	for _, test := range []struct {
		name           string
		headDim        int
		factor         float64
		keptTo, allOff int // pairs up to keptTo are unchanged, those from allOff on are divided by factor
		blended        map[int]float64
	}{
		{"head 64, factor 32", 64, 32, 14, 18,
			map[int]float64{15: 0.00129054793, 16: 0.00042955680, 17: 0.000097082878}},
		{"head 128, factor 8", 128, 8, 28, 35, map[int]float64{29: 0.0021665708, 34: 0.00017850781}},
	} {
		t.Run(test.name, func(t *testing.T) {
			rope := Rope{Theta: 500000, Scaling: RopeLlama3, Factor: test.factor, OriginalPositions: 8192,
				LowFactor: 1, HighFactor: 4}
			for i, got := range rope.InverseFrequencies(test.headDim) {
				want, known := test.blended[i]
				switch {
				case i <= test.keptTo:
					want, known = base(test.headDim, i), true
				case i >= test.allOff:
					want, known = base(test.headDim, i)/test.factor, true
				}
				if known && !near(got, want, 2e-8) {
					t.Errorf("pair %d: %v, want %v", i, got, want)
				}
			}
		})
	}
}
