package result

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tokenrouter/plots"
)

// Draw writes every figure of a summary into a folder, as PNG and SVG, and returns their paths. Beside a
// figure of kind pareto stands its table in Markdown.
func Draw(dir string, s *Summary) ([]string, error) {
	var files []string
	for i := range s.Figures {
		f := &s.Figures[i]
		figure, err := s.Plot(f)
		if err != nil {
			return files, fmt.Errorf("figure %s: %w", f.Name, err)
		}
		if err := figure.Write(dir, f.Name); err != nil {
			return files, err
		}
		files = append(files, filepath.Join(dir, f.Name+".png"), filepath.Join(dir, f.Name+".svg"))
		if f.Kind != "pareto" {
			continue
		}
		table := filepath.Join(dir, f.Name+".md")
		if err := os.WriteFile(table, []byte(s.ParetoTable(f.X)), 0o644); err != nil {
			return files, fmt.Errorf("figure %s: %w", f.Name, err)
		}
		files = append(files, table)
	}
	return files, nil
}

// Plot draws a figure of the summary.
func (s *Summary) Plot(f *Figure) (*plots.Figure, error) {
	switch f.Kind {
	case "threshold":
		return s.threshold(f)
	case "schedules":
		return s.schedules(f)
	case "throughput-speed":
		return s.throughputSpeed(f)
	case "pareto":
		return s.pareto(f)
	case "line":
		return s.line(f)
	case "bars":
		return s.bars(f)
	default:
		return nil, fmt.Errorf("kind %q, want threshold, schedules, throughput-speed, pareto, bars or line", f.Kind)
	}
}

// series collects points of one line.
type series struct {
	plots.Series
	intervals bool
}

func (s *series) add(x, y, half float64) {
	s.X, s.Y = append(s.X, x), append(s.Y, y)
	s.Low, s.High = append(s.Low, y-half), append(s.High, y+half)
	s.intervals = s.intervals || !math.IsNaN(half)
}

// plot is the series for package plots; without any interval it has none.
func (s *series) plot() plots.Series {
	out := s.Series
	if !s.intervals {
		out.Low, out.High = nil, nil
	}
	return out
}

func (s *Summary) threshold(f *Figure) (*plots.Figure, error) {
	data := plots.ThresholdData{Title: f.Title, Real: s.Backend != ""}
	for _, n := range s.concurrencies() {
		var predicted, simulated, measured series
		own := &simulated // what the experiment itself gave
		if own.Name = "simulated"; s.Backend != "" {
			own = &measured
			own.Name = "measured"
		}
		if s.Replicates > 1 {
			own.Name += ", 95 % interval"
		}
		for i := range s.Rows {
			r := &s.Rows[i]
			if r.Concurrency != n || len(r.Thresholds) == 0 {
				continue
			}
			x := float64(r.Thresholds[len(r.Thresholds)-1])
			y, half := s.Value(r, "throughput_tok_s")
			own.add(x, y, half)
			y, _ = s.Value(r, "predicted_tok_s")
			predicted.add(x, y, math.NaN())
			if s.Backend != "" {
				y, _ = s.Value(r, "simulated_tok_s")
				simulated.add(x, y, math.NaN())
				continue
			}
			for k := range s.References {
				if s.References[k].Metric != "throughput_tok_s" {
					continue
				}
				measured.Name = s.References[k].Name
				if v, ok := s.References[k].At(r); ok {
					measured.add(x, v, math.NaN())
				}
			}
		}
		data.Panels = append(data.Panels, plots.ThresholdPanel{Concurrency: n,
			Predicted: predicted.plot(), Simulated: simulated.plot(), Measured: measured.plot()})
	}
	return plots.Threshold(data)
}

func (s *Summary) concurrencies() []int {
	var out []int
	for i := range s.Rows {
		if n := s.Rows[i].Concurrency; !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

func (s *Summary) throughputSpeed(f *Figure) (*plots.Figure, error) {
	data := plots.ThroughputSpeedData{Title: f.Title}
	by := []string{"policy"}
	if slices.ContainsFunc(s.Axes, func(a Axis) bool { return a.Name == "variant" }) {
		by = []string{"variant"}
		if slices.ContainsFunc(s.Axes, func(a Axis) bool { return a.Name == "policy" }) {
			by = append(by, "policy")
		}
	}
	for i := range s.Rows {
		r := &s.Rows[i]
		name := r.label(by)
		at := slices.IndexFunc(data.Curves, func(c plots.SpeedCurve) bool { return c.Policy == name })
		if at < 0 {
			at = len(data.Curves)
			data.Curves = append(data.Curves, plots.SpeedCurve{Policy: name})
		}
		c := &data.Curves[at]
		speed, _ := s.Value(r, "user_speed_tok_s")
		rate, half := s.Value(r, "throughput_tok_s")
		c.Concurrency = append(c.Concurrency, r.Concurrency)
		c.Speed, c.Throughput = append(c.Speed, speed), append(c.Throughput, rate)
		c.ThroughputLow = append(c.ThroughputLow, rate-half)
		c.ThroughputHigh = append(c.ThroughputHigh, rate+half)
	}
	return plots.ThroughputSpeed(data)
}

func (s *Summary) line(f *Figure) (*plots.Figure, error) {
	data := plots.SweepData{Title: f.Title, X: plots.Axis{Label: f.XLabel, Log: f.LogX},
		Y: plots.Axis{Label: f.YLabel, Log: f.LogY}}
	if data.X.Label == "" {
		data.X.Label = axisLabel(f.X)
	}
	if data.Y.Label == "" {
		data.Y.Label = s.metricLabel(f.Y)
	}
	lines := newLines()
	by := s.varied(f.By)
	for i := range s.Rows {
		r := &s.Rows[i]
		name := r.label(by)
		several := len(by) > 0
		y, half := s.Value(r, f.Y)
		lines.add(lineKey{name: name}, r.Number(f.X), y, half)
		if f.Predicted {
			y, _ := s.Value(r, "predicted_tok_s")
			lines.add(lineKey{name: name, predicted: true}, r.Number(f.X), y, math.NaN())
		}
		for k := range s.References {
			reference := &s.References[k]
			v, ok := reference.At(r)
			switch {
			case !ok || reference.Metric != f.Y:
			case several: // each line has values of its own
				lines.add(lineKey{name: name, published: true}, r.Number(f.X), v, math.NaN())
				data.Published = nameOf(data.Published, reference.Name)
			default:
				lines.add(lineKey{name: reference.Name}, r.Number(f.X), v, math.NaN())
			}
		}
	}
	data.Series = lines.plot()
	return plots.Sweep(data)
}

// varied are those of the axes along which the rows differ: the others tell no line from another.
func (s *Summary) varied(axes []string) []string {
	return slices.DeleteFunc(slices.Clone(axes), func(axis string) bool {
		return len(s.Rows) > 0 && !slices.ContainsFunc(s.Rows, func(r Row) bool {
			return r.Text(axis) != s.Rows[0].Text(axis)
		})
	})
}

// label names the line of a row by its values on the axes.
func (r *Row) label(axes []string) string {
	var parts []string
	for _, axis := range axes {
		if axis == "policy" || axis == "variant" {
			parts = append(parts, r.Text(axis))
		} else {
			parts = append(parts, axisValue(axis, r.Text(axis)))
		}
	}
	if len(parts) == 0 {
		return "simulated"
	}
	return strings.Join(parts, ", ")
}

// lines collects the points of named series in order of appearance.
type lines struct {
	order []*series
	byKey map[lineKey]*series
}

type lineKey struct {
	name                 string
	predicted, published bool
}

func newLines() lines { return lines{byKey: make(map[lineKey]*series)} }

func (l *lines) add(key lineKey, x, y, half float64) {
	if l.byKey[key] == nil {
		l.byKey[key] = &series{Series: plots.Series{Name: key.name, Predicted: key.predicted,
			Published: key.published}}
		l.order = append(l.order, l.byKey[key])
	}
	l.byKey[key].add(x, y, half)
}

func (l *lines) plot() []plots.Series {
	var all []plots.Series
	for _, s := range l.order {
		all = append(all, s.plot())
	}
	return all
}

// bars draws a group for every value of the axis X, and in it a bar for every combination of the axes By.
func (s *Summary) bars(f *Figure) (*plots.Figure, error) {
	data := plots.BarsData{Title: f.Title, X: f.XLabel, Y: plots.Axis{Label: f.YLabel, Log: f.LogY}}
	if f.XLabel == "" && f.X != "variant" { // the names of systems say what they are
		data.X = axisLabel(f.X)
	}
	if data.Y.Label == "" {
		data.Y.Label = s.metricLabel(f.Y)
	}
	by := s.varied(f.By)
	places := make(map[[2]string]*Row)
	var names []string
	for i := range s.Rows {
		r := &s.Rows[i]
		group, name := r.Text(f.X), r.label(by)
		places[[2]string{group, name}] = r
		if !slices.Contains(data.Groups, group) {
			data.Groups = append(data.Groups, group)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		b := plots.BarSeries{Name: name}
		for _, group := range data.Groups {
			value, half, published := math.NaN(), math.NaN(), math.NaN()
			if r := places[[2]string{group, name}]; r != nil {
				value, half = s.Value(r, f.Y)
				for k := range s.References {
					if v, ok := s.References[k].At(r); ok && s.References[k].Metric == f.Y {
						published, data.Published = v, nameOf(data.Published, s.References[k].Name)
					}
				}
			}
			b.Values, b.Published = append(b.Values, value), append(b.Published, published)
			b.Low, b.High = append(b.Low, value-half), append(b.High, value+half)
		}
		data.Series = append(data.Series, b)
	}
	return plots.Bars(data)
}

// nameOf is what published values are called that come from one more reference: its name, if it is the only.
func nameOf(before, name string) string {
	if before == "" || before == name {
		return name
	}
	return "published"
}

var axisLabels = map[string]string{
	"concurrency": "requests in flight, N", "rate": "arrivals (1/s)", "p": "routing probability, p",
	"variation": "coefficient of variation of the gaps", "latency_scale": "scale of step times",
	"host_call": "host time a call (ms)", "pages": "KV pages", "token_budget": "token budget",
	"prompt_tokens": "prompt (tokens)", "output_tokens": "output (tokens)", "max_wait": "longest wait (ms)",
}

func axisLabel(axis string) string {
	if label, ok := axisLabels[axis]; ok {
		return label
	}
	return axis
}

// axisValue is a value of an axis as legends have it.
func axisValue(axis, text string) string {
	switch axis {
	case "concurrency":
		return "N = " + text
	case "thresholds":
		return "B = " + text
	case "prompt_tokens":
		return text + "-token prompts"
	case "output_tokens":
		return text + "-token answers"
	default:
		return strings.ReplaceAll(axis, "_", " ") + " = " + text
	}
}

func (s *Summary) metricLabel(metric string) string {
	at := slices.IndexFunc(s.Metrics, func(m Metric) bool { return m.Name == metric })
	if at < 0 || s.Metrics[at].Unit == "1" {
		return strings.ReplaceAll(metric, "_", " ")
	}
	unit := s.Metrics[at].Unit
	suffix := "_" + strings.ReplaceAll(unit, "/", "_")
	return fmt.Sprintf("%s (%s)", strings.ReplaceAll(strings.TrimSuffix(metric, suffix), "_", " "), unit)
}

func (s *Summary) schedules(f *Figure) (*plots.Figure, error) {
	data := plots.SchedulesData{Title: f.Title, TimeLabel: f.TimeLabel, Models: s.Models}
	unit := float64(f.TimeUnit)
	var ids []uint64
	for _, t := range s.Timelines {
		for _, l := range t.Launches {
			ids = append(ids, l.IDs...)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for i := range ids {
		data.Requests = append(data.Requests, fmt.Sprintf("R%d", i+1))
	}
	for i := range s.Rows {
		r := &s.Rows[i]
		at := slices.IndexFunc(s.Timelines, func(t Timeline) bool { return t.Point == r.Point })
		if at < 0 {
			continue
		}
		meanMs, _ := s.Value(r, "latency_mean_ms")
		schedule := plots.Schedule{Policy: r.Policy, MeanLatency: meanMs * 1e6 / unit}
		for _, l := range s.Timelines[at].Launches {
			launch := plots.Launch{Model: l.Model, Start: float64(l.StartNs) / unit, End: float64(l.EndNs) / unit}
			for k, id := range l.IDs {
				request, _ := slices.BinarySearch(ids, id)
				launch.Requests = append(launch.Requests, request)
				if k < len(l.SinceNs) && l.SinceNs[k] < l.StartNs {
					schedule.Waits = append(schedule.Waits, plots.Wait{Model: l.Model, Request: request,
						From: float64(l.SinceNs[k]) / unit, To: launch.Start})
				}
			}
			schedule.Launches = append(schedule.Launches, launch)
		}
		for _, e := range s.Timelines[at].Ends {
			request, _ := slices.BinarySearch(ids, e.ID)
			schedule.Finishes = append(schedule.Finishes,
				plots.Finish{Model: e.Model, Request: request, At: float64(e.AtNs) / unit})
		}
		data.Schedules = append(data.Schedules, schedule)
	}
	return plots.Schedules(data)
}
