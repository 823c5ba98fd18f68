package workload

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core/keyed"
)

// must unwraps a constructor whose arguments are known to be right.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// refused checks that err speaks of each word.
func refused(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("accepted, want an error with %q", words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q, want one with %q", err, word)
		}
	}
}

func fixedLengths() Lengths { return Lengths{Prompt: must(Fixed(100)), Output: must(Fixed(512))} }

func drain(t *testing.T, s Source) []Request {
	t.Helper()
	var requests []Request
	for {
		r, ok := s.Next()
		if !ok {
			break
		}
		requests = append(requests, r)
	}
	if err := Err(s); err != nil {
		t.Fatal(err)
	}
	return requests
}

func TestClosed(t *testing.T) {
	got := drain(t, must(NewClosed(1, 3, fixedLengths())))
	want := []Request{
		{ID: 0, PromptTokens: 100, OutputTokens: 512}, {ID: 1, PromptTokens: 100, OutputTokens: 512},
		{ID: 2, PromptTokens: 100, OutputTokens: 512},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestGaps compares mean and coefficient of variation of 100,000 gaps with the law. The standard error of
// the mean is variation/sqrt(n) of it; five are allowed. The variation itself is held to 3 %, which is
// beyond five standard errors for each of these laws.
func TestGaps(t *testing.T) {
	const n = 100_000
	tests := []struct {
		name      string
		perSecond float64
		variation float64
	}{
		{"Poisson", 10, 1}, {"bursty", 250, 2}, {"regular", 0.5, 0.1}, {"fast", 1e7, 1}, {"very slow", 1e-3, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			source := must(NewGamma(1, n, test.perSecond, test.variation, fixedLengths()))
			last, sum, squares := int64(0), 0.0, 0.0
			for {
				r, ok := source.Next()
				if !ok {
					break
				}
				gap := float64(r.ArrivalNs - last)
				if gap < 0 {
					t.Fatalf("request %d arrives %v ns before the one before", r.ID, -gap)
				}
				last = r.ArrivalNs
				sum += gap
				squares += gap * gap
			}
			if err := source.Err(); err != nil {
				t.Fatal(err)
			}
			mean, want := sum/n, 1e9/test.perSecond
			if math.Abs(mean/want-1) > 5*test.variation/math.Sqrt(n) {
				t.Errorf("mean gap %v ns, want %v +- %.2f %%", mean, want, 500*test.variation/math.Sqrt(n))
			}
			variation := math.Sqrt(squares/n-mean*mean) / mean
			if math.Abs(variation/test.variation-1) > 0.03 {
				t.Errorf("coefficient of variation %v, want %v +- 3 %%", variation, test.variation)
			}
		})
	}
}

func TestRatesRefused(t *testing.T) {
	for name, perSecond := range map[string]float64{
		"zero": 0, "negative": -1, "NaN": math.NaN(), "infinite": math.Inf(1), "above the limit": 2e7,
	} {
		_, err := NewPoisson(1, 10, perSecond, fixedLengths())
		if err == nil {
			t.Errorf("%s: rate %v accepted", name, perSecond)
			continue
		}
		refused(t, err, "arrival rate", "want above 0")
	}
	// Case 34: a gap of 1e12 s is 1e21 ns, beyond int64.
	_, err := NewPoisson(1, 10, 1e-12, fixedLengths())
	refused(t, err, "arrival rate 1e-12/s", "1e+12 s", "clock of 4.61e+09 s")
	for _, variation := range []float64{0, -1, math.NaN(), 1000} {
		_, err := NewGamma(1, 10, 1, variation, fixedLengths())
		refused(t, err, "coefficient of variation")
	}
	_, err = NewClosed(1, 0, fixedLengths())
	refused(t, err, "0 requests")
}

// TestClockDoesNotWrap: a rate whose mean gap fits may still outrun the clock, and says so.
func TestClockDoesNotWrap(t *testing.T) {
	source := must(NewPoisson(1, 1000, 1e-9, fixedLengths())) // a mean gap of 1e18 ns; the clock has 4.6e18
	last := int64(0)
	for {
		r, ok := source.Next()
		if !ok {
			break
		}
		if r.ArrivalNs < last || r.ArrivalNs > MaxArrivalNs {
			t.Fatalf("request %d arrives at %d after %d", r.ID, r.ArrivalNs, last)
		}
		last = r.ArrivalNs
	}
	refused(t, Err(source), "would arrive", "past the clock")
	if _, ok := source.Next(); ok {
		t.Error("a source that failed went on")
	}
}

// TestKeyed: what a request is does not depend on count, on other laws, or on when it is asked for.
func TestKeyed(t *testing.T) {
	lengths := Lengths{
		Prompt: must(Uniform(50, 150)), Output: must(Geometric(500, 1, 8192)), MaxTokens: 2048,
		PrefixGroups: 4, PrefixTokens: 60,
	}
	other := lengths
	other.Output = must(Uniform(1, 10))
	base := drain(t, must(NewPoisson(7, 500, 10, lengths)))
	again := drain(t, must(NewPoisson(7, 500, 10, lengths)))
	longer := drain(t, must(NewPoisson(7, 1000, 10, lengths)))
	changed := drain(t, must(NewPoisson(7, 500, 10, other)))
	closed := drain(t, must(NewClosed(7, 500, lengths)))
	otherSeed := drain(t, must(NewPoisson(8, 500, 10, lengths)))
	if diff := cmp.Diff(base, again); diff != "" {
		t.Errorf("the same source twice (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(base, longer[:500]); diff != "" {
		t.Errorf("a longer run begins otherwise (-short +long):\n%s", diff)
	}
	equal := 0
	for i := range base {
		if base[i].ArrivalNs != changed[i].ArrivalNs || base[i].PromptTokens != changed[i].PromptTokens {
			t.Fatalf("request %d: another output law moved arrival or prompt: %+v, %+v", i, base[i], changed[i])
		}
		if base[i].OutputTokens != closed[i].OutputTokens || base[i].PromptTokens != closed[i].PromptTokens {
			t.Fatalf("request %d: the loop changed its lengths: %+v, %+v", i, base[i], closed[i])
		}
		if base[i].OutputTokens == otherSeed[i].OutputTokens {
			equal++
		}
	}
	if equal > 25 {
		t.Errorf("%d of 500 output lengths are equal under another seed", equal)
	}
}

// TestLengthMeans compares the mean of 100,000 draws with the law: five standard errors.
func TestLengthMeans(t *testing.T) {
	const n = 100_000
	tests := []struct {
		name            string
		length          Length
		mean, deviation float64
	}{
		{"fixed", must(Fixed(512)), 512, 0},
		{"uniform", must(Uniform(1, 9)), 5, math.Sqrt(80.0 / 12)},
		{"uniform over all", must(Uniform(1, math.MaxInt32)), 1 << 30, (1 << 31) / math.Sqrt(12)},
		{"geometric", must(Geometric(500, 1, math.MaxInt32)), 500, 500},
		{"geometric of mean 1", must(Geometric(1, 1, 10)), 1, 0},
		{"lognormal by mean", must(LognormalMean(800, 0.5, 1, math.MaxInt32)), 800,
			800 * math.Sqrt(math.Exp(0.25)-1)},
		{"lognormal by median", must(LognormalMedian(800, 0.5, 1, math.MaxInt32)), 800 * math.Exp(0.125),
			800 * math.Exp(0.125) * math.Sqrt(math.Exp(0.25)-1)},
		{"lognormal of sigma 0", must(LognormalMedian(77, 0, 1, 100)), 77, 0},
		{"empirical", must(Empirical([]int32{1, 1, 1, 5})), 2, math.Sqrt(3)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			sum := 0.0
			least, greatest := test.length.Bounds()
			if got := test.length.Mean(math.MaxInt32); math.Abs(got/test.mean-1) > 1e-3 {
				t.Errorf("Mean() = %v, want %v", got, test.mean)
			}
			for i := range uint64(n) {
				tokens := test.length.Draw(keyed.NewKey(3, i), keyed.Length)
				if tokens < least || tokens > greatest {
					t.Fatalf("draw %d = %d, want %d to %d", i, tokens, least, greatest)
				}
				sum += float64(tokens)
			}
			if tolerance := 5*test.deviation/math.Sqrt(n) + 1e-9; math.Abs(sum/n-test.mean) > tolerance {
				t.Errorf("mean %v, want %v +- %v", sum/n, test.mean, tolerance)
			}
		})
	}
}

// TestBoundsMoveDraws: draws outside the bounds land on them.
func TestBoundsMoveDraws(t *testing.T) {
	for name, length := range map[string]Length{
		"geometric": must(Geometric(1e9, 10, 20)), "lognormal": must(LognormalMedian(1e9, 10, 10, 20)),
	} {
		atGreatest := 0
		for i := range uint64(1000) {
			tokens := length.Draw(keyed.NewKey(1, i), keyed.Length)
			if tokens < 10 || tokens > 20 {
				t.Fatalf("%s: draw %d, want 10 to 20", name, tokens)
			}
			if tokens == 20 {
				atGreatest++
			}
		}
		if atGreatest < 900 {
			t.Errorf("%s: %d of 1000 draws at the bound, want nearly all", name, atGreatest)
		}
	}
}

func TestLengthsRefused(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"fixed 0", second(Fixed(0)), "fixed length 0"},
		{"fixed -1", second(Fixed(-1)), "fixed length -1"},
		{"uniform reversed", second(Uniform(9, 1)), "from 9 to 1"},
		{"uniform from 0", second(Uniform(0, 1)), "from 0 to 1"},
		{"geometric mean below 1", second(Geometric(0.5, 1, 9)), "mean 0.5"},
		{"geometric NaN", second(Geometric(math.NaN(), 1, 9)), "mean NaN"},
		{"geometric bounds", second(Geometric(5, 0, 9)), "from 0 to 9"},
		{"lognormal mean", second(LognormalMean(math.Inf(1), 1, 1, 9)), "mean +Inf"},
		{"lognormal median", second(LognormalMedian(-5, 1, 1, 9)), "median -5"},
		{"lognormal sigma", second(LognormalMedian(5, -1, 1, 9)), "sigma -1"},
		{"lognormal sigma NaN", second(LognormalMean(5, math.NaN(), 1, 9)), "sigma NaN"},
		{"empirical empty", second(Empirical(nil)), "none given"},
		{"empirical 0", second(Empirical([]int32{5, 0})), "length[1] = 0"},
		{"no prompt", second(NewClosed(1, 1, Lengths{Output: must(Fixed(1))})), "no prompt length"},
		{"never ends", second(NewClosed(1, 1, Lengths{Prompt: must(Fixed(1))})), "no request would ever end"},
		{"max tokens", second(NewClosed(1, 1, Lengths{Prompt: must(Fixed(1)), MaxTokens: -1})), "max tokens = -1"},
		{"prefix without groups", second(NewClosed(1, 1,
			Lengths{Prompt: must(Fixed(1)), MaxTokens: 1, PrefixTokens: 1})), "no prefix groups"},
		{"groups without prefix", second(NewClosed(1, 1,
			Lengths{Prompt: must(Fixed(1)), MaxTokens: 1, PrefixGroups: 1})), "prefix tokens = 0"},
		{"negative prefix", second(NewClosed(1, 1,
			Lengths{Prompt: must(Fixed(1)), MaxTokens: 1, PrefixTokens: -1})), "prefix tokens = -1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { refused(t, test.err, test.want) })
	}
}

func second[T any](_ T, err error) error { return err }

func TestPrefixes(t *testing.T) {
	source := must(NewClosed(1, 4000, Lengths{
		Prompt: must(Uniform(1, 100)), MaxTokens: 10, PrefixGroups: 4, PrefixTokens: 50,
	}))
	var members [5]int
	for _, r := range drain(t, source) {
		if r.PrefixGroup < 1 || r.PrefixGroup > 4 {
			t.Fatalf("request %d in group %d, want 1 to 4", r.ID, r.PrefixGroup)
		}
		members[r.PrefixGroup]++
		if want := min(50, r.PromptTokens); r.PrefixTokens != want {
			t.Fatalf("request %d of %d prompt tokens shares %d, want %d", r.ID, r.PromptTokens, r.PrefixTokens, want)
		}
	}
	for group, count := range members[1:] { // binomial: 1000 +- 27.4; five deviations
		if count < 863 || count > 1137 {
			t.Errorf("group %d has %d members, want 1000 +- 137", group+1, count)
		}
	}
}

func TestEndTokens(t *testing.T) {
	tests := []struct {
		name          string
		natural, most int32
		want          int32
	}{
		{"natural end first", 100, 200, 100}, {"limit first", 200, 100, 100}, {"no limit", 100, 0, 100},
		{"never ends by itself", 0, 64, 64}, {"both at once", 64, 64, 64},
	}
	for _, test := range tests {
		if got := (Request{OutputTokens: test.natural, MaxTokens: test.most}).EndTokens(); got != test.want {
			t.Errorf("%s: ends after %d, want %d", test.name, got, test.want)
		}
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	source := must(NewGamma(1, Endless, 10, 2, Lengths{
		Prompt: must(LognormalMean(100, 0.5, 1, 1000)), Output: must(Geometric(500, 1, 8192)),
	}))
	if allocations := testing.AllocsPerRun(1000, func() { source.Next() }); allocations != 0 {
		t.Errorf("%v allocations a request, want 0", allocations)
	}
}

func BenchmarkPoisson(b *testing.B) {
	source := must(NewPoisson(1, Endless, 1e6, fixedLengths()))
	for b.Loop() {
		source.Next()
	}
}
