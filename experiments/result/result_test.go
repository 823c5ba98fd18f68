package result

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

// sample is a summary of two points, N = 2 and 3, in two replicates each.
func sample(t *testing.T) *Summary {
	t.Helper()
	s := &Summary{
		Experiment: "sample", Title: "Sample", Run: "0123", Seed: 1, Replicates: 2, Models: []string{"SLM", "LLM"},
		Axes: []Axis{{"concurrency", "concurrency", []string{"2", "3"}},
			{"max_wait", "max_wait_ms", []string{"5"}}},
		Percentiles: "nearest rank", Intervals: IntervalRule, Metrics: MetricsOf([]string{"SLM", "LLM"}),
	}
	for n := 2; n <= 3; n++ {
		var rows []Row
		for replicate := range 2 {
			r := Row{
				Point: fmt.Sprintf("concurrency=%d max_wait=5", n), Policy: "delayed", Concurrency: n,
				Thresholds: []int{1, n}, Axes: []Place{{"max_wait", "5", 5, true}}, Replicate: replicate,
				Seed: uint64(10*n + replicate), Replicates: 1,
			}
			for range s.Metrics {
				r.Values = append(r.Values, math.NaN())
			}
			s.set(t, &r, "tokens", 100)
			s.set(t, &r, "window_s", float64(1+8*replicate))
			s.set(t, &r, "throughput_tok_s", 100/float64(1+8*replicate))
			s.set(t, &r, "latency_p50_ms", float64(10+replicate))
			rows = append(rows, r)
		}
		mean, err := Aggregate(s.Metrics, rows)
		if err != nil {
			t.Fatal(err)
		}
		s.SeedRows, s.Rows = append(s.SeedRows, rows...), append(s.Rows, mean)
	}
	return s
}

func (s *Summary) set(t *testing.T, r *Row, metric string, v float64) {
	t.Helper()
	for i, m := range s.Metrics {
		if m.Name == metric {
			r.Values[i] = v
			return
		}
	}
	t.Fatalf("no metric %s", metric)
}

// TestRatioOfSums: 100 tokens in 1 s and 100 tokens in 9 s are 20 tok/s, not the mean of 100 and 11.1.
func TestRatioOfSums(t *testing.T) {
	s := sample(t)
	r := &s.Rows[0]
	// The ratio estimator's residuals are (100 - 20*1)/5 = 16 and (100 - 20*9)/5 = -16: standard error 16, and
	// Student's t of 1 degree of freedom is 12.7062 (Fisher and Yates, 1963, table III).
	for metric, want := range map[string][2]float64{
		"throughput_tok_s": {20, 16 * 12.706204736}, "tokens": {200, math.NaN()}, "window_s": {10, math.NaN()},
		"latency_p50_ms": {10.5, math.NaN()}, "ttft_p50_ms": {math.NaN(), math.NaN()},
	} {
		value, half := s.Value(r, metric)
		if !close(value, want[0]) || !close(half, want[1]) {
			t.Errorf("%s over replicates: %v +- %v, want %v +- %v", metric, value, half, want[0], want[1])
		}
	}
	one, err := Aggregate(s.Metrics, s.SeedRows[:1])
	if err != nil {
		t.Fatal(err)
	}
	if value, half := s.Value(&one, "throughput_tok_s"); value != 100 || !math.IsNaN(half) {
		t.Errorf("one replicate: %v +- %v, want 100 and no interval", value, half)
	}
}

func close(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*math.Abs(b)
}

// TestMetrics: names end in their units, weights are metrics, no name stands twice.
func TestMetrics(t *testing.T) {
	suffix := map[string]string{"ms": "_ms", "s": "_s", "tok/s": "_tok_s", "1": ""}
	metrics := MetricsOf([]string{"Qwen3-0.6B", "LLM"})
	seen := make(map[string]bool)
	for _, m := range metrics {
		end, ok := suffix[m.Unit]
		if !ok || !strings.HasSuffix(m.Name, end) || m.Definition == "" || seen[m.Name] {
			t.Errorf("metric %+v: want a new name with the suffix of its unit, and a definition", m)
		}
		seen[m.Name] = true
	}
	for _, m := range metrics {
		if m.Weight != "" && !seen[m.Weight] {
			t.Errorf("metric %s weighs by %s, which is none", m.Name, m.Weight)
		}
	}
	if !seen["qwen3_0_6b_batch_mean"] {
		t.Errorf("no qwen3_0_6b_batch_mean among %v", MetricNames(metrics))
	}
}

func TestParse(t *testing.T) {
	s := sample(t)
	text, err := s.JSON()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	nans := cmp.Comparer(func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) })
	if diff := cmp.Diff(s, got, nans); diff != "" {
		t.Errorf("summary (-written +read):\n%s", diff)
	}
}

// TestDamaged: what is wrong with a results folder is said, with file and place.
func TestDamaged(t *testing.T) {
	text, err := sample(t).JSON()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, old, new, want string }{
		{"cut", "", "", "unexpected EOF"},
		{"unknown key", `"title"`, `"tittle"`, `unknown field "tittle"`},
		{"column of another name", `"latency_p50_ms":10.5`, `"latency_p51_ms":10.5`,
			"rows[0].latency_p50_ms is missing"},
		{"column too many", `"warnings":`, `"more":1,"warnings":`, "rows[0].more is no column"},
		{"text for a number", `"tokens":200`, `"tokens":"200"`, `rows[0].tokens = "200": `},
		{"no JSON", "{", "x", "line 1: invalid character"},
		{"no experiment", `"experiment": "sample"`, `"experiment": ""`, "no experiment"},
		{"twice", "\n}\n", "\n}\n{}", "more than one JSON document"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			bad := strings.Replace(string(text), test.old, test.new, 1)
			if test.old == "" {
				bad = string(text[:len(text)/2])
			}
			path := filepath.Join(dir, SummaryJSON)
			if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Read(dir)
			if err == nil || !strings.HasPrefix(err.Error(), "results "+path+": damaged: ") ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %s: damaged: ... %s", err, path, test.want)
			}
		})
	}
	dir := t.TempDir()
	if _, err := Read(dir); err == nil || err.Error() != "results "+dir+
		": no summary.json, want a folder that a run has written" {
		t.Errorf("empty folder: %v", err)
	}
}

// TestCSV: a row a point and replicate, then a row a point; empty cells where nothing was measured.
func TestCSV(t *testing.T) {
	text, err := sample(t).CSV()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 1+4+2 {
		t.Fatalf("%d lines, want a header, 4 and 2", len(lines))
	}
	for i, want := range map[int]string{
		0: "row,point,policy,concurrency,thresholds,max_wait_ms,replicate,seed,replicates,throughput_tok_s,",
		1: `seed,concurrency=2 max_wait=5,delayed,2,"1,2",5,0,20,1,100,,,,,`,
		5: `mean,concurrency=2 max_wait=5,delayed,2,"1,2",5,,,2,20,203.2`,
	} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is\n%s\nwant it to begin with\n%s", i, lines[i], want)
		}
	}
}

// TestDrawHard: figures of nothing, of one point and of values that were not measured are drawn all the same.
func TestDrawHard(t *testing.T) {
	figures := []Figure{
		{Kind: "threshold", Name: "a"}, {Kind: "schedules", Name: "b", TimeUnit: 1e6},
		{Kind: "throughput-speed", Name: "c"},
		{Kind: "line", Name: "d", X: "max_wait", Y: "latency_p50_ms", By: []string{"concurrency"}, LogX: true},
		{Kind: "line", Name: "e", X: "concurrency", Y: "throughput_tok_s", Predicted: true},
	}
	empty := sample(t)
	empty.Rows, empty.SeedRows = nil, nil
	single := sample(t)
	single.Rows = single.Rows[:1]
	for name, s := range map[string]*Summary{"all": sample(t), "none": empty, "one": single} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s.Figures = figures
			files, err := Draw(dir, s)
			if err != nil || len(files) != 2*len(figures) {
				t.Fatalf("%d files, %v; want %d", len(files), err, 2*len(figures))
			}
			for _, file := range files {
				if info, err := os.Stat(file); err != nil || info.Size() < 500 {
					t.Errorf("%s: %v, %v", file, info, err)
				}
			}
		})
	}
	s := sample(t)
	s.Figures = []Figure{{Kind: "pie", Name: "x"}}
	if _, err := Draw(t.TempDir(), s); err == nil || !strings.Contains(err.Error(),
		`figure x: kind "pie", want`) {
		t.Errorf("figure of unknown kind: %v", err)
	}
}

func TestLabels(t *testing.T) {
	s := sample(t)
	for metric, want := range map[string]string{
		"throughput_tok_s": "throughput (tok/s)", "latency_p50_ms": "latency p50 (ms)", "slm_share": "slm share",
	} {
		if got := s.metricLabel(metric); got != want {
			t.Errorf("label of %s: %q, want %q", metric, got, want)
		}
	}
}

// TestMergeWarnings: seeds that differ in the leading count only share a line, with the sum.
func TestMergeWarnings(t *testing.T) {
	rows := []Row{
		{Warnings: []string{"tails: p99", "12 launches were late", "3 launches of 7"}},
		{Warnings: []string{"30 launches were late", "tails: p99", "3rd of all"}},
		{Warnings: nil},
	}
	want := []string{"tails: p99", "42 launches were late", "3 launches of 7", "3rd of all"}
	if diff := cmp.Diff(want, mergeWarnings(rows)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRequestFile writes more rows than a row group and reads them back; a cut file is refused.
func TestRequestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), RequestsFile)
	w, err := NewRequestWriter(path)
	if err != nil {
		t.Fatal(err)
	}
	row := func(i int) RequestRow {
		first := int64(i) * 3
		r := RequestRow{Point: "p", Seed: 1 << 52, ID: uint64(i), FirstNs: &first, LeftNs: first + 1,
			Outcome: "finished"}
		if i%7 == 0 {
			r.FirstNs = nil
		}
		return r
	}
	const count = rowGroup + rowBatch + 5
	for i := range count {
		w.Add(row(i))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	i := 0
	err = EachRequest(path, func(r RequestRow) error {
		if diff := cmp.Diff(row(i), r); diff != "" && i < 20 {
			t.Errorf("row %d (-written +read):\n%s", i, diff)
		}
		i++
		return nil
	})
	if err != nil || i != count {
		t.Errorf("%d rows, %v; want %d", i, err, count)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	if groups := file.RowGroups(); len(groups) != 2 || groups[0].NumRows() != rowGroup {
		t.Errorf("%d row groups, the first of %d rows; want 2 and %d", len(groups), groups[0].NumRows(), rowGroup)
	}
	if err := os.WriteFile(path, text[:len(text)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	err = EachRequest(path, func(RequestRow) error { return nil })
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("cut file: %v", err)
	}
}

// TestWriteFile: a file that can not be written leaves nothing behind.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(target, "full"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(target, []byte("x")); err == nil {
		t.Error("a folder was overwritten")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d entries are left, %v; want the folder only", len(entries), err)
	}
}
