package result

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// rowJSON writes a row as an object whose keys are the columns of summary.csv, in their order.
func (s *Summary) rowJSON(r *Row) ([]byte, error) {
	var b bytes.Buffer
	first := true
	var failed error
	put := func(key string, value any) {
		if f, ok := value.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			value = nil
		}
		text, err := json.Marshal(value)
		if err != nil {
			failed = err
			return
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		fmt.Fprintf(&b, "%q:%s", key, text)
	}
	b.WriteByte('{')
	put("point", r.Point)
	put("policy", r.Policy)
	put("concurrency", r.Concurrency)
	put("thresholds", r.Thresholds)
	for _, p := range r.Axes {
		if p.IsNumber {
			put(AxisColumn(p.Axis), p.Number)
		} else {
			put(AxisColumn(p.Axis), p.Text)
		}
	}
	if r.Replicate >= 0 {
		put("replicate", r.Replicate)
		put("seed", r.Seed)
	} else {
		put("replicates", r.Replicates)
	}
	for i, m := range s.Metrics {
		put(m.Name, r.Values[i])
		if m.Interval && r.Half != nil {
			put(m.Name+IntervalSuffix, r.Half[i])
		}
	}
	warnings := r.Warnings
	if warnings == nil {
		warnings = []string{}
	}
	put("warnings", warnings)
	b.WriteByte('}')
	return b.Bytes(), failed
}

// RowsJSON writes the rows of the points, a row a point, as an array whose keys are the columns of
// summary.csv.
func (s *Summary) RowsJSON() (json.RawMessage, error) { return s.rowsJSON(s.Rows) }

func (s *Summary) rowsJSON(rows []Row) (json.RawMessage, error) {
	parts := make([][]byte, len(rows))
	for i := range rows {
		text, err := s.rowJSON(&rows[i])
		if err != nil {
			return nil, err
		}
		parts[i] = text
	}
	return slices.Concat([]byte("["), bytes.Join(parts, []byte(",\n")), []byte("]")), nil
}

// wire is a Summary with its rows as objects.
type wire struct {
	plain
	Rows     json.RawMessage `json:"rows"`
	SeedRows json.RawMessage `json:"seed_rows"`
}

type plain Summary

// head is a Summary without its rows.
type head struct {
	plain
	Rows     *struct{} `json:"rows,omitempty"`
	SeedRows *struct{} `json:"seed_rows,omitempty"`
}

// JSON writes the summary, each row on a line of its own; Parse reads it back.
func (s *Summary) JSON() ([]byte, error) {
	rows, err := s.rowsJSON(s.Rows)
	if err != nil {
		return nil, err
	}
	seedRows, err := s.rowsJSON(s.SeedRows)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(head{plain: plain(*s)}, "", " ")
	if err != nil {
		return nil, err
	}
	return slices.Concat(bytes.TrimSuffix(text, []byte("\n}")),
		[]byte(",\n \"rows\": "), rows, []byte(",\n \"seed_rows\": "), seedRows, []byte("\n}\n")), nil
}

// Parse reads a summary strictly: an unknown or missing key, or a value of another type, is an error.
func Parse(text []byte) (*Summary, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var w wire
	if err := d.Decode(&w); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("more than one JSON document")
	}
	s := Summary(w.plain)
	if err := s.check(); err != nil {
		return nil, err
	}
	var err error
	if s.Rows, err = s.parseRows(w.Rows, false); err != nil {
		return nil, fmt.Errorf("rows%w", err)
	}
	if s.SeedRows, err = s.parseRows(w.SeedRows, true); err != nil {
		return nil, fmt.Errorf("seed_rows%w", err)
	}
	return &s, nil
}

func (s *Summary) parseRows(text json.RawMessage, seed bool) ([]Row, error) {
	var raw []map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	rows := make([]Row, len(raw))
	for i, fields := range raw {
		if err := s.parseRow(fields, seed, &rows[i]); err != nil {
			return nil, fmt.Errorf("[%d]%w", i, err)
		}
	}
	return rows, nil
}

func (s *Summary) parseRow(fields map[string]json.RawMessage, seed bool, r *Row) error {
	var failed error
	take := func(key string, into any) {
		text, ok := fields[key]
		delete(fields, key)
		if !ok && failed == nil {
			failed = fmt.Errorf(".%s is missing", key)
		}
		if ok && failed == nil {
			if err := json.Unmarshal(text, into); err != nil {
				failed = fmt.Errorf(".%s = %s: %w", key, text, err)
			}
		}
	}
	number := func(key string) float64 {
		var v *float64
		take(key, &v)
		if v == nil {
			return math.NaN()
		}
		return *v
	}
	take("point", &r.Point)
	take("policy", &r.Policy)
	take("concurrency", &r.Concurrency)
	take("thresholds", &r.Thresholds)
	for _, axis := range s.Axes {
		if axis.Name == "policy" || axis.Name == "concurrency" || axis.Name == "thresholds" {
			continue
		}
		p := Place{Axis: axis.Name}
		var v any
		take(AxisColumn(axis.Name), &v)
		if p.Number, p.IsNumber = v.(float64); p.IsNumber {
			p.Text = strconv.FormatFloat(p.Number, 'g', -1, 64)
		} else {
			p.Text = fmt.Sprint(v)
		}
		r.Axes = append(r.Axes, p)
	}
	r.Replicate, r.Replicates = -1, 1
	if seed {
		take("replicate", &r.Replicate)
		take("seed", &r.Seed)
	} else {
		take("replicates", &r.Replicates)
		r.Half = make([]float64, len(s.Metrics))
	}
	for i, m := range s.Metrics {
		r.Values = append(r.Values, number(m.Name))
		if !seed {
			r.Half[i] = math.NaN()
			if m.Interval {
				r.Half[i] = number(m.Name + IntervalSuffix)
			}
		}
	}
	take("warnings", &r.Warnings)
	if len(r.Warnings) == 0 {
		r.Warnings = nil
	}
	if failed == nil && len(fields) > 0 {
		failed = fmt.Errorf(".%s is no column", slices.Sorted(maps.Keys(fields))[0])
	}
	return failed
}

// CSV writes the rows of all points and replicates, then those over all replicates. An empty cell means that
// there was nothing to measure.
func (s *Summary) CSV() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	header := []string{"row", "point", "policy", "concurrency", "thresholds"}
	for _, axis := range s.otherAxes() {
		header = append(header, AxisColumn(axis))
	}
	header = append(header, "replicate", "seed", "replicates")
	for _, m := range s.Metrics {
		header = append(header, m.Name)
		if m.Interval {
			header = append(header, m.Name+IntervalSuffix)
		}
	}
	if err := w.Write(append(header, "warnings")); err != nil {
		return nil, err
	}
	for _, rows := range [][]Row{s.SeedRows, s.Rows} {
		for i := range rows {
			if err := w.Write(s.cells(&rows[i])); err != nil {
				return nil, err
			}
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

func (s *Summary) otherAxes() []string {
	var out []string
	for _, axis := range s.Axes {
		if axis.Name != "policy" && axis.Name != "concurrency" && axis.Name != "thresholds" {
			out = append(out, axis.Name)
		}
	}
	return out
}

func (s *Summary) cells(r *Row) []string {
	kind, replicate, seed := "mean", "", ""
	if r.Replicate >= 0 {
		kind, replicate, seed = "seed", strconv.Itoa(r.Replicate), strconv.FormatUint(r.Seed, 10)
	}
	cells := []string{kind, r.Point, r.Policy, strconv.Itoa(r.Concurrency), JoinInts(r.Thresholds)}
	for _, axis := range s.otherAxes() {
		cells = append(cells, r.Text(axis))
	}
	cells = append(cells, replicate, seed, strconv.Itoa(r.Replicates))
	for i, m := range s.Metrics {
		cells = append(cells, cell(r.Values[i]))
		if m.Interval {
			half := math.NaN()
			if r.Half != nil {
				half = r.Half[i]
			}
			cells = append(cells, cell(half))
		}
	}
	return append(cells, strings.Join(r.Warnings, "; "))
}

func cell(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// Markdown writes the metric dictionary for people.
func (s *Summary) Markdown() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Metrics of %s\n\nPercentiles: %s. Intervals: %s.\n\n", s.Title, s.Percentiles,
		s.Intervals)
	b.WriteString("| column | unit | definition |\n|---|---|---|\n")
	for _, m := range s.Metrics {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", m.Name, m.Unit, m.Definition)
	}
	return []byte(b.String())
}
