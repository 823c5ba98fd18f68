package trace

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"tokenrouter/core"
	"tokenrouter/core/turnlog/jsonline"
)

// Step is one forward pass, as long as it took for the scheduler: from the turn that launched it to its
// completion. In a real run the way to the device and back is in it.
type Step struct {
	Model   int
	StartNs core.Time
	Ns      core.Time
	// BesideNs is for how long of that another model of its node had a pass in flight.
	BesideNs core.Time
	Rows     int // requests
	Heads    int // of them, that sampled a token
	Returns  int // of them, that just came by a hand-off
	Fresh    int // tokens fed
	Context  int // tokens that were in KV before, of all rows
}

// stepColumns are the columns of a file of steps. Times have all digits of whole nanoseconds.
var stepColumns = []string{"model", "start_ms", "step_ms", "beside_ms", "rows", "heads", "returns",
	"fresh_tokens", "context_tokens"}

// StepWriter writes the steps of a run, as its turns show them, as CSV: a row a step, in the order in which
// they ended; models by name. It holds one step a model. Passes that fail are left out.
type StepWriter struct {
	w       *bufio.Writer
	models  []string
	running [core.ModelsMax]running
	last    map[int]core.Time // a node: its turn before
	line    []byte
}

// running is the pass of a model, if it has one.
type running struct {
	Step
	node int
	open bool
}

// NewStepWriter writes the header. Call Flush at the end.
func NewStepWriter(w io.Writer, models []string) (*StepWriter, error) {
	s := &StepWriter{w: bufio.NewWriter(w), models: models, last: make(map[int]core.Time)}
	_, err := s.w.WriteString(strings.Join(stepColumns, ",") + "\n")
	return s, err
}

// Turn takes what went in and came out of one core.Scheduler.Turn, of any node.
func (s *StepWriter) Turn(node int, now core.Time, in []core.Event, out *core.Actions) {
	s.pass(node, now-s.last[node])
	s.last[node] = now
	for i := range in {
		if e := &in[i]; e.Kind == core.BatchDone {
			if r := &s.running[e.Model]; r.open && !e.Failed {
				r.Ns = now - r.StartNs
				s.write(&r.Step)
			}
			s.running[e.Model].open = false
		}
	}
	for i := range out.Launches {
		l := &out.Launches[i]
		step := Step{
			Model: l.Model, StartNs: now, Rows: len(l.Rows), Returns: l.Returned, Fresh: int(l.Fresh),
			Context: int(l.Context),
		}
		for k := range l.Rows {
			if l.Rows[k].Head {
				step.Heads++
			}
		}
		s.running[l.Model] = running{step, node, true}
	}
}

// pass lets time go by for what runs at a node.
func (s *StepWriter) pass(node int, ns core.Time) {
	busy := 0
	for m := range s.models {
		if r := &s.running[m]; r.open && r.node == node {
			busy++
		}
	}
	if busy < 2 {
		return
	}
	for m := range s.models {
		if r := &s.running[m]; r.open && r.node == node {
			r.BesideNs += ns
		}
	}
}

func (s *StepWriter) write(step *Step) {
	line := append(s.line[:0], field(s.models[step.Model])...)
	for _, ns := range []core.Time{step.StartNs, step.Ns, step.BesideNs} {
		line = append(append(line, ','), milliseconds(ns)...)
	}
	for _, n := range []int{step.Rows, step.Heads, step.Returns, step.Fresh, step.Context} {
		line = strconv.AppendInt(append(line, ','), int64(n), 10)
	}
	s.line = append(line, '\n')
	_, _ = s.w.Write(s.line) // Flush returns the first error
}

// field is a name as a CSV field.
func field(name string) string {
	if !strings.ContainsAny(name, "\",\r\n") && strings.TrimSpace(name) == name {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// Flush writes what is buffered and returns the first error of all writing.
func (s *StepWriter) Flush() error { return s.w.Flush() }

// ReadSteps reads the steps of a file; .gz at the end of its name says that it is packed. Models are meant by
// their index among the names given. A file that is cut off gives its whole rows. Errors name file and row.
func ReadSteps(path string, models []string) ([]Step, error) {
	file, err := jsonline.Open(path)
	if err != nil {
		return nil, fmt.Errorf("steps %w", err)
	}
	steps, err := readSteps(path, file, models)
	return steps, errors.Join(err, file.Close())
}

func readSteps(name string, from io.Reader, models []string) ([]Step, error) {
	lines := jsonline.NewLines(name, from)
	var steps []Step
	for {
		line, err := lines.Next()
		whole := err == io.EOF && lines.Line() > 1
		if cut := errors.Is(err, io.ErrUnexpectedEOF) || err == nil && !lines.Ended(); whole || cut {
			return steps, nil
		}
		if err != nil {
			return nil, fmt.Errorf("steps %s: %w", name, err)
		}
		record, err := csv.NewReader(bytes.NewReader(line)).Read()
		switch {
		case err != nil:
		case lines.Line() > 1:
			var step Step
			step, err = readStep(record, models)
			steps = append(steps, step)
		case !slices.Equal(record, stepColumns):
			err = wrong("", fmt.Sprintf("the columns %q", record), "%q", stepColumns)
		}
		if err != nil {
			return nil, fmt.Errorf("steps %w", lines.Wrap(err))
		}
	}
}

func readStep(record []string, models []string) (s Step, err error) {
	if len(record) != len(stepColumns) {
		return s, wrong("", fmt.Sprintf("%d values", len(record)), "%d", len(stepColumns))
	}
	if s.Model = slices.Index(models, record[0]); s.Model < 0 {
		return s, wrong(stepColumns[0], strconv.Quote(record[0]), "one of %q", models)
	}
	for i, to := range []*core.Time{&s.StartNs, &s.Ns, &s.BesideNs} {
		c := jsonline.NewCursor([]byte(record[1+i]))
		if *to, err = readMilliseconds(c); err == nil {
			err = c.End()
		}
		if err != nil {
			return s, jsonline.At(stepColumns[1+i], err)
		}
	}
	const most = 1 << 40
	for i, to := range []*int{&s.Rows, &s.Heads, &s.Returns, &s.Fresh, &s.Context} {
		n, err := strconv.ParseInt(record[4+i], 10, 64)
		if err != nil || n < 0 || n > most {
			return s, wrong(stepColumns[4+i], strconv.Quote(record[4+i]), "a whole number 0 to %d", most)
		}
		*to = int(n)
	}
	switch {
	case s.Ns < 1 || s.BesideNs > s.Ns:
		err = wrong("step_ms", milliseconds(s.Ns), "above 0, and at least beside_ms")
	case s.Rows < 1 || s.Heads > s.Rows || s.Returns > s.Rows || s.Fresh < s.Rows:
		err = wrong("rows", s.Rows, "1 to fresh_tokens, and at least heads and returns")
	}
	return s, err
}
