package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"tokenrouter/core/turnlog/jsonline"
)

// ErrCut is wrapped by the error for a file that ends within a line: its writing was interrupted. All
// requests before are whole.
var ErrCut = errors.New("the file is cut off here")

// Reader reads a trace as a stream.
type Reader struct {
	lines  *jsonline.Lines
	header Header
	closer io.Closer
	order
}

// NewReader reads the header from r; name is the file's name in errors.
func NewReader(name string, r io.Reader) (*Reader, error) {
	t := &Reader{lines: jsonline.NewLines(name, r)}
	line, err := t.lines.Next()
	if err == io.EOF {
		err = t.lines.Wrap(wrong("", "an empty file", "a header"))
	}
	if err != nil {
		return nil, fmt.Errorf("trace %w", err)
	}
	c := jsonline.NewCursor(line)
	if err := t.header.read(c); err != nil {
		return nil, fmt.Errorf("trace %w", t.lines.Wrap(err))
	}
	return t, nil
}

// Open opens a trace file; .gz at the end of its name says that it is packed. Close it.
func Open(path string) (*Reader, error) {
	file, err := jsonline.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace %w", err)
	}
	t, err := NewReader(path, file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	t.closer = file
	return t, nil
}

// Check reads a whole trace file and returns how many requests it has, or the first thing that
// is wrong with it. Call it before a run, so that a bad line shows before anything is written.
func Check(path string) (requests uint64, err error) {
	t, err := Open(path)
	if err != nil {
		return 0, err
	}
	var r Request
	for {
		if err = t.Read(&r); err != nil {
			break
		}
		requests++
	}
	if err == io.EOF {
		err = nil
	}
	return requests, errors.Join(err, t.Close())
}

// Name is the file's name.
func (t *Reader) Name() string { return t.lines.Name() }

// Header is the first line.
func (t *Reader) Header() Header { return t.header }

// CheckPair is Header.CheckPair, with the name of the file in its error.
func (t *Reader) CheckPair(want *Header) error {
	if err := t.header.CheckPair(want); err != nil {
		return fmt.Errorf("trace %s:1: %w", t.lines.Name(), err)
	}
	return nil
}

// Close closes the file of Open. It may be called again.
func (t *Reader) Close() error {
	closer := t.closer
	t.closer = nil
	if closer == nil {
		return nil
	}
	return closer.Close()
}

// Read reads the next request into r, whose memory is used again. It returns io.EOF at the
// end, and otherwise an error that names file and line.
func (t *Reader) Read(r *Request) error {
	line, err := t.lines.Next()
	if err == io.EOF {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("trace %w: %w", err, ErrCut) // of a packed file
	}
	if err != nil {
		return fmt.Errorf("trace %w", err)
	}
	if err := t.parse(r, jsonline.NewCursor(line)); err != nil {
		err = t.lines.Wrap(err)
		if !t.lines.Ended() && !json.Valid(line) {
			err = fmt.Errorf("%w: %w", err, ErrCut)
		}
		return fmt.Errorf("trace %w", err)
	}
	r.Line = t.lines.Line()
	return nil
}

func (h *Header) read(c *jsonline.Cursor) error {
	format, version := "", 0
	err := c.Object(func(key string) (err error) {
		switch key {
		case "format":
			format, err = c.String()
		case "version":
			version, err = jsonline.Integer(c, 0, math.MaxInt32)
		case "models":
			err = c.Array(func(int) error {
				name, err := c.String()
				h.Models = append(h.Models, name)
				return err
			})
		case "signals":
			err = c.Array(func(int) error {
				signals, err := readSignals(c)
				h.Signals = append(h.Signals, signals)
				return err
			})
		default:
			err = h.Pair.read(key, c)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case format != FormatName:
		return wrong("format", strconv.Quote(format), "%q", FormatName)
	case version != Version:
		return wrong("version", version, "%d", Version)
	}
	if err := c.End(); err != nil {
		return err
	}
	return h.check()
}

func readSignals(c *jsonline.Cursor) (set Signals, err error) {
	err = c.Array(func(int) error {
		before := *c
		name, err := c.String()
		if err != nil {
			return err
		}
		signal := SignalNamed(name)
		if signal == 0 || set >= signal {
			return before.Wrong("one of " + strings.Join(signalNames[:], ", ") + ", in this order")
		}
		set |= signal
		return nil
	})
	return set, err
}

func (t *Reader) parse(r *Request, c *jsonline.Cursor) error {
	*r = Request{End: EndOfSequence, Results: r.Results[:0]}
	hasID, hasResults := false, false
	err := c.Object(func(key string) (err error) {
		switch key {
		case "id":
			hasID = true
			r.ID, err = jsonline.Unsigned[uint64](c, math.MaxUint64)
		case "arrival_ms":
			r.ArrivalNs, err = readMilliseconds(c)
		case "prompt_tokens":
			r.PromptTokens, err = jsonline.Integer[int32](c, 1, math.MaxInt32)
		case "output_tokens":
			r.OutputTokens, err = jsonline.Integer[int32](c, 1, math.MaxInt32)
		case "tokens_max":
			r.TokensMax, err = jsonline.Integer[int32](c, 1, math.MaxInt32)
		case "end":
			r.End, err = readEnd(c)
		case "right":
			var right bool
			right, err = c.Bool()
			r.Verdict = VerdictOf(right)
		case "path":
			r.Path, err = readPath(c)
		case "results":
			hasResults = true
			err = c.Array(func(m int) error { return t.readModel(r, c, m) })
		default:
			err = jsonline.Unknown("id", "arrival_ms", "prompt_tokens", "output_tokens", "tokens_max", "end",
				"right", "path", "results")
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := c.End(); err != nil {
		return err
	}
	if !hasID {
		return wrong("", "no id", "one in every request")
	}
	if !hasResults {
		r.Results = nil
	}
	if err := r.check(&t.header); err != nil {
		return err
	}
	return t.order.check(r)
}

func readPath(c *jsonline.Cursor) (string, error) {
	before := *c
	path, err := c.String()
	if err == nil && path == "" {
		err = before.Wrong("at least one pass")
	}
	return path, err
}

func readEnd(c *jsonline.Cursor) (End, error) {
	before := *c
	name, err := c.String()
	if err != nil {
		return 0, err
	}
	switch name {
	case "eos":
		return EndOfSequence, nil
	case "length":
		return Length, nil
	}
	return 0, before.Wrong(`"eos" or "length"`)
}

// readMilliseconds reads a decimal number exactly, without a detour over floats.
func readMilliseconds(c *jsonline.Cursor) (ns int64, err error) {
	const places = 6
	before := *c
	text, err := c.Number()
	if err != nil {
		return 0, err
	}
	whole, fraction, _ := strings.Cut(text, ".")
	if len(fraction) <= places {
		ns, err = strconv.ParseInt(whole+fraction+strings.Repeat("0", places-len(fraction)), 10, 64)
		if err == nil && ns >= 0 && ns <= ArrivalNsMax && text[0] != '-' {
			return ns, nil
		}
	}
	return 0, before.Wrong("a decimal number of milliseconds, 0 to " + milliseconds(ArrivalNsMax) +
		", with at most 6 decimal places and no exponent")
}

// readModel reads the results of model m.
func (t *Reader) readModel(r *Request, c *jsonline.Cursor, m int) error {
	if m >= len(t.header.Models) {
		return c.Wrong(fmt.Sprintf("%d models, as in the header", len(t.header.Models)))
	}
	var results []Result
	if len(r.Results) < cap(r.Results) {
		results = r.Results[:m+1][m]
	}
	if c.Null() {
		r.Results = append(r.Results, nil)
		return nil
	}
	results, err := t.readColumns(results[:0], c, m)
	if err != nil {
		return err
	}
	if len(results) == 0 && t.header.Signals[m] == 0 {
		results = nil // it leaves no signals
	}
	r.Results = append(r.Results, results)
	return nil
}

func (t *Reader) readColumns(results []Result, c *jsonline.Cursor, m int) ([]Result, error) {
	var seen Signals
	err := c.Object(func(key string) error {
		signal := SignalNamed(key)
		if signal&t.header.Signals[m] == 0 {
			return jsonline.Unknown(t.header.Signals[m].Names()...)
		}
		first := seen == 0
		seen |= signal
		count := 0
		err := c.Array(func(p int) error {
			if first {
				results = append(results, Result{})
			}
			if count++; p >= len(results) {
				return c.Wrong(fmt.Sprintf("%d values, as the signal before", len(results)))
			}
			return readSignal(c, &results[p], signal)
		})
		if err == nil && count != len(results) {
			err = wrong("", fmt.Sprintf("%d values", count), "%d, as the signal before", len(results))
		}
		return err
	})
	if missing := t.header.Signals[m] &^ seen; err == nil && missing != 0 {
		err = wrong("", "no "+missing.String(), "all signals that the header names")
	}
	return results, err
}

func readSignal(c *jsonline.Cursor, r *Result, signal Signals) (err error) {
	if c.Null() {
		return nil
	}
	var f float64
	switch signal {
	case Token:
		r.Token, err = jsonline.Integer[int32](c, math.MinInt32, math.MaxInt32)
	case LogProb:
		f, err = c.Float(32)
		r.LogProb = float32(f)
	case TopProb:
		f, err = c.Float(32)
		r.TopProb = float32(f)
	case Score:
		r.Score, err = c.Float(64)
	case Entropy:
		r.Entropy, err = c.Float(64)
	case Draw:
		r.Draw, err = c.Float(64)
	case EOS:
		r.EOS, err = c.Bool()
	default:
		panic(fmt.Sprintf("trace: signal %#x", uint8(signal)))
	}
	r.Has |= signal
	return err
}
