package trace_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core"
	"tokenrouter/core/turnlog/jsonline"
	"tokenrouter/sim/outcome/trace"
)

const (
	head = `{"format":"tokenrouter-trace","version":1,"models":["slm","llm"],` +
		`"signals":[["token","score"],["token"]]}` + "\n"
	good = `{"id":7,"arrival_ms":12.5,"prompt_tokens":30,"output_tokens":2,"end":"eos","path":"00x1",` +
		`"results":[{"token":[5,6],"score":[0.25,0.75]},{"token":[null,8]}]}` + "\n"
)

func read(text string) (requests []trace.Request, err error) {
	r, err := trace.NewReader("run.jsonl", strings.NewReader(text))
	for err == nil {
		var q trace.Request
		if err = r.Read(&q); err == nil {
			requests = append(requests, q)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return requests, err
}

func TestRead(t *testing.T) {
	got, err := read(head + good + `{"id":8,"prompt_tokens":1,"arrival_ms":13,"path":"0"}` + "\n")
	if err != nil {
		t.Fatal(err)
	}
	both := trace.Token | trace.Score
	want := []trace.Request{{
		ID: 7, ArrivalNs: 12_500_000, PromptTokens: 30, OutputTokens: 2, End: trace.EndOfSequence, Path: "00x1",
		Results: [][]trace.Result{
			{
				{Result: core.Result{Token: 5, Score: 0.25}, Has: both},
				{Result: core.Result{Token: 6, Score: 0.75}, Has: both},
			},
			{{}, {Result: core.Result{Token: 8}, Has: trace.Token}},
		},
		Line: 2,
	}, {
		ID: 8, ArrivalNs: 13_000_000, PromptTokens: 1, OutputTokens: 1, End: trace.EndOfSequence, Path: "0",
		Line: 3,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadErrors(t *testing.T) {
	with := func(from, to string) string { return strings.Replace(head+good, from, to, 1) }
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", ":1: an empty file, want a header"},
		{"another format", with("tokenrouter-trace", "x"), `:1: format = "x", want "tokenrouter-trace"`},
		{"a later version", with(`"version":1`, `"version":2`), ":1: version = 2, want 1"},
		{"no models", with(`["slm","llm"]`, `[]`), ":1: models = 0 names, want 1 to 8"},
		{"signals of one model", with(`[["token","score"],["token"]]`, `[[]]`),
			":1: signals = 1 lists, want one for each of 2 models"},
		{"unknown signal", with(`"score"]`, `"scores"]`), `:1: signals[0][1] = "scores", want one of token`},
		{"signal twice", with(`"score"]`, `"token"]`),
			`:1: signals[0][1] = "token", want one of token, logprob`},
		{"unknown key", with(`"end"`, `"ends"`), ":2: ends = an unknown key, want one of id, arrival_ms"},
		{"key in the wrong case", with(`"path"`, `"Path"`), ":2: Path = an unknown key"},
		{"key twice", with(`"end":"eos"`, `"id":7`), `:2: "id", want each key once`},
		{"no id", with(`"id":7,`, ``), ":2: no id, want one in every request"},
		{"negative id", with(`"id":7`, `"id":-7`), ":2: id = -7, want a whole number 0 to"},
		{"id falls", head + good + good, ":3: id = 7, want above 7, the one before"},
		{"arrival falls", head + good + strings.NewReplacer("12.5", "12.499999", `"id":7`, `"id":8`).Replace(good),
			":3: arrival_ms = 12.499999, want at least 12.5, the one before"},
		{"negative arrival", with("12.5", "-1"), ":2: arrival_ms = -1, want a decimal number"},
		{"arrival finer than a nanosecond", with("12.5", "0.1234567"), ":2: arrival_ms = 0.1234567, want"},
		{"arrival past the clock", with("12.5", "4611686018428"), ":2: arrival_ms = 4611686018428, want"},
		{"arrival of no number", with("12.5", "NaN"), ":2: arrival_ms = NaN, want a number"},
		{"no prompt", with(`"prompt_tokens":30`, `"prompt_tokens":0`),
			":2: prompt_tokens = 0, want a whole number 1"},
		{"prompt missing", with(`"prompt_tokens":30,`, ``), ":2: prompt_tokens = 0, want at least 1"},
		{"tokens do not fit the path", with(`"output_tokens":2`, `"output_tokens":3`),
			":2: output_tokens = 3, want 2, the tokens that path keeps"},
		{"unknown end", with(`"eos"`, `"stop"`), `:2: end = "stop", want "eos" or "length"`},
		{"empty path", with(`"00x1"`, `""`), `:2: path = "", want at least one pass`},
		{"unknown model", with(`"00x1"`, `"00x2"`),
			`:2: path = "2" at 3, near "00x2", want a model, 0 to 1`},
		{"drop of nothing", with(`"00x1"`, `"x01"`),
			`:2: path = "x" at 0, near "x01", want a model, 0 to 1`},
		{"made again by itself", with(`"00x1"`, `"00x01"`),
			`:2: path = "0" at 3, near "00x01", want another model`},
		{"last token dropped", with(`"00x1"`, `"00x1x"`),
			`:2: path = "x" at 4, near "00x1x", want a last pass`},
		{"neither path nor results", head + `{"id":1,"prompt_tokens":1,"output_tokens":1}`,
			":2: neither path nor results, want at least one of them"},
		{"results without a length", head + `{"id":1,"prompt_tokens":1,"results":[null,null]}`,
			":2: output_tokens = 0, want at least 1"},
		{"a model too many", with(`{"token":[null,8]}]`, `null,null]`),
			":2: results[2] = null, want 2 models"},
		{"a model too few", with(`,{"token":[null,8]}]`, `]`), ":2: results = 1 models, want 2"},
		{"a signal missing", with(`"token":[5,6],`, ``), ":2: results[0] = no token, want all signals"},
		{"a signal that the header has not", with(`{"token":[null,8]}`, `{"score":[1,1]}`),
			":2: results[1].score = an unknown key, want one of token"},
		{"too short", with("[5,6]", "[5]"),
			":2: results[0].score[1] = 0.75, want 1 values, as the signal before"},
		{"too long", with("[5,6]", "[5,6,7]"),
			":2: results[0].score = 2 values, want 3, as the signal before"},
		{"not as long as the answer", with("[null,8]", "[null,8,9]"),
			":2: results[1] = 3 positions, want 2"},
		{"a token of no number", with("[null,8]", `[null,"8"]`),
			`:2: results[1].token[1] = "8", want a whole number`},
		{"a score that overflows", with("0.75", "1e999"), ":2: results[0].score[1] = 1e999, want a number"},
		{"cut", head + good[:60], `:2: output_tokens = the end of the line, want`},
		{"an empty line", head + "\n" + good, ":2: the end of the line, want an object"},
		{"more on the line", with("]}\n{", "]} {"), ":1: {, want the end of the line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(c.text)
			if err == nil || !strings.HasPrefix(err.Error(), "trace run.jsonl"+c.want) {
				t.Errorf("error %v, want one that begins with trace run.jsonl%s", err, c.want)
			}
		})
	}
}

func TestWriteErrors(t *testing.T) {
	header := trace.Header{Models: []string{"a", "b"}, Signals: []trace.Signals{trace.Score, 0}}
	base := func() trace.Request {
		return trace.Request{ID: 5, ArrivalNs: 10, PromptTokens: 1, End: trace.Length, Path: "01"}
	}
	one := func(v float64, has trace.Signals) [][]trace.Result {
		return [][]trace.Result{{{Result: core.Result{Score: v}, Has: has}, {}}, nil}
	}
	for _, c := range []struct {
		name string
		edit func(*trace.Request)
		want string
	}{
		{"no end", func(r *trace.Request) { r.End = 0 }, "request 5: end = 0"},
		{"bad path", func(r *trace.Request) { r.Path = "03" }, `request 5: path = "3" at 1`},
		{"not finite", func(r *trace.Request) { r.Results = one(math.NaN(), trace.Score) }, "want finite numbers"},
		{"not in the header", func(r *trace.Request) { r.Results = one(1, trace.Entropy) },
			"results[0] = entropy, want only what the header names: score"},
		{"same id", func(r *trace.Request) { r.ID = 4 }, "request 4: id = 4, want above 4"},
		{"arrives before", func(r *trace.Request) { r.ArrivalNs = 9 },
			"arrival_ms = 0.000009, want at least 0.00001"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			w, err := trace.NewWriter(&out, header)
			if err != nil {
				t.Fatal(err)
			}
			first := base()
			first.ID = 4
			if err := w.Write(&first); err != nil {
				t.Fatal(err)
			}
			r := base()
			c.edit(&r)
			if err := w.Write(&r); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if err := w.Flush(); err != nil || strings.Count(out.String(), "\n") != 2 {
				t.Errorf("Flush: %v, wrote\n%s, want the header and request 4 only", err, out.String())
			}
		})
	}
	if _, err := trace.NewWriter(io.Discard, trace.Header{}); err == nil {
		t.Error("a header without models is written")
	}
}

// again writes what was read.
func again(t *testing.T, text string) string {
	t.Helper()
	r, err := trace.NewReader("again", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := trace.NewWriter(&out, r.Header())
	if err != nil {
		t.Fatal(err)
	}
	var q trace.Request // one for all: its memory is used again
	for r.Read(&q) == nil {
		if err := w.Write(&q); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWritingWhatWasReadGivesTheSameBytes(t *testing.T) {
	const other = `{"id":9,"arrival_ms":12.500001,"prompt_tokens":1,"output_tokens":3,"end":"length",` +
		`"results":[null,{"token":[-1,2147483647,null]}]}` + "\n"
	for _, text := range []string{head + good + other, head} {
		if got := again(t, text); got != text {
			t.Errorf("wrote\n%s\nwant\n%s", got, text)
		}
	}
}

func TestFiles(t *testing.T) {
	for _, name := range []string{"run.jsonl", "run.jsonl.gz"} {
		path := filepath.Join(t.TempDir(), name)
		file, err := jsonline.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(file, head+good); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if n, err := trace.Check(path); n != 1 || err != nil {
			t.Errorf("%s: %d requests, %v, want 1", name, n, err)
		}
	}
	plain := filepath.Join(t.TempDir(), "plain.gz")
	if err := os.WriteFile(plain, []byte(head), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Check(plain); err == nil || !strings.Contains(err.Error(), "want a gzip file") {
		t.Errorf("a plain file named .gz: %v", err)
	}
	if _, err := trace.Open(filepath.Join(t.TempDir(), "none.jsonl")); err == nil {
		t.Error("a file that is not there opens")
	}
}

func TestSchedulesTrace(t *testing.T) {
	r, err := trace.Open("testdata/fig4.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var paths []string
	for q := (trace.Request{}); r.Read(&q) == nil; {
		paths = append(paths, q.Path)
	}
	// SSS, SLSLSS and SSLSLS: a scenario with the mean latencies of TokenRouter's schedule
	// figure (arXiv 2610.12242).
	if diff := cmp.Diff([]string{"000", "010100", "001010"}, paths); diff != "" {
		t.Error(diff)
	}
}

// FuzzRead holds that no input makes the reader panic, and that what is read is written and
// read again as the same bytes.
func FuzzRead(f *testing.F) {
	f.Add(head + good)
	f.Add(`{"format":"tokenrouter-trace","version":1,"models":["a"],"signals":[["logprob","top_prob",` +
		`"entropy","draw","eos"]]}` + "\n" +
		`{"id":1,"prompt_tokens":1,"output_tokens":1,"results":[{"logprob":[-1e-9],` +
		`"top_prob":[0.5],"entropy":[0],"draw":[null],"eos":[true]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := read(text); err != nil {
			return
		}
		once := again(t, text)
		if twice := again(t, once); once != twice {
			t.Errorf("written\n%s\nand then\n%s", once, twice)
		}
	})
}

func BenchmarkReadPath(b *testing.B) {
	const requests, tokens = 1000, 512
	var text strings.Builder
	text.WriteString(head)
	for i := range requests {
		fmt.Fprintf(&text, `{"id":%d,"prompt_tokens":30,"path":"%s"}`+"\n", i, strings.Repeat("00x1", tokens/2))
	}
	b.ReportAllocs()
	for b.Loop() {
		if got, err := read(text.String()); err != nil || len(got) != requests {
			b.Fatal(len(got), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*requests*tokens), "ns/token")
}
