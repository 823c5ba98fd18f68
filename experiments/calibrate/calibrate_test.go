package calibrate

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/sim/latency"
)

// TestGridWithin: no shape exceeds a bound, and rows, fresh tokens and context can be told apart.
func TestGridWithin(t *testing.T) {
	for _, b := range []Bounds{
		{Rows: 16, Fresh: 512, Context: 2048, Tokens: 16 * 2048}, {Rows: 3, Fresh: 64, Context: 100, Tokens: 300},
		{Rows: 1, Fresh: 32, Context: 32, Tokens: 32},
	} {
		for _, s := range Grid(b) {
			if s.Rows > b.Rows || s.Rows*s.Fresh > b.Fresh || s.Context+s.Fresh > b.Context ||
				s.Rows*(s.Context+s.Fresh) > b.Tokens {
				t.Errorf("bounds %+v: shape %+v is outside", b, s)
			}
		}
	}
	// 8 batch sizes at 14, 56 and 111 tokens, 5 + 5 + 4 + 3 + 2 extends at 56 that fit, prompts of 8 and 64.
	if small := Grid(Bounds{Rows: 16, Fresh: 64, Context: 112, Tokens: 16 * 112}); len(small) != 24+19+2 {
		t.Errorf("%d shapes for short contexts, want 45: %v", len(small), small)
	}
	full := Grid(Bounds{Rows: 16, Fresh: 512, Context: 4096, Tokens: 1 << 20})
	if len(full) != 67 {
		t.Errorf("%d shapes, want 67: 8 batch sizes x 4 contexts, 5 x 5 extends and 5 x 2"+
			" prompts", len(full))
	}
}

// law makes steps of 2 ms + 10 us a row + 5 us a fresh token + 100 us a block + 2 ns a token in KV; the other
// models make them take a quarter longer.
func law() (samples []Sample, want latency.Coefficients) {
	want = latency.Coefficients{
		BaseNs: 2e6, PerRowNs: 10_000, PerFreshNs: 5_000, PerBlockNs: 100_000, PerContextNs: 2,
	}
	a, err := latency.NewAffine(want)
	if err != nil {
		panic(err)
	}
	for _, shape := range Grid(Bounds{Rows: 16, Fresh: 512, Context: 4096, Tokens: 1 << 20}) {
		ns, _ := a.StepNs(shape.Total())
		// Two states of the machine, and a step that was interrupted, which does not count.
		for _, noise := range []int64{500_000, -500_000, 90_000_000} {
			samples = append(samples, Sample{Model: "m", Shape: shape, StepNs: ns + noise},
				Sample{Model: "m", Beside: true, Shape: shape, StepNs: ns*5/4 + noise})
		}
	}
	return samples, want
}

func TestFitModels(t *testing.T) {
	samples, want := law()
	fits, err := FitModels(samples)
	if err != nil {
		t.Fatal(err)
	}
	got := fits[0].Alone.Coefficients
	for name, pair := range map[string][2]float64{
		"base": {got.BaseNs, want.BaseNs}, "row": {got.PerRowNs, want.PerRowNs},
		"fresh": {got.PerFreshNs, want.PerFreshNs}, "block": {got.PerBlockNs, want.PerBlockNs},
		"context": {got.PerContextNs, want.PerContextNs},
	} {
		if math.Abs(pair[0]/pair[1]-1) > 1e-6 {
			t.Errorf("%s term %v, want %v", name, pair[0], pair[1])
		}
	}
	if f := fits[0]; math.Abs(f.Beside-1.25) > 1e-6 || len(fits) != 1 {
		t.Errorf("%d fits, the first with beside %v, want one with 1.25", len(fits), f.Beside)
	}
}

// TestFitBoth: a model that is faster beside the others has the law of the mean of both.
func TestFitBoth(t *testing.T) {
	samples, want := law()
	for i := range samples {
		if s := &samples[i]; s.Beside {
			s.StepNs = samples[i-1].StepNs / 2
		}
	}
	fits, err := FitModels(samples)
	if err != nil {
		t.Fatal(err)
	}
	f := fits[0]
	if got := f.Alone.BaseNs; math.Abs(got/(0.75*want.BaseNs)-1) > 1e-6 || f.Beside != 1 || !f.Both {
		t.Errorf("base %v, beside %v, both %t; want three quarters of %v, 1 and true", got, f.Beside, f.Both,
			want.BaseNs)
	}
	if text := string(TOML(Origin{}, "b.csv", fits)); !strings.Contains(text, "the fit is to the mean of both") {
		t.Errorf("nothing is said of it in\n%s", text)
	}
}

func TestWritten(t *testing.T) {
	at := time.Date(2026, 11, 29, 22, 45, 7, 89e6, time.UTC)
	samples := []Sample{
		{Model: "small", Shape: Shape{Rows: 2, Fresh: 3, Context: 100}, StepNs: 1_234_567, At: at},
		{Model: "small", Beside: true, Shape: Shape{Rows: 1, Fresh: 1}, StepNs: 2_000_000, Round: 3, At: at},
	}
	want := "model,beside,rows,fresh_tokens,context_tokens,step_ms,round,at\n" +
		"small,false,2,6,200,1.234567,0,2026-11-29T22:45:07.089Z\n" +
		"small,true,1,1,0,2.000000,3,2026-11-29T22:45:07.089Z\n"
	if diff := cmp.Diff(want, string(CSV(samples))); diff != "" {
		t.Errorf("CSV (-want +got):\n%s", diff)
	}
	read, err := Samples(CSV(samples))
	if diff := cmp.Diff(samples, read); err != nil || diff != "" {
		t.Errorf("read back: %v (-want +got):\n%s", err, diff)
	}
	for _, c := range []struct{ name, text, want string }{
		{"another file", "rows\n1\n", "line 1: want model,beside"},
		{"cut short", want[:len(want)-9], "line 3: parsing time"},
		{"no rows", strings.Replace(want, "false,2,", "false,0,", 1), "line 2: 0 rows in 1.234567 ms"},
	} {
		if _, err := Samples([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
		}
	}
	if got := SamplesPath("a/b.toml"); got != "a/b.csv" {
		t.Errorf("samples in %s, want a/b.csv", got)
	}
	all, _ := law()
	fits, err := FitModels(all)
	if err != nil {
		t.Fatal(err)
	}
	of := Origin{System: "s.toml", Device: "P, 2 cores", Date: "2026-11-29", Commit: "abc"}
	text := string(TOML(of, "b.csv", fits))
	for _, part := range []string{
		"# Step times of the models of s.toml,\n# measured on P, 2 cores, 2026-11-29, at commit abc.\n",
		"device = \"P, 2 cores\"\nengine = \"tokenrouter, the models of s.toml\"\ndate = \"2026-11-29\"\n",
		"range = \"m: 1 to 16 rows, 1 to 512 fresh tokens and ",
		"{ key = \"models.m.latency.base\", from = \"means of ", "{ key = \"models.m.latency.beside\", from",
		"name = \"m\"", "base = \"2ms\"", "per_row = \"10µs\"", "rows = [1, 16]",
		"fresh_tokens = [1, 512]", "outside = \"clamp\"", "beside = 1.25\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in:\n%s", part, text)
		}
	}
}
