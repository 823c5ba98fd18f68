package workload

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// TraceWriter writes requests in a form that Trace reads back exactly, ids aside: a reader numbers
// requests from 0.
type TraceWriter struct {
	w      *bufio.Writer
	format Format
	count  uint64
	lastNs int64
}

// NewTraceWriter returns a writer in the given format. Call Flush at the end.
func NewTraceWriter(w io.Writer, format Format) (*TraceWriter, error) {
	if format != CSV && format != JSONL {
		return nil, fmt.Errorf("workload: trace writer: unknown format %d", format)
	}
	return &TraceWriter{w: bufio.NewWriter(w), format: format}, nil
}

// Write adds a request. It returns an error when the request is not one that Trace accepts, or when it
// arrives before the one written last.
func (t *TraceWriter) Write(r Request) error {
	if err := t.check(r); err != nil {
		return err
	}
	const (
		header = "arrival_ms,prompt_tokens,output_tokens,max_tokens,prefix_group,prefix_tokens\n"
		object = `{"arrival_ms":%s,"prompt_tokens":%d,"output_tokens":%d,"max_tokens":%d,` +
			`"prefix_group":%d,"prefix_tokens":%d}` + "\n"
	)
	layout := object
	if t.format == CSV {
		layout = "%s,%d,%d,%d,%d,%d\n"
		if t.count == 0 {
			if _, err := t.w.WriteString(header); err != nil {
				return err
			}
		}
	}
	t.count++
	t.lastNs = r.ArrivalNs
	_, err := fmt.Fprintf(t.w, layout, milliseconds(r.ArrivalNs), r.PromptTokens, r.OutputTokens, r.MaxTokens,
		r.PrefixGroup, r.PrefixTokens)
	return err
}

// Flush writes what is buffered and returns the first error of all writing.
func (t *TraceWriter) Flush() error { return t.w.Flush() }

func (t *TraceWriter) check(r Request) error {
	wrong := func(c column, value any, want string) error {
		return fmt.Errorf("workload: trace writer: request %d: %s = %v, want %s", r.ID, columnNames[c], value, want)
	}
	switch {
	case r.ArrivalNs < t.lastNs || r.ArrivalNs > MaxArrivalNs:
		return wrong(arrivalNs, r.ArrivalNs, fmt.Sprintf("%d to %d", t.lastNs, MaxArrivalNs))
	case r.PromptTokens < 1:
		return wrong(promptTokens, r.PromptTokens, "at least 1")
	case r.OutputTokens < 0:
		return wrong(outputTokens, r.OutputTokens, "at least 0")
	case r.MaxTokens < 0:
		return wrong(maxTokens, r.MaxTokens, "at least 0")
	case r.PrefixTokens < 0:
		return wrong(prefixTokens, r.PrefixTokens, "at least 0")
	}
	if c, want := r.inconsistent(); want != "" {
		return wrong(c, map[column]int32{outputTokens: r.OutputTokens, prefixTokens: r.PrefixTokens}[c], want)
	}
	return nil
}

// milliseconds writes whole nanoseconds as milliseconds with all their digits and no more.
func milliseconds(ns int64) string {
	text := fmt.Sprintf("%d.%06d", ns/1e6, ns%1e6)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
