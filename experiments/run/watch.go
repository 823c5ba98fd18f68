package run

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tokenrouter/core"
	"tokenrouter/core/turnlog"
)

// LogDir is the folder of the turn logs in a results folder.
const LogDir = "turns"

// watchers see every turn of a job: for the figure of schedules, and for the turn log.
type watchers struct {
	timeline *recorder
	log      *turnlog.Writer
	file     *os.File
}

// watchers makes those that the spec wants of a job whose scheduler has this configuration.
func (r *runner) watchers(j job, c core.Config) (*watchers, error) {
	w := &watchers{}
	if j.replicate > 0 {
		return w, nil
	}
	if r.watch {
		w.timeline = newRecorder(j.point)
	}
	if r.spec.TurnLog {
		var configs []core.Config
		nodes := 1
		for _, m := range c.Models {
			nodes = max(nodes, m.Node+1)
		}
		for node := range nodes {
			config := c
			config.Node = node
			configs = append(configs, config)
		}
		var err error
		if w.file, err = os.Create(r.logPath(j) + workingSuffix); err != nil {
			return nil, err
		}
		if w.log, err = turnlog.NewWriter(w.file, configs...); err != nil {
			return nil, errors.Join(err, w.file.Close())
		}
	}
	return w, nil
}

// observer is what a loop shall call after every turn; nil for nothing.
func (w *watchers) observer() func(node int, now core.Time, in []core.Event, out *core.Actions) {
	if w.timeline == nil && w.log == nil {
		return nil
	}
	return w.observe
}

func (w *watchers) observe(node int, now core.Time, in []core.Event, out *core.Actions) {
	if w.timeline != nil {
		w.timeline.observe(node, now, in, out)
	}
	if w.log != nil {
		w.log.Turn(node, now, in, out)
	}
}

func (w *watchers) close() error {
	if w.log == nil {
		return nil
	}
	return errors.Join(w.log.Flush(), w.file.Close())
}

// logPath is the turn log of a job until the run is finished.
func (r *runner) logPath(j job) string { return filepath.Join(r.parts(), j.name()+".turns.jsonl") }

// publishLogs moves the turn logs of a finished run to their folder, named by their points.
func (r *runner) publishLogs() error {
	if !r.spec.TurnLog {
		return nil
	}
	dir := filepath.Join(r.dir, LogDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i := range r.spec.Points {
		from := r.logPath(job{&r.spec.Points[i], 0})
		if err := os.Rename(from, filepath.Join(dir, fileName(r.spec.Points[i].Key)+".jsonl")); err != nil {
			return fmt.Errorf("turn log: %w", err)
		}
	}
	return nil
}

// fileName turns the name of a point into that of a file: "p=0.1 thresholds=1,3" into "p-0.1_thresholds-1-3".
// One that is too long for file systems is cut, with a hash of the whole behind it.
func fileName(key string) string {
	const bytesMax = 120
	name := strings.NewReplacer("=", "-", " ", "_", ",", "-", "/", "-").Replace(key)
	if len(name) <= bytesMax {
		return name
	}
	sum := sha256.Sum256([]byte(key))
	return name[:bytesMax] + "-" + hex.EncodeToString(sum[:4])
}
