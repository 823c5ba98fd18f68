package exec_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/route"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/workload"
)

// scenario is a system and its world, for the simulator and for the executor.
type scenario struct {
	core     core.Config // of every node, but for Node
	latency  []latency.Model
	outcome  outcome.Source
	requests []workload.Request
	closed   bool
	seed     uint64
	links    map[[2]int]latency.Link
}

// list is a workload.Source of given requests.
type list struct{ left []workload.Request }

func (l *list) Next() (r workload.Request, ok bool) {
	if len(l.left) == 0 {
		return r, false
	}
	r, l.left = l.left[0], l.left[1:]
	return r, true
}

func (s *scenario) nodes() int {
	count := 1
	for _, m := range s.core.Models {
		count = max(count, m.Node+1)
	}
	return count
}

// placements are the nodes of three models, of which two may be used.
var placements = map[string][]int{
	"one node":        {0, 0, 0},
	"a node a model":  {0, 1, 2},
	"large ones away": {0, 1, 1},
	"front alone":     {1, 2, 1},
}

// policies are made for a number of models and a LiveMax.
var policies = map[string]func(rng *rand.Rand, models, liveMax int, unit core.Time) core.Policy{
	"step-sync":  func(*rand.Rand, int, int, core.Time) core.Policy { return core.StepSync{} },
	"model-sync": func(*rand.Rand, int, int, core.Time) core.Policy { return core.ModelSync{} },
	"eager":      func(*rand.Rand, int, int, core.Time) core.Policy { return core.Eager{} },
	"delayed": func(rng *rand.Rand, models, liveMax int, _ core.Time) core.Policy {
		return core.Delayed{Thresholds: fixed(rng, models, liveMax)}
	},
	"delayed by a table": func(rng *rand.Rand, models, liveMax int, _ core.Time) core.Policy {
		var rows [][]int
		for n := range liveMax {
			rows = append(rows, feasible(rng, models, n+1))
		}
		return core.Delayed{Thresholds: must(core.TableThresholds(rows))}
	},
	"delayed with a maximum wait": func(rng *rand.Rand, models, liveMax int, unit core.Time) core.Policy {
		return core.Delayed{Thresholds: fixed(rng, models, liveMax), MaxWait: unit * (1 + rng.Int64N(4))}
	},
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func fixed(rng *rand.Rand, models, liveMax int) core.Thresholds {
	return must(core.FixedThresholds(feasible(rng, models, liveMax), liveMax))
}

// feasible is a random feasible set of thresholds for n live requests.
func feasible(rng *rand.Rand, models, n int) []int {
	b := slices.Repeat([]int{1}, models)
	for range n - 1 {
		b[rng.IntN(models)] += rng.IntN(2)
	}
	return b
}

// randomScenario is a small system with odd limits: tiny pools, budgets, shared prefixes, and
// times of a few units, so that many things happen at the same instant.
func randomScenario(seed uint64, policy string, nodes []int) *scenario {
	rng := rand.New(rand.NewPCG(seed, 11))
	oneOf := func(values ...int) int { return values[rng.IntN(len(values))] }
	s := &scenario{seed: seed, links: map[[2]int]latency.Link{}, closed: rng.IntN(4) == 0}
	unit := core.Time(oneOf(1, 1000, 1_000_000))
	if s.closed {
		unit = max(unit, 1000) // a client's answer takes the executor a few ns
	}
	const promptMax, outputMax = 24, 20
	liveMax := 2 + rng.IntN(5)
	s.core = core.Config{
		Policy: policies[policy](rng, len(nodes), liveMax, unit), Admission: core.Admission(oneOf(1, 2)),
		Requests: 4*liveMax + 2, LiveMax: liveMax, ContextMax: promptMax + outputMax - oneOf(0, 4, 12),
		PageTokens: oneOf(1, 2, 4), TokenBudget: oneOf(0, 0, 8, 16), Static: rng.IntN(6) == 0,
		Unmixed: rng.IntN(4) == 0, Ahead: rng.IntN(4) == 0, FrontNs: unit * core.Time(oneOf(0, 0, 1, 5)),
	}
	s.core.Algorithm = randomAlgorithm(rng, len(nodes))
	alone := (promptMax+outputMax)/s.core.PageTokens + 1
	for i, node := range nodes {
		s.core.Models = append(s.core.Models, core.Model{
			Name: fmt.Sprintf("m%d", i), Node: node, Pages: alone + rng.IntN(alone*oneOf(1, 3)),
			RowsMax: oneOf(0, 0, 1, 3), TokenCalls: rng.IntN(5) == 0, Forgets: rng.IntN(5) == 0,
			DispatchNs: unit * core.Time(oneOf(0, 0, 1, 3)),
		})
		s.latency = append(s.latency, randomLatency(rng, unit))
	}
	for from := range s.nodes() {
		for to := range s.nodes() {
			bytesPerSecond := []float64{math.Inf(1), 40 * 1e9 / float64(unit)}[rng.IntN(2)]
			s.links[[2]int{from, to}] = must(latency.NewLink(unit*int64(oneOf(1, 2, 3, 9)), bytesPerSecond))
		}
	}
	s.outcome = outcome.Uniform{}
	if rng.IntN(3) == 0 {
		s.outcome = must(outcome.NewModulated([]float64{0.1, 0.8}, [][]float64{{0.7, 0.3}, {0.4, 0.6}}))
	}
	s.requests = randomRequests(rng, seed, unit, promptMax, outputMax)
	return s
}

func randomAlgorithm(rng *rand.Rand, models int) core.Algorithm {
	switch {
	case rng.IntN(3) == 0:
		return must(route.NewME([]float64{0.5, 0.3, 0.2}[:models]))
	case models == 3:
		return must(route.NewMatrix(
			[][]float64{{0.5, 0.3, 0.2}, {0.6, 0.2, 0.2}, {0.3, 0.3, 0.4}},
			[][]float64{{1, 0, 0}, {1, 1, 0}, {1, 1, 1}},
		))
	case rng.IntN(2) == 0:
		return route.CITER{Threshold: 0.4}
	default:
		return route.R2R{Threshold: 0.65}
	}
}

func randomLatency(rng *rand.Rand, unit core.Time) latency.Model {
	if rng.IntN(2) == 0 {
		return must(latency.NewConstant(unit * (1 + rng.Int64N(5))))
	}
	model := must(latency.NewAffine(latency.Coefficients{
		BaseNs: float64(unit), PerRowNs: float64(unit) / 2, PerFreshNs: float64(unit) / 8,
		PerContextNs: float64(unit) / 16,
	}))
	return must(latency.NewOverhead(model, latency.Host{CallNs: unit * rng.Int64N(2)}))
}

// randomRequests come at once, in clusters, or by a law of the workload package.
func randomRequests(
	rng *rand.Rand, seed uint64, unit core.Time, promptMax, outputMax int32,
) []workload.Request {
	lengths := workload.Lengths{
		Prompt: must(workload.Uniform(1, promptMax)), Output: must(workload.Geometric(8, 1, outputMax)),
		PrefixGroups: 2, PrefixTokens: 12, MaxTokens: []int32{0, outputMax - 5}[rng.IntN(2)],
	}
	perSecond := min(1e9/float64(10*unit), workload.MaxPerSecond)
	source := must(workload.NewGamma(seed, 14, perSecond, 1.5, lengths))
	var requests []workload.Request
	for r, ok := source.Next(); ok; r, ok = source.Next() {
		requests = append(requests, r)
	}
	if clustered := rng.IntN(2) == 0; clustered {
		for i := range requests {
			requests[i].ArrivalNs = unit * int64(i/3*7)
		}
	}
	return requests
}

// eachScenario calls do with every policy and placement, for 2 and 3 models: a barrier needs
// one node.
func eachScenario(t *testing.T, seeds uint64, do func(t *testing.T, s *scenario)) {
	for policy := range policies {
		for place, nodes := range placements {
			barrier := policy == "step-sync" || policy == "model-sync"
			if barrier && place != "one node" {
				continue
			}
			for _, models := range []int{2, 3} {
				t.Run(fmt.Sprintf("%s/%s/%d models", policy, place, models), func(t *testing.T) {
					for seed := range seeds {
						do(t, randomScenario(seed, policy, nodes[:models]))
					}
				})
			}
		}
	}
}
