package spec

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Hardware says that a spec's points are run by real models on this machine.
type Hardware struct {
	// System is the models, their processors and memory; its router and scheduling do not count. It is nil
	// where each point has its own (Point.System).
	System  *System
	Backend string // cpu, cuda or http
	// Calibrate says that step times are measured before the first point; until then, points have models
	// without a latency (Spec.Calibrated). Otherwise they are given.
	Calibrate bool
	Probe     Probe
}

// Calibrated is the spec with the step times of a calibration's file. Name, points and Hash stay what they
// are.
func (s *Spec) Calibrated(path string) (*Spec, error) { return s.reload(path) }

// hardware reads the table that names a system. calibration is the file of its step times, if they have been
// measured by now.
func (l *loader) hardware(top *section, calibration string) {
	s := top.sub("system")
	if s == nil {
		return
	}
	h := &Hardware{System: l.systemFile(s, "file")}
	h.Backend = Backends[0]
	if h.System != nil {
		h.Backend = h.System.Backend
	}
	h.Backend = s.word("backend", h.Backend, Backends...)
	h.Calibrate = s.boolean("calibrate", false)
	h.Probe = s.probe()
	if path, _ := l.file(s, "calibration"); path != "" {
		calibration = path
	}
	ways := 0
	for _, given := range []bool{h.Calibrate, s.has("calibration"), top.has("models")} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		s.wrong("calibrate", "want one source of step times: calibrate = true, a file calibration, or models")
	}
	s.done()
	l.spec.Hardware = h
	switch {
	case ways != 1 || h.System == nil:
	case calibration != "":
		l.takeModels(s, calibration)
	case h.Calibrate:
		l.root = l.root.with([]string{"models"}, nameModels(s.at, h.System.Models))
	}
	top.keys = l.root.value.(table)
}

// toCalibrate reports whether the step times are yet to be measured.
func (l *loader) toCalibrate() bool {
	return l.spec.Hardware != nil && l.spec.Hardware.Calibrate && l.calibration == "" || l.spec.Answered
}

// systemFile reads the file of a system that a key names; nil if it is wrong.
func (l *loader) systemFile(s *section, key string) *System {
	if !s.has(key) {
		s.missing(key, "want the file of a system")
		return nil
	}
	path, _ := l.file(s, key)
	if path == "" {
		return nil
	}
	y, err := readSystem(path, l.read)
	var problems Problems
	if errors.As(err, &problems) {
		l.problems = append(l.problems, problems...)
		return nil
	}
	return y
}

// takeModels takes the models of a calibration file, and nothing else of it.
func (l *loader) takeModels(s *section, path string) {
	content, err := l.read(path)
	if err != nil {
		s.wrong("calibration", "want a file that can be read: %v", err)
		return
	}
	root := l.calibrationText(path, filepath.Base(path), string(content))
	if root == nil {
		return
	}
	if !isList(root, "models") {
		s.wrong("calibration", "want a file with models: one that calibrate has written")
		return
	}
	l.root = l.root.with([]string{"models"}, root.value.(table)["models"])
}

// nameModels is an array of models that have nothing but a name yet.
func nameModels(at *node, models []SystemModel) *node {
	var all list
	for _, m := range models {
		name := &node{value: m.Name, file: at.file, line: at.line}
		all = append(all, &node{value: table{"name": name}, file: at.file, line: at.line})
	}
	return &node{value: all, file: at.file, line: at.line}
}

// notHonoured are keys that a run on hardware can do nothing with, each with what to do instead.
var notHonoured = []struct{ path, instead string }{
	{"models[].node", "all models are on this machine"},
	{"models[].host_step", "host time is what it is"},
	{"models[].host_row", "host time is what it is"},
	{"models[].host_call", "host time is what it is"},
	{"models[].host_call_per_context_ns", "host time is what it is"},
	{"models[].dispatch", "calls take the time that they take"},
	{"models[].launch", "launches are what they are"},
	{"models[].call", "a call is a visit"},
	{"models[].reuse", "KV outlives a call"},
	{"models[].kv", "memory is shared as the system's file says"},
	{"devices", "memory is shared as the system's file says"},
	{"links", "all models are on this machine"},
	{"router.trace", "verdicts are drawn"},
	{"workload.until", "give requests"},
	{"workload.prefix_groups", "requests share nothing"},
	{"workload.prefix_tokens", "requests share nothing"},
	{"scheduler.front", "requests take the time that they take"},
	{"scheduler.page_tokens", "the system's file says it"},
	{"sweep.rate", "a closed loop has none"},
	{"sweep.variation", "a closed loop has none"},
	{"sweep.latency_scale", "step times are what they are"},
	{"sweep.host_call", "host time is what it is"},
	{"sweep.pages", "memory is shared as the system's file says"},
}

// checkHonoured refuses what no backend can do, where it stands.
func (l *loader) checkHonoured() {
	h := l.spec.Hardware
	if h == nil {
		return
	}
	for _, k := range notHonoured {
		for _, n := range l.root.find(strings.Split(k.path, ".")) {
			l.add(n, k.path, fmt.Sprintf("want none beside [system]: %s", k.instead))
		}
	}
	kind, where := "closed", "[system]"
	if l.spec.Answered {
		kind, where = "task", "[[routing]]"
	}
	for path, words := range map[string][]string{
		"workload.kind":    {kind},
		"router.outcome":   {"bernoulli"},
		"router.algorithm": {"r2r", "citer", "collm", "rstitch", "me", "matrix", "single"},
	} {
		for _, n := range l.root.find(strings.Split(path, ".")) {
			if text, ok := n.value.(string); ok && !slices.Contains(words, text) {
				l.add(n, path, "want "+quoteAll(words)+" beside "+where)
			}
		}
	}
	if h.System == nil || len(l.spec.Points) == 0 {
		return
	}
	var want []string
	for _, m := range h.System.Models {
		want = append(want, m.Name)
	}
	if got := l.spec.Points[0].names(); len(l.problems) == 0 && !slices.Equal(got, want) {
		l.add(l.root.value.(table)["models"], "models", fmt.Sprintf("want models by the names of %s: %s, not %s",
			filepath.Base(h.System.File), quoteAll(want), quoteAll(got)))
	}
}

// find lists the nodes at a path, in which [] at the end of a part stands for every element of an array.
func (n *node) find(path []string) []*node {
	if len(path) == 0 {
		return []*node{n}
	}
	t, ok := n.value.(table)
	name, every := strings.CutSuffix(path[0], "[]")
	inner := t[name]
	if !ok || inner == nil {
		return nil
	}
	elements, isList := inner.value.(list)
	if !every || !isList {
		return inner.find(path[1:])
	}
	var found []*node
	for _, e := range elements {
		found = append(found, e.find(path[1:])...)
	}
	return found
}
