package cpu

import (
	"fmt"
	"testing"
	"time"

	"tokenrouter/exec/model"
	"tokenrouter/exec/native"
)

// BenchmarkStep compares decode steps of a model of Qwen3-0.6B's shape, context 128, with a pure read of as
// many bytes as its weights take, and with the step at batch 1. Report: read-ratio is time over the time of
// the read, b1-ratio over the time at batch 1.
func BenchmarkStep(b *testing.B) {
	c, err := model.ParseShape("qwen3-0.6b")
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range []struct {
		name   string
		config native.Config
	}{
		{"bf16", bf16Weights(c)},
		{"int8", native.Config{Model: c, Weights: native.WeightsInt8}},
	} {
		b.Run(f.name, func(b *testing.B) { benchSteps(b, f.config) })
	}
}

const benchContext = 128

func benchSteps(b *testing.B, c native.Config) {
	batches := []int{1, 8, 16}
	limits := native.Limits{Slots: 16, Pages: 16 * 5, PageTokens: 32, ContextMax: 160, RowsMax: 512,
		RequestsMax: 16}
	e := newEngine(b, native.Options{Threads: 2}, c, limits, &cheap{config: c.Model})
	columns := int(e.model.Took().WeightBytes / 2 / 1024)
	read, err := newWeights(columns, 1024, make([]uint16, columns*1024))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(read.close)
	w := threads(b, 2)
	for slot := range limits.Slots {
		e.forward(piece{slot, prompt(c.Model, uint64(slot), benchContext), true})
	}
	calls := []func(int) error{func(int) error { _, err := stream(w, read); return err }}
	for _, n := range batches {
		batch := &native.Batch{Results: make([]native.Result, n)}
		for slot := range n {
			batch.Requests = append(batch.Requests, native.Request{Slot: int32(slot), Start: benchContext - 1,
				Rows: 1, Head: 1, TopP: 1})
			batch.Tokens = append(batch.Tokens, int32(slot))
		}
		calls = append(calls, func(int) error { return e.model.Forward(batch) })
	}
	var shortest []time.Duration
	for b.Loop() {
		shortest = best(b, 12, calls...)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(e.model.Took().WeightBytes)/float64(shortest[0]), "read-GB/s")
	for i, n := range batches {
		d := float64(shortest[i+1])
		b.ReportMetric(d/1e6, fmt.Sprintf("ms-B%d", n))
		b.ReportMetric(d/float64(shortest[0]), fmt.Sprintf("read-ratio-B%d", n))
		b.ReportMetric(d/float64(shortest[1]), fmt.Sprintf("b1-ratio-B%d", n))
	}
}

// cheap is a source of bf16 numbers of moderate size that costs little to fill.
type cheap struct {
	config model.Config
	buffer []byte
}

// Tensor implements native.Source.
func (s *cheap) Tensor(e model.Expected) ([]byte, model.DType, error) {
	elements := int64(1)
	for _, n := range e.Shape {
		elements *= n
	}
	if int64(len(s.buffer)) < 2*elements {
		s.buffer = make([]byte, 2*elements)
		for i := range s.buffer {
			state := uint32(i/2)*2654435761 + 12345
			if i%2 == 1 {
				s.buffer[i] = byte(state>>24)&0x80 | 0x3c // about 2^-7, either sign
			} else {
				s.buffer[i] = byte(state >> 16)
			}
		}
	}
	return s.buffer[:2*elements], model.BF16, nil
}

// Release implements native.Source.
func (s *cheap) Release(model.Expected) error { return nil }
