package outcome_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
	"tokenrouter/core/route"
	"tokenrouter/sim/outcome"
)

func request(id uint64, outputTokens int32) outcome.Request {
	return outcome.Request{ID: id, Key: keyed.NewKey(1, id), PromptTokens: 10, OutputTokens: outputTokens}
}

// at fills one row: the token of the position at a model.
func at(s outcome.Source, q *outcome.Request, model int, position int32) core.Result {
	requests := []outcome.Request{*q}
	rows := []core.Row{{ID: q.ID, Start: q.PromptTokens + position - 1, Fresh: 1, Head: true}}
	results := []core.Result{{Token: 99}} // must not be seen again
	s.Fill(model, rows, requests, results)
	q.Scratch = requests[0].Scratch
	return results[0]
}

func TestUniformRoutesWithItsProbability(t *testing.T) {
	const n, p = 200_000, 0.35
	matrix, err := route.NewMatrix([][]float64{{1 - p, p}, {1, 0}}, [][]float64{{1, 0}, {1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	algorithms := map[string]core.Algorithm{"r2r": route.R2R{Threshold: 1 - p}, "matrix": matrix}
	for name, algorithm := range algorithms {
		t.Run(name, func(t *testing.T) {
			routed := 0
			q := request(3, 0)
			for position := range int32(n) {
				result := at(outcome.Uniform{}, &q, 0, position)
				routed += algorithm.Route(&core.Visit{Models: 3}, &result)
			}
			// 5 standard deviations of a binomial share.
			if share := float64(routed) / n; math.Abs(share-p) > 5*math.Sqrt(p*(1-p)/n) {
				t.Errorf("share %v, want %v", share, p)
			}
		})
	}
}

func TestUniformIsKeyed(t *testing.T) {
	a, b := request(1, 0), request(2, 0)
	seen := make(map[float64]bool)
	for _, q := range []*outcome.Request{&a, &b} {
		for model := range 3 {
			for position := range int32(100) {
				got := at(outcome.Uniform{}, q, model, position)
				if got.Score != got.Draw || got.Score < 0 || got.Score >= 1 || seen[got.Score] {
					t.Fatalf("request %d model %d position %d: %+v is not a new uniform", q.ID, model, position, got)
				}
				seen[got.Score] = true
				if again := at(outcome.Uniform{}, q, model, position); again != got {
					t.Fatalf("asked again: %+v, want %+v", again, got)
				}
				if got != (core.Result{Score: got.Score, Draw: got.Draw}) {
					t.Fatalf("%+v has other fields", got)
				}
			}
		}
	}
}

// sources are those that draw.
func sources(t testing.TB) map[string]outcome.Source {
	t.Helper()
	bursts, err := outcome.NewBursts(outcome.Bursts{RouteShare: 0.35, Easy: 0.1, Hard: 0.8, HardTokens: 12})
	if err != nil {
		t.Fatal(err)
	}
	three, err := outcome.NewModulated([]float64{0.1, 0.4, 0.9},
		[][]float64{{0.9, 0.05, 0.05}, {0.2, 0.7, 0.1}, {0.0, 0.5, 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]outcome.Source{"uniform": outcome.Uniform{}, "bursts": bursts, "three states": three}
}

func TestEndOfSequence(t *testing.T) {
	for name, s := range sources(t) {
		t.Run(name, func(t *testing.T) {
			ends, never := request(1, 5), request(1, 0)
			for position := range int32(8) {
				for model := range 2 {
					if got, want := at(s, &ends, model, position).EOS, position >= 4; got != want {
						t.Errorf("5 tokens, position %d, model %d: EOS = %v", position, model, got)
					}
					if at(s, &never, model, position).EOS {
						t.Errorf("no natural end, position %d, model %d: EOS", position, model)
					}
				}
			}
		})
	}
}

func TestRowsWithoutHeadAreEmpty(t *testing.T) {
	for name, s := range sources(t) {
		t.Run(name, func(t *testing.T) {
			requests := []outcome.Request{request(0, 4), request(1, 4)}
			rows := []core.Row{{ID: 0, Fresh: 8}, {ID: 1, Slot: 1, Fresh: 10, Head: true}}
			results := []core.Result{{Token: 7, Score: 3}, {Token: 7}}
			s.Fill(0, rows, requests, results)
			if results[0] != (core.Result{}) || results[1].Draw == 0 || results[1].Token != 0 {
				t.Errorf("results %+v, want an empty one and one with a draw only", results)
			}
		})
	}
}

func TestFillAllocatesNothing(t *testing.T) {
	for name, s := range sources(t) {
		t.Run(name, func(t *testing.T) {
			requests := []outcome.Request{request(0, 0)}
			rows := []core.Row{{Start: 9, Fresh: 1, Head: true}}
			results := make([]core.Result, 1)
			if got := testing.AllocsPerRun(1000, func() {
				rows[0].Start++
				s.Fill(0, rows, requests, results)
			}); got != 0 {
				t.Errorf("%v allocations", got)
			}
		})
	}
}

func bursts(t testing.TB, b outcome.Bursts) *outcome.Modulated {
	t.Helper()
	m, err := outcome.NewBursts(b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestBurstsHaveTheShareAndLengthsAsked(t *testing.T) {
	b := outcome.Bursts{RouteShare: 0.35, Easy: 0.1, Hard: 0.85, HardTokens: 20}
	m := bursts(t, b)
	// Share of hard positions (0.35 - 0.1) / (0.85 - 0.1) = 1/3, so easy stretches of 40.
	if got := m.Stationary(); math.Abs(got[1]-1.0/3) > 1e-12 || math.Abs(b.EasyTokens()-40) > 1e-9 {
		t.Errorf("shares %v, easy stretches %v, want 1/3 hard and 40", got, b.EasyTokens())
	}
	if math.Abs(m.RouteShare()-0.35) > 1e-12 {
		t.Errorf("route share %v, want 0.35", m.RouteShare())
	}
	const requests, positions = 2000, 400
	hard, routed, stretches, first := 0, 0, 0, 0
	for id := range uint64(requests) {
		q := request(id, 0)
		before := 0
		for position := range int32(positions) {
			state := m.State(&q, position)
			hard += state
			if position == 0 {
				first += state
			}
			if state == 1 && before == 0 {
				stretches++
			}
			before = state
			routed += int(at(m, &q, 0, position).Score)
		}
	}
	n := float64(requests * positions)
	if share := float64(hard) / n; math.Abs(share-1.0/3) > 0.01 {
		t.Errorf("share of hard positions %v, want 1/3", share)
	}
	if share := float64(first) / requests; math.Abs(share-1.0/3) > 0.05 {
		t.Errorf("share of hard first positions %v, want 1/3: the chain starts in its stationary law", share)
	}
	if share := float64(routed) / n; math.Abs(share-0.35) > 0.01 {
		t.Errorf("share routed %v, want 0.35", share)
	}
	// Stretches that the ends of an answer cut are the shorter for it: a hard one begins at
	// position 0 in 1/3 of the answers, and at the 399 others with chance 2/3 * 1/40.
	if want := requests * (1.0/3 + 399*2.0/3/40); math.Abs(float64(stretches)/want-1) > 0.03 {
		t.Errorf("%d hard stretches, want about %.0f", stretches, want)
	}
}

// The correlation of the states k positions apart is (1 - leave easy - leave hard)^k, and that
// of the verdicts is smaller by the variance of p over that of a verdict.
func TestAutocorrelation(t *testing.T) {
	m := bursts(t, outcome.Bursts{RouteShare: 0.35, Easy: 0.1, Hard: 0.85, HardTokens: 20})
	const requests, positions = 500, 1000
	decay := 1 - 1.0/40 - 1.0/20
	explained := (1.0 / 3) * (2.0 / 3) * 0.75 * 0.75 / (0.35 * 0.65)
	for _, lag := range []int{1, 5, 20} {
		sum, n := 0.0, 0.0
		for id := range uint64(requests) {
			q := request(id, 0)
			scores := make([]float64, positions)
			for p := range scores {
				scores[p] = at(m, &q, 0, int32(p)).Score - 0.35
			}
			for p := range positions - lag {
				sum += scores[p] * scores[p+lag]
				n++
			}
		}
		got, want := sum/n/(0.35*0.65), explained*math.Pow(decay, float64(lag))
		if math.Abs(got-want) > 0.03 {
			t.Errorf("correlation at lag %d is %.3f, want %.3f", lag, got, want)
		}
	}
}

func TestStatesDoNotDependOnTheOrderOfVisits(t *testing.T) {
	for name, s := range sources(t) {
		m, ok := s.(*outcome.Modulated)
		if !ok {
			continue
		}
		t.Run(name, func(t *testing.T) {
			const positions = 300
			alone := request(5, 0)
			want := make([]int, positions)
			for p := range want {
				want[p] = m.State(&alone, int32(p))
			}
			random := rand.New(rand.NewPCG(1, 2))
			q := request(5, 0)
			for _, p := range random.Perm(positions) {
				if got := m.State(&q, int32(p)); got != want[p] {
					t.Fatalf("position %d after others: state %d, want %d", p, got, want[p])
				}
			}
			// A draft that is dropped, the other model at the same position, another request
			// in the batch: none moves the chain.
			q, other := request(5, 0), request(6, 0)
			for p := range int32(positions) {
				at(m, &q, 0, p)
				at(m, &other, 0, p/2)
				at(m, &q, 1, p)
				if got := m.State(&q, p); got != want[p] {
					t.Fatalf("position %d: state %d, want %d", p, got, want[p])
				}
			}
		})
	}
}

func TestStationaryLaw(t *testing.T) {
	for _, c := range []struct {
		name       string
		transition [][]float64
		want       []float64
	}{
		{"one state", [][]float64{{1}}, []float64{1}},
		{"period two", [][]float64{{0, 1}, {1, 0}}, []float64{0.5, 0.5}},
		{"nearly decomposable", [][]float64{{1 - 1e-12, 1e-12}, {3e-12, 1 - 3e-12}}, []float64{0.75, 0.25}},
		// A ring 0 -> 1 -> 2 -> 0 that stays with 0, 1/2, 3/4: shares as mean stays 1, 2, 4.
		{"ring", [][]float64{{0, 1, 0}, {0, 0.5, 0.5}, {0.25, 0, 0.75}}, []float64{1.0 / 7, 2.0 / 7, 4.0 / 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := outcome.NewModulated(make([]float64, len(c.want)), c.transition)
			if err != nil {
				t.Fatal(err)
			}
			for s, got := range m.Stationary() {
				// 1 - 1e-12 is itself rounded, by up to 6e-17 of 1e-12.
				if math.Abs(got-c.want[s]) > 1e-3*c.want[s] {
					t.Errorf("share of state %d is %v, want %v", s, got, c.want[s])
				}
			}
		})
	}
}

func TestModulatedErrors(t *testing.T) {
	two := [][]float64{{0.9, 0.1}, {0.5, 0.5}}
	for _, c := range []struct {
		name       string
		route      []float64
		transition [][]float64
		want       string
	}{
		{"none", nil, nil, "0 routing probabilities and 0 rows"},
		{"too many", make([]float64, 17), make([][]float64, 17), "17 routing probabilities"},
		{"rows missing", []float64{0, 1, 0}, two, "3 routing probabilities and 2 rows"},
		{"above one", []float64{0, 1.5}, two, "routing probability[1] = 1.5, want 0 to 1"},
		{"not a number", []float64{math.NaN(), 1}, two, "routing probability[0] = NaN"},
		{"not square", []float64{0, 1}, [][]float64{{0.9, 0.1}, {1}}, "transition[1] has 1 values, want 2"},
		{"negative", []float64{0, 1}, [][]float64{{1.1, -0.1}, {0.5, 0.5}}, "transition[0][0] = 1.1"},
		{"sum", []float64{0, 1}, [][]float64{{0.9, 0.2}, {0.5, 0.5}}, "transition[0] sums to 1.1"},
		{"absorbing", []float64{0, 1}, [][]float64{{0.9, 0.1}, {0, 1}}, "state 0 never comes after state 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := outcome.NewModulated(c.route, c.transition)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestBurstsErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		b    outcome.Bursts
		want string
	}{
		{"nothing given", outcome.Bursts{}, "want 0 <= easy < hard <= 1"},
		{"share too high", outcome.Bursts{RouteShare: 0.9, Hard: 0.8, HardTokens: 5},
			"route share = 0.9, want above"},
		{"share too low", outcome.Bursts{RouteShare: 0.1, Easy: 0.1, Hard: 0.8, HardTokens: 5},
			"route share = 0.1"},
		{"short", outcome.Bursts{RouteShare: 0.3, Hard: 1, HardTokens: 0.5}, "hard tokens = 0.5, want 1 to 1e9"},
		{"nan", outcome.Bursts{RouteShare: math.NaN(), Hard: 1, HardTokens: 5}, "route share = NaN"},
		// 90 % hard positions in stretches of 2 leave easy stretches of 2/9 of a token; 9 would fit.
		{"no room", outcome.Bursts{RouteShare: 0.9, Hard: 1, HardTokens: 2}, "hard tokens of at least 9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := outcome.NewBursts(c.b)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func BenchmarkFill(b *testing.B) {
	names := []string{"uniform", "bursts", "three states"}
	all := sources(b)
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			const n = 32
			requests := make([]outcome.Request, n)
			rows := make([]core.Row, n)
			for i := range requests {
				requests[i] = request(uint64(i), 0)
				rows[i] = core.Row{ID: uint64(i), Slot: int32(i), Start: 9, Fresh: 1, Head: true}
			}
			results := make([]core.Result, n)
			for b.Loop() {
				for i := range rows {
					rows[i].Start++
				}
				all[name].Fill(0, slices.Clip(rows), requests, results)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
		})
	}
}
