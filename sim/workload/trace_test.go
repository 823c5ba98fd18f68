package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readAll(text string, format Format, options TraceOptions) ([]Request, error) {
	trace, err := NewTrace("t", format, strings.NewReader(text), options)
	if err != nil {
		return nil, err
	}
	var requests []Request
	for {
		r, ok := trace.Next()
		if !ok {
			return requests, trace.Err()
		}
		requests = append(requests, r)
	}
}

func TestOpenTrace(t *testing.T) {
	want := []Request{
		{ID: 0, ArrivalNs: 0, PromptTokens: 100, OutputTokens: 512, MaxTokens: 2048},
		{ID: 1, ArrivalNs: 27_900_000, PromptTokens: 8192, OutputTokens: 0, MaxTokens: 1024},
		{ID: 2, ArrivalNs: 1_500_000_000, PromptTokens: 7, OutputTokens: 1},
	}
	for _, path := range []string{"testdata/small.csv", "testdata/small.jsonl"} {
		t.Run(path, func(t *testing.T) {
			trace, err := OpenTrace(path, TraceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, drain(t, trace)); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if n, err := CheckTrace(path, TraceOptions{}); n != 3 || err != nil {
				t.Errorf("CheckTrace = %d, %v, want 3 requests", n, err)
			}
			if err := trace.Close(); err != nil {
				t.Errorf("closing again: %v", err)
			}
		})
	}
}

func TestTraceOptions(t *testing.T) {
	const text = "arrival_ms,prompt_tokens,output_tokens,max_tokens\n5000,1,0,0\n5001,1,9,3\n"
	got, err := readAll(text, CSV, TraceOptions{MaxTokens: 64, FromZero: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []Request{
		{ID: 0, ArrivalNs: 0, PromptTokens: 1, OutputTokens: 0, MaxTokens: 64},
		{ID: 1, ArrivalNs: 1_000_000, PromptTokens: 1, OutputTokens: 9, MaxTokens: 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	_, err = readAll(text, CSV, TraceOptions{MaxTokens: -1})
	refused(t, err, "max tokens = -1")
	_, err = readAll(text, 0, TraceOptions{})
	refused(t, err, "unknown format 0")
}

// TestTimesAreExact: a time since 1970 keeps its nanoseconds, which float64 would round to 256.
func TestTimesAreExact(t *testing.T) {
	tests := []struct {
		column, text string
		want         int64
	}{
		{"arrival_s", "0", 0}, {"arrival_s", "1", 1_000_000_000}, {"arrival_s", "0.000000001", 1},
		{"arrival_s", "1760000000.123456789", 1_760_000_000_123_456_789},
		{"arrival_ms", "1760000000123.456789", 1_760_000_000_123_456_789},
		{"arrival_ms", "27.9", 27_900_000}, {"arrival_ms", "6.0", 6_000_000}, {"arrival_ms", "0.1", 100_000},
		{"arrival_ms", "0.0000004", 0}, {"arrival_ms", "0.0000005", 1}, {"arrival_ms", "1.9999996", 2_000_000},
		{"arrival_s", "1e3", 1_000_000_000_000}, {"arrival_s", "1.5e-3", 1_500_000},
		{"arrival_s", "2E+1", 20_000_000_000},
		{"arrival_s", "1e-999", 0}, {"arrival_s", "0e999", 0}, {"arrival_s", "0.0000000004999", 0},
		{"arrival_ns", "4611686018427387904", MaxArrivalNs}, {"arrival_ns", "00012", 12}, {"arrival_ns", "1.5", 2},
	}
	for _, test := range tests {
		t.Run(test.column+" "+test.text, func(t *testing.T) {
			text := fmt.Sprintf("%s,prompt_tokens,output_tokens\n%s,1,1\n", test.column, test.text)
			got, err := readAll(text, CSV, TraceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got[0].ArrivalNs != test.want {
				t.Errorf("arrival %d ns, want %d", got[0].ArrivalNs, test.want)
			}
		})
	}
}

func TestCSVForms(t *testing.T) {
	want := []Request{{ArrivalNs: 2_000_000, PromptTokens: 3, OutputTokens: 4, PrefixGroup: 9, PrefixTokens: 2}}
	const group = "arrival_ms,prompt_tokens,output_tokens,prefix_group,prefix_tokens"
	for name, text := range map[string]string{
		"other order":           "prefix_tokens,output_tokens,prefix_group,arrival_ms,prompt_tokens\n2,4,9,2,3\n",
		"CRLF and byte order":   "\ufeff" + group + "\r\n2,3,4,9,2\r\n",
		"no newline at the end": group + "\n2,3,4,9,2",
		"blank lines":           "\n" + group + "\n\n2,3,4,9,2\n\n",
		"quotes":                strings.Replace(group, "arrival_ms", `"arrival_ms"`, 1) + "\n2,\"3\",4,9,2\n",
	} {
		got, err := readAll(text, CSV, TraceOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestBadLineComesAfterTheGoodOnes(t *testing.T) {
	requests, err := readAll(times+"1,1,1\n2,1,1\n3,1,x\n4,1,1\n", CSV, TraceOptions{})
	if len(requests) != 2 {
		t.Errorf("%d requests before the bad line, want 2", len(requests))
	}
	refused(t, err, `t:4: output_tokens = "x"`)
}

func TestTraceFiles(t *testing.T) {
	_, err := OpenTrace("testdata/absent.csv", TraceOptions{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want one that wraps os.ErrNotExist", err)
	}
	_, err = OpenTrace("testdata/small.parquet", TraceOptions{})
	refused(t, err, `".parquet"`, ".csv, .jsonl or .ndjson")
	bad := filepath.Join(t.TempDir(), "bad.csv")
	if err := os.WriteFile(bad, []byte(times+"1,1,1\n0,1,1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if n, err := CheckTrace(bad, TraceOptions{}); n != 1 || err == nil {
		t.Errorf("CheckTrace = %d, %v, want 1 good request and an error", n, err)
	}
}

func TestReadErrorIsNotTheEnd(t *testing.T) {
	broken := errors.New("disk on fire")
	reader := io.MultiReader(strings.NewReader(times+"1,1,1\n"), failing{broken})
	trace, err := NewTrace("t", CSV, reader, TraceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	trace.Next()
	if _, ok := trace.Next(); ok || !errors.Is(trace.Err(), broken) {
		t.Errorf("error %v, want one that wraps %v", trace.Err(), broken)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestWriterRoundTrip(t *testing.T) {
	source := must(NewPoisson(3, 200, 1e5, Lengths{
		Prompt: must(Uniform(1, 50)), Output: must(Geometric(20, 1, 100)), MaxTokens: 64,
		PrefixGroups: 3, PrefixTokens: 10,
	}))
	want := drain(t, source)
	want[199].ArrivalNs = MaxArrivalNs
	for _, format := range []Format{CSV, JSONL} {
		var text bytes.Buffer
		writer := must(NewTraceWriter(&text, format))
		for _, r := range want {
			if err := writer.Write(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := writer.Flush(); err != nil {
			t.Fatal(err)
		}
		got, err := readAll(text.String(), format, TraceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("format %d read back (-written +read):\n%s", format, diff)
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	good := Request{ID: 5, ArrivalNs: 10, PromptTokens: 1, OutputTokens: 1}
	tests := []struct {
		name   string
		change func(*Request)
		want   string
	}{
		{"earlier than the last", func(r *Request) { r.ArrivalNs = 9 }, "arrival_ns = 9, want 10 to"},
		{"no prompt", func(r *Request) { r.PromptTokens = 0 }, "prompt_tokens = 0"},
		{"negative output", func(r *Request) { r.OutputTokens = -1 }, "output_tokens = -1"},
		{"negative limit", func(r *Request) { r.MaxTokens = -1 }, "max_tokens = -1"},
		{"negative prefix", func(r *Request) { r.PrefixTokens = -1 }, "prefix_tokens = -1"},
		{"never ends", func(r *Request) { r.OutputTokens = 0 }, "output_tokens = 0"},
		{"prefix without group", func(r *Request) { r.PrefixTokens = 1 }, "prefix_tokens = 1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			writer := must(NewTraceWriter(io.Discard, CSV))
			if err := writer.Write(good); err != nil {
				t.Fatal(err)
			}
			bad := good
			test.change(&bad)
			refused(t, writer.Write(bad), "request 5", test.want)
		})
	}
	_, err := NewTraceWriter(io.Discard, 0)
	refused(t, err, "unknown format 0")
	writer := must(NewTraceWriter(brokenWriter{}, CSV))
	if err := writer.Write(good); err != nil {
		t.Fatal(err)
	}
	if err := writer.Flush(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Flush = %v, want %v", err, io.ErrClosedPipe)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// errorAboutMissing tells an object that lacks a key from one that is not well formed.
func errorAboutMissing(err error) bool {
	missing := []string{"arrival columns", "no prompt_tokens", "no output_tokens", "only one of prefix"}
	for _, words := range missing {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// FuzzTrace: whatever is read, nothing panics; what is accepted keeps its promises and survives being
// written and read again.
func FuzzTrace(f *testing.F) {
	for _, path := range []string{"testdata/small.csv", "testdata/small.jsonl"} {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), path == "testdata/small.jsonl")
	}
	f.Add(header+"1e-3,9,1,0,3,9\n2.5,1,0,7,0,0\n", false)
	f.Add("arrival_s,prompt_tokens,output_tokens\n4.6e9,1,1\n", false)
	f.Fuzz(func(t *testing.T, text string, jsonl bool) {
		format := CSV
		if jsonl {
			format = JSONL
		}
		if plain, ok := plainJSON(text); ok && !strings.Contains(text, "\n") {
			walked, err := (&Trace{}).walkJSON(text)
			if err == nil && plain != walked {
				t.Errorf("%q: quickly %v, token by token %v", text, plain, walked)
			}
			if err != nil && !errorAboutMissing(err) {
				t.Errorf("%q: accepted quickly, but token by token %v", text, err)
			}
		}
		requests, err := readAll(text, format, TraceOptions{})
		if err != nil && !strings.HasPrefix(err.Error(), "trace t:") {
			t.Errorf("error %q names neither file nor line", err)
		}
		var written bytes.Buffer
		writer := must(NewTraceWriter(&written, format))
		for i, r := range requests {
			if r.ID != uint64(i) || r.EndTokens() < 1 {
				t.Errorf("request %d has id %d and ends after %d tokens", i, r.ID, r.EndTokens())
			}
			if err := writer.Write(r); err != nil {
				t.Errorf("accepted from a file, refused by the writer: %v", err)
			}
		}
		if err := writer.Flush(); err != nil {
			t.Fatal(err)
		}
		if len(requests) == 0 {
			return
		}
		again, err := readAll(written.String(), format, TraceOptions{})
		if err != nil {
			t.Fatalf("written, then refused: %v", err)
		}
		if diff := cmp.Diff(requests, again); diff != "" {
			t.Errorf("read back (-first +second):\n%s", diff)
		}
	})
}

func BenchmarkTraceCSV(b *testing.B)   { benchmarkTrace(b, CSV) }
func BenchmarkTraceJSONL(b *testing.B) { benchmarkTrace(b, JSONL) }

func benchmarkTrace(b *testing.B, format Format) {
	var text bytes.Buffer
	writer := must(NewTraceWriter(&text, format))
	for i := range int64(1000) {
		r := Request{ArrivalNs: i * 123_456_789, PromptTokens: 100, OutputTokens: 512}
		if err := writer.Write(r); err != nil {
			b.Fatal(err)
		}
	}
	if err := writer.Flush(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		trace := must(NewTrace("t", format, bytes.NewReader(text.Bytes()), TraceOptions{}))
		for {
			if _, ok := trace.Next(); !ok {
				break
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/request")
}
