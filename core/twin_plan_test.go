package core_test

import (
	"slices"

	"tokenrouter/core"
)

// plan asks the policy for every idle model; all see the queues as they were.
func (t *twin) plan() {
	var queued []int
	var since []core.Time
	busy := false
	for _, mo := range t.models {
		queued = append(queued, len(mo.queue))
		oldest := t.now
		busy = busy || mo.busy
		for _, r := range mo.queue {
			oldest = min(oldest, r.seats[slices.Index(t.models, mo)].since)
		}
		since = append(since, oldest)
	}
	started, blocked := busy, false
	for m, mo := range t.models {
		if mo.busy || queued[m] == 0 || !t.start(m, queued, since, busy) {
			continue
		}
		if t.launch(m) {
			started = true
		} else {
			blocked = true
		}
	}
	if started || t.live() == 0 {
		return
	}
	pagesLack := blocked && t.c.Admission == core.Optimistic
	if !pagesLack && (t.awayCount() > 0 || t.out.Wake != 0) {
		return
	}
	var oldest *twinRequest
	for _, mo := range t.models {
		for _, r := range mo.queue {
			if oldest == nil || r.age < oldest.age {
				oldest = r
			}
		}
	}
	if oldest != nil {
		t.count.Unstalled++
		t.force = pagesLack && t.awayCount() > 0
		t.launch(oldest.at)
		t.force = false
	}
}

func (t *twin) start(m int, queued []int, since []core.Time, busy bool) bool {
	switch p := t.c.Policy.(type) {
	case core.StepSync:
		return !busy
	case core.ModelSync:
		for later := m + 1; later < len(queued); later++ {
			if queued[later] > 0 {
				return false
			}
		}
		return !busy
	case core.Eager:
		return true
	case core.Delayed:
		n := t.live()
		for _, r := range t.models[m].queue {
			if r.seats[m].partial {
				return true // the batch has started
			}
		}
		if queued[m] >= t.b[min(n, len(t.b))-1][m] {
			return true
		}
		if p.MaxWait == 0 {
			return false
		}
		due := since[m] + p.MaxWait
		if t.now < due && (t.out.Wake == 0 || due < t.out.Wake) {
			t.out.Wake = due
		}
		return t.now >= due
	}
	panic("no such policy")
}

// launch takes rows, if it can, and starts the model.
func (t *twin) launch(m int) bool {
	mo := t.models[m]
	t.takeRows(m)
	if len(mo.rows) == 0 {
		return false
	}
	mo.queue = slices.DeleteFunc(mo.queue, func(r *twinRequest) bool { return r.place == "running" })
	mo.busy = true
	mo.seq++
	mo.started = t.now
	t.count.Launches++
	t.count.Rows += uint64(len(mo.rows))
	launch := core.Launch{Model: m, Seq: mo.seq, Rows: slices.Clone(mo.rows), Pendings: len(mo.returns),
		Ahead: mo.ahead}
	for _, row := range mo.rows {
		launch.Fresh += int64(row.Fresh)
		launch.Context += int64(row.Start)
		launch.WaitNs += t.now - row.Since
		if row.Returned {
			launch.Returned++
		}
	}
	for _, pendingNs := range mo.returns {
		launch.PendingNs += pendingNs
	}
	mo.returns = nil
	t.out.Launches = append(t.out.Launches, launch)
	return true
}

// takeRows: ahead, calls that have come while the step before ran are left out, unless nobody else can run.
func (t *twin) takeRows(m int) {
	mo := t.models[m]
	mo.ahead = false
	if t.c.Ahead && mo.seq > 0 && mo.done == t.now {
		var early []*twinRequest
		for _, r := range mo.queue {
			if seat := r.seats[m]; !seat.returned || seat.since <= mo.started {
				early = append(early, r)
			}
		}
		t.takeOf(m, early)
		if mo.ahead = len(mo.rows) > 0; mo.ahead {
			return
		}
	}
	t.takeOf(m, mo.queue)
}

// takeOf: unmixed, requests that go on by one token are left out while others have more, unless these have
// no pages.
func (t *twin) takeOf(m int, queue []*twinRequest) {
	goesOn := func(r *twinRequest) bool { return r.known-r.seats[m].kv == 1 && !r.seats[m].returned }
	isLong := func(r *twinRequest) bool { return r.known-r.seats[m].kv > 1 }
	if t.c.Unmixed && slices.ContainsFunc(queue, isLong) {
		t.takeAmong(m, queue, goesOn)
		if len(t.models[m].rows) > 0 {
			return
		}
	}
	t.takeAmong(m, queue, func(*twinRequest) bool { return false })
}

// takeAmong: short rows before long prompts if there is a token budget, each in queue order. Who
// loses its pages to another row does not go on by one any more.
func (t *twin) takeAmong(m int, queue []*twinRequest, leftOut func(r *twinRequest) bool) {
	mo, page, budget := t.models[m], t.c.PageTokens, t.c.TokenBudget
	rowsMax := t.c.Models[m].RowsMax
	if rowsMax == 0 {
		rowsMax = t.c.Requests
	}
	if budget == 0 {
		budget = 1 << 30
	}
	fresh := func(r *twinRequest) int { return r.known - r.seats[m].kv }
	long := t.c.TokenBudget > 0 && rowsMax > 1 &&
		slices.ContainsFunc(queue, func(r *twinRequest) bool { return fresh(r) > page })
	mo.rows, mo.running = nil, nil
	if long { // a page and a row are kept for long prompts
		budget -= page
		for _, r := range queue {
			if fresh(r) > page || leftOut(r) {
				continue
			}
			if fresh(r) > budget || len(mo.rows) == rowsMax-1 {
				break
			}
			budget -= t.takeRow(r, m, budget)
		}
		budget += page
	}
	for _, r := range queue {
		if r.place == "queued" && !leftOut(r) && (!long || fresh(r) > page) && budget > 0 &&
			len(mo.rows) < rowsMax {
			budget -= t.takeRow(r, m, budget)
		}
	}
}

// takeRow takes at most so many tokens of r, and says how many; none if its pages do not fit.
func (t *twin) takeRow(r *twinRequest, m, most int) int {
	mo, seat := t.models[m], r.seats[m]
	fresh := min(r.known-seat.kv, most)
	if !t.grow(r, m, seat.kv+fresh) {
		return 0
	}
	head := seat.kv+fresh == r.known
	mo.rows = append(mo.rows, core.Row{
		ID: r.sub.ID, Since: seat.since, Start: int32(seat.kv), Fresh: int32(fresh),
		Head: head, Returned: seat.returned,
	})
	mo.running = append(mo.running, r)
	r.place, seat.returned, seat.partial = "running", false, !head
	t.count.Fed += uint64(fresh)
	if seat.rebuild {
		t.count.Recomputed += uint64(fresh)
	}
	return fresh
}

// grow gives r pages for so many tokens, all or nothing. Optimistic: it takes those of
// younger requests, the youngest first, if that helps.
func (t *twin) grow(r *twinRequest, m, tokens int) bool {
	mo, seat := t.models[m], r.seats[m]
	need := t.pagesFor(tokens) - len(seat.pages)
	if need <= 0 {
		return true
	}
	for mo.free < need {
		victims := t.victims(r, m)
		room := mo.free
		counted := map[*twinPage]bool{}
		for _, v := range victims {
			for _, p := range v.seats[m].pages {
				lost := true
				for holder := range p.holders {
					lost = lost && slices.Contains(victims, holder)
				}
				if lost && !counted[p] {
					counted[p] = true
					room++
				}
			}
		}
		if t.c.Admission != core.Optimistic || room < need {
			return false
		}
		youngest := slices.MaxFunc(victims, func(a, b *twinRequest) int { return a.age - b.age })
		t.release(youngest, m)
		youngest.seats[m].rebuild = true
		t.count.Preempted++
	}
	t.force = false
	for range need {
		page := &twinPage{holders: map[*twinRequest]bool{r: true}}
		if n := len(seat.pages); n > 0 {
			page.before = seat.pages[n-1]
		}
		t.out.Grants = append(t.out.Grants, core.Grant{Model: m, Index: int32(len(seat.pages))})
		seat.pages = append(seat.pages, page)
		mo.free--
	}
	return true
}

func (t *twin) victims(r *twinRequest, m int) []*twinRequest {
	var out []*twinRequest
	for _, v := range t.byID {
		if v.place == "tomb" || v.place == "waiting" || len(v.seats[m].pages) == 0 ||
			v.place == "running" && v.at == m {
			continue
		}
		if v.age > r.age || t.force && v.place == "away" {
			out = append(out, v)
		}
	}
	return out
}

// release lets go of r's pages at m; one that nobody else holds is free.
func (t *twin) release(r *twinRequest, m int) {
	mo, seat := t.models[m], r.seats[m]
	for _, p := range seat.pages {
		delete(p.holders, r)
		if len(p.holders) == 0 {
			mo.free++
			if p.shared {
				delete(mo.shared, p.key)
			}
		}
	}
	seat.pages, seat.kv = nil, 0
}

// share offers the pages of the prompt that this pass has filled, as far as all before each
// are shared and nobody else offers the same.
func (t *twin) share(r *twinRequest, m, start int) {
	mo, seat := t.models[m], r.seats[m]
	for i := start / t.c.PageTokens; i < min(seat.kv/t.c.PageTokens, len(r.sub.Prefix)); i++ {
		p, key := seat.pages[i], r.sub.Prefix[i]
		if p.shared || mo.shared[key] != nil || p.before != nil && !p.before.shared {
			continue
		}
		p.shared, p.key = true, key
		mo.shared[key] = p
	}
}

// adopt begins with the shared pages of a prefix; the last known token is left to feed.
func (t *twin) adopt(r *twinRequest, m int) {
	seat := r.seats[m]
	var before *twinPage
	for i, key := range r.sub.Prefix {
		p := t.models[m].shared[key]
		if p == nil || p.before != before || (i+1)*t.c.PageTokens >= r.known {
			break
		}
		p.holders[r] = true
		seat.pages = append(seat.pages, p)
		before = p
	}
	seat.kv = len(seat.pages) * t.c.PageTokens
	t.count.PrefixShared += uint64(seat.kv)
	for i := len(seat.pages) - 1; i >= 0; i-- {
		t.out.Grants = append(t.out.Grants, core.Grant{Model: m, Index: int32(i)})
	}
}
