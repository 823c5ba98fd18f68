package cli

import (
	"errors"
	"fmt"

	"tokenrouter/core"
	"tokenrouter/core/turnlog"
	"tokenrouter/core/turnlog/jsonline"
	"tokenrouter/experiments/system"
	"tokenrouter/experiments/twin"
	"tokenrouter/sim/outcome/trace"
)

// observer sees every turn of a loop.
type observer func(node int, now core.Time, in []core.Event, out *core.Actions)

// observe lets a run write the files that are asked for. What it returns is to be called at the end.
func (s *session) observe(r *system.Run, files outputFiles) (close func() error, err error) {
	var all []observer
	var ends []func() error
	close = func() error {
		var errs []error
		for _, end := range ends {
			errs = append(errs, end())
		}
		return errors.Join(errs...)
	}
	if files.turnlog != "" {
		turn, end, err := s.log(files.turnlog)
		if err != nil {
			return nil, err
		}
		all, ends = append(all, turn), append(ends, end)
	}
	if files.trace != "" {
		recording, err := s.record(files.trace)
		if err != nil {
			return nil, errors.Join(err, close())
		}
		all, ends = append(all, recording.Turn), append(ends, recording.Close)
	}
	if len(all) > 0 {
		r.Observe = func(node int, now core.Time, in []core.Event, out *core.Actions) {
			for _, turn := range all {
				turn(node, now, in, out)
			}
		}
	}
	return close, nil
}

// log begins a turn log.
func (s *session) log(path string) (turn observer, end func() error, err error) {
	file, err := jsonline.Create(path)
	if err != nil {
		return nil, nil, badInput(fmt.Errorf("--turnlog = %q, want a file that can be written: %w", path, err))
	}
	w, err := turnlog.NewWriter(file, s.plan.Core)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return w.Turn, func() error { return errors.Join(w.Flush(), file.Close()) }, nil
}

// record begins a trace.
func (s *session) record(path string) (*trace.Recording, error) {
	header, err := twin.Header(s.plan)
	if err != nil {
		return nil, err
	}
	recording, err := trace.Create(path, header)
	if err != nil {
		return nil, badInput(fmt.Errorf("--trace = %q, want a file that can be written: %w", path, err))
	}
	return recording, nil
}
