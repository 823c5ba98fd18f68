package emu

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/reference"
	"tokenrouter/exec/model/transformers"
	"tokenrouter/exec/native"
	"tokenrouter/exec/native/nativetest"
)

func suite(kernels string) nativetest.Suite {
	return nativetest.Suite{Backend: Backend(), Options: native.Options{Kernels: kernels}, SameBits: true,
		Emulated: true}
}

// TestSuite: the suite of native devices, with graphs.
func TestSuite(t *testing.T) { suite("graphs own").Run(t) }

// TestEager: how requests, pages and steps go together without graphs, which is all that is different then.
func TestEager(t *testing.T) { suite("eager own").RunLaws(t, "qwen2-window") }

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

// TestGrid: a step is padded to the next size of the grid that was asked for, and runs eagerly beyond it;
// what was captured is counted. That rows of padding change nothing is what the suite shows: it compares
// batches of many sizes with requests alone.
func TestGrid(t *testing.T) {
	c, err := model.ParseShape("layers=1,hidden=16,heads=1,kv_heads=1,head_dim=16,intermediate=16,vocab=32")
	if err != nil {
		t.Fatal(err)
	}
	d, err := Backend().Open(native.Options{GraphTokens: []int{2, 8}, GraphBatches: []int{1, 3}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	m, err := d.Load(context.Background(), native.Load{Name: "test", Config: native.Config{Model: c},
		Limits: native.Limits{Slots: 4, Pages: 4, PageTokens: 16, ContextMax: 16, RowsMax: 16, RequestsMax: 4},
		Source: &native.Random{Config: c, Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	before := m.Graphs()
	for _, step := range []struct {
		requests, rows int // rows of each request
		computed       int
		graph          bool
	}{
		{1, 1, 2, true},  // 2 x 1, captured when the model was planned
		{2, 1, 2, true},  // 2 x 3
		{3, 1, 8, true},  // 8 x 3, captured when the model was planned
		{1, 5, 8, true},  // 8 x 1
		{1, 9, 9, false}, // too many tokens
		{4, 1, 4, false}, // too many requests
	} {
		b := &native.Batch{Results: make([]native.Result, step.requests)}
		for slot := range step.requests {
			b.Grants = append(b.Grants, native.Grant{Slot: int32(slot), Page: int32(slot)})
			r := native.Request{Slot: int32(slot), Rows: int32(step.rows), Head: 1, TopP: 1}
			b.Requests = append(b.Requests, r)
			b.Tokens = append(b.Tokens, make([]int32, step.rows)...)
		}
		if err := m.Forward(b); err != nil {
			t.Fatal(err)
		}
		if b.Info.RowsComputed != step.computed || b.Info.Graph != step.graph {
			t.Errorf("%d requests of %d rows: %+v, want %d computed and graph %v", step.requests, step.rows, b.Info,
				step.computed, step.graph)
		}
	}
	after := m.Graphs()
	if before.Count != 2 || after.Count != 4 || before.CaptureNs <= 0 || after.CaptureNs <= before.CaptureNs ||
		before.Bytes <= 0 || after.Bytes != 2*before.Bytes {
		t.Errorf("graphs %+v, after the steps %+v, want 2 and 4 of one size", before, after)
	}
	_, err = Backend().Open(native.Options{GraphTokens: []int{2, 2}})
	if !errors.Is(err, native.ErrInvalid) || !strings.Contains(err.Error(), "graph_rows = 2, want 3 to") {
		t.Errorf("sizes that do not grow: error %v", err)
	}
}

// TestOldDriver: a driver that is too old for the program is no device, and the reason is said.
func TestOldDriver(t *testing.T) {
	Driver(12040)
	defer Driver(0)
	_, err := Backend().Devices()
	if !errors.Is(err, native.ErrNoDevice) || !strings.Contains(err.Error(), "CUDA 12.4, want 13.0 or later") {
		t.Errorf("error %v, want %v and both versions", err, native.ErrNoDevice)
	}
}

// TestParts: multiprocessors go in groups of two, of which this card has two; what is closed is free again.
func TestParts(t *testing.T) {
	open := func(multiprocessors int, wanted string) *native.Device {
		t.Helper()
		d, err := Backend().Open(native.Options{Threads: multiprocessors})
		if wanted == "" && err != nil || wanted != "" && (err == nil || !strings.Contains(err.Error(), wanted)) {
			t.Fatalf("%d multiprocessors: error %v, want %q", multiprocessors, err, wanted)
		}
		return d
	}
	all := open(3, "")
	open(1, "threads = 1 multiprocessors: they go in groups of 2, and 0 of the card are left")
	all.Close()
	first := open(1, "")
	second := open(2, "")
	first.Close()
	open(4, "and 2 of the card are left")
	open(2, "").Close()
	second.Close()
	open(4, "").Close()
}

// TestWriteLogits: what is compared with PyTorch on a card is what the model says after its first 40 to 60
// tokens.
func TestWriteLogits(t *testing.T) {
	dir, to := filepath.Join(t.TempDir(), "tiny"), t.TempDir()
	if err := transformers.Cases()[0].Make(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	suite("graphs").WriteLogits(t, dir, to)
	text, err := os.ReadFile(filepath.Join(to, "tiny.json"))
	if err != nil {
		t.Fatal(err)
	}
	var written []struct {
		Tokens []int32
		Logits []float64
	}
	if err := json.Unmarshal(text, &written); err != nil {
		t.Fatal(err)
	}
	folder, err := model.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if len(written) != 21 {
		t.Fatalf("%d rows, want 21", len(written))
	}
	want, _ := reference.Of(folder).Logits(written[20].Tokens)
	for i, row := range written {
		if len(row.Tokens) != 40+i || !slices.Equal(row.Tokens, written[20].Tokens[:40+i]) {
			t.Errorf("row %d: tokens %d, want the first %d of the last row's", i, row.Tokens, 40+i)
		}
		if off := transformers.Distance(row.Logits, want[39+i]); !(off <= transformers.BF16Tolerance) {
			t.Errorf("row %d: logits %.3g spreads off, want at most %v", i, off, transformers.BF16Tolerance)
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
