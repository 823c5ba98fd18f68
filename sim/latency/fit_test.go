package latency

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func decodePoints(samples ...[2]int64) []Point {
	points := make([]Point, len(samples))
	for i, sample := range samples {
		points[i] = Point{Shape: rows(int(sample[0])), Ns: sample[1]}
	}
	return points
}

// TestFitCase34 is case 34: least squares over (8, 7), (16, 12), (32, 29) ms has intercept -1.5 and slope
// 0.9375, so -0.5625 ms at 1 row. It must never be scheduled.
func TestFitCase34(t *testing.T) {
	points := decodePoints([2]int64{8, 7 * ms}, [2]int64{16, 12 * ms}, [2]int64{32, 29 * ms})
	fit, err := FitAffine(points, RefuseNegative)
	refused(t, err, "base term is -1.5e+06 ns", "rows 8..32")
	if math.Abs(fit.BaseNs+1.5*ms) > 1e-3 || math.Abs(fit.PerRowNs-0.9375*ms) > 1e-3 {
		t.Errorf("terms %v and %v, want -1.5 ms and 0.9375 ms", fit.BaseNs, fit.PerRowNs)
	}
	if _, err := fit.Model(Clamp); err == nil {
		t.Error("a fit with a negative base became a model")
	}

	// The best without negative terms: through 0, slope sum(xy)/sum(xx) = 1176/1344 = 0.875 ms.
	fit, err = FitAffine(points, NonNegative)
	if err != nil {
		t.Fatal(err)
	}
	if fit.BaseNs != 0 || math.Abs(fit.PerRowNs-0.875*ms) > 1e-3 {
		t.Errorf("terms %v and %v, want 0 and 0.875 ms", fit.BaseNs, fit.PerRowNs)
	}
	model, err := fit.Model(Clamp)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]struct {
		ns      int64
		inRange bool
	}{1: {7 * ms, false}, 2: {7 * ms, false}, 4: {7 * ms, false}, 8: {7 * ms, true}, 64: {28 * ms, false}} {
		if ns, inRange := model.StepNs(rows(n)); ns != want.ns || inRange != want.inRange {
			t.Errorf("%d rows: %d, %t, want %d, %t", n, ns, inRange, want.ns, want.inRange)
		}
	}
}

func TestFitRefuses(t *testing.T) {
	tests := []struct {
		name   string
		points []Point
		want   string
	}{
		{"no samples", nil, "0 samples"},
		{"one sample", decodePoints([2]int64{8, 7 * ms}), "1 samples"},
		{"equal batches", decodePoints([2]int64{8, 7 * ms}, [2]int64{8, 9 * ms}), "one shape"},
		{"falling", decodePoints([2]int64{8, 12 * ms}, [2]int64{16, 7 * ms}), "rows term is -625000 ns"},
		{"zero time", decodePoints([2]int64{8, 0}, [2]int64{16, 7}), "sample 0 takes 0 ns"},
		{"negative time", decodePoints([2]int64{8, 5}, [2]int64{16, -7}), "sample 1 takes -7 ns"},
		{"overflowing time", decodePoints([2]int64{8, 5}, [2]int64{16, math.MaxInt64}), "sample 1"},
		{"negative rows", decodePoints([2]int64{-8, 5}, [2]int64{16, 7}), "sample 0 has shape"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := FitAffine(test.points, RefuseNegative)
			refused(t, err, test.want)
		})
	}
	_, err := FitAffine(decodePoints([2]int64{1, 1}, [2]int64{2, 2}), 0)
	refused(t, err, "guard 0")
}

// TestFitFallingIsConstant: without negative terms, a falling curve becomes its mean.
func TestFitFallingIsConstant(t *testing.T) {
	fit, err := FitAffine(decodePoints([2]int64{8, 12 * ms}, [2]int64{16, 7 * ms}), NonNegative)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Coefficients{BaseNs: 9.5 * ms}); math.Abs(fit.BaseNs-want.BaseNs) > 1e-3 || fit.PerRowNs != 0 {
		t.Errorf("terms %+v, want %+v", fit.Coefficients, want)
	}
}

func TestFitRecoversTerms(t *testing.T) {
	for _, block := range []int{16, 32} {
		recovers(t, Coefficients{
			BaseNs: 5 * ms, PerRowNs: 100_000, PerFreshNs: 2_000, PerBlockNs: 700_000, PerContextNs: 3,
			BlockTokens: block,
		})
	}
}

// recovers fits samples of a law and compares the terms with it.
func recovers(t *testing.T, want Coefficients) {
	t.Helper()
	var points []Point
	for _, r := range []int{1, 2, 4, 8} {
		for _, f := range []int{8, 24, 64, 512} {
			for _, c := range []int{0, 1000, 100_000} {
				s := Shape{Rows: r, FreshTokens: f, ContextTokens: c}
				points = append(points, Point{s, int64(want.at(s))})
			}
		}
	}
	for _, guard := range []Guard{NonNegative, RefuseNegative} {
		fit, err := FitRelative(points, guard)
		if err != nil {
			t.Fatal(err)
		}
		for name, pair := range map[string][2]float64{
			"base": {fit.BaseNs, want.BaseNs}, "row": {fit.PerRowNs, want.PerRowNs},
			"fresh": {fit.PerFreshNs, want.PerFreshNs}, "context": {fit.PerContextNs, want.PerContextNs},
			"block": {fit.PerBlockNs, want.PerBlockNs},
		} {
			if math.Abs(pair[0]/pair[1]-1) > 1e-9 {
				t.Errorf("guard %d: %s term %v, want %v", guard, name, pair[0], pair[1])
			}
		}
		if fit.MaxRelative > 1e-9 || fit.Count != 48 || fit.Dropped != nil || fit.BlockTokens != want.BlockTokens {
			t.Errorf("max relative error %v of %d samples, dropped %v, blocks of %d, want about 0 of 48, none, %d",
				fit.MaxRelative, fit.Count, fit.Dropped, fit.BlockTokens, want.BlockTokens)
		}
		if want := "rows 1..8, fresh tokens 8..512, context tokens 0..100000"; fit.Valid.String() != want {
			t.Errorf("range %q, want %q", fit.Valid, want)
		}
	}
}

func TestFitResidualsAndDroppedTerms(t *testing.T) {
	// A line through (1, 10), (2, 22), (3, 28): mean 20, slope 9, base 2; fitted 11, 20, 29.
	fit, err := FitAffine(decodePoints([2]int64{1, 10}, [2]int64{2, 22}, [2]int64{3, 28}), RefuseNegative)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(fit.BaseNs-2) > 1e-9 || math.Abs(fit.PerRowNs-9) > 1e-9 {
		t.Errorf("terms %v and %v, want 2 and 9", fit.BaseNs, fit.PerRowNs)
	}
	if math.Abs(fit.MeanErrorNs-4.0/3) > 1e-9 {
		t.Errorf("mean error %v, want 4/3", fit.MeanErrorNs)
	}
	if want := (1.0/10 + 2.0/22 + 1.0/28) / 3; math.Abs(fit.MeanRelative-want) > 1e-9 {
		t.Errorf("mean relative error %v, want %v", fit.MeanRelative, want)
	}
	if math.Abs(fit.MaxRelative-0.1) > 1e-9 || fit.Worst.Shape.Rows != 1 {
		t.Errorf("largest relative error %v at %+v, want 0.1 at 1 row", fit.MaxRelative, fit.Worst)
	}
	// One fresh token a row and no context: neither can be told from the rows.
	if diff := cmp.Diff([]string{"fresh tokens", "blocks", "context tokens"}, fit.Dropped); diff != "" {
		t.Errorf("dropped terms (-want +got):\n%s", diff)
	}
}

func TestFitFlatCurveHasNoSlope(t *testing.T) {
	points := decodePoints([2]int64{1, 6 * ms}, [2]int64{3, 6 * ms}, [2]int64{7, 6 * ms})
	fit, err := FitAffine(points, RefuseNegative)
	if err != nil {
		t.Fatalf("a flat curve is not a falling one: %v", err)
	}
	if math.Abs(fit.BaseNs-6*ms) > 1e-3 || fit.PerRowNs != 0 {
		t.Errorf("terms %v and %v, want 6 ms and 0", fit.BaseNs, fit.PerRowNs)
	}
}

// TestFitRelative: samples of 1 and 100 at one shape have the mean 50.5; the constant c that makes the sum of
// (c/1 - 1)^2 and (c/100 - 1)^2 least is (1 + 1/100) / (1 + 1/100^2). A second shape, far away and the same,
// keeps the slope at 0.
func TestFitRelative(t *testing.T) {
	fit, err := FitRelative(decodePoints([2]int64{1, 1}, [2]int64{1, 100}, [2]int64{2, 1}, [2]int64{2, 100}),
		RefuseNegative)
	if err != nil {
		t.Fatal(err)
	}
	if want := 1.01 / 1.0001; math.Abs(fit.BaseNs-want) > 1e-9 || math.Abs(fit.PerRowNs) > 1e-9 {
		t.Errorf("terms %v and %v, want %v and 0", fit.BaseNs, fit.PerRowNs, want)
	}
}

// TestBlocks: 1 to 32 tokens are within the first block, 33 to 64 begin the second.
func TestBlocks(t *testing.T) {
	a, err := NewAffine(Coefficients{BaseNs: 100, PerBlockNs: 10})
	if err != nil {
		t.Fatal(err)
	}
	for fresh, want := range map[int]int64{1: 100, 32: 100, 33: 110, 64: 110, 65: 120, 512: 250} {
		if ns, _ := a.StepNs(Shape{Rows: 1, FreshTokens: fresh}); ns != want {
			t.Errorf("%d fresh tokens take %d ns, want %d", fresh, ns, want)
		}
	}
}
