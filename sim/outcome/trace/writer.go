package trace

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"

	"tokenrouter/core/turnlog/jsonline"
)

// Writer writes a trace as a stream.
type Writer struct {
	w      *bufio.Writer
	header Header
	line   []byte
	order
}

// order is what must rise from request to request.
type order struct {
	any    bool
	lastID uint64
	lastNs int64
}

func (o *order) check(r *Request) error {
	if o.any && r.ID <= o.lastID {
		return wrong("id", r.ID, "above %d, the one before", o.lastID)
	}
	if o.any && r.ArrivalNs < o.lastNs {
		return wrong("arrival_ms", milliseconds(r.ArrivalNs), "at least %s, the one before",
			milliseconds(o.lastNs))
	}
	o.any, o.lastID, o.lastNs = true, r.ID, r.ArrivalNs
	return nil
}

// NewWriter writes the header. Call Flush at the end.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	if err := h.check(); err != nil {
		return nil, fmt.Errorf("trace: header: %w", err)
	}
	t := &Writer{w: bufio.NewWriter(w), header: h}
	line := append(t.line, `{"format":"`+FormatName+`","version":`...)
	line = strconv.AppendInt(line, Version, 10)
	line = append(line, `,"models":[`...)
	for m, name := range h.Models {
		line = jsonline.AppendString(comma(line, m), name)
	}
	line = append(line, `],"signals":[`...)
	for m, signals := range h.Signals {
		line = append(comma(line, m), '[')
		for i, name := range signals.Names() {
			line = jsonline.AppendString(comma(line, i), name)
		}
		line = append(line, ']')
	}
	line = h.Pair.append(append(line, ']'))
	return t, t.put(append(line, "}\n"...))
}

// Write adds a request. It refuses one that a Reader would refuse, an id or arrival that falls
// included; nothing is written then. It fills in r.OutputTokens where only a path is given.
func (t *Writer) Write(r *Request) error {
	if err := r.check(&t.header); err != nil {
		return fmt.Errorf("trace: request %d: %w", r.ID, err)
	}
	if err := checkFinite(r); err != nil {
		return fmt.Errorf("trace: request %d: %w", r.ID, err)
	}
	if err := t.order.check(r); err != nil {
		return fmt.Errorf("trace: request %d: %w", r.ID, err)
	}
	line := strconv.AppendUint(append(t.line[:0], `{"id":`...), r.ID, 10)
	if r.ArrivalNs != 0 {
		line = append(append(line, `,"arrival_ms":`...), milliseconds(r.ArrivalNs)...)
	}
	line = strconv.AppendInt(append(line, `,"prompt_tokens":`...), int64(r.PromptTokens), 10)
	line = strconv.AppendInt(append(line, `,"output_tokens":`...), int64(r.OutputTokens), 10)
	if r.TokensMax != 0 {
		line = strconv.AppendInt(append(line, `,"tokens_max":`...), int64(r.TokensMax), 10)
	}
	line = jsonline.AppendString(append(line, `,"end":`...), r.End.String())
	if r.Verdict != 0 {
		line = strconv.AppendBool(append(line, `,"right":`...), r.Verdict == Right)
	}
	if r.Path != "" {
		line = jsonline.AppendString(append(line, `,"path":`...), r.Path)
	}
	if r.Results != nil {
		line = append(line, `,"results":[`...)
		for m, results := range r.Results {
			line = appendResults(comma(line, m), results, t.header.Signals[m])
		}
		line = append(line, ']')
	}
	return t.put(append(line, "}\n"...))
}

// Flush writes what is buffered and returns the first error of all writing.
func (t *Writer) Flush() error { return t.w.Flush() }

func (t *Writer) put(line []byte) error {
	t.line = line
	_, err := t.w.Write(line)
	return err
}

func checkFinite(r *Request) error {
	for m, results := range r.Results {
		for p := range results {
			one := &results[p]
			sum := float64(one.LogProb) + float64(one.TopProb) + one.Score + one.Entropy + one.Draw
			if math.IsNaN(sum) || math.IsInf(sum, 0) {
				return wrong(fmt.Sprintf("results[%d], position %d", m, p), fmt.Sprintf("%+v", one.Result),
					"finite numbers")
			}
		}
	}
	return nil
}

func appendResults(line []byte, results []Result, signals Signals) []byte {
	if results == nil {
		return append(line, "null"...)
	}
	line = append(line, '{')
	for i, name := range signals.Names() {
		line = append(jsonline.AppendString(comma(line, i), name), ":["...)
		signal := SignalNamed(name)
		for p := range results {
			line = appendSignal(comma(line, p), &results[p], signal)
		}
		line = append(line, ']')
	}
	return append(line, '}')
}

func appendSignal(line []byte, r *Result, signal Signals) []byte {
	if r.Has&signal == 0 {
		return append(line, "null"...)
	}
	switch signal {
	case Token:
		return strconv.AppendInt(line, int64(r.Token), 10)
	case LogProb:
		return jsonline.AppendFloat(line, float64(r.LogProb), 32)
	case TopProb:
		return jsonline.AppendFloat(line, float64(r.TopProb), 32)
	case Score:
		return jsonline.AppendFloat(line, r.Score, 64)
	case Entropy:
		return jsonline.AppendFloat(line, r.Entropy, 64)
	case Draw:
		return jsonline.AppendFloat(line, r.Draw, 64)
	case EOS:
		return strconv.AppendBool(line, r.EOS)
	default:
		panic(fmt.Sprintf("trace: signal %#x", uint8(signal)))
	}
}

func comma(line []byte, i int) []byte {
	if i > 0 {
		return append(line, ',')
	}
	return line
}
