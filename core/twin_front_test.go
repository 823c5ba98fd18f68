package core_test

import (
	"slices"

	"tokenrouter/core"
)

// submitted refuses at once what can never be; the rest waits for admission.
func (t *twin) submitted(sub core.Submission) {
	t.count.Submitted++
	refuse := func(reason core.Reason, m int) {
		t.count.Rejected++
		t.out.Leaves = append(t.out.Leaves, core.Leave{
			ID: sub.ID, Slot: -1, Model: m, Outcome: core.Rejected, Reason: reason,
		})
	}
	mask := t.mask(sub)
	entry := sub.Entry
	if e, ok := t.c.Algorithm.(core.Entry); ok && mask&(mask-1) != 0 {
		entry = e.Enter(sub.Draw, mask)
	}
	all := int(sub.PromptTokens) + int(sub.TokensMax)
	switch {
	case sub.PromptTokens < 1 || sub.TokensMax < 1 || mask>>len(t.models) != 0 || t.c.Node != 0,
		sub.Entry < 0 || sub.Entry >= len(t.models) || mask>>entry&1 == 0,
		len(sub.Prefix)*t.c.PageTokens > int(sub.PromptTokens):
		refuse(core.Malformed, -1)
		return
	case all > t.c.ContextMax:
		refuse(core.TooLong, -1)
		return
	case t.byID[sub.ID] != nil:
		refuse(core.Duplicate, -1)
		return
	}
	for m := range t.models {
		if mask>>m&1 != 0 && t.pagesFor(all-1) > t.c.Models[m].Pages {
			refuse(core.PoolTooSmall, m)
			return
		}
	}
	if t.slots == t.c.Requests {
		refuse(core.Full, -1)
		return
	}
	r := t.newRequest(sub)
	r.known, r.limit, r.at, r.told, r.place = int(sub.PromptTokens), all, entry, true, "waiting"
	t.waiting = append(t.waiting, r)
}

func (t *twin) newRequest(sub core.Submission) *twinRequest {
	r := &twinRequest{sub: sub}
	for range t.models {
		r.seats = append(r.seats, &twinSeat{})
	}
	t.byID[sub.ID] = r
	t.slots++
	return r
}

func (t *twin) pagesFor(tokens int) int { return (tokens + t.c.PageTokens - 1) / t.c.PageTokens }

// promises is how many pages of every pool are set aside for r.
func (t *twin) promises(r *twinRequest) int {
	longest := t.pagesFor(r.limit - 1)
	if t.c.Admission == core.Optimistic {
		return min(longest, t.pagesFor(int(r.sub.PromptTokens))+1)
	}
	return longest
}

func (t *twin) promiseAll(r *twinRequest, sign int) {
	for m, mo := range t.models {
		if t.mask(r.sub)>>m&1 != 0 {
			mo.promise += sign * t.promises(r)
		}
	}
}

// admit: in order of arrival, as long as N, pools and the other nodes' slots have room.
func (t *twin) admit() {
	if t.c.Static && t.live() > 0 {
		return
	}
	for len(t.waiting) > 0 && t.live() < t.c.LiveMax {
		r := t.waiting[0]
		for _, held := range t.held {
			if held == t.c.Requests {
				return
			}
		}
		need := t.promises(r)
		for m, mo := range t.models {
			if t.mask(r.sub)>>m&1 == 0 {
				continue
			}
			if mo.promise+need > t.c.Models[m].Pages {
				return
			}
			if t.c.Admission == core.Optimistic && mo.owned && t.live() > 0 && mo.free < need {
				return
			}
		}
		t.promiseAll(r, +1)
		t.waiting = t.waiting[1:]
		t.ages++
		r.age = t.ages
		t.out.Admits = append(t.out.Admits, core.Admit{ID: r.sub.ID, Arrival: r.sub.Arrival})
		if len(t.held) > 0 {
			t.out.News = append(t.out.News, core.News{Kind: core.NewsAdmitted, ID: r.sub.ID})
			for n := range t.held {
				t.held[n]++
			}
		}
		if t.c.FrontNs > 0 {
			t.await(r, r.at, t.c.FrontNs)
		} else {
			t.enter(r)
		}
	}
}

// enter: the first call.
func (t *twin) enter(r *twinRequest) {
	if t.models[r.at].owned {
		t.come(r, r.at)
	} else {
		t.send(r, r.at, r.at)
	}
}

// cancelled ends a request here; one that is elsewhere is ended wherever it turns up.
func (t *twin) cancelled(e core.Event) {
	if t.byID[e.ID] == nil {
		t.count.CancelsLate++
	}
	if r := t.byID[e.ID]; r != nil {
		reason := e.Reason
		if reason == 0 {
			reason = core.ClientLeft
		}
		outcome := core.CancelledOutcome
		if reason == core.StopString {
			outcome = core.Finished
		}
		t.cancel(r, outcome, reason)
	}
}

func (t *twin) cancel(r *twinRequest, outcome core.Outcome, reason core.Reason) {
	switch r.place {
	case "waiting":
		t.waiting = slices.DeleteFunc(t.waiting, func(q *twinRequest) bool { return q == r })
		t.leave(r, -1, outcome, reason, 0)
	case "coming", "queued", "running":
		t.end(r, r.at, outcome, reason)
	default:
		if r.cancelled {
			return
		}
		r.cancelled, r.outcome, r.reason = true, outcome, reason
		if t.c.Node == 0 {
			t.out.News = append(t.out.News, core.News{
				Kind: core.NewsCancel, ID: r.sub.ID, Outcome: outcome, Reason: reason,
			})
		}
	}
}

// send: the suffix is what the target has not seen.
func (t *twin) send(r *twinRequest, from, to int) {
	r.place = "away"
	h := core.Handoff{
		ID: r.sub.ID, From: from, To: to, Anchor: int32(r.seats[to].seen),
		Tokens: int32(r.known - r.seats[to].seen), Prompt: r.sub.PromptTokens, Limit: int32(r.limit),
		Age: uint64(r.age), Models: t.mask(r.sub), Drops: uint8(r.drops), Prefix: r.sub.Prefix,
	}
	getState(&r.visit, &h.State)
	for m := range t.models {
		h.Seen[m] = int32(r.seats[m].seen)
	}
	t.out.Sends = append(t.out.Sends, h)
}

func (t *twin) guest(id uint64) *twinRequest {
	r := t.newRequest(core.Submission{ID: id})
	r.place = "away"
	t.out.Admits = append(t.out.Admits, core.Admit{ID: id, Guest: true})
	return r
}

func (t *twin) arrived(h core.Handoff) {
	t.count.Arrived++
	r := t.byID[h.ID]
	if r == nil {
		r = t.guest(h.ID)
	}
	r.known, r.limit, r.age, r.drops = int(h.Anchor+h.Tokens), int(h.Limit), int(h.Age), int(h.Drops)
	r.sub.PromptTokens, r.sub.Models = h.Prompt, h.Models
	if r.sub.Prefix == nil {
		r.sub.Prefix = h.Prefix
	}
	putState(&r.visit, h.State)
	for m := range t.models {
		r.seats[m].seen = int(h.Seen[m])
	}
	if r.cancelled {
		t.end(r, -1, r.outcome, r.reason)
		return
	}
	t.come(r, h.To)
}

func (t *twin) newsCame(n core.News) {
	r := t.byID[n.ID]
	switch n.Kind {
	case core.NewsAdmitted:
		if r == nil {
			r = t.guest(n.ID)
		}
		r.told = true
		if r.place == "tomb" {
			delete(t.byID, n.ID)
			t.freed(r)
		}
	case core.NewsEnded:
		if r == nil {
			t.byID[n.ID] = &twinRequest{sub: core.Submission{ID: n.ID}, place: "tomb"}
			t.slots++
			return
		}
		t.leave(r, -1, n.Outcome, n.Reason, n.Tokens)
	case core.NewsCancel:
		if r != nil {
			t.cancel(r, n.Outcome, n.Reason)
		} else {
			t.count.CancelsLate++
		}
	case core.NewsFreed:
		if t.c.Node == 0 {
			t.held[int(n.Node)]--
		}
	}
}
