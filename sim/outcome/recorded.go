package outcome

import (
	"errors"
	"fmt"
	"io"

	"tokenrouter/core"
	"tokenrouter/sim/outcome/trace"
	"tokenrouter/sim/workload"
)

// Play says what of a trace is played back.
type Play uint8

const (
	// Paths plays the recorded moves, for route.Recorded: Result.Next, Drop and EOS; what else
	// was recorded of a pass is filled in.
	Paths Play = iota + 1
	// Signals plays what the models gave, for an algorithm that decides anew, with other
	// thresholds perhaps. Every signal that the trace's header names for a model must have been
	// recorded where that model runs. EOS is the recorded signal, or else the last position of
	// a request that ended with one.
	//
	// A token that is not the recorded one leads astray: what the models would have said after it was not
	// recorded, and what they said after the recorded one is played in its place. Strayed counts that; who
	// gets past the recorded length ends there. Traces without paths can not tell.
	Signals
)

// Recorded plays a trace back. It is a workload too: Next gives the trace's requests. What was
// never recorded is never made up: Err then says what is missing, and all results are zero.
//
// It reads the trace as a stream and holds the requests between Next and Leave, which the driver
// is to call; it is to submit each request at its Entry. It belongs to one run.
type Recorded struct {
	from    *trace.Reader
	play    Play
	signals []trace.Signals
	records []record
	free    []int32
	byID    map[uint64]int32
	cut     bool
	strayed Strayed
	answers Answers
	err     error
}

// record is a request between Next and Leave.
type record struct {
	trace.Request
	at       int32 // bytes of Path played
	kept     int32 // tokens kept so far
	last     int32 // Signals: the model that made the last pass; -1: none
	strayed  bool
	inFlight bool
}

// NewRecorded plays what is left in from. It refuses to play Signals that no model has.
func NewRecorded(from *trace.Reader, play Play) (*Recorded, error) {
	r := &Recorded{from: from, play: play, signals: from.Header().Signals, byID: make(map[uint64]int32)}
	switch play {
	case Paths:
	case Signals:
		for _, s := range r.signals {
			if s != 0 {
				return r, nil
			}
		}
		return nil, fmt.Errorf("trace %s:1: signals: none of any model, want some to decide by", from.Name())
	default:
		return nil, fmt.Errorf("outcome: play = %d, want Paths or Signals", play)
	}
	return r, nil
}

// Next implements workload.Source. Its limit on output tokens is the recorded length, and of an answer that
// ended with an end of sequence the recorded limit. A file that is cut off ends with its last whole request.
// The file is closed after the last.
func (r *Recorded) Next() (q workload.Request, ok bool) {
	if r.err != nil {
		return q, false
	}
	i := r.room()
	rec := &r.records[i]
	if err := r.from.Read(&rec.Request); err != nil {
		r.free = append(r.free, i)
		r.cut = errors.Is(err, trace.ErrCut)
		if err == io.EOF || r.cut {
			err = nil
		}
		r.err = errors.Join(err, r.from.Close())
		return q, false
	}
	if missing := r.missing(rec); missing != "" {
		r.err = fmt.Errorf("trace %s:%d: request %d: no %s, want it to play", r.from.Name(), rec.Line, rec.ID,
			missing)
		return q, false
	}
	rec.at, rec.kept, rec.last, rec.strayed, rec.inFlight = 0, 0, -1, false, true
	r.byID[rec.ID] = i
	q = workload.Request{
		ID: rec.ID, ArrivalNs: rec.ArrivalNs, PromptTokens: rec.PromptTokens, MaxTokens: rec.OutputTokens,
	}
	if rec.End == trace.EndOfSequence {
		q.OutputTokens = rec.OutputTokens
		q.MaxTokens = max(rec.TokensMax, rec.OutputTokens)
	}
	return q, true
}

func (r *Recorded) room() int32 {
	if n := len(r.free); n > 0 {
		i := r.free[n-1]
		r.free = r.free[:n-1]
		return i
	}
	r.records = append(r.records, record{})
	return int32(len(r.records) - 1)
}

func (r *Recorded) missing(rec *record) string {
	switch {
	case r.play == Paths && rec.Path == "":
		return "path"
	case r.play == Signals && rec.Results == nil:
		return "results"
	}
	return ""
}

// Entry is the model that made the first pass of a request that Next has given; 0 when Signals
// are played. The request is to be submitted there.
func (r *Recorded) Entry(id uint64) int {
	i, ok := r.byID[id]
	if !ok || r.play == Signals {
		return 0
	}
	return int(r.records[i].Path[0] - '0')
}

// Leave says that a request has left the run: its record is let go. Without it memory grows
// with the trace.
func (r *Recorded) Leave(id uint64) {
	i, ok := r.byID[id]
	if !ok {
		return
	}
	delete(r.byID, id)
	r.records[i].inFlight = false
	r.left(&r.records[i])
	r.free = append(r.free, i)
}

// Held is how many requests are held, between Next and Leave.
func (r *Recorded) Held() int { return len(r.byID) }

// Err is the first fault met: of the file, or a pass that was not recorded.
func (r *Recorded) Err() error { return r.err }

// Fill implements Source. Request.Scratch remembers where the record is.
func (r *Recorded) Fill(model int, rows []core.Row, requests []Request, results []core.Result) {
	for i := range rows {
		row := &rows[i]
		results[i] = core.Result{}
		if !row.Head || r.err != nil {
			continue
		}
		request := &requests[row.Slot]
		rec := r.find(request)
		if rec == nil {
			r.err = fmt.Errorf("trace %s: request %d is not in flight from this trace", r.from.Name(), request.ID)
			continue
		}
		position := request.position(row)
		if r.play == Paths {
			r.pass(rec, model, position, &results[i])
		} else {
			r.signal(rec, model, position, &results[i])
		}
	}
}

// find returns the record of a live request, or nil. Scratch[0] is its index plus one.
func (r *Recorded) find(request *Request) *record {
	if i := request.Scratch[0]; i > 0 && i <= uint64(len(r.records)) {
		if rec := &r.records[i-1]; rec.inFlight && rec.ID == request.ID {
			return rec
		}
	}
	i, ok := r.byID[request.ID]
	if !ok {
		return nil
	}
	request.Scratch[0] = uint64(i) + 1
	return &r.records[i]
}

// pass plays the next pass of a path.
func (r *Recorded) pass(rec *record, model int, position int32, result *core.Result) {
	path := rec.Path
	if int(rec.at) >= len(path) {
		r.fail(rec, model, position, "a pass after the last", "at most the passes of its path")
		return
	}
	if want := int(path[rec.at] - '0'); want != model || rec.kept != position {
		r.fail(rec, model, position, "a pass", "as recorded model %d, position %d (path at %d)",
			want, rec.kept, rec.at)
		return
	}
	knowsEOS := false
	if rec.Results != nil && rec.Results[model] != nil {
		recorded := &rec.Results[model][position]
		*result = recorded.Result
		knowsEOS = recorded.Has&trace.EOS != 0
	}
	result.Next = uint8(model)
	rec.at++
	if int(rec.at) < len(path) && path[rec.at] == 'x' {
		rec.at++
		result.Drop = true
	} else {
		rec.kept++
	}
	if int(rec.at) < len(path) {
		result.Next = path[rec.at] - '0'
	} else if !knowsEOS {
		result.EOS = rec.End == trace.EndOfSequence
	}
}

// signal plays what the model gave at the position.
func (r *Recorded) signal(rec *record, model int, position int32, result *core.Result) {
	want := r.signals[model]
	r.follow(rec, model, position)
	if position >= rec.OutputTokens {
		if !rec.strayed {
			r.fail(rec, model, position, "a pass", "a position below %d, the recorded length", rec.OutputTokens)
			return
		}
		r.strayed.Past++
		result.EOS = true
		return
	}
	if want != 0 {
		var got trace.Result
		if results := rec.Results[model]; results != nil {
			got = results[position]
		}
		if missing := want &^ got.Has; missing != 0 {
			r.fail(rec, model, position, "no "+missing.String(), "a recorded value: it did not run there when"+
				" the trace was recorded")
			return
		}
		*result = got.Result
	}
	if want&trace.EOS == 0 {
		result.EOS = position+1 == rec.OutputTokens && rec.End == trace.EndOfSequence
	}
}

func (r *Recorded) fail(rec *record, model int, position int32, what, want string, args ...any) {
	r.err = fmt.Errorf("trace %s:%d: request %d, model %d, position %d: %s, want %s", r.from.Name(), rec.Line,
		rec.ID, model, position, what, fmt.Sprintf(want, args...))
}
