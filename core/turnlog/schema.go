package turnlog

import "tokenrouter/core"

// The functions of this file show the fields of each struct of package core, in the order in
// which they stand in a log. A test holds that none is missing.

var (
	eventNames   = []string{"", "done", "arrived", "news", "lost", "cancelled", "submitted", "woken"}
	newsNames    = []string{"", "admitted", "ended", "cancel", "freed"}
	outcomeNames = namesOf[core.Outcome](core.Failed)
	reasonNames  = namesOf[core.Reason](core.NotANumber)
)

// namesOf lists what core calls the values up to the last.
func namesOf[T interface {
	~uint8
	String() string
}](last T) []string {
	names := make([]string, last+1)
	for v := T(1); v <= last; v++ {
		names[v] = v.String()
	}
	return names
}

func showEvent(f *fields, e *core.Event) {
	word(f, "event", &e.Kind, eventNames)
	switch e.Kind {
	case core.BatchDone:
		always(f, "model", &e.Model)
		flag(f, "failed", &e.Failed)
		list(f, "results", &e.Results, asObjects, showResult)
	case core.Arrived:
		if e.Handoff == nil {
			e.Handoff = new(core.Handoff)
		}
		showHandoff(f, e.Handoff)
	case core.NewsCame:
		showNews(f, &e.News)
	case core.Lost:
		always(f, "id", &e.ID)
	case core.Cancelled:
		always(f, "id", &e.ID)
		word(f, "reason", &e.Reason, reasonNames)
	case core.Submitted:
		if e.Submission == nil {
			e.Submission = new(core.Submission)
		}
		showSubmission(f, e.Submission)
	}
}

// always shows a number that is written even if it is 0, because 0 is a name there.
func always[T int | int32 | int64 | uint64](f *fields, name string, p *T) {
	if f.mode != writeObject || *p != 0 {
		switch p := any(p).(type) {
		case *int:
			signed(f, name, p)
		case *int32:
			signed(f, name, p)
		case *int64:
			signed(f, name, p)
		case *uint64:
			unsigned(f, name, p)
		}
		return
	}
	f.next(name, false)
	f.to = append(f.to, '0')
}

func showResult(f *fields, r *core.Result) {
	signed(f, "token", &r.Token)
	float(f, "logprob", &r.LogProb)
	float(f, "top_prob", &r.TopProb)
	flag(f, "eos", &r.EOS)
	unsigned(f, "next", &r.Next)
	flag(f, "drop", &r.Drop)
	flag(f, "failed", &r.Failed)
	float(f, "score", &r.Score)
	float(f, "entropy", &r.Entropy)
	float(f, "draw", &r.Draw)
}

func showSubmission(f *fields, s *core.Submission) {
	always(f, "id", &s.ID)
	signed(f, "arrival", &s.Arrival)
	signed(f, "prompt_tokens", &s.PromptTokens)
	signed(f, "tokens_max", &s.TokensMax)
	signed(f, "entry", &s.Entry)
	unsigned(f, "models", &s.Models)
	float(f, "draw", &s.Draw)
	list(f, "prefix", &s.Prefix, asValues, showKey)
}

func showKey(f *fields, key *uint64) { unsigned(f, "key", key) }

func showHandoff(f *fields, h *core.Handoff) {
	always(f, "id", &h.ID)
	always(f, "from", &h.From)
	always(f, "to", &h.To)
	signed(f, "anchor", &h.Anchor)
	signed(f, "tokens", &h.Tokens)
	signed(f, "prompt", &h.Prompt)
	signed(f, "limit", &h.Limit)
	always(f, "slot", &h.Slot)
	unsigned(f, "age", &h.Age)
	unsigned(f, "models", &h.Models)
	unsigned(f, "drops", &h.Drops)
	fixed(f, "state", h.State[:], showKey)
	fixed(f, "seen", h.Seen[:], showCount)
	list(f, "prefix", &h.Prefix, asValues, showKey)
}

func showCount(f *fields, n *int32) { signed(f, "tokens", n) }

func showNews(f *fields, n *core.News) {
	word(f, "news", &n.Kind, newsNames)
	always(f, "id", &n.ID)
	word(f, "outcome", &n.Outcome, outcomeNames)
	word(f, "reason", &n.Reason, reasonNames)
	signed(f, "tokens", &n.Tokens)
	signed(f, "anchor", &n.Anchor)
	signed(f, "node", &n.Node)
}

func showActions(f *fields, a *core.Actions) {
	list(f, "admits", &a.Admits, asArrays, showAdmit)
	list(f, "tokens", &a.Tokens, asArrays, showToken)
	list(f, "leaves", &a.Leaves, asObjects, showLeave)
	list(f, "grants", &a.Grants, asArrays, showGrant)
	list(f, "launches", &a.Launches, asObjects, showLaunch)
	list(f, "sends", &a.Sends, asObjects, showHandoff)
	list(f, "news", &a.News, asObjects, showNews)
	signed(f, "wake", &a.Wake)
}

func showAdmit(f *fields, a *core.Admit) {
	unsigned(f, "id", &a.ID)
	signed(f, "slot", &a.Slot)
	signed(f, "arrival", &a.Arrival)
	flag(f, "guest", &a.Guest)
}

func showToken(f *fields, t *core.Token) {
	unsigned(f, "id", &t.ID)
	signed(f, "slot", &t.Slot)
	signed(f, "position", &t.Position)
	signed(f, "token", &t.Token)
	float(f, "logprob", &t.LogProb)
	signed(f, "model", &t.Model)
}

func showLeave(f *fields, l *core.Leave) {
	always(f, "id", &l.ID)
	always(f, "slot", &l.Slot)
	signed(f, "tokens", &l.Tokens)
	signed(f, "dropped", &l.Dropped)
	always(f, "model", &l.Model)
	word(f, "outcome", &l.Outcome, outcomeNames)
	word(f, "reason", &l.Reason, reasonNames)
	flag(f, "guest", &l.Guest)
}

func showGrant(f *fields, g *core.Grant) {
	signed(f, "model", &g.Model)
	signed(f, "slot", &g.Slot)
	signed(f, "index", &g.Index)
	signed(f, "page", &g.Page)
}

func showLaunch(f *fields, l *core.Launch) {
	always(f, "model", &l.Model)
	unsigned(f, "seq", &l.Seq)
	signed(f, "fresh", &l.Fresh)
	signed(f, "context", &l.Context)
	signed(f, "returned", &l.Returned)
	signed(f, "wait_ns", &l.WaitNs)
	flag(f, "ahead", &l.Ahead)
	signed(f, "pendings", &l.Pendings)
	signed(f, "pending_ns", &l.PendingNs)
	list(f, "rows", &l.Rows, asArrays, showRow)
}

func showRow(f *fields, r *core.Row) {
	unsigned(f, "id", &r.ID)
	signed(f, "slot", &r.Slot)
	unsigned(f, "gen", &r.Gen)
	signed(f, "start", &r.Start)
	signed(f, "fresh", &r.Fresh)
	flag(f, "head", &r.Head)
	flag(f, "returned", &r.Returned)
	signed(f, "since", &r.Since)
}

// Turn is one turn of a log.
type Turn struct {
	Number uint64 // counts the turns of the log, of all nodes, from 1
	Node   int
	Now    core.Time
	In     []core.Event
	Out    core.Actions

	Line int // of the file, set by a Reader
}

func showTurn(f *fields, t *Turn) {
	unsigned(f, "turn", &t.Number)
	always(f, "node", &t.Node)
	always(f, "now", &t.Now)
	list(f, "in", &t.In, asObjects, showEvent)
	group(f, "out", func() { showActions(f, &t.Out) })
}
