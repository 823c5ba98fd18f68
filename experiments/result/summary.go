package result

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Summary is all results of an experiment.
type Summary struct {
	Experiment          string      `json:"experiment"`
	Title               string      `json:"title"`
	Run                 string      `json:"run"` // name of the results folder
	SpecSHA256          string      `json:"spec_sha256"`
	Seed                uint64      `json:"seed"`
	Replicates          int         `json:"replicates"`
	CommonRandomNumbers bool        `json:"common_random_numbers"`
	Models              []string    `json:"models"`
	Backend             string      `json:"backend,omitempty"` // measured on it; empty: simulated
	Axes                []Axis      `json:"axes"`
	Percentiles         string      `json:"percentiles"` // their rule
	Intervals           string      `json:"intervals"`   // how they are made
	Metrics             []Metric    `json:"metrics"`
	Figures             []Figure    `json:"figures"`
	References          []Reference `json:"references"`

	Calibrations []Calibration `json:"calibrations,omitempty"` // that models and costs come from
	Checks       []Check       `json:"checks,omitempty"`
	Noise        float64       `json:"noise,omitempty"` // variants closer than that share are tied
	Caption      string        `json:"caption,omitempty"`
	Discussion   string        `json:"discussion,omitempty"`

	Rows      []Row      `json:"rows"`      // a row a point, over its replicates
	SeedRows  []Row      `json:"seed_rows"` // a row a point and replicate
	Timelines []Timeline `json:"timelines,omitempty"`
}

// Axis is a swept axis.
type Axis struct {
	Name   string   `json:"name"`
	Column string   `json:"column"`
	Values []string `json:"values"`
}

// Row is the results of a point, in one replicate or over all.
type Row struct {
	Point       string // its name
	Policy      string
	Concurrency int
	Thresholds  []int   // in force at that concurrency; nil for a policy without
	Axes        []Place // other swept axes
	Replicate   int     // -1: over all
	Seed        uint64  // of the world; 0 over all replicates
	Replicates  int     // how many values are behind the row
	// Values are by Summary.Metrics; NaN means that there was nothing to measure. Half are the half-widths of
	// the confidence intervals, NaN where there is none; nil in the row of one replicate.
	Values []float64
	Half   []float64
	// Warnings say what a reader of the row must know. A number at the start of one counts what it speaks of:
	// over replicates these are added.
	Warnings []string
}

// Place is the value of a point on an axis.
type Place struct {
	Axis     string
	Text     string
	Number   float64
	IsNumber bool
}

// Figure says what to draw of a summary. The fields that its kind does not use are zero.
type Figure struct {
	Kind      string   `json:"kind"` // threshold, schedules, throughput-speed, pareto, bars or line
	Name      string   `json:"name"` // file name without extension
	Title     string   `json:"title"`
	TimeUnit  int64    `json:"time_unit_ns,omitempty"`
	TimeLabel string   `json:"time_label,omitempty"`
	X         string   `json:"x,omitempty"` // axis: of bars that of the groups; of a pareto a metric
	Y         string   `json:"y,omitempty"` // metric
	By        []string `json:"by,omitempty"`
	Predicted bool     `json:"predicted,omitempty"`
	XLabel    string   `json:"x_label,omitempty"`
	YLabel    string   `json:"y_label,omitempty"`
	LogX      bool     `json:"log_x,omitempty"`
	LogY      bool     `json:"log_y,omitempty"`
}

// Reference is a series of published or measured values.
type Reference struct {
	Name   string           `json:"name"`
	Source string           `json:"source"`
	Metric string           `json:"metric"`
	Points []ReferencePoint `json:"points"`
}

// ReferencePoint is one value, at places named as in Row.
type ReferencePoint struct {
	At    map[string]string `json:"at"` // axis: text, as in Place
	Value float64           `json:"value"`
	Fit   bool              `json:"fit,omitempty"` // a constant was fitted to it: it checks nothing
}

// Check is a published ratio of a metric at two places, or the range that it is in.
type Check struct {
	Name   string              `json:"name"`
	Source string              `json:"source,omitempty"`
	Metric string              `json:"metric"`
	Of     map[string]string   `json:"of"`   // axis: text, as in Place
	Over   []map[string]string `json:"over"` // of several the largest counts
	Low    float64             `json:"low"`
	High   float64             `json:"high"` // equal to Low: a value
	Fit    bool                `json:"fit,omitempty"`
}

// Calibration says where the numbers of a file of step times and costs come from, and where they hold.
type Calibration struct {
	File      string     `json:"file"` // as the spec names it
	Device    string     `json:"device"`
	Engine    string     `json:"engine"`
	Date      string     `json:"date"` // a day, month or year
	Source    string     `json:"source"`
	Range     string     `json:"range"`
	Constants []Constant `json:"constants,omitempty"` // fitted ones
}

// Constant is a value that was fitted.
type Constant struct {
	Key   string `json:"key"`
	Value string `json:"value"` // as TOML
	From  string `json:"from"`  // which measured values it was fitted to
}

// Timeline is what happened in the first replicate of a point, for the figure of schedules.
type Timeline struct {
	Point    string           `json:"point"`
	Launches []TimelineLaunch `json:"launches"`
	Ends     []TimelineEnd    `json:"ends"`
}

// TimelineLaunch is one forward pass.
type TimelineLaunch struct {
	Model   int      `json:"model"`
	StartNs int64    `json:"start_ns"`
	EndNs   int64    `json:"end_ns"`
	IDs     []uint64 `json:"requests"`
	SinceNs []int64  `json:"since_ns"` // when each joined the queue
}

// TimelineEnd is the end of a request.
type TimelineEnd struct {
	ID    uint64 `json:"request"`
	Model int    `json:"model"`
	AtNs  int64  `json:"at_ns"`
}

// Text is the place of the row on an axis, "" if it has none.
func (r *Row) Text(axis string) string {
	switch axis {
	case "policy":
		return r.Policy
	case "concurrency":
		return strconv.Itoa(r.Concurrency)
	case "thresholds":
		return JoinInts(r.Thresholds)
	}
	for _, p := range r.Axes {
		if p.Axis == axis {
			return p.Text
		}
	}
	return ""
}

// Number is the place of the row on an axis of numbers; NaN if it is none.
func (r *Row) Number(axis string) float64 {
	if axis == "concurrency" {
		return float64(r.Concurrency)
	}
	for _, p := range r.Axes {
		if p.Axis == axis && p.IsNumber {
			return p.Number
		}
	}
	return math.NaN()
}

// Value is the value of a metric in a row and half the width of its interval; NaN for none.
func (s *Summary) Value(r *Row, metric string) (value, half float64) {
	i := slices.IndexFunc(s.Metrics, func(m Metric) bool { return m.Name == metric })
	if i < 0 {
		return math.NaN(), math.NaN()
	}
	half = math.NaN()
	if r.Half != nil {
		half = r.Half[i]
	}
	return r.Values[i], half
}

// JoinInts writes numbers, such as a set of thresholds, as "1,3".
func JoinInts(values []int) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = strconv.Itoa(v)
	}
	return strings.Join(parts, ",")
}

// At is the value of the series at the place of a row; ok is false if it has none there.
func (f *Reference) At(r *Row) (value float64, ok bool) {
	p := f.point(r)
	if p == nil {
		return 0, false
	}
	return p.Value, true
}

// point is the value of the series at the place of a row; nil if it has none there.
func (f *Reference) point(r *Row) *ReferencePoint {
	for i := range f.Points {
		if r.at(f.Points[i].At) {
			return &f.Points[i]
		}
	}
	return nil
}

// at reports whether the row is at a place.
func (r *Row) at(place map[string]string) bool {
	for axis, text := range place {
		if r.Text(axis) != text {
			return false
		}
	}
	return true
}

// check reports what does not fit together in a summary that was read.
func (s *Summary) check() error {
	if s.Experiment == "" || len(s.Metrics) == 0 {
		return fmt.Errorf("no experiment or no metrics")
	}
	for _, f := range s.Figures {
		if f.Name == "" || strings.ContainsAny(f.Name, "/\\") || strings.HasPrefix(f.Name, ".") {
			return fmt.Errorf("figure name %q, want a file name without a directory", f.Name)
		}
	}
	return nil
}
