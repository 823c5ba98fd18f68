package cpu

import (
	"errors"
	"math"
	"slices"
	"sort"
	"syscall"
	"testing"
)

func statisticsOfRow(t *testing.T, p Path, z []float32) statistics {
	t.Helper()
	all, err := reduce(threads(t, 1), p, 1, z)
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func checkStatistics(t *testing.T, got, want statistics) {
	t.Helper()
	if got.token != want.token || got.finite != want.finite || got.maxLogit != want.maxLogit {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for _, v := range []struct {
		name      string
		got, want float64
		scale     float64
	}{
		{"log-sum-exp", got.logSumExp, want.logSumExp, max(1, math.Abs(want.logSumExp))},
		{"entropy", got.entropy, want.entropy, 1},
		{"top probability", got.topProbability, want.topProbability, 1},
		{"margin", got.margin, want.margin, 1},
	} {
		if !(math.Abs(v.got-v.want) <= statisticsTolerance()*v.scale) {
			t.Fatalf("%s = %v, want %v", v.name, v.got, v.want)
		}
	}
}

func TestStatisticsAgainstDouble(t *testing.T) {
	onEachPath(t, func(t *testing.T, p Path) {
		for _, v := range []int{1, 2, 15, 16, 17, 256, 1023, 1024, 1025, 4097, 49152, 151936} {
			for _, deviation := range []float64{0.01, 2, 30} {
				z := normals(source(uint64(v)), v, deviation)
				want, err := reduceReference(z)
				if err != nil {
					t.Fatal(err)
				}
				checkStatistics(t, statisticsOfRow(t, p, z), want)
			}
		}
	})
}

// TestStatisticsByHand has rows whose statistics follow on paper.
func TestStatisticsByHand(t *testing.T) {
	low := float32(math.Inf(-1))
	constant := func(n int, z float32) []float32 { return slices.Repeat([]float32{z}, n) }
	twoOf := constant(151936, low)
	twoOf[70000], twoOf[5] = 3, 3
	oneOf := constant(151936, low)
	oneOf[151935] = -1000
	v := math.Log(151936)
	cases := []struct {
		name string
		z    []float32
		want statistics
	}{
		{"one token", []float32{7}, statistics{0, true, 7, 7, 0, 1, 1}},
		{"uniform", constant(151936, 2), statistics{0, true, 2, 2 + v, 1, 1 / 151936.0, 0}},
		{"one-hot with -Inf", oneOf, statistics{151935, true, -1000, -1000, 0, 1, 1}},
		{"two equal, rest -Inf", twoOf, statistics{5, true, 3, 3 + math.Ln2, math.Ln2 / v, 0.5, 0}},
		// p = (3/4, 1/4): entropy (2 ln 2 - 3/4 ln 3) / ln 2.
		{"three to one", []float32{0, float32(math.Log(3))},
			statistics{1, true, float64(float32(math.Log(3))), math.Log(4), 0.811278124, 0.75, 0.5}},
		{"far apart", []float32{-3e38, 3e38, 0},
			statistics{1, true, float64(float32(3e38)), float64(float32(3e38)), 0, 1, 1}},
	}
	onEachPath(t, func(t *testing.T, p Path) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { checkStatistics(t, statisticsOfRow(t, p, c.z), c.want) })
		}
	})
}

// TestStatisticsUnsound: a row with NaN or +Inf, or of nothing but -Inf, says so; others beside it do not.
func TestStatisticsUnsound(t *testing.T) {
	const v = 5000
	w := threads(t, 2)
	onEachPath(t, func(t *testing.T, p Path) {
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
			for _, at := range []int{0, 17, 1023, 1024, 4999} {
				z := normals(source(1), 3*v, 1)
				z[v+at] = bad
				all, err := reduce(w, p, 3, z)
				if err != nil {
					t.Fatal(err)
				}
				if s := all[1]; s.finite || s.token != -1 || s.entropy == s.entropy {
					t.Errorf("%v at %d: %+v, want an unsound row", bad, at, s)
				}
				if !all[0].finite || !all[2].finite {
					t.Errorf("%v at %d reaches other rows", bad, at)
				}
			}
		}
		if s := statisticsOfRow(t, p, slices.Repeat([]float32{float32(math.Inf(-1))}, v)); s.finite {
			t.Errorf("nothing but -Inf: %+v, want an unsound row", s)
		}
	})
}

// TestStatisticsSameForAnyThreads: alone or with others, on any number of threads, the same bits.
func TestStatisticsSameForAnyThreads(t *testing.T) {
	const v, rows = 10000, 5
	z := normals(source(3), rows*v, 3)
	onEachPath(t, func(t *testing.T, p Path) {
		want := make([]statistics, rows)
		for row := range rows {
			want[row] = statisticsOfRow(t, p, z[row*v:(row+1)*v])
		}
		for n := 1; n <= 3; n++ {
			got, err := reduce(threads(t, n), p, rows, z)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%d threads: %+v, %v, want %+v", n, got, err, want)
			}
		}
	})
}

// sorted lists tokens by logit, equals by token.
func sorted(z []float32) []int32 {
	tokens := make([]int32, 0, len(z))
	for i, f := range z {
		if f > float32(math.Inf(-1)) {
			tokens = append(tokens, int32(i))
		}
	}
	sort.SliceStable(tokens, func(a, b int) bool { return z[tokens[a]] > z[tokens[b]] })
	return tokens
}

func TestTop(t *testing.T) {
	onEachPath(t, func(t *testing.T, p Path) {
		for _, v := range []int{1, 16, 100, 5000} {
			z := normals(source(uint64(v)), v, 1)
			for i := range z {
				z[i] = float32(math.Round(float64(z[i])*8) / 8) // many equals
				if i%5 == 1 {
					z[i] = float32(math.Inf(-1))
				}
			}
			want := sorted(z)
			for _, k := range []int{0, 1, 2, 7, 50, 5001} {
				tokens, logits, err := top(p, z, k)
				if err != nil {
					t.Fatal(err)
				}
				if expected := want[:min(k, len(want))]; !slices.Equal(tokens, expected) {
					t.Fatalf("V = %d, k = %d: %v, want %v", v, k, tokens, expected)
				}
				for i, token := range tokens {
					if logits[i] != z[token] {
						t.Fatalf("logit of %d is %v, want %v", token, logits[i], z[token])
					}
				}
			}
		}
	})
}

// TestSampleByHand: p = (0.1, 0.2, 0.3, 0.4) at temperature 1. A draw of u lands where the kept masses, in
// their order, first exceed u of their sum.
func TestSampleByHand(t *testing.T) {
	z := make([]float32, 4)
	for i := range z {
		z[i] = float32(math.Log(float64(i+1) / 10))
	}
	all := sampling{1, 0, 1, 0}
	cases := []struct {
		name string
		s    sampling
		u    float64
		want int
	}{
		{"greedy", sampling{0, 0, 1, 0}, 0, 3},
		{"all, first", all, 0, 0},
		{"all, 0.09", all, 0.09, 0},
		{"all, 0.11", all, 0.11, 1},
		{"all, 0.29", all, 0.29, 1},
		{"all, 0.61", all, 0.61, 3},
		{"all, last", all, 1, 3},
		{"top 1", sampling{1, 1, 1, 0}, 0.99, 3},
		{"top 2, best first", sampling{1, 2, 1, 0}, 0.57, 3}, // 4/7 = 0.5714
		{"top 2, then the next", sampling{1, 2, 1, 0}, 0.58, 2},
		{"mass 0.4 needs one", sampling{1, 0, 0.39, 0}, 0.99, 3},
		{"mass 0.5 needs two", sampling{1, 0, 0.5, 0}, 0.99, 2},
		{"mass 0.8 needs three", sampling{1, 0, 0.8, 0}, 0.99, 1},
		{"half the best", sampling{1, 0, 1, 0.49}, 0, 1},
		{"three quarters of the best and more", sampling{1, 0, 1, 0.76}, 0, 3},
		{"mass of the top 2: 4/7 needs one", sampling{1, 2, 0.57, 0}, 0.99, 3},
		{"mass of the top 2: 3/5 needs two", sampling{1, 2, 0.6, 0}, 0.99, 2},
		{"cold", sampling{0.01, 0, 1, 0}, 0.999, 3},
		// Temperature 1/2 squares: (1, 4, 9, 16) / 30.
		{"temperature 1/2, 0.16", sampling{0.5, 0, 1, 0}, 0.16, 1},
		{"temperature 1/2, 0.17", sampling{0.5, 0, 1, 0}, 0.17, 2},
	}
	onEachPath(t, func(t *testing.T, p Path) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				random := uint64(math.MaxUint64)
				if c.u < 1 {
					random = uint64(math.Ldexp(c.u, 64))
				}
				if got, err := sample(p, z, z[3], c.s, random); err != nil || got != c.want {
					t.Errorf("token %d, %v, want %d", got, err, c.want)
				}
			})
		}
	})
}

// TestSampleLaw: frequencies over a vocabulary of several chunks follow the law, and a token of no
// probability never comes.
func TestSampleLaw(t *testing.T) {
	const v, draws = 9000, 4000
	z := slices.Repeat([]float32{float32(math.Inf(-1))}, v)
	law := map[int]float64{3: 0.5, 4100: 0.25, 8999: 0.25}
	for token, p := range law {
		z[token] = float32(math.Log(p)) + 20
	}
	onEachPath(t, func(t *testing.T, p Path) {
		for _, s := range []sampling{{1, 0, 1, 0}, {1, 50, 1, 0}, {1, 0, 0.9, 0}, {1, 9000, 0.999, 0.1}} {
			r, counts := source(4), map[int]int{}
			for range draws {
				token, err := sample(p, z, z[3], s, r.Uint64())
				if err != nil {
					t.Fatal(err)
				}
				counts[token]++
			}
			for token, probability := range law {
				// Five deviations of a binomial count.
				miss := math.Abs(float64(counts[token]) - draws*probability)
				if miss > 5*math.Sqrt(draws*probability*(1-probability)) {
					t.Errorf("%+v: token %d came %d times of %d, want about %v", s, token, counts[token], draws,
						draws*probability)
				}
			}
			if len(counts) != len(law) {
				t.Errorf("%+v: tokens %v, want those of %v", s, counts, law)
			}
		}
	})
}

// TestSampleMassBeyondFirstLook: a flat law needs many candidates for its mass.
func TestSampleMassBeyondFirstLook(t *testing.T) {
	const v = 1000
	z := make([]float32, v)
	onEachPath(t, func(t *testing.T, p Path) {
		// 0.9 of 1000 equals are the tokens 0 to 899; u close to 1 draws the last.
		if got, err := sample(p, z, 0, sampling{1, 0, 0.9, 0}, math.MaxUint64); err != nil || got != 899 {
			t.Errorf("token %d, %v, want 899", got, err)
		}
	})
}

func TestSampleMisuse(t *testing.T) {
	nan := float32(math.NaN())
	for _, s := range []sampling{{-1, 0, 1, 0}, {nan, 0, 1, 0}, {1e-7, 0, 1, 0}, {1, -1, 1, 0}, {1, 0, 0, 0},
		{1, 0, 1.1, 0}, {1, 0, nan, 0}, {1, 0, 1, -0.1}, {1, 0, 1, nan}} {
		if _, err := sample(Plain, make([]float32, 4), 0, s, 0); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%+v: %v, want EINVAL", s, err)
		}
	}
}
