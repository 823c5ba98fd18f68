package exec_test

import (
	"context"
	"testing"

	"tokenrouter/core"
	"tokenrouter/exec"
)

// endless is a Sink that submits its request again when it has left, until there are enough
// tokens.
type endless struct {
	loop   *exec.Loop
	tokens *int
	most   int
	stop   context.CancelFunc
	r      exec.Request
}

// Token implements exec.Sink.
func (e *endless) Token(core.Token) {
	if *e.tokens++; *e.tokens == e.most {
		e.stop()
	}
}

// Left implements exec.Sink.
func (e *endless) Left(core.Leave) { _ = e.loop.Submit(&e.r) }

// BenchmarkLoop is what the loop itself costs a pass, on the real clock: a device that takes no
// time, 4 requests of 1000 tokens, R2R that routes every third position. ns/op is a
// token.
func BenchmarkLoop(b *testing.B) {
	c := config()
	c.ContextMax = 2000
	c.Models[0].Pages, c.Models[1].Pages = 2000, 2000
	passes := 0
	device := deviceFunc(func(p *exec.Pass) error {
		for i, row := range p.Launch.Rows {
			p.Results[i].Score = float64((row.Start + row.Fresh) % 3 / 2)
		}
		return nil
	})
	loop, err := exec.New(exec.Config{Core: c, Devices: []exec.Device{device, device},
		Observe: func(_ int, _ core.Time, _ []core.Event, out *core.Actions) { passes += len(out.Launches) }})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	tokens := 0
	for id := range uint64(4) {
		e := &endless{loop: loop, tokens: &tokens, most: b.N, stop: stop}
		e.r = exec.Request{ID: id, Prompt: make([]int32, 10), TokensMax: 1000, Sink: e}
		if err := loop.Submit(&e.r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	_ = loop.Run(ctx)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(passes), "ns/pass")
	b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tok/s")
}
