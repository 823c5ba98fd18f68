package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Format is how a trace file is written.
type Format uint8

const (
	// CSV has a header line with column names and then one line a request.
	CSV Format = iota + 1
	// JSONL has one JSON object a line, a request each, with the column names as keys.
	JSONL
)

// FormatOf tells the format from the end of a file's name: .csv, .jsonl or .ndjson.
func FormatOf(path string) (Format, error) {
	switch filepath.Ext(path) {
	case ".csv":
		return CSV, nil
	case ".jsonl", ".ndjson":
		return JSONL, nil
	default:
		return 0, fmt.Errorf("trace %s: name ends in %q, want .csv, .jsonl or .ndjson", path, filepath.Ext(path))
	}
}

// TraceOptions change how a trace is read. The zero value reads it as it stands.
type TraceOptions struct {
	MaxTokens int32 // limit on output tokens for requests whose row gives none (or 0); 0: no limit
	FromZero  bool  // count arrivals from the first request instead of from the file's own zero
}

// TraceError is what is wrong with a trace file.
type TraceError struct {
	File   string
	Line   int    // from 1
	Column string // column or key; "" when the whole line is meant
	Value  string // as it stands in the file, cut to 60 bytes
	Want   string // what would be right
}

// Error names file, line, column, value and what was wanted.
func (e *TraceError) Error() string {
	if e.Column == "" {
		return fmt.Sprintf("trace %s:%d: %s, want %s", e.File, e.Line, e.Value, e.Want)
	}
	return fmt.Sprintf("trace %s:%d: %s = %q, want %s", e.File, e.Line, e.Column, e.Value, e.Want)
}

// lineBytesMax is the longest line of a trace. A request takes about a hundred bytes.
const lineBytesMax = 1 << 16

// Trace is a Source that reads a CSV or JSONL file as a stream.
//
// Columns (CSV) or keys (JSONL), in any order: exactly one of arrival_ns, arrival_ms and arrival_s, a
// decimal number of at least 0, rounded to whole nanoseconds, which never falls; prompt_tokens, at
// least 1; output_tokens, the natural length, at least 0, where 0 means that the output ends at its
// limit only; and optionally max_tokens (0: none), prefix_group (0: none) and prefix_tokens. Any other
// name, a repeated name, an empty field, a file without requests: each is a *TraceError. Blank lines
// are skipped.
type Trace struct {
	file    string
	lines   *bufio.Scanner
	line    int
	format  Format
	header  []column // CSV only: the column of each field
	options TraceOptions

	id      uint64
	last    Request // read ahead by one, so that a bad start shows at once
	hasLast bool
	zeroNs  int64
	lastNs  int64 // arrival of last in the file's own time
	err     error
	closer  io.Closer
}

// NewTrace reads a trace from r; file is its name in errors. It reads the header and the first request,
// and returns what is wrong with them.
func NewTrace(file string, format Format, r io.Reader, options TraceOptions) (*Trace, error) {
	if format != CSV && format != JSONL {
		return nil, fmt.Errorf("trace %s: unknown format %d", file, format)
	}
	if options.MaxTokens < 0 {
		return nil, fmt.Errorf("trace %s: max tokens = %d, want 0 (no limit) or more", file, options.MaxTokens)
	}
	t := &Trace{file: file, format: format, options: options, lines: bufio.NewScanner(r)}
	t.lines.Buffer(make([]byte, 0, 4096), lineBytesMax)
	if format == CSV {
		if err := t.readHeader(); err != nil {
			return nil, err
		}
	}
	t.last, t.hasLast = t.read()
	if t.err != nil {
		return nil, t.err
	}
	if !t.hasLast {
		return nil, t.wrong("", "no requests", "at least one")
	}
	return t, nil
}

// OpenTrace opens a trace file, in the format that its name tells. Close it when it is not read to its end.
func OpenTrace(path string, options TraceOptions) (*Trace, error) {
	format, err := FormatOf(path)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace %s: %w", path, err)
	}
	t, err := NewTrace(path, format, file, options)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	t.closer = file
	return t, nil
}

// CheckTrace reads a whole trace file and returns how many requests it has, or the first thing that is
// wrong with it. Call it before a run, so that a bad line shows before anything is written.
func CheckTrace(path string, options TraceOptions) (requests uint64, err error) {
	t, err := OpenTrace(path, options)
	if err != nil {
		return 0, err
	}
	for {
		if _, ok := t.Next(); !ok {
			return t.id, t.Err()
		}
	}
}

// Next implements Source. It ends at the end of the file or at the first error; ask Err.
func (t *Trace) Next() (r Request, ok bool) {
	if !t.hasLast {
		return Request{}, false
	}
	r = t.last
	t.last, t.hasLast = t.read()
	if !t.hasLast {
		if err := t.Close(); err != nil && t.err == nil {
			t.err = err
		}
	}
	return r, true
}

// Err returns what ended the trace early, or nil.
func (t *Trace) Err() error { return t.err }

// Close closes the file of OpenTrace. It may be called again.
func (t *Trace) Close() error {
	closer := t.closer
	t.closer, t.hasLast = nil, false
	if closer == nil {
		return nil
	}
	if err := closer.Close(); err != nil {
		return fmt.Errorf("trace %s: %w", t.file, err)
	}
	return nil
}

// wrong makes an error about the current line.
func (t *Trace) wrong(c, value, want string) error {
	const valueBytesMax = 60
	if len(value) > valueBytesMax {
		value = value[:valueBytesMax] + "..."
	}
	return &TraceError{File: t.file, Line: max(t.line, 1), Column: c, Value: value, Want: want}
}

// scan moves to the next line that is not blank. At the end it reports false, with t.err when there is
// a reason.
func (t *Trace) scan() (text string, ok bool) {
	for t.lines.Scan() {
		t.line++
		text = t.lines.Text()
		if t.line == 1 {
			text = strings.TrimPrefix(text, "\ufeff")
		}
		if strings.TrimSpace(text) != "" {
			return text, true
		}
	}
	if err := t.lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		t.line++
		t.err = t.wrong("", "a line too long", fmt.Sprintf("at most %d bytes", lineBytesMax))
	} else if err != nil {
		t.err = fmt.Errorf("trace %s:%d: %w", t.file, t.line+1, err)
	}
	return "", false
}

// read reads and checks the next request.
func (t *Trace) read() (r Request, ok bool) {
	text, ok := t.scan()
	if !ok {
		return Request{}, false
	}
	var row fields
	if t.format == CSV {
		row, t.err = t.splitCSV(text)
	} else {
		row, t.err = t.splitJSON(text)
	}
	if t.err == nil {
		r, t.err = t.request(row)
	}
	if t.err != nil {
		return Request{}, false
	}
	t.id++
	return r, true
}
