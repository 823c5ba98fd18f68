package answer

import "strings"

// Piece is text that is final, with the model whose token made it so.
type Piece struct {
	Text  string
	Model int32
}

// stops looks for stop strings in text that comes piece by piece.
type stops struct {
	stop []string // none is empty
	held []Piece  // what may be the beginning of a stop string
}

// next takes a piece and gives out what is final. With found, a stop string has come: the text before it is
// out, and what is after it is lost.
func (s *stops) next(p Piece, out func(Piece)) (found bool) {
	if p.Text == "" {
		return false
	}
	if len(s.stop) == 0 {
		out(p)
		return false
	}
	s.held = append(s.held, p)
	text := s.text()
	end := len(text)
	for _, stop := range s.stop {
		if at := strings.Index(text, stop); at >= 0 && (!found || at < end) {
			end, found = at, true
		}
	}
	if !found {
		end -= s.begun(text)
	}
	s.release(end, out)
	return found
}

// begun is the length of the longest end of text that a stop string begins with.
func (s *stops) begun(text string) int {
	longest := 0
	for _, stop := range s.stop {
		for n := min(len(stop)-1, len(text)); n > longest; n-- {
			if strings.HasSuffix(text, stop[:n]) {
				longest = n
			}
		}
	}
	return longest
}

func (s *stops) text() string {
	var b strings.Builder
	for _, p := range s.held {
		b.WriteString(p.Text)
	}
	return b.String()
}

// release gives out the first end bytes of what is held.
func (s *stops) release(end int, out func(Piece)) {
	for end > 0 {
		p := s.held[0]
		if len(p.Text) > end {
			out(Piece{p.Text[:end], p.Model})
			s.held[0].Text = p.Text[end:]
			return
		}
		out(p)
		end -= len(p.Text)
		s.held = s.held[1:]
	}
}

// flush gives out all that is held: the text has ended.
func (s *stops) flush(out func(Piece)) { s.release(len(s.text()), out) }
