package exec_test

import (
	"context"
	"fmt"
	"time"

	"tokenrouter/core"
	"tokenrouter/core/route"
	"tokenrouter/exec"
)

// printer is a Sink that prints the answer when it is whole.
type printer struct {
	done   context.CancelFunc
	answer []string
}

// Token keeps a token.
func (p *printer) Token(t core.Token) {
	p.answer = append(p.answer, fmt.Sprintf("%d of model %d", t.Token, t.Model))
}

// Left prints the answer.
func (p *printer) Left(e core.Leave) {
	fmt.Println(p.answer, e.Outcome, e.Reason)
	p.done()
}

// A node with a small and a large model, whose devices follow a script: the small one is unsure
// of its second token, so the large one makes that.
func Example() {
	var loop *exec.Loop
	device := func(stepNs core.Time, result core.Result) exec.Device {
		return &exec.Scripted{
			Now:    func() core.Time { return loop.Now() },
			StepNs: func(core.Launch) core.Time { return stepNs },
			Fill: func(l core.Launch, results []core.Result) error {
				for i, row := range l.Rows {
					results[i] = result
					if position := row.Start + row.Fresh - 3; position != 1 { // of a prompt of 3
						results[i].Score = 0
					}
				}
				return nil
			},
		}
	}
	loop, err := exec.New(exec.Config{
		Core: core.Config{
			Models:    []core.Model{{Name: "small", Pages: 64}, {Name: "large", Pages: 64}},
			Algorithm: route.R2R{Threshold: 0.5}, Policy: core.Eager{}, Admission: core.Reserve,
			Requests: 8, ContextMax: 64, PageTokens: 16,
		},
		Devices: []exec.Device{
			device(core.Time(time.Millisecond), core.Result{Token: 10, Score: 0.9}),
			device(core.Time(4*time.Millisecond), core.Result{Token: 20}),
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, done := context.WithCancel(context.Background())
	err = loop.Submit(&exec.Request{
		ID: 1, Prompt: []int32{1, 2, 3}, TokensMax: 3, Sink: &printer{done: done},
	})
	fmt.Println(err)
	fmt.Println(loop.Run(ctx))
	// Output:
	// <nil>
	// [10 of model 0 20 of model 1 10 of model 0] finished length
	// context canceled
}
