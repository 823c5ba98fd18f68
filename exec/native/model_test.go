package native_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/native"
	"tokenrouter/exec/native/nativetest"
)

// shape is that of a very small model.
const shape = "layers=2,hidden=32,heads=4,kv_heads=2,intermediate=64,vocab=40,positions=256"

// limits are enough for most tests.
func limits() native.Limits {
	return native.Limits{Slots: 8, Pages: 64, PageTokens: 16, ContextMax: 128, RowsMax: 128, RequestsMax: 8,
		TopMax: 3, BiasesMax: 16}
}

func configOf(t testing.TB, shape string) native.Config {
	t.Helper()
	c, err := model.ParseShape(shape)
	if err != nil {
		t.Fatal(err)
	}
	return native.Config{Model: c}
}

// opened is the fake device, with a budget; 0 is all.
func opened(t testing.TB, budgetBytes int64) *native.Device {
	t.Helper()
	d, err := nativetest.Fake().Open(native.Options{BudgetBytes: budgetBytes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// loaded is a model with random weights of a seed.
func loaded(t testing.TB, d *native.Device, name string, seed uint64) *native.Model {
	t.Helper()
	c := configOf(t, shape)
	m, err := d.Load(context.Background(), native.Load{
		Name: name, Config: c, Limits: limits(), Source: &native.Random{Config: c.Model, Seed: seed},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestDevices(t *testing.T) {
	b := nativetest.Fake()
	infos, err := b.Devices()
	want := native.Info{Name: "fake", Kernels: "none", PageTokens: 16, Processors: 2,
		MemoryBytes: 1 << 30, FreeBytes: 1 << 30}
	if err != nil || len(infos) != 1 || infos[0] != want || b.Kind() != "fake" {
		t.Errorf("%s: %+v, %v, want one: %+v", b.Kind(), infos, err, want)
	}
	for _, test := range []struct {
		name    string
		options native.Options
		want    error
		text    string
	}{
		{"ordinal", native.Options{Ordinal: 1}, native.ErrNoDevice, "device 1 of 1"},
		{"kernels", native.Options{Kernels: "amx"}, native.ErrUnsupported, "kernels amx"},
		{"processors", native.Options{Processors: make([]int, 257)}, native.ErrInvalid, "257 processors"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := b.Open(test.options)
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("error %v, want %v: %s", err, test.want, test.text)
			}
		})
	}
}

func TestProbe(t *testing.T) {
	got, err := nativetest.Fake().Probe(configOf(t, shape), limits())
	// Two layers of q, k, v and o (2*32*(32+16)) and three of 32*64, and a tied embedding of 40*32, 2 bytes
	// each.
	weights := int64(2 * (2*(2*32*48+3*32*64) + 40*32))
	perToken := int64(4 * 2 * 2 * 8)
	want := native.Needs{WeightBytes: weights, KVBytes: perToken * 16 * 64, KVBytesPerToken: perToken,
		WorkBytes: 160}
	if err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	c := configOf(t, shape)
	c.Weights = native.WeightsInt8
	if _, err := nativetest.Fake().Probe(c, limits()); !errors.Is(err, native.ErrUnsupported) {
		t.Errorf("int8: %v, want %v", err, native.ErrUnsupported)
	}
	l := limits()
	l.Pages = -1
	if _, err := nativetest.Fake().Probe(configOf(t, shape), l); !errors.Is(err, native.ErrInvalid) {
		t.Errorf("pages = -1: %v, want %v", err, native.ErrInvalid)
	}
}

// forward runs one pass of one request of slot 0, and returns the result of its head.
func forward(t *testing.T, m *native.Model, b *native.Batch, r native.Request, tokens ...int32,
) native.Result {
	t.Helper()
	r.Rows, r.Head, r.TopP = int32(len(tokens)), 1, 1
	b.Requests, b.Tokens = []native.Request{r}, tokens
	b.Results, b.Top = make([]native.Result, 1), make([]native.Candidate, 3)
	if err := m.Forward(b); err != nil {
		t.Fatal(err)
	}
	return b.Results[0]
}

// TestForward: a prompt at once and a token at a time give the same, another model another answer; the
// most likely token comes first in the top list.
func TestForward(t *testing.T) {
	d := opened(t, 0)
	a, again, other := loaded(t, d, "a", 1), loaded(t, d, "again", 1), loaded(t, d, "other", 2)
	grant := []native.Grant{{Slot: 0, Index: 0, Page: 5}}
	whole := forward(t, a, &native.Batch{Grants: grant}, native.Request{Top: 2}, 10, 11, 12)
	b := &native.Batch{Grants: grant}
	forward(t, again, b, native.Request{}, 10)
	b.Grants = nil
	forward(t, again, b, native.Request{Start: 1}, 11)
	parts := forward(t, again, b, native.Request{Start: 2, Top: 2}, 12)
	different := forward(t, other, &native.Batch{Grants: grant}, native.Request{Top: 2}, 10, 11, 12)
	if whole.Token != parts.Token || whole.Entropy != parts.Entropy || whole.Finite != 1 {
		t.Errorf("at once %+v, in parts %+v", whole, parts)
	}
	if whole.Entropy == different.Entropy {
		t.Errorf("weights of another seed give the same: %+v", whole)
	}
	if parts.Top != 2 || b.Top[0].Token != parts.Token || b.Top[0].LogProbability != parts.LogProbability ||
		b.Top[1].LogProbability > b.Top[0].LogProbability {
		t.Errorf("top list %+v of %+v", b.Top, parts)
	}
	if b.Info.RowsComputed != 1 || b.Info.EndNs < b.Info.StartNs {
		t.Errorf("step info %+v", b.Info)
	}
}

func TestForwardErrors(t *testing.T) {
	m := loaded(t, opened(t, 0), "a", 1)
	for _, test := range []struct {
		name   string
		token  int32
		grants []native.Grant
		want   error
		text   string
	}{
		{"no page", 10, nil, native.ErrInvalid, "position 0 has no page"},
		{"page that is not there", 10, []native.Grant{{Page: 64}}, native.ErrInvalid, "page 64"},
		{"token that is not there", 40, []native.Grant{{Page: 1}}, native.ErrInvalid, "token 40"},
		{"failure", nativetest.FailToken, nil, native.ErrFailed, "token 3"},
		{"after a failure", 10, nil, native.ErrFailed, "failed before"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := native.Batch{
				Requests: []native.Request{{Rows: 1, TopP: 1}}, Tokens: []int32{test.token}, Grants: test.grants,
				Results: make([]native.Result, 1), Top: make([]native.Candidate, 3),
			}
			err := m.Forward(&b)
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("error %v, want %v: %s", err, test.want, test.text)
			}
		})
	}
}

// TestLoad: files and numbers made in memory give the same model; a budget is kept, and an error names the
// model and what it wants.
func TestLoad(t *testing.T) {
	c := configOf(t, shape)
	dir := t.TempDir()
	if err := model.Make(t.Context(), dir, c.Model, 7, nil); err != nil {
		t.Fatal(err)
	}
	folder, err := model.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	needs, err := nativetest.Fake().Probe(c, limits())
	if err != nil {
		t.Fatal(err)
	}
	d := opened(t, 2*needs.Total()+100)
	var progress []int64
	load := native.Load{Name: "large", Config: c, Limits: limits(), Source: native.Files{Folder: folder},
		Progress: func(done, total int64) { progress = append(progress, total-done) }}
	files, err := d.Load(t.Context(), load)
	if err != nil {
		t.Fatal(err)
	}
	if files.Took() != needs || d.LeftBytes() != needs.Total()+100 {
		t.Errorf("took %+v and left %d, want %+v", files.Took(), d.LeftBytes(), needs)
	}
	descending := func(a, b int64) int { return int(b - a) }
	if progress[len(progress)-1] != 0 || !slices.IsSortedFunc(progress, descending) {
		t.Errorf("progress: left %d", progress)
	}
	made := loaded(t, d, "made", 7)
	grant := []native.Grant{{Page: 3}}
	a := forward(t, files, &native.Batch{Grants: grant}, native.Request{}, 9, 8)
	b := forward(t, made, &native.Batch{Grants: grant}, native.Request{}, 9, 8)
	if a.Entropy != b.Entropy {
		t.Errorf("from files %+v, from the seed %+v", a, b)
	}
	_, err = d.Load(t.Context(), load)
	if !errors.Is(err, native.ErrNoMemory) || !strings.Contains(err.Error(), `model "large"`) ||
		!strings.Contains(err.Error(), "and 100 of the budget") {
		t.Errorf("a third: %v, want %v, with the model's name and the 100 bytes left", err, native.ErrNoMemory)
	}
	made.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Load(ctx, load); !errors.Is(err, context.Canceled) {
		t.Errorf("ended early: %v, want %v", err, context.Canceled)
	}
	if _, err := d.Load(t.Context(), load); err != nil {
		t.Errorf("after the others are gone: %v", err)
	}
}
