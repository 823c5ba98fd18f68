package trace

import (
	"cmp"
	"errors"
	"slices"

	"tokenrouter/core"
)

// Recorder makes a trace of a run, simulated or real, from the turns that its driver saw: rows
// of launches, their results, and what the scheduler made of them. A turn log does as well.
//
// It writes the requests that finished, in order of submission, with their paths and with the
// signals that the Writer's header names. Others are counted in Skipped: what they would have
// given is not known. Requests without a planned arrival get none: equal decisions are equal bytes.
//
// It holds the requests in flight, and those that wait for an older one: of these no more than
// heldMax tokens. An older request that would have more wait is skipped.
type Recorder struct {
	w        *Writer
	live     map[uint64]*recording
	order    []*recording // by submission; written and skipped ones leave at the front
	launched [core.ModelsMax][]passRow
	held     int64 // tokens of requests that have left and are not written
	skipped  uint64
	err      error
}

// heldMax is about 200 MB of two models' results.
const heldMax = 1 << 20

type recording struct {
	Request
	path []byte
	open bool // its last pass is neither kept nor dropped yet
	gone bool // has left the run
	skip bool
}

// resolve notes what became of the token of the last pass.
func (rec *recording) resolve(kept bool) {
	if rec.open && !kept {
		rec.path = append(rec.path, 'x')
	}
	rec.open = false
}

// passRow is a row that samples a token, in a launch that has not ended.
type passRow struct {
	of       *recording // nil: not sampling, or of a request that is not known
	position int32
}

// NewRecorder records into w. IDs must rise in order of submission, as a trace's do.
func NewRecorder(w *Writer) *Recorder {
	return &Recorder{w: w, live: make(map[uint64]*recording)}
}

// Turn takes what went in and came out of one core.Scheduler.Turn, of any node. Call it before
// the next turn of that node.
//
// A token is kept if it is committed, in the turn of its completion or, behind a barrier, in a
// later one; it was dropped if the request runs again or leaves before that.
func (r *Recorder) Turn(_ int, _ core.Time, in []core.Event, out *core.Actions) {
	r.write() // not in the turn in which a request leaves: its answer is judged after that
	for i := range in {
		if in[i].Kind == core.BatchDone {
			r.batchDone(&in[i])
		}
	}
	for i := range out.Tokens {
		if rec := r.live[out.Tokens[i].ID]; rec != nil {
			rec.resolve(true)
		}
	}
	for i := range out.Leaves {
		if l := &out.Leaves[i]; l.Slot >= 0 && !l.Guest {
			r.leave(l)
		}
	}
	for i := range in {
		if in[i].Kind == core.Submitted && !rejected(in[i].Submission.ID, out) {
			r.submitted(in[i].Submission)
		}
	}
	for i := range out.Launches {
		r.launch(&out.Launches[i])
	}
}

// Judged notes whether the answer of a request is right. Its time is from when the request leaves to the next
// Turn, or before.
func (r *Recorder) Judged(id uint64, right bool) {
	for _, rec := range r.order {
		if rec.ID == id {
			rec.Verdict = VerdictOf(right)
		}
	}
}

func rejected(id uint64, out *core.Actions) bool {
	for i := range out.Leaves {
		if l := &out.Leaves[i]; l.ID == id && l.Slot < 0 {
			return true
		}
	}
	return false
}

func (r *Recorder) submitted(s *core.Submission) {
	rec := &recording{Request: Request{
		ID: s.ID, ArrivalNs: max(s.Arrival, 0), PromptTokens: s.PromptTokens, TokensMax: s.TokensMax,
	}}
	for _, signals := range r.w.header.Signals {
		if signals != 0 {
			rec.Results = make([][]Result, len(r.w.header.Models))
		}
	}
	r.live[s.ID] = rec
	r.order = append(r.order, rec)
}

// launch remembers the rows, which the driver may not keep as long.
func (r *Recorder) launch(l *core.Launch) {
	rows := r.launched[l.Model][:0]
	for i := range l.Rows {
		row := &l.Rows[i]
		pass := passRow{}
		if rec := r.live[row.ID]; rec != nil {
			rec.resolve(false)
			if row.Head {
				pass = passRow{of: rec, position: row.Start + row.Fresh - rec.PromptTokens}
			}
		}
		rows = append(rows, pass)
	}
	r.launched[l.Model] = rows
}

func (r *Recorder) batchDone(e *core.Event) {
	for i, pass := range r.launched[e.Model] {
		rec := pass.of
		if rec == nil || rec.gone || e.Failed || i >= len(e.Results) {
			continue
		}
		rec.path = append(rec.path, '0'+byte(e.Model))
		rec.open = true
		if rec.Results != nil {
			rec.note(e.Model, pass.position, &e.Results[i], r.w.header.Signals[e.Model])
		}
	}
	r.launched[e.Model] = r.launched[e.Model][:0]
}

// note keeps the signals of one pass.
func (rec *recording) note(m int, position int32, result *core.Result, signals Signals) {
	for len(rec.Results[m]) <= int(position) {
		rec.Results[m] = append(rec.Results[m], Result{})
	}
	rec.Results[m][position] = Result{Result: *result, Has: signals}
}

func (r *Recorder) leave(l *core.Leave) {
	rec := r.live[l.ID]
	if rec == nil {
		return
	}
	delete(r.live, l.ID)
	rec.resolve(false)
	rec.gone = true
	r.held += int64(l.Tokens)
	rec.skip = l.Outcome != core.Finished || l.Tokens < 1
	rec.End = Length
	if l.Reason == core.EndOfSequence {
		rec.End = EndOfSequence
	}
	rec.OutputTokens = l.Tokens
	rec.Path = string(trimmed(rec.path))
	for m, results := range rec.Results {
		if results == nil {
			continue
		}
		for len(results) < int(l.Tokens) {
			results = append(results, Result{})
		}
		rec.Results[m] = results[:l.Tokens]
	}
}

// trimmed takes the dropped passes off the end of a path: of a request that its client stopped
// after a draft was dropped.
func trimmed(path []byte) []byte {
	for len(path) > 0 && path[len(path)-1] == 'x' {
		path = path[:len(path)-2]
	}
	return path
}

// write writes the requests that have left, up to the first that has not.
func (r *Recorder) write() {
	n := 0
	for n < len(r.order) && (r.order[n].gone || r.held > heldMax) {
		rec := r.order[n]
		n++
		if !rec.gone {
			rec.gone, rec.skip = true, true
			delete(r.live, rec.ID)
		} else {
			r.held -= int64(rec.OutputTokens)
		}
		if rec.skip {
			r.skipped++
		} else if err := r.w.Write(&rec.Request); err != nil {
			r.err = cmp.Or(r.err, err)
			r.skipped++
		}
	}
	r.order = slices.Delete(r.order, 0, n)
}

// Skipped counts the requests that left without a trace.
func (r *Recorder) Skipped() uint64 { return r.skipped }

// Close writes what waits for a request that has not left; that one counts as skipped. It
// flushes the Writer and returns the first error of each.
func (r *Recorder) Close() error {
	for _, rec := range r.order {
		rec.skip = rec.skip || !rec.gone
		rec.gone = true
	}
	r.write()
	clear(r.live)
	return errors.Join(r.err, r.w.Flush())
}
