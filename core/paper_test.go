package core_test

import (
	"math"
	"slices"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/route"
)

// Tests of this file carry a sentence of the TokenRouter paper (arXiv 2610.12242) each, in
// our own words; the section is named.

// witness is an Algorithm that follows a record and writes down what it is asked.
type witness struct {
	route.Recorded
	routed   *[]core.Visit
	sent     *[]int
	received *[]int
}

func (a witness) Route(v *core.Visit, r *core.Result) int {
	*a.routed = append(*a.routed, *v)
	return a.Recorded.Route(v, r)
}

func (a witness) Send(v *core.Visit, r *core.Result, peer int) bool {
	*a.sent = append(*a.sent, peer)
	return a.Recorded.Send(v, r, peer)
}

func (a witness) Receive(v *core.Visit, n int) { *a.received = append(*a.received, n) }

// recorded plays requests of one record each: what their passes give, in order.
func recorded(t testing.TB, config core.Config, steps []core.Time, passes map[uint64][]core.Result) *world {
	t.Helper()
	if config.Algorithm == nil {
		config.Algorithm = route.Recorded{}
	}
	w := newWorld(t, config, steps...)
	w.result = func(id uint64, n, _, _ int) core.Result { return passes[id][n] }
	for id, of := range passes {
		tokens := int32(0)
		for _, r := range of {
			if !r.Drop {
				tokens++
			}
		}
		w.submit(0, core.Submission{ID: id, TokensMax: tokens}, 1, 2, 3)
	}
	return w
}

// at lists the launches of a model: when, and of which requests.
type launched struct {
	at  core.Time
	ids []uint64
}

func (w *world) launches(m int) *[]launched {
	var all []launched
	before := w.observe
	w.observe = func(n *node, in []core.Event, out *core.Actions) {
		if before != nil {
			before(n, in, out)
		}
		for _, l := range out.Launches {
			if l.Model == m {
				one := launched{at: w.now / ms}
				for _, row := range l.Rows {
					one.ids = append(one.ids, row.ID)
				}
				slices.Sort(one.ids)
				all = append(all, one)
			}
		}
	}
	return &all
}

func (l launched) equal(o launched) bool { return l.at == o.at && slices.Equal(l.ids, o.ids) }

func wantLaunches(t *testing.T, got []launched, want ...launched) {
	t.Helper()
	if !slices.EqualFunc(got, want, launched.equal) {
		t.Errorf("launches %v, want %v", got, want)
	}
}

// stay, toLarge, toSmall and draft are passes of a record.
var (
	stayHere = core.Result{Token: 10}
	toLarge  = core.Result{Token: 11, Next: llm}
	stayLLM  = core.Result{Token: 20, Next: llm}
	toSmall  = core.Result{Token: 21}
	draft    = core.Result{Token: 99, Next: llm, Drop: true}
)

// Section 1.
func TestStepsOfDifferentLengthAreSynchronisedAndTheFastModelIdles(t *testing.T) {
	passes := map[uint64][]core.Result{1: {stayHere, stayHere, stayHere, stayHere}, 2: {toLarge, stayLLM}}
	for _, c := range []struct {
		policy core.Policy
		second core.Time // start of the SLM's third step
	}{{core.StepSync{}, 45}, {core.Eager{}, 20}} {
		w := recorded(t, core.Config{Models: models(2), Policy: c.policy}, []core.Time{10 * ms, 35 * ms}, passes)
		small := w.launches(slm)
		w.run().settled()
		if got := (*small)[2].at; got != c.second {
			t.Errorf("%T: the SLM's third step starts at %d, want %d", c.policy, got, c.second)
		}
	}
}

// Section 1.
func TestRoutedRequestsThatArriveWhileTheOtherModelIsBusyMissItsBatchAndFragmentIt(t *testing.T) {
	passes := map[uint64][]core.Result{
		1: {toLarge, toSmall, stayHere}, 2: {stayHere, toLarge, toSmall, stayHere}, 3: {stayHere, stayHere,
			stayHere, stayHere, stayHere, stayHere},
	}
	steps := []core.Time{10 * ms, 35 * ms}
	w := recorded(t, core.Config{Models: models(2), Policy: core.Eager{}}, steps, passes)
	large := w.launches(llm)
	w.run().settled()
	wantLaunches(t, *large, launched{10, []uint64{1}}, launched{45, []uint64{2}})
	w = recorded(t, core.Config{Models: models(2), Policy: core.Delayed{Thresholds: fixed(t, 3, 1, 2)}}, steps,
		passes)
	large = w.launches(llm)
	w.run().settled()
	wantLaunches(t, *large, launched{20, []uint64{1, 2}})
}

// Section 2.
func TestRouteIsCalledAfterEveryForwardPassPrefillIncludedForEachRequestOfTheBatch(t *testing.T) {
	var routed []core.Visit
	a := witness{routed: &routed, sent: new([]int), received: new([]int)}
	passes := map[uint64][]core.Result{1: {stayHere, draft, toSmall, stayHere}, 2: {stayHere, stayHere}}
	// The prompt is fed in two chunks: the first has no token to judge.
	config := core.Config{Models: models(2), Policy: core.Eager{}, Algorithm: a, PageTokens: 1, TokenBudget: 2}
	w := recorded(t, config, []core.Time{10 * ms, 35 * ms}, passes)
	w.run().settled()
	calls := map[uint64][][2]int{}
	for _, v := range routed {
		calls[v.ID] = append(calls[v.ID], [2]int{int(v.Position), int(v.Model)})
	}
	if want := [][2]int{{0, slm}, {1, slm}, {1, llm}, {2, slm}}; !slices.Equal(calls[1], want) {
		t.Errorf("route is asked about request 1 at (position, model) %v, want %v", calls[1], want)
	}
	if want := [][2]int{{0, slm}, {1, slm}}; !slices.Equal(calls[2], want) {
		t.Errorf("route is asked about request 2 at (position, model) %v, want %v", calls[2], want)
	}
}

// Section 2.
func TestSendMayLeaveTheTokenJustSampledOutSoThatThePeerMakesItAgain(t *testing.T) {
	w := recorded(t, core.Config{Models: models(2), Policy: core.Eager{}}, []core.Time{10 * ms, 35 * ms},
		map[uint64][]core.Result{1: {draft, toSmall}, 2: {toLarge, toSmall}})
	w.run().settled()
	if !slices.Equal(w.answers[1], []int32{21}) || !slices.Equal(w.answers[2], []int32{11, 21}) {
		t.Errorf("answers %v, want [21] (dropped) and [11 21] (kept)", w.answers)
	}
}

// Section 2.
func TestTheMessageHasTheRequestTheSuffixThatThePeerHasNotSeenAndAPositionAnchor(t *testing.T) {
	w := recorded(t, twoNodes(), []core.Time{10 * ms, 35 * ms}, map[uint64][]core.Result{
		4: {stayHere, stayHere, draft, toSmall, stayHere, draft, toSmall, stayHere},
	})
	var sends []core.Handoff
	w.observe = func(_ *node, _ []core.Event, out *core.Actions) { sends = append(sends, out.Sends...) }
	w.run().settled()
	// Prompt 1 2 3: cases in our own numbers. The first message has all 5 tokens; the LLM's
	// answer is position 5; the second begins behind it.
	want := [][4]int32{{0, 5, slm, llm}, {5, 1, llm, slm}, {6, 1, slm, llm}, {7, 1, llm, slm}}
	for i, h := range sends {
		if got := [4]int32{h.Anchor, h.Tokens, int32(h.From), int32(h.To)}; i >= len(want) || got != want[i] ||
			h.ID != 4 {
			t.Errorf("message %d of request %d: anchor, tokens, from, to %v, want %v", i, h.ID, got, want)
		}
	}
}

func twoNodes() core.Config {
	config := core.Config{Models: models(2), Policy: core.Eager{}}
	config.Models[1].Node = 1
	return config
}

// Section 2.
func TestReceiveTakesAllTokensOfTheSuffix(t *testing.T) {
	received := []int{}
	a := witness{routed: new([]core.Visit), sent: new([]int), received: &received}
	config := twoNodes()
	config.Algorithm = a
	w := recorded(t, config, []core.Time{10 * ms, 35 * ms}, map[uint64][]core.Result{1: {stayHere, draft,
		toSmall, draft, toSmall}})
	w.run().settled()
	// The prompt; the prompt and one token; the LLM's token; nothing new but that; the LLM's.
	if want := []int{3, 4, 1, 0, 1}; !slices.Equal(received[:4], want[:4]) {
		t.Errorf("suffixes of %v tokens, want %v", received, want)
	}
}

// Section 2.
func TestOnlyTokenIDsCrossBetweenModelsNeverKV(t *testing.T) {
	w := recorded(t, twoNodes(), []core.Time{10 * ms, 35 * ms}, map[uint64][]core.Result{1: {stayHere, toLarge,
		toSmall, stayHere}})
	w.run().settled()
	// What either model knows it was fed itself, all tokens but the last.
	for m, want := range [][]int32{{1, 2, 3, 10, 11, 21}, {1, 2, 3, 10, 11}} {
		if got := w.nodes[m].shadow.fed[m]; !slices.Equal(got, want) {
			t.Errorf("model %d was fed %v, want %v", m, got, want)
		}
	}
}

// Section 2.
func TestTheSuffixBeginsWithThePeersOwnLastTokenSampledThereButNotYetFed(t *testing.T) {
	w := recorded(t, core.Config{Models: models(2), Policy: core.Eager{}}, []core.Time{10 * ms, 35 * ms},
		map[uint64][]core.Result{1: {draft, {Token: 20}, stayHere, draft, toSmall}})
	var last core.Row
	w.observe = func(_ *node, _ []core.Event, out *core.Actions) {
		for _, l := range out.Launches {
			if l.Model == llm {
				last = l.Rows[0]
			}
		}
	}
	w.run().settled()
	// 20 at position 3 is the LLM's own; its row begins with it, behind the prompt in KV.
	if fed := w.nodes[0].shadow.fed[llm]; last.Start != 3 || last.Fresh != 2 || !slices.Equal(fed, []int32{1,
		2, 3, 20, 10}) {
		t.Errorf("row %+v, fed %v, want 2 tokens from position 3: 20 10", last, fed)
	}
}

// Section 3.
func TestARoutedRequestIsPendingAtHomeSkippedByTheSchedulerKVKept(t *testing.T) {
	w := recorded(t, core.Config{Models: models(2), Policy: core.Eager{}, PageTokens: 2}, []core.Time{10 * ms,
		100 * ms},
		map[uint64][]core.Result{1: {draft, toSmall}, 2: {stayHere, stayHere, stayHere, stayHere}})
	small := w.launches(slm)
	w.until(45 * ms)
	for _, l := range (*small)[1:] {
		if slices.Contains(l.ids, 1) {
			t.Errorf("request 1 runs at the SLM at %d while it is away", l.at)
		}
	}
	// 3 tokens of request 1 are 2 pages of 2; request 2 has left.
	if got := w.nodes[0].s.PagesHeld(slm); got != 2 {
		t.Errorf("%d pages are held at the SLM, want request 1's 2", got)
	}
	w.run().settled()
}

// Section 3.
func TestAReturnAppendsTheNewTokensWithoutPrefixMatchingOrAllocation(t *testing.T) {
	w := recorded(t, core.Config{Models: models(2), Policy: core.Eager{}, PageTokens: 8}, []core.Time{10 * ms,
		35 * ms},
		map[uint64][]core.Result{1: {draft, toSmall, stayHere, draft, toSmall}})
	grants := 0
	var returns []core.Row
	w.observe = func(_ *node, _ []core.Event, out *core.Actions) {
		grants += len(out.Grants)
		for _, l := range out.Launches {
			if l.Rows[0].Returned && l.Rows[0].Start > 0 {
				returns = append(returns, l.Rows[0])
			}
		}
	}
	w.run().settled()
	if grants != 2 {
		t.Errorf("%d pages were granted, want one at each model: returns take none", grants)
	}
	for _, row := range returns {
		if row.Fresh > 2 || !row.Head {
			t.Errorf("a return is fed %d tokens, want at most 2 in one pass", row.Fresh)
		}
	}
	if len(returns) != 2 {
		t.Errorf("%d returns, want one to each model", len(returns))
	}
}

// Section 3.
func TestModelIStartsABatchOnlyWhenAtLeastBiRequestsWaitAndThenTakesAllOfThem(t *testing.T) {
	passes := map[uint64][]core.Result{}
	for id := range uint64(5) { // request i goes to the LLM at 10*(i+1), the last two together
		for range min(id, 3) {
			passes[id] = append(passes[id], stayHere)
		}
		passes[id] = append(passes[id], toLarge, stayLLM)
	}
	w := recorded(t, core.Config{Models: models(2), Policy: core.Delayed{Thresholds: fixed(t, 5, 1, 4)},
		LiveMax: 5},
		[]core.Time{10 * ms, 35 * ms}, passes)
	large := w.launches(llm)
	w.run().settled()
	wantLaunches(t, *large, launched{40, []uint64{0, 1, 2, 3, 4}})
}

// Section 3.
func TestThresholdsDependOnTheLiveN(t *testing.T) {
	table, err := core.TableThresholds([][]int{{1, 1}, {1, 2}, {1, 2}, {1, 4}})
	if err != nil {
		t.Fatal(err)
	}
	passes := map[uint64][]core.Result{
		1: {toLarge, stayLLM}, 2: {toLarge, stayLLM}, 3: {stayHere, stayHere, stayHere, stayHere, stayHere},
		4: {stayHere, stayHere},
	}
	w := recorded(t, core.Config{Models: models(2), Policy: core.Delayed{Thresholds: table}, LiveMax: 4},
		[]core.Time{10 * ms, 35 * ms}, passes)
	large := w.launches(llm)
	w.run().settled()
	// Two wait from 10; at 20 request 4 leaves, N falls to 3, and 2 are enough.
	wantLaunches(t, *large, launched{20, []uint64{1, 2}})
}

// Section 3.
func TestNIsKeptEqualEverywhereByMessagesOfAdmissionAndEnd(t *testing.T) {
	w := recorded(t, twoNodes(), []core.Time{10 * ms, 35 * ms}, map[uint64][]core.Result{
		1: {draft, toSmall, stayHere}, 2: {toLarge, stayLLM}, 3: slices.Repeat([]core.Result{stayHere}, 7),
	})
	w.delay = func(int, int) core.Time { return ms }
	quiet := map[core.Time]int{5: 3, 50: 2, 65: 1, 72: 0} // between messages
	for _, at := range []core.Time{5, 50, 65, 72} {
		w.until(at * ms)
		for _, n := range w.nodes {
			if n.s.Live() != quiet[at] {
				t.Errorf("at %d node %d counts N = %d, want %d", at, n.id, n.s.Live(), quiet[at])
			}
		}
	}
	w.run().settled()
}

// Section 3.
func TestPlanningIsJointTheCachesStayPrivate(t *testing.T) {
	pages, err := core.PlanPages(1000, []core.Footprint{
		{Name: "s", WeightBytes: 100, KVBytesPerTok: 2}, {Name: "l", WeightBytes: 500, KVBytesPerTok: 6},
	}, 1)
	if err != nil || pages != 50 { // 600 + 50 * 8 = 1000
		t.Fatalf("%d pages, %v, want 50", pages, err)
	}
	config := core.Config{Models: models(2), Policy: core.Eager{}, PageTokens: 1}
	config.Models[0].Pages, config.Models[1].Pages = pages, pages
	w := recorded(t, config, []core.Time{10 * ms, 35 * ms}, map[uint64][]core.Result{1: {stayHere, toLarge,
		toSmall}})
	w.until(15 * ms)
	if s := w.nodes[0].s; s.PagesHeld(slm) != 4 || s.PagesHeld(llm) != 0 {
		t.Errorf("%d and %d pages held, want 4 at the SLM and none at the LLM", s.PagesHeld(slm), s.PagesHeld(llm))
	}
	w.until(25 * ms)
	if s := w.nodes[0].s; s.PagesHeld(slm) != 4 || s.PagesHeld(llm) != 5 {
		t.Errorf("%d and %d pages held, want 4 and 5", s.PagesHeld(slm), s.PagesHeld(llm))
	}
	w.run().settled()
}

// Section 4.
func TestModelSyncRunsOneModelAtATime(t *testing.T) {
	w := newWorld(t, core.Config{Models: models(2), Policy: core.ModelSync{}, Algorithm: route.Recorded{}},
		10*ms, 35*ms)
	w.strings(map[uint64]string{1: "SSSS", 2: "SLSLSS", 3: "SSLSLS"})
	busy := 0
	w.observe = func(_ *node, in []core.Event, out *core.Actions) {
		for _, e := range in {
			if e.Kind == core.BatchDone {
				busy--
			}
		}
		if busy += len(out.Launches); busy > 1 {
			t.Errorf("at %d %d models run", w.now/ms, busy)
		}
	}
	for id := range uint64(3) {
		w.submit(0, core.Submission{ID: id + 1, PromptTokens: 1, TokensMax: 9})
	}
	w.run().settled()
}

// Section 5 (appendix D). N requests circulate for ever; the exact values are those of the
// stationary chain. 300,000 tokens leave a standard error below 0.3 %.
func TestThroughputIsThatOfTheMarkovModel(t *testing.T) {
	me, err := route.NewME([]float64{0.5, 0.3, 0.2})
	if err != nil {
		t.Fatal(err)
	}
	pair, three := []core.Time{60, 279}, []core.Time{60, 100, 280} // tenths of a millisecond
	for _, c := range []struct {
		name      string
		algorithm core.Algorithm
		steps     []core.Time
		b         []int
		n         int
		want      float64 // tok/s
	}{
		{"R2R N=1", r2r(t), pair, []int{1, 1}, 1, 63.431652},
		{"R2R N=2", r2r(t), pair, []int{1, 1}, 2, 98.956913},
		{"R2R N=2", r2r(t), pair, []int{1, 2}, 2, 110.322694},
		{"R2R N=3", r2r(t), pair, []int{1, 2}, 3, 158.117117},
		{"R2R N=4", r2r(t), pair, []int{1, 1}, 4, 187.189651},
		{"R2R N=4", r2r(t), pair, []int{1, 3}, 4, 207.954041},
		{"R2R N=4", r2r(t), pair, []int{1, 4}, 4, 190.742172},
		{"R2R N=8", r2r(t), pair, []int{1, 5}, 8, 399.049502},
		{"ME N=4", me, three, []int{1, 1, 1}, 4, 282.311151},
		{"ME N=4", me, three, []int{3, 1, 2}, 4, 197.843061},
		{"ME N=4", me, three, []int{2, 3, 1}, 4, 166.770239},
	} {
		config := core.Config{
			Models: models(len(c.b)), Algorithm: c.algorithm, Policy: core.Delayed{Thresholds: fixed(t, c.n, c.b...)},
			Admission: core.Reserve, Requests: c.n, ContextMax: 1 << 21, PageTokens: 1 << 18,
		}
		if got := circulate(t, config, c.steps); math.Abs(got/c.want-1) > 0.01 {
			t.Errorf("%s, thresholds %v: %.3f tok/s, want %.3f within 1 %%", c.name, c.b, got, c.want)
		}
	}
}

// circulate runs requests that never end and returns their throughput in tok/s.
func circulate(t *testing.T, config core.Config, steps []core.Time) float64 {
	s, err := core.New(config)
	if err != nil {
		t.Fatal(err)
	}
	var in []core.Event
	for id := range uint64(config.Requests) {
		in = append(in, core.Event{Kind: core.Submitted, Submission: &core.Submission{
			ID: id, PromptTokens: 1, TokensMax: 1 << 20, Models: 1<<len(steps) - 1,
		}})
	}
	var out core.Actions
	now, tokens := core.Time(0), 0
	doneAt, results := make([]core.Time, len(steps)), make([][]core.Result, len(steps))
	for tokens < 300_000 {
		s.Turn(now, in, &out)
		tokens += len(out.Tokens)
		for _, l := range out.Launches {
			doneAt[l.Model], results[l.Model] = now+steps[l.Model], results[l.Model][:0]
			for _, row := range l.Rows {
				// Each model draws for itself, so that a return is not drawn as the departure was.
				key := hash2(row.ID<<40|uint64(row.Start+row.Fresh), uint64(l.Model))
				results[l.Model] = append(results[l.Model], core.Result{Draw: float64(key>>11) / (1 << 53)})
			}
		}
		now, in = math.MaxInt64, in[:0]
		for _, at := range doneAt {
			if at != 0 {
				now = min(now, at)
			}
		}
		for m, at := range doneAt {
			if at == now {
				doneAt[m] = 0
				in = append(in, core.Event{Kind: core.BatchDone, Model: m, Results: results[m]})
			}
		}
	}
	return float64(tokens) / (float64(now) / 10_000)
}
