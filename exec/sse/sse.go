// Package sse reads Server-Sent Events, as OpenAI's API and the engines that speak it stream them: the event
// stream of the HTML standard (WHATWG, section 9.2), without reconnection.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Event is what stands between two blank lines of a stream.
type Event struct {
	Name string // of a field "event"; empty: none
	Data []byte // of all fields "data", with line feeds between; the caller's to keep
}

// ErrTooLarge is the error of an event beyond a Reader's limit.
var ErrTooLarge = errors.New("sse: an event is too large")

// Reader reads the events of a stream, wherever the pieces that it comes in are split.
type Reader struct {
	in       *bufio.Reader
	bytesMax int
	line     []byte
	started  bool // a byte order mark can no longer come
	returned bool // the last line ended in CR: an LF that follows belongs to it
}

// NewReader reads from in. An event, its names and comments included, has at most bytesMax bytes.
func NewReader(in io.Reader, bytesMax int) *Reader {
	return &Reader{in: bufio.NewReader(in), bytesMax: bytesMax}
}

// Next returns the next event that has data. At the end of the stream its error is io.EOF, or
// io.ErrUnexpectedEOF if the stream ends within an event, which is then not returned: it may be cut anywhere.
func (r *Reader) Next() (Event, error) {
	var e Event
	size, any, data := 0, false, false
	for {
		err := r.readLine(r.bytesMax - size)
		if err != nil {
			if errors.Is(err, io.EOF) && (any || len(r.line) > 0) {
				err = io.ErrUnexpectedEOF
			}
			return Event{}, err
		}
		size += len(r.line) + 1
		if len(r.line) == 0 {
			if data {
				return e, nil
			}
			e, size, any = Event{}, 0, false // an event without data is none
			continue
		}
		name, value, _ := bytes.Cut(r.line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(name) {
		case "data":
			if data {
				e.Data = append(e.Data, '\n')
			}
			e.Data, any, data = append(e.Data, value...), true, true
		case "event":
			e.Name, any = string(value), true
		case "": // a comment: a pulse while there is nothing to say
		default: // id, retry, and what the standard says to pass over
			any = true
		}
	}
}

// readLine reads into r.line what stands before the next end of a line: LF, CR, or both as one.
func (r *Reader) readLine(most int) error {
	r.line = r.line[:0]
	for {
		c, err := r.in.ReadByte()
		if err != nil {
			return err
		}
		after := r.returned
		r.returned = c == '\r'
		switch {
		case c == '\n' && after:
			continue
		case c == '\n' || c == '\r':
			r.unmark()
			return nil
		case len(r.line) >= most:
			return fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, r.bytesMax)
		}
		r.line = append(r.line, c)
	}
}

// unmark takes the byte order mark from the first line.
func (r *Reader) unmark() {
	if !r.started {
		r.line = bytes.TrimPrefix(r.line, []byte("\ufeff"))
		r.started = true
	}
}
