package core_test

import (
	"flag"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"tokenrouter/core"
)

// hash is a keyed draw: the same key gives the same number, whatever else runs.
func hash(keys ...uint64) uint64 {
	h := uint64(0x9E3779B97F4A7C15)
	for _, k := range keys {
		hi, lo := bits.Mul64(h^k, 0xD6E8FEB86659FD93)
		h = hi ^ lo + 0xA0761D6478BD642F
	}
	return h ^ h>>29
}

func uniform(keys ...uint64) float64 { return float64(hash(keys...)>>11) / (1 << 53) }

// wander is an Algorithm whose moves hang on all that an Algorithm may look at: the draw, the
// position, and a State that counts passes, moves and tokens received.
type wander struct{ models int }

func (a wander) Route(v *core.Visit, r *core.Result) int {
	v.State[0]++
	next := int(hash(uint64(r.Draw*(1<<52)), v.State[0], v.State[1], uint64(v.Position)) % uint64(a.models+1))
	if next >= a.models || v.Models>>next&1 == 0 {
		return int(v.Model)
	}
	return next
}

func (a wander) Send(v *core.Visit, r *core.Result, peer int) bool {
	v.State[1]++
	return hash(uint64(r.Draw*(1<<52)), v.State[1], uint64(peer))%3 != 0
}

func (a wander) Receive(v *core.Visit, n int) { v.State[1] += uint64(n) << 8 }

// Enter draws the first model among those that the request may visit.
func (a wander) Enter(draw float64, models uint32) int {
	m := int(draw * float64(a.models))
	for models>>m&1 == 0 {
		m = (m + 1) % a.models
	}
	return m
}

// plainWander is wander without a Receive: most algorithms need none.
type plainWander struct{ models int }

func (a plainWander) Route(v *core.Visit, r *core.Result) int { return wander(a).Route(v, r) }

func (a plainWander) Send(v *core.Visit, r *core.Result, peer int) bool {
	return wander(a).Send(v, r, peer)
}

// forgetful is an Algorithm whose moves hang on nothing but the draw and the model: a core.Batch.
type forgetful struct{ models int }

func (a forgetful) verdict(model int, r *core.Result) core.Verdict {
	h := hash(uint64(r.Draw*(1<<52)), uint64(model))
	next := int(h % uint64(a.models+1))
	if next == a.models {
		next = model
	}
	return core.Verdict{Next: next, Keep: next == model || h>>32%3 != 0}
}

func (a forgetful) Route(v *core.Visit, r *core.Result) int {
	next := a.verdict(int(v.Model), r).Next
	if v.Models>>next&1 == 0 {
		return int(v.Model)
	}
	return next
}

func (a forgetful) Send(v *core.Visit, r *core.Result, _ int) bool {
	return a.verdict(int(v.Model), r).Keep
}

func (a forgetful) Judge(model int, results []core.Result, verdicts []core.Verdict) {
	for i := range results {
		verdicts[i] = a.verdict(model, &results[i])
	}
}

// chooser makes a random world: pick(n) is one of 0..n-1.
type chooser struct {
	pick func(n int) int
	salt uint64
}

func seeded(seed uint64) chooser {
	rng := rand.New(rand.NewPCG(seed, 1))
	return chooser{rng.IntN, seed}
}

// fromBytes lets fuzzing choose; when data ends, all choices are 0.
func fromBytes(data []byte) chooser {
	salt := uint64(0)
	for _, b := range data {
		salt = hash(salt, uint64(b))
	}
	return chooser{func(n int) int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b) % n
	}, salt}
}

func (c chooser) oneOf(values ...int) int { return values[c.pick(len(values))] }

// delay is a time outside the engines: mostly none.
func (c chooser) delay() core.Time { return core.Time(c.oneOf(0, 0, 0, 1, 4, 30)) * ms }

// config makes a random system: 1-4 models on 1-3 nodes, tiny pools, odd limits.
func (c chooser) config() (core.Config, [][]int) {
	count := 1 + c.pick(4)
	nodes := 1 + c.pick(min(3, count))
	config := core.Config{
		Algorithm: wander{count}, Admission: core.Admission(1 + c.pick(2)),
		PageTokens: c.oneOf(1, 2, 4), LiveMax: 1 + c.pick(6), ContextMax: 40,
		TokenBudget: c.oneOf(0, 0, 8, 11), Static: c.pick(6) == 5,
		Unmixed: c.pick(4) == 3, Ahead: c.pick(4) == 3, FrontNs: c.delay(),
	}
	config.Requests = config.LiveMax*2 + c.pick(4)
	switch c.pick(3) {
	case 0:
		config.Algorithm = plainWander{count}
	case 1:
		config.Algorithm = forgetful{count}
	}
	for m := range count {
		node := m % nodes
		if node == 0 && nodes > 1 && c.pick(3) == 0 {
			node = 1 // perhaps nothing is left to the front
		}
		config.Models = append(config.Models, core.Model{
			Node: node, Pages: (20 + c.pick(60)) / config.PageTokens, RowsMax: c.oneOf(0, 0, 1, 2, 3),
			TokenCalls: c.pick(5) == 4, Forgets: c.pick(5) == 4, DispatchNs: c.delay(),
		})
	}
	var b [][]int
	switch kind := c.pick(4 + 2); {
	case nodes == 1 && kind == 0:
		config.Policy = core.StepSync{}
	case nodes == 1 && kind == 1:
		config.Policy = core.ModelSync{}
	case kind == 2:
		config.Policy = core.Eager{}
	default:
		var policy core.Delayed
		policy.Thresholds, b = c.thresholds(count, config.LiveMax)
		if kind == 5 {
			policy.MaxWait = core.Time(1+c.pick(20)) * ms
		}
		config.Policy = policy
	}
	return config, b
}

// thresholds makes a random feasible set for each N, some of them by FixedThresholds.
func (c chooser) thresholds(count, liveMax int) (core.Thresholds, [][]int) {
	var rows [][]int
	for n := 1; n <= liveMax; n++ {
		row := slices.Repeat([]int{1}, count)
		for spare := n - 1; spare > 0; spare-- {
			row[c.pick(count)] += c.pick(2)
		}
		rows = append(rows, row)
	}
	table, err := core.TableThresholds(rows)
	if err != nil {
		panic(err)
	}
	return table, rows
}

// world makes a random run of a random system.
func (c chooser) world(t testing.TB) *world {
	config, b := c.config()
	w := newWorld(t, config)
	for range config.Models {
		w.step = append(w.step, core.Time(1+c.pick(9))*ms)
	}
	w.result = func(id uint64, n, position, model int) core.Result {
		key := []uint64{c.salt, id, uint64(position), uint64(model), uint64(n)}
		return core.Result{
			Token: int32(hash(key...) % 1000), LogProb: -float32(uniform(key...)),
			EOS: hash(append(key, 1)...)%16 == 0, Draw: uniform(append(key, 2)...),
		}
	}
	delays := map[[2]int]int{}
	for from := range w.nodes {
		for to := range w.nodes {
			delays[[2]int{from, to}] = c.oneOf(0, 1, 3, 40)
		}
	}
	messages := uint64(0)
	w.delay = func(from, to int) core.Time {
		messages++
		most := delays[[2]int{from, to}]
		return core.Time(hash(c.salt, messages)%uint64(most+1)) * ms
	}
	if c.pick(4) == 0 {
		w.fails = func(model int, seq uint64) bool { return hash(c.salt, uint64(model), seq, 9)%13 == 0 }
	}
	w.newsLast = c.pick(2) == 0
	c.requests(w)
	c.compare(w, b)
	return w
}

func (c chooser) requests(w *world) {
	at := core.Time(0)
	for i := range 2 + c.pick(18) {
		id := uint64(i + 1)
		at += core.Time(c.oneOf(0, 0, 1, 5, 20)) * ms
		prompt := 1 + c.pick(22)
		group := int32(c.pick(3)) // requests of a group have equal prompts
		ids := make([]int32, prompt)
		for j := range ids {
			ids[j] = -1 - int32(j) - 100*group
		}
		sub := core.Submission{
			ID: id, TokensMax: int32(1 + c.pick(20)), Draw: uniform(c.salt, id), Arrival: at,
		}
		if c.pick(2) == 0 {
			sub.Models = uint32(c.pick(1 << len(w.config.Models)))
		}
		for sub.Models != 0 && sub.Models>>sub.Entry&1 == 0 && c.pick(8) != 0 {
			sub.Entry++ // but some are malformed
		}
		if group > 0 {
			for k := range prompt / w.config.PageTokens {
				sub.Prefix = append(sub.Prefix, hash(uint64(group), uint64(k)))
			}
		}
		w.submit(at, sub, ids...)
		for range c.oneOf(0, 0, 0, 1, 2) {
			reason := core.Reason(c.oneOf(0, int(core.ClientLeft), int(core.TimedOut), int(core.StopString)))
			w.cancel(at+core.Time(c.pick(60))*ms/2, id, reason)
		}
	}
}

// compare watches every turn with a twin (same decisions), a mirror (a Scheduler that gets
// the turn's events in another order: I9, I10), and keeps the turns for a replay.
func (c chooser) compare(w *world, b [][]int) {
	twins := make([]*twin, len(w.nodes))
	mirrors := make([]*core.Scheduler, len(w.nodes))
	rng := rand.New(rand.NewPCG(c.salt, 2))
	for i := range w.nodes {
		config := w.config
		if config.LiveMax == 0 {
			config.LiveMax = config.Requests
		}
		config.Node = i
		twins[i] = newTwin(config, b)
		mirror, err := core.New(config)
		if err != nil {
			w.t.Fatal(err)
		}
		mirrors[i] = mirror
	}
	var actions core.Actions
	w.observe = func(n *node, in []core.Event, out *core.Actions) {
		in = slices.Clone(in)
		rng.Shuffle(len(in), func(a, b int) { in[a], in[b] = in[b], in[a] })
		mirrors[n.id].Turn(w.now, in, &actions)
		if got, want := text(&actions), text(out); got != want {
			w.t.Fatalf("I9: t=%d node %d: shuffled events give\n%s\nwant\n%s", w.now, n.id, got, want)
		}
		want := plain(twins[n.id].turn(w.now, in))
		if got, want := n.s.Counters(), twins[n.id].count; got != want {
			w.t.Fatalf("t=%d node %d: core counts\n%+v\nthe twin\n%+v", w.now, n.id, got, want)
		}
		if got := plain(out); !reflect.DeepEqual(got, want) {
			w.t.Fatalf("t=%d node %d: core decides\n%s\nthe twin\n%s\nof %+v\n%+v", w.now, n.id, text(got),
				text(want), in, w.config)
		}
	}
}

// plain takes away slots and pages, which are core's own business.
func plain(out *core.Actions) *core.Actions {
	p := &core.Actions{Wake: out.Wake}
	for _, a := range out.Admits {
		a.Slot = 0
		p.Admits = append(p.Admits, a)
	}
	for _, tok := range out.Tokens {
		tok.Slot = 0
		p.Tokens = append(p.Tokens, tok)
	}
	for _, l := range out.Leaves {
		l.Slot = min(l.Slot, 0)
		p.Leaves = append(p.Leaves, l)
	}
	for _, g := range out.Grants {
		p.Grants = append(p.Grants, core.Grant{Model: g.Model, Index: g.Index})
	}
	for _, l := range out.Launches {
		l.Rows = slices.Clone(l.Rows)
		for i := range l.Rows {
			l.Rows[i].Slot, l.Rows[i].Gen = 0, 0
		}
		p.Launches = append(p.Launches, l)
	}
	for _, h := range out.Sends {
		h.Slot = 0
		p.Sends = append(p.Sends, h)
	}
	p.News = append(p.News, out.News...)
	return p
}

// text is all of a turn's actions as bytes.
func text(out *core.Actions) string {
	const form = "admits %+v\ntokens %+v\nleaves %+v\ngrants %+v\n" +
		"launches %+v\nsends %+v\nnews %+v\nwake %d"
	return fmt.Sprintf(form,
		out.Admits, out.Tokens, out.Leaves, out.Grants, out.Launches, out.Sends, out.News, out.Wake)
}

var swarm = flag.Int("swarm", 600, "random runs of TestTwin")

// TestTwin: random runs of 1 to 4 models on 1 to 3 nodes, all policies, budgets, tiny pools, static
// batches, calls a token, models that forget, calls and fronts that take time, cancellations and
// failures. The twin makes the same
// decisions in every turn, shuffled turns give the same bytes (I9, I10), every invariant holds
// after each (Check), the KV that each row finds is the request's own, and everybody leaves.
func TestTwin(t *testing.T) {
	runs := *swarm
	if testing.Short() {
		runs = min(runs, 100)
	}
	for seed := range uint64(runs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			seeded(seed).world(t).run().settled()
		})
	}
}

// FuzzTurns lets the fuzzer choose system, requests, cancellations and delays. Run it with
// -fuzzminimizetime 20x: maps make coverage differ from run to run, and minimising would not end.
func FuzzTurns(f *testing.F) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 3))
		data := make([]byte, 40+rng.IntN(200))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fromBytes(data).world(t).run().settled()
	})
}
