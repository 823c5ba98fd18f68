package native_test

import (
	"context"
	"fmt"

	"tokenrouter/core"
	"tokenrouter/exec"
	"tokenrouter/exec/model"
	"tokenrouter/exec/native"
	"tokenrouter/exec/native/nativetest"
)

// counter is a Sink that counts tokens and ends the run.
type counter struct {
	tokens int
	stop   context.CancelFunc
}

// Token implements exec.Sink.
func (c *counter) Token(core.Token) { c.tokens++ }

// Left implements exec.Sink.
func (c *counter) Left(e core.Leave) {
	fmt.Println(c.tokens, "tokens:", e.Reason)
	c.stop()
}

// One model with random weights, on a device with a budget, answers a prompt. A program would take exec/cpu's
// Backend.
func Example() {
	config, err := model.ParseShape("layers=2,hidden=64,heads=4,intermediate=128,vocab=320")
	if err != nil {
		panic(err)
	}
	device, err := nativetest.Fake().Open(native.Options{BudgetBytes: 64 << 20})
	if err != nil {
		panic(err)
	}
	defer device.Close()
	scheduler := core.Config{
		Models: []core.Model{{Name: "small", Pages: 32}}, Policy: core.Eager{}, Admission: core.Reserve,
		Requests: 4, ContextMax: 128, PageTokens: 16, TokenBudget: 64,
	}
	small, err := device.Load(context.Background(), native.Load{
		Name: "small", Config: native.Config{Model: config}, Limits: native.LimitsOf(scheduler, 0),
		Source: &native.Random{Config: config, Seed: 1},
	})
	if err != nil {
		panic(err)
	}
	loop, err := exec.New(exec.Config{
		Core:    scheduler,
		Devices: []exec.Device{native.NewExecutor(small, native.Execution{EOS: config.EOS})},
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	err = loop.Submit(&exec.Request{
		ID: 1, Prompt: []int32{72, 105}, TokensMax: 12, Sink: &counter{stop: stop},
		Sampling: &exec.Sampling{Temperature: 0.8},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(loop.Run(ctx))
	// Output:
	// 12 tokens: length
	// context canceled
}
