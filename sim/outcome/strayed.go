package outcome

import (
	"fmt"

	"tokenrouter/sim/outcome/trace"
)

// Strayed counts what was played of Signals that were recorded after other tokens than those committed here.
type Strayed struct {
	Requests uint64 // that committed a token other than the recorded one
	Passes   uint64 // of those requests, after that
	Past     uint64 // of those requests, that got past the recorded length: they ended there
	Of       uint64 // passes in all
}

// Answers counts the requests that have left by what is known of their answers: a trace says of a recorded
// answer whether it was right, and nothing of another.
type Answers struct {
	Right, Wrong uint64 // the recorded answer, as it was judged when it was measured
	Unknown      uint64 // another answer, or one that nobody has judged
}

// Strayed says how much of what was played is of recorded answers, and not of those made here.
func (r *Recorded) Strayed() Strayed { return r.strayed }

// Answers says what is known of the answers of the requests that have left.
func (r *Recorded) Answers() Answers { return r.answers }

// Warning says what a reader of a result must know of the trace behind it; empty for nothing.
func (r *Recorded) Warning() string {
	text := ""
	if r.cut {
		text = fmt.Sprintf("trace %s is cut off: only its whole requests were played", r.from.Name())
	}
	if s := r.strayed; s.Requests > 0 {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("trace %s: %d requests committed other tokens than the recorded ones: %d of %d passes"+
			" were judged by signals of the recorded answers", r.from.Name(), s.Requests, s.Passes, s.Of)
		if s.Past > 0 {
			text += fmt.Sprintf(", and %d requests ended at the recorded length", s.Past)
		}
	}
	return text
}

// left notes what is known of the answer of a request that leaves.
func (r *Recorded) left(rec *record) {
	r.resolve(rec, rec.OutputTokens)
	a := &r.answers
	whole := rec.Path != "" && (int(rec.at) == len(rec.Path) || r.play == Signals && rec.last >= 0)
	switch {
	case rec.strayed || !whole || rec.Verdict == 0: // whole: not refused
		a.Unknown++
	case rec.Verdict == trace.Right:
		a.Right++
	default:
		a.Wrong++
	}
}

// follow notes, before a pass for the position, what became of the token of the pass before.
func (r *Recorded) follow(rec *record, model int, position int32) {
	r.resolve(rec, position)
	rec.last = int32(model)
	r.strayed.Of++
	if rec.strayed {
		r.strayed.Passes++
	}
}

// resolve compares the token of the last pass with the recorded one, if it was kept: if what follows is not
// its own position.
func (r *Recorded) resolve(rec *record, following int32) {
	if rec.Path == "" || rec.strayed || rec.last < 0 || following <= rec.kept {
		return
	}
	if rec.strayed = !rec.same(int(rec.last)); rec.strayed {
		r.strayed.Requests++
	}
	rec.kept++
}

// same reports whether the token of the model at position kept is the recorded one, and moves on in the path.
func (rec *record) same(model int) bool {
	for int(rec.at)+1 < len(rec.Path) && rec.Path[rec.at+1] == 'x' {
		rec.at += 2
	}
	if int(rec.at) >= len(rec.Path) {
		return false
	}
	origin := int(rec.Path[rec.at] - '0')
	rec.at++
	if origin == model {
		return true
	}
	token, known := rec.token(model)
	recorded, also := rec.token(origin)
	return known && also && token == recorded
}

// token is what a model sampled at position kept.
func (rec *record) token(model int) (id int32, known bool) {
	if rec.Results == nil || rec.Results[model] == nil {
		return 0, false
	}
	result := &rec.Results[model][rec.kept]
	return result.Token, result.Has&trace.Token != 0
}
