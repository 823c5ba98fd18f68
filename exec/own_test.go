package exec_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/core"
	"tokenrouter/core/route"
	"tokenrouter/exec"
)

// TestOwnAlgorithms: requests of one batch are judged by thresholds of their own, and one that is refused for
// its ID changes nothing for the one that is there.
func TestOwnAlgorithms(t *testing.T) {
	script := func(_ uint64, position int32) core.Result { return core.Result{Token: position, Score: 0.6} }
	large := func(_ uint64, position int32) core.Result { return core.Result{Token: 100 + position} }
	own := func(threshold float64) func(*exec.Request) {
		return func(r *exec.Request) { r.Algorithm = route.R2R{Threshold: threshold} }
	}
	synctest.Test(t, func(t *testing.T) {
		s := start(t, config(), 0, []exec.Device{&scripted{script: script}, &scripted{script: large}},
			func(c *exec.Config) { c.OwnAlgorithms = true })
		prompt := []int32{1, 2}
		common := s.submit(1, prompt, 2)
		never := s.submit(2, prompt, 2, own(0.7))
		always := s.submit(3, prompt, 2, own(0.6))
		time.Sleep(500 * time.Microsecond)
		refused := s.submit(2, prompt, 2, own(0))
		s.settle(20 * time.Millisecond)
		again := s.submit(2, prompt, 2) // the ID is free, and so is its algorithm
		s.settle(20 * time.Millisecond)
		s.stop()
		common.ended(core.Finished, core.TokensMax, 102, 103)
		never.ended(core.Finished, core.TokensMax, 2, 3)
		always.ended(core.Finished, core.TokensMax, 102, 103)
		refused.ended(core.Rejected, core.Duplicate)
		again.ended(core.Finished, core.TokensMax, 102, 103)
	})
}

// TestOwnAlgorithmsRefused: what can not be is refused by name.
func TestOwnAlgorithmsRefused(t *testing.T) {
	me, err := route.NewME([]float64{1, 1})
	if err != nil {
		t.Fatal(err)
	}
	devices := []exec.Device{exact(), exact()}
	c := exec.Config{Core: config(), Devices: devices, OwnAlgorithms: true}
	c.Core.Algorithm = me
	if _, err := exec.New(c); err == nil || !strings.Contains(err.Error(), "OwnAlgorithms with route.ME") {
		t.Errorf("New with ME: %v", err)
	}
	l, err := exec.New(exec.Config{Core: config(), Devices: devices})
	if err != nil {
		t.Fatal(err)
	}
	err = l.Submit(&exec.Request{ID: 1, Prompt: []int32{1}, TokensMax: 1, Algorithm: route.R2R{}})
	if err == nil || !strings.Contains(err.Error(), "OwnAlgorithms is not set") {
		t.Errorf("Submit: %v", err)
	}
}
