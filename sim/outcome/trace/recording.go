package trace

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"tokenrouter/core"
	"tokenrouter/core/turnlog/jsonline"
)

// Recording writes a run into two files as it goes: its requests, as a trace, and beside it its steps. It is
// to see every turn, as exec.Config.Observe and sim.Config.Observe do.
type Recording struct {
	*Recorder
	steps *StepWriter
	files [2]io.Closer
}

// StepsPath is where the steps of a trace lie: run.steps.csv beside run.jsonl, packed if the trace is.
func StepsPath(path string) string {
	base, packed := strings.CutSuffix(path, ".gz")
	base = strings.TrimSuffix(base, ".jsonl") + ".steps.csv"
	if packed {
		base += ".gz"
	}
	return base
}

// Create makes the files of a trace, in place of those that are there; .gz at the end of its name packs both.
// Close them.
func Create(path string, h Header) (*Recording, error) {
	r := &Recording{}
	err := r.create(path, &h)
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *Recording) create(path string, h *Header) error {
	var files [2]io.Writer
	for i, name := range []string{path, StepsPath(path)} {
		file, err := jsonline.Create(name)
		if err != nil {
			return fmt.Errorf("trace %w", err)
		}
		files[i], r.files[i] = file, file
	}
	w, err := NewWriter(files[0], *h)
	if err != nil {
		return err
	}
	r.Recorder = NewRecorder(w)
	r.steps, err = NewStepWriter(files[1], h.Models)
	return err
}

// Turn takes what went in and came out of one core.Scheduler.Turn, of any node. Call it before the next turn
// of that node.
func (r *Recording) Turn(node int, now core.Time, in []core.Event, out *core.Actions) {
	r.Recorder.Turn(node, now, in, out)
	r.steps.Turn(node, now, in, out)
}

// Close writes what is left, as Recorder.Close does, and closes the files.
func (r *Recording) Close() error {
	return errors.Join(r.Recorder.Close(), r.steps.Flush(), r.close())
}

func (r *Recording) close() error {
	var errs []error
	for _, file := range r.files {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	return errors.Join(errs...)
}
