package spec

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tokenrouter/sim/latency"
)

// latency reads a step-time model; nil if it is wrong.
func (l *loader) latency(s *section) latency.Model {
	var model latency.Model
	var err error
	before := len(l.problems)
	switch s.word("kind", "", "constant", "affine", "table", "roofline") {
	case "constant":
		if !s.has("step") {
			s.missing("step", `want a duration such as "6.0ms"`)
		}
		model, err = latency.NewConstant(s.duration("step", 1, 1))
	case "affine":
		model, err = l.affine(s)
	case "table":
		model, err = l.latencyTable(s)
	case "roofline":
		model, err = l.roofline(s)
	default:
		s.giveUp()
	}
	scale := s.number("scale", 1, 1e-6, 1e6)
	s.done()
	if len(l.problems) > before || model == nil && err == nil {
		return nil
	}
	if err == nil && scale != 1 {
		model = Scaled(model, scale)
	}
	if err != nil {
		s.wrong("kind", "%v", err)
		return nil
	}
	return model
}

// Scaled multiplies all times of a model by a factor above 0.
func Scaled(model latency.Model, factor float64) latency.Model {
	if c, ok := model.(latency.Constant); ok {
		return latency.Constant(max(int64(math.Round(float64(c)*factor)), 1))
	}
	return &scaled{model, factor}
}

// scaled is a model whose times are multiplied by a factor.
type scaled struct {
	model  latency.Model
	factor float64
}

// StepNs implements latency.Model.
func (s *scaled) StepNs(shape latency.Shape) (ns int64, inRange bool) {
	ns, inRange = s.model.StepNs(shape)
	if ns < 0 {
		return ns, inRange
	}
	v := math.Round(float64(ns) * s.factor)
	if v > float64(latency.MaxStepNs) {
		return latency.Refused, false
	}
	return max(int64(v), 1), inRange
}

// Unwrap returns the model whose times are multiplied.
func (s *scaled) Unwrap() latency.Model { return s.model }

func (l *loader) affine(s *section) (latency.Model, error) {
	if s.has("file") {
		points, ok := l.samples(s)
		if !ok {
			return nil, nil
		}
		fit, err := latency.FitAffine(points, latency.RefuseNegative)
		if err != nil {
			return nil, err
		}
		return fit.Model(s.outside())
	}
	c := latency.Coefficients{
		BaseNs:       float64(s.duration("base", 0, 0)),
		PerRowNs:     float64(s.duration("per_row", 0, 0)),
		PerFreshNs:   s.number("per_fresh_ns", 0, 0, math.Inf(1)),
		PerBlockNs:   float64(s.duration("per_block", 0, 0)),
		PerContextNs: s.number("per_context_ns", 0, 0, math.Inf(1)),
		BlockTokens:  int(s.whole("block_tokens", 0, 1, math.MaxInt32)),
	}
	valid := latency.Range{
		Rows: s.span("rows", 1), Fresh: s.span("fresh_tokens", 1), Context: s.span("context_tokens", 0),
	}
	if !valid.Rows.Bound && !valid.Fresh.Bound && !valid.Context.Bound {
		return latency.NewAffine(c)
	}
	return latency.NewAffineWithin(c, valid, s.outside())
}

func (s *section) outside() latency.Outside {
	if s.word("outside", "refuse", "refuse", "clamp") == "clamp" {
		return latency.Clamp
	}
	return latency.Refuse
}

// span reads the least and greatest of a valid range.
func (s *section) span(key string, least int64) latency.Span {
	if !s.has(key) {
		return latency.Span{}
	}
	ends := s.wholes(key, least, math.MaxInt32)
	if len(ends) != 2 || ends[0] > ends[1] {
		s.wrong(key, "want two integers, the least and the greatest")
		return latency.Span{}
	}
	return latency.Between(ends[0], ends[1])
}

func (l *loader) latencyTable(s *section) (latency.Model, error) {
	if s.has("file") {
		points, ok := l.samples(s)
		if !ok {
			return nil, nil
		}
		return l.rising(s)(latency.NewTableOf(points, s.outside()))
	}
	grid := latency.Grid{Rows: s.axis("rows", 1)}
	if !s.has("rows") {
		s.missing("rows", "want the batch sizes of the table")
	}
	if s.has("fresh_tokens") {
		grid.Fresh = s.axis("fresh_tokens", 1)
	}
	if s.has("context_tokens") {
		grid.Context = s.axis("context_tokens", 0)
	}
	if !s.has("steps") {
		s.missing("steps", "want a duration for every combination of the axes")
	}
	for i, n := range s.list("steps") {
		ns, _ := l.durationAt(n, element(s.name("steps"), i), 1)
		grid.Ns = append(grid.Ns, ns)
	}
	want := len(grid.Rows) * max(len(grid.Fresh), 1) * max(len(grid.Context), 1)
	if s.has("steps") && len(grid.Ns) > 0 && len(grid.Ns) != want {
		s.wrong("steps", "want %d durations, one for every combination of the axes, not %d", want, len(grid.Ns))
	}
	return l.rising(s)(latency.NewTable(grid, s.outside()))
}

// rising warns of a table whose times fall.
func (l *loader) rising(s *section) func(*latency.Table, error) (latency.Model, error) {
	return func(table *latency.Table, err error) (latency.Model, error) {
		if err != nil {
			return nil, err
		}
		const off = 0.1 // what a measurement may be off
		if where := table.Falls(off); where != "" {
			l.warnings = append(l.warnings, fmt.Sprintf("%s takes less time for more work (%s): measured anew, or"+
				" sorted wrongly?", s.path, where))
		}
		return table, nil
	}
}

// axis reads rising integers.
func (s *section) axis(key string, least int64) []int {
	points := s.wholes(key, least, math.MaxInt32)
	if !slices.IsSorted(points) || len(slices.Compact(slices.Clone(points))) != len(points) {
		s.wrong(key, "want rising integers")
	}
	return points
}

// samples reads measured steps from the CSV that the key file names.
func (l *loader) samples(s *section) ([]latency.Point, bool) {
	path, content := l.file(s, "file")
	if path == "" {
		return nil, false
	}
	records, lines, ok := l.csv(path, content)
	if !ok {
		return nil, false
	}
	known := []string{"rows", "fresh_tokens", "context_tokens", "step_ms"}
	column, ok := l.columns(path, records[0])
	if !ok {
		return nil, false
	}
	for _, name := range records[0] {
		if !slices.Contains(known, strings.TrimSpace(name)) {
			l.addLine(path, 1, name, "unknown column, known: "+quoteAll(known))
		}
	}
	for _, name := range []string{"rows", "step_ms"} {
		if _, ok := column[name]; !ok {
			l.addLine(path, 1, name, "missing column")
			return nil, false
		}
	}
	var points []latency.Point
	good := true
	for i, record := range records[1:] {
		whole := func(name string) int {
			at, given := column[name]
			if !given {
				return 0
			}
			v, err := strconv.Atoi(record[at])
			if err != nil || v < 0 {
				good = false
				l.addLine(path, lines[i+1], name, fmt.Sprintf("%q, want an integer of at least 0", record[at]))
			}
			return v
		}
		ms, err := strconv.ParseFloat(record[column["step_ms"]], 64)
		ns := ms * float64(time.Millisecond)
		if err != nil || !(ns >= 1 && ns <= float64(latency.MaxStepNs)) {
			good = false
			l.addLine(path, lines[i+1], "step_ms",
				fmt.Sprintf("%q, want milliseconds above 0", record[column["step_ms"]]))
		}
		points = append(points, latency.Point{
			Shape: latency.Shape{
				Rows: whole("rows"), FreshTokens: whole("fresh_tokens"), ContextTokens: whole("context_tokens"),
			},
			Ns: int64(math.Round(ns)),
		})
	}
	return points, good
}

// csv splits a file into records and says on which line each begins.
func (l *loader) csv(path string, content []byte) (records [][]string, lines []int, ok bool) {
	r := csv.NewReader(bytes.NewReader(content))
	r.TrimLeadingSpace = true
	r.Comment = '#'
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var parse *csv.ParseError
		if errors.As(err, &parse) {
			l.addLine(path, parse.Line, "", parse.Err.Error())
			return nil, nil, false
		}
		line, _ := r.FieldPos(0)
		records, lines = append(records, record), append(lines, line)
	}
	if len(records) < 2 {
		l.addLine(path, 1, "", "want a header and at least one record")
		return nil, nil, false
	}
	return records, lines, true
}

func (l *loader) addLine(file string, line int, key, text string) {
	l.problems = append(l.problems, Problem{File: file, Line: line, Key: key, Text: text})
}

func (l *loader) roofline(s *section) (latency.Model, error) {
	spec := latency.RooflineSpec{
		Parallel:         int(s.whole("parallel", 1, 1, 1024)),
		WeightBytes:      s.number("weight_bytes", 2, aboveZero, 8),
		KVBytes:          int(s.whole("kv_bytes", 2, 1, 8)),
		FlopsEfficiency:  s.number("flops_efficiency", latency.DefaultFlopsEfficiency, aboveZero, 1),
		MemoryEfficiency: s.number("memory_efficiency", latency.DefaultMemoryEfficiency, aboveZero, 1),
		LaunchNs:         s.duration("launch", 0, 0),
		ExchangeNs:       s.duration("exchange", 0, 0),
	}
	switch inner := (*section)(nil); {
	case s.has("shape"):
		spec.Shape, _ = l.shape(s, "shape")
	case s.has("dimensions"):
		inner = s.sub("dimensions")
		const sizeMax = 1 << 20
		size := func(key string) int {
			if !inner.has(key) {
				inner.missing(key, "want an integer of at least 1")
			}
			return int(inner.whole(key, 1, 1, sizeMax))
		}
		spec.Shape = latency.Dimensions{
			Name: s.name("dimensions"), Layers: size("layers"), Hidden: size("hidden"), Heads: size("heads"),
			KVHeads: size("kv_heads"), HeadDim: size("head_dim"), Intermediate: size("intermediate"),
			Vocab: size("vocab"), Tied: inner.boolean("tied", false),
		}
		inner.done()
	default:
		s.missing("shape", "want shape, one of "+quoteAll(latency.DimensionNames())+", or dimensions")
	}
	l.device(s, &spec)
	if len(l.problems) > 0 {
		return nil, nil
	}
	return latency.NewRoofline(spec)
}

// device reads a named device, or its peaks.
func (l *loader) device(s *section, spec *latency.RooflineSpec) {
	if s.has("device") {
		d, err := latency.DeviceNamed(s.text("device", ""))
		if err != nil {
			s.wrong("device", "want one of %s", quoteAll(latency.DeviceNames()))
		}
		spec.Device = d
		return
	}
	inner := s.sub("peaks")
	if inner == nil {
		s.missing("device", "want device, one of "+quoteAll(latency.DeviceNames())+", or peaks")
		return
	}
	for _, key := range []string{"flops", "bandwidth", "memory"} {
		if !inner.has(key) {
			inner.missing(key, "want the peaks of the device")
		}
	}
	spec.Device = latency.Device{
		Name: "of the spec", FlopsPerSecond: inner.number("flops", 1, aboveZero, math.Inf(1)),
		BytesPerSecond: inner.number("bandwidth", 1, aboveZero, math.Inf(1)),
		MemoryBytes:    int64(inner.bytes("memory")), LinkBytesPerSecond: inner.number("link", 0, aboveZero,
			math.Inf(1)),
	}
	inner.done()
}
