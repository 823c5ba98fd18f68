package emu

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/native"
	"tokenrouter/exec/native/nativetest"
)

func suite(kernels string) nativetest.Suite {
	return nativetest.Suite{Backend: Backend(), Options: native.Options{Kernels: kernels}, SameBits: true,
		Emulated: true}
}

// TestSuite: the suite of native devices, with graphs.
func TestSuite(t *testing.T) { suite("graphs own").Run(t) }

// TestEager: how requests, pages and steps go together without graphs.
func TestEager(t *testing.T) { suite("eager own").RunSteps(t) }

// TestFaults: a call of the runtime that fails ends the step, and its model, with a text that says which;
// another model of the device goes on.
func TestFaults(t *testing.T) {
	runtime.LockOSThread() // faults are of a thread
	defer runtime.UnlockOSThread()
	c, err := model.ParseShape("layers=1,hidden=16,heads=1,kv_heads=1,head_dim=16,intermediate=16,vocab=32")
	if err != nil {
		t.Fatal(err)
	}
	for _, kernels := range []string{"graphs", "eager"} {
		d, err := Backend().Open(native.Options{Kernels: kernels})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		other := load(t, d, c)
		for _, count := range []int{1, 2, 9} { // all of them: check/steps.cpp
			m := load(t, d, c)
			FailFrom(count)
			err := m.Forward(firstStep(c))
			FailFrom(0)
			if !errors.Is(err, native.ErrFailed) || !strings.Contains(err.Error(), "step 1: ") {
				t.Errorf("%s, call %d: error %v, want %v in step 1", kernels, count, err, native.ErrFailed)
			}
			if err := m.Forward(firstStep(c)); !errors.Is(err, native.ErrFailed) {
				t.Errorf("%s, call %d, the next step: error %v, want %v", kernels, count, err, native.ErrFailed)
			}
			m.Close()
		}
		if err := other.Forward(firstStep(c)); err != nil {
			t.Errorf("%s: the other model: %v", kernels, err)
		}
	}
}

func load(t *testing.T, d *native.Device, c model.Config) *native.Model {
	t.Helper()
	m, err := d.Load(context.Background(), native.Load{Name: "test", Config: native.Config{Model: c},
		Limits: native.Limits{Slots: 1, Pages: 1, PageTokens: 16, ContextMax: 16, RowsMax: 4, RequestsMax: 1},
		Source: &native.Random{Config: c, Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// firstStep gives slot 0 a page and one token.
func firstStep(c model.Config) *native.Batch {
	return &native.Batch{Tokens: []int32{5}, Grants: []native.Grant{{}},
		Requests: []native.Request{{Rows: 1, Head: 1, TopP: 1}}, Results: make([]native.Result, 1),
		Logits: make([]float32, c.Vocab)}
}
