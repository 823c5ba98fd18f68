package chain

import (
	"encoding/json"
	"math"
	"math/big"
	"os"
	"testing"
)

// publishedCase is one model of testdata/chain.json, with points whose throughput is known independently.
type publishedCase struct {
	Name      string
	P, C      [][]float64
	LatencyMs []float64 `json:"latency_ms"`
	QuantumMs float64   `json:"quantum_ms"`
	Points    []struct {
		N      int
		B      []int
		TokS   float64         `json:"tok_s"`
		TokMs  json.RawMessage `json:"tok_ms"`
		IsBest bool            `json:"best"`
	}
}

// model returns the Model of the case.
func (c publishedCase) model() Model {
	m := Model{Routing: c.P, Commit: c.C, QuantumNs: int64(math.Round(c.QuantumMs * 1e6))}
	for _, ms := range c.LatencyMs {
		m.Step = append(m.Step, Constant(int64(math.Round(ms*1e6))))
	}
	return m
}

func readPublished(t *testing.T) []publishedCase {
	t.Helper()
	data, err := os.ReadFile("testdata/chain.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []publishedCase }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	return file.Cases
}

// wantTokS returns the known throughput of a point and the relative tolerance that its digits allow.
func wantTokS(t *testing.T, tokS float64, raw json.RawMessage) (want, tolerance float64) {
	t.Helper()
	if raw == nil {
		return tokS, 0.6e-6 / tokS // six decimals
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		fraction, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("bad fraction %q", text)
		}
		value, _ := fraction.Float64()
		return value * 1000, 1e-12
	}
	var value float64
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	return value * 1000, 0.6e-6 / value
}

// TestPublished checks every value of testdata/chain.json.
func TestPublished(t *testing.T) {
	for _, c := range readPublished(t) {
		t.Run(c.Name, func(t *testing.T) {
			for _, point := range c.Points {
				s, err := c.model().Solve(point.N, point.B, Options{})
				if err != nil {
					t.Fatalf("N=%d B=%v: %v", point.N, point.B, err)
				}
				want, tolerance := wantTokS(t, point.TokS, point.TokMs)
				if math.Abs(s.ThroughputTokS/want-1) > tolerance {
					t.Errorf("N=%d B=%v: %.9f tok/s, want %.9f", point.N, point.B, s.ThroughputTokS, want)
				}
				if !(s.ErrorBound < 1e-9) {
					t.Errorf("N=%d B=%v: error bound %g, want below 1e-9", point.N, point.B, s.ErrorBound)
				}
			}
		})
	}
}
