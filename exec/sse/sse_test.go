package sse

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// all reads a stream to its end.
func all(in io.Reader) (events []Event, err error) {
	r := NewReader(in, 1<<10)
	for {
		e, err := r.Next()
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

// event has these lines of data.
func event(lines ...string) Event { return Event{Data: []byte(strings.Join(lines, "\n"))} }

// cases are streams with their events by the HTML standard, section 9.2.6.
var cases = []struct {
	name, stream string
	want         []Event
	err          error
}{
	{"empty", "", nil, io.EOF},
	{"one", "data: {\"a\": 1}\n\n", []Event{event(`{"a": 1}`)}, io.EOF},
	{"two", "data: a\n\ndata: [DONE]\n\n", []Event{event("a"), event("[DONE]")}, io.EOF},
	{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []Event{event("a"), event("b")}, io.EOF},
	{"CR", "data: a\r\rdata: b\r\r", []Event{event("a"), event("b")}, io.EOF},
	{"mixed ends", "data: a\r\n\ndata: b\n\r\ndata: c\r\n\r", []Event{event("a"), event("b"), event("c")},
		io.EOF},
	{"several lines", "data: a\ndata: b\ndata:\ndata: c\n\n", []Event{event("a", "b", "", "c")}, io.EOF},
	{"no blank after the colon", "data:a\n\ndata:  b\n\n", []Event{event("a"), event(" b")}, io.EOF},
	{"no colon", "data\n\n", []Event{{}}, io.EOF},
	{"colons in data", "data: a: b:c\n\n", []Event{event("a: b:c")}, io.EOF},
	{"comments", ": waiting\n\n:\n\ndata: a\n: in the middle\ndata: b\n\n", []Event{event("a", "b")}, io.EOF},
	{"names", "event: error\ndata: a\n\ndata: b\n\n", []Event{{"error", []byte("a")}, event("b")}, io.EOF},
	{"no data", "event: ping\nid: 3\nretry: 10\n\ndata: a\n\n", []Event{event("a")}, io.EOF},
	{"unknown fields", "error: {}\nDATA: x\n data: y\n\ndata: a\n\n", []Event{event("a")}, io.EOF},
	{"byte order mark", "\ufeffdata: a\n\n\ufeffdata: b\n\n", []Event{event("a")}, io.EOF},
	{"more blank lines", "\n\ndata: a\n\n\n\ndata: b\n\n\n", []Event{event("a"), event("b")}, io.EOF},
	{"characters", "data: é 中 \U0001f600 e\u0301\n\n", []Event{event("é 中 \U0001f600 e\u0301")}, io.EOF},
	{"no end of the event", "data: a\n\ndata: [DONE]\n", []Event{event("a")}, io.ErrUnexpectedEOF},
	{"no end of the line", "data: a\n\ndata: {\"b\"", []Event{event("a")}, io.ErrUnexpectedEOF},
	{"a comment at the end", "data: a\n\n: bye\n", []Event{event("a")}, io.EOF},
	{"too large", "data: a\n\ndata: " + strings.Repeat("x", 2000) + "\n\n", []Event{event("a")}, ErrTooLarge},
	{"too many lines", strings.Repeat("data: x\n", 200) + "\n", nil, ErrTooLarge},
}

// pieces gives a stream in pieces.
func pieces(parts ...string) io.Reader {
	var readers []io.Reader
	for _, p := range parts {
		readers = append(readers, strings.NewReader(p))
	}
	return io.MultiReader(readers...)
}

// TestSplit: every stream gives the same events whole, byte by byte, and split in two or three anywhere: also
// within a character, an end of a line, a name.
func TestSplit(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			check := func(how string, in io.Reader) {
				t.Helper()
				got, err := all(in)
				if diff := cmp.Diff(c.want, got); diff != "" || !errors.Is(err, c.err) {
					t.Fatalf("%s: %v, want %v (-want +got):\n%s", how, err, c.err, diff)
				}
			}
			check("whole", strings.NewReader(c.stream))
			check("bytes", iotest.OneByteReader(strings.NewReader(c.stream)))
			check("data with EOF", iotest.DataErrReader(strings.NewReader(c.stream)))
			s := c.stream
			if len(s) > 100 {
				s = "" // the long ones are for limits
			}
			for i := range len(s) {
				for j := i; j < len(s); j++ {
					check("parts", pieces(s[:i], s[i:j], s[j:]))
				}
			}
		})
	}
}

// TestCut: a stream that is cut after any byte gives the events before, and says so unless it is cut between
// two events.
func TestCut(t *testing.T) {
	const stream = "data: é\n\n: wait\ndata: \U0001f600\ndata: b\n\ndata: [DONE]\n\n"
	whole, _ := all(strings.NewReader(stream))
	for n := range len(stream) {
		got, err := all(strings.NewReader(stream[:n]))
		rest, count := stream[:n], 0
		for {
			_, after, ok := strings.Cut(rest, "\n\n")
			if !ok {
				break
			}
			rest, count = after, count+1
		}
		want := io.ErrUnexpectedEOF
		if rest == "" || rest == ": wait\n" {
			want = io.EOF
		}
		if diff := cmp.Diff(append([]Event(nil), whole[:count]...), got); diff != "" || !errors.Is(err, want) {
			t.Errorf("after %q: %v, want %v (-want +got):\n%s", stream[:n], err, want, diff)
		}
	}
}

// TestBrokenConnection: an error of the connection is the reader's.
func TestBrokenConnection(t *testing.T) {
	broken := errors.New("reset")
	_, err := all(io.MultiReader(strings.NewReader("data: a\n\nda"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
}

// split gives a stream in pieces of these lengths, in turn, and the rest.
func split(stream string, lengths []byte) io.Reader {
	var parts []string
	for _, n := range lengths {
		n := min(int(n), len(stream))
		parts = append(parts, stream[:n])
		stream = stream[n:]
	}
	return pieces(append(parts, stream)...)
}

// FuzzReader: any bytes give the same events whole, byte by byte and in any pieces, with the end at once or
// after; no event has an end of a line that is not a line feed, and none is larger than the limit.
func FuzzReader(f *testing.F) {
	for i, c := range cases {
		f.Add([]byte(c.stream), []byte{byte(i), 1, 0, 5})
	}
	f.Fuzz(func(t *testing.T, stream, lengths []byte) {
		whole, err := all(bytes.NewReader(stream))
		for how, in := range map[string]io.Reader{
			"bytes":  iotest.OneByteReader(bytes.NewReader(stream)),
			"pieces": split(string(stream), lengths),
			"end":    iotest.DataErrReader(split(string(stream), lengths)),
		} {
			got, again := all(in)
			if diff := cmp.Diff(whole, got); diff != "" || err.Error() != again.Error() {
				t.Fatalf("%s: %v, whole: %v (-whole +got)\n%s", how, again, err, diff)
			}
		}
		for _, e := range whole {
			if bytes.ContainsAny(e.Data, "\r") || len(e.Data) > 1<<10 {
				t.Fatalf("data %q", e.Data)
			}
		}
	})
}
