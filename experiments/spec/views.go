package spec

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"tokenrouter/experiments/result"
)

// views reads what is drawn of the results and what they are compared to.
func (l *loader) views(s *section) {
	for i, f := range s.subs("figure") {
		l.figure(f, i)
	}
	for _, r := range s.subs("reference") {
		l.reference(r)
	}
	l.report(s)
}

func (l *loader) swept(axis string) bool {
	return slices.ContainsFunc(l.spec.Axes, func(a Axis) bool { return a.Name == axis })
}

// need reports axes that a figure wants and the sweep does not have.
func (l *loader) need(s *section, axes ...string) {
	for _, axis := range axes {
		if !l.swept(axis) {
			s.wrong("kind", "want an axis sweep.%s for this figure", axis)
		}
	}
}

func (l *loader) figure(s *section, i int) {
	f := result.Figure{Kind: s.word("kind", "", "threshold", "schedules", "throughput-speed", "pareto", "bars",
		"line")}
	f.Name = s.text("name", f.Kind)
	if strings.Trim(f.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		s.wrong("name", "want small letters, digits and hyphens only")
	}
	if slices.ContainsFunc(l.spec.Figures, func(o result.Figure) bool { return o.Name == f.Name }) {
		s.wrong("name", "want a name that no other figure has")
	}
	f.Title = s.text("title", l.spec.Title)
	switch f.Kind {
	case "threshold":
		l.need(s, "concurrency", "thresholds")
		l.onlyAxes(s, "concurrency", "thresholds")
		l.largeThresholds(s)
	case "schedules":
		f.TimeUnit = s.duration("time_unit", 1e6, 1)
		f.TimeLabel = s.text("time_label", "time (ms)")
		l.need(s, "policy")
		l.onlyAxes(s, "policy")
		const requestsMax = 12
		for _, p := range l.spec.Points {
			if p.Workload.Requests > requestsMax {
				s.wrong("kind", "want at most %d requests for this figure", requestsMax)
				break
			}
		}
	case "throughput-speed":
		l.need(s, "concurrency")
		l.onlyAxes(s, "concurrency", "policy", VariantAxis)
	case "pareto":
		l.pareto(s, &f)
	case "bars":
		l.bars(s, &f)
	case "line":
		l.line(s, &f)
	default:
		s.giveUp()
	}
	s.done()
	l.spec.Figures = append(l.spec.Figures, f)
}

// onlyAxes refuses axes that a figure could not tell apart: a routing by itself is none.
func (l *loader) onlyAxes(s *section, axes ...string) {
	for _, a := range l.spec.Axes {
		switch {
		case slices.Contains(axes, a.Name) || slices.Contains(RoutingAxes, a.Name) && len(a.Values) < 2:
		case slices.Contains(RoutingAxes, a.Name):
			s.wrong("kind", "want one routing at one place for this figure, not %d", len(a.Values))
		case a.Name == VariantAxis:
			s.wrong("kind", "want no [[variant]] for this figure: take \"bars\" or \"line\"")
		default:
			s.wrong("kind", "want no axis sweep.%s for this figure: take the figure \"line\"", a.Name)
		}
	}
}

// largeThresholds refuses sets that differ in more than the last threshold.
func (l *loader) largeThresholds(s *section) {
	if len(l.spec.Points) == 0 {
		return
	}
	held := make(map[string]bool)
	for _, p := range l.spec.Points {
		if table := p.Policy.Table; len(table) > 0 {
			set := table[len(table)-1]
			held[result.JoinInts(set[:len(set)-1])] = true
		}
	}
	if len(held) > 1 {
		s.wrong("kind", "want thresholds that differ at the last model only for this figure")
	}
}

// pareto reads the figure of accuracy against throughput. Axes other than routings, policy and concurrency
// would put several points of one threshold on a line.
func (l *loader) pareto(s *section, f *result.Figure) {
	if !l.swept(RoutingAxes[0]) {
		s.wrong("kind", "want [[routing]] for this figure: systems whose answers are right or wrong")
	}
	l.onlyAxes(s, append([]string{"policy", "concurrency"}, RoutingAxes...)...)
	f.X = s.word("x", "throughput_tok_s", result.MetricNames(result.TaskMetricsOf(l.spec.ModelNames()))...)
	f.XLabel, f.LogX = s.text("x_label", ""), s.boolean("log_x", false)
}

func (l *loader) line(s *section, f *result.Figure) {
	if !l.axesAndMetric(s, f, "an axis of numbers in [sweep]") {
		return
	}
	for _, p := range l.spec.Points {
		for _, v := range p.Values {
			if v.Axis == f.X && !v.IsNumber {
				s.wrong("x", "want an axis of numbers")
				return
			}
		}
	}
	f.Predicted = s.boolean("predicted", false)
	if f.Predicted && f.Y != "throughput_tok_s" {
		s.wrong("predicted", `want y = "throughput_tok_s" with it`)
	}
	f.LogX = s.boolean("log_x", false)
}

// bars reads the figure of groups of bars.
func (l *loader) bars(s *section, f *result.Figure) {
	l.axesAndMetric(s, f, "an axis in [sweep] or a [[variant]]")
}

// axesAndMetric reads what lies along a figure, what tells its lines or bars apart, and its metric; ok is
// false if there is no axis.
func (l *loader) axesAndMetric(s *section, f *result.Figure, want string) (ok bool) {
	var axes []string
	for _, a := range l.spec.Axes {
		axes = append(axes, a.Name)
	}
	if len(axes) == 0 {
		s.wrong("kind", "want %s for this figure", want)
		s.giveUp()
		return false
	}
	f.X, f.Y = s.word("x", "", axes...), s.word("y", "", l.metricNames()...)
	f.By = s.texts("by")
	for _, axis := range f.By {
		if !slices.Contains(axes, axis) || axis == f.X {
			s.wrong("by", "want swept axes other than x, not %q", axis)
		}
	}
	for _, axis := range axes {
		if !s.has("by") && axis != f.X {
			f.By = append(f.By, axis)
		} else if axis != f.X && !slices.Contains(f.By, axis) {
			s.wrong("by", "want all other axes, %q too: points would fall on each other", axis)
		}
	}
	f.XLabel, f.YLabel, f.LogY = s.text("x_label", ""), s.text("y_label", ""), s.boolean("log_y", false)
	return true
}

// metricNames are the columns that a summary will have.
func (l *loader) metricNames() []string {
	if l.spec.Answered {
		return result.MetricNames(result.TaskMetricsOf(l.spec.ModelNames()))
	}
	return result.MetricNames(result.MetricsOf(l.spec.ModelNames()))
}

func (l *loader) reference(s *section) {
	r := result.Reference{Name: s.text("name", ""), Source: s.text("source", "")}
	for _, key := range []string{"name", "source"} {
		if !s.has(key) {
			s.missing(key, "want a string that is not empty")
		}
	}
	r.Metric = s.word("metric", "throughput_tok_s", l.metricNames()...)
	switch {
	case s.has("file") && s.has("points"):
		s.wrong("file", "want file or points, not both")
		s.known["points"] = true
	case s.has("file"):
		l.referenceFile(s, &r)
	case s.has("points"):
		for i, n := range s.list("points") {
			l.referencePoint(l.section(n, element(s.name("points"), i)), &r)
		}
	default:
		s.missing("points", "want points or file")
	}
	s.done()
	l.spec.References = append(l.spec.References, r)
}

// referencePoint reads an axis a key, and value.
func (l *loader) referencePoint(s *section, r *result.Reference) {
	p := result.ReferencePoint{At: l.place(s)}
	s.known["value"] = true
	if n := s.keys["value"]; n == nil {
		s.missing("value", "want a number")
	} else {
		p.Value, _ = l.numberAt(n, s.name("value"), -math.MaxFloat64, math.MaxFloat64)
	}
	p.Fit = s.use()
	for _, key := range s.keys.keys() {
		if !s.known[key] {
			l.add(s.keys[key], s.name(key), "unknown key, want a swept axis, value or use")
		}
	}
	l.addPoint(r, p, s.at.file, s.at.line, s.path)
}

// addPoint adds a value to a reference, unless there is one at its place.
func (l *loader) addPoint(r *result.Reference, p result.ReferencePoint, file string, line int, key string) {
	if slices.ContainsFunc(r.Points, func(o result.ReferencePoint) bool { return maps.Equal(o.At, p.At) }) {
		l.problems = append(l.problems, Problem{File: file, Line: line, Key: key,
			Value: strconv.FormatFloat(p.Value, 'g', -1, 64), Text: "want one value at a place, this is the second"})
		return
	}
	r.Points = append(r.Points, p)
}

// use reads whether a published value was used to fit a constant, and therefore checks nothing.
func (s *section) use() (fit bool) { return s.word(useKey, "check", uses...) == "fit" }

const useKey = "use"

var uses = []string{"fit", "check"}

// onAxis reports a reference at a place where the sweep has no point.
func (l *loader) onAxis(file string, line int, key string, axis Axis, text string) {
	if !slices.Contains(axis.Values, text) {
		l.problems = append(l.problems, Problem{File: file, Line: line, Key: key, Value: text,
			Text: "want a value of the sweep, one of " + strings.Join(axis.Values, " | ")})
	}
}

// columns are the places of the columns of a CSV by name; none may be there twice.
func (l *loader) columns(path string, header []string) (places map[string]int, ok bool) {
	places = make(map[string]int)
	for i, name := range header {
		name = strings.TrimSpace(name)
		if _, twice := places[name]; twice {
			l.addLine(path, 1, name, fmt.Sprintf("want the column once, not as number %d and %d", places[name]+1,
				i+1))
			return nil, false
		}
		places[name] = i
	}
	return places, true
}

// referenceFile reads a CSV with the swept axes and the metric as columns, and use where not all are checks.
func (l *loader) referenceFile(s *section, r *result.Reference) {
	path, content := l.file(s, "file")
	if path == "" {
		return
	}
	records, lines, ok := l.csv(path, content)
	if !ok {
		return
	}
	columns, ok := l.columns(path, records[0])
	if !ok {
		return
	}
	want := make(map[string]bool)
	for _, axis := range l.spec.Axes {
		want[result.AxisColumn(axis.Name)] = true
	}
	want[r.Metric] = true
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, ok := columns[name]; !ok {
			l.addLine(path, 1, name, "missing column")
			return
		}
	}
	for _, name := range records[0] {
		if name = strings.TrimSpace(name); !want[name] && name != useKey {
			l.addLine(path, 1, name, "unknown column, want swept axes, "+r.Metric+" and use")
		}
	}
	for i, record := range records[1:] {
		line := lines[i+1]
		p := result.ReferencePoint{At: make(map[string]string)}
		for _, axis := range l.spec.Axes {
			text := strings.TrimSpace(record[columns[result.AxisColumn(axis.Name)]])
			if axis.Name != VariantAxis { // sets of thresholds, such as 1, 3
				text = strings.ReplaceAll(text, " ", "")
			}
			p.At[axis.Name] = text
			l.onAxis(path, line, result.AxisColumn(axis.Name), axis, text)
		}
		v, err := strconv.ParseFloat(record[columns[r.Metric]], 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			l.addLine(path, line, r.Metric, fmt.Sprintf("%q, want a finite number", record[columns[r.Metric]]))
			continue
		}
		p.Value = v
		if at, given := columns[useKey]; given {
			text := strings.TrimSpace(record[at])
			if p.Fit = text == "fit"; !slices.Contains(uses, text) {
				l.addLine(path, line, useKey, fmt.Sprintf("%q, want one of %s", text, quoteAll(uses)))
			}
		}
		l.addPoint(r, p, path, line, r.Metric)
	}
}
