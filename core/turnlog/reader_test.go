package turnlog_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/route"
	"tokenrouter/core/turnlog"
	"tokenrouter/core/turnlog/jsonline"
)

const (
	head   = `{"format":"tokenrouter-turnlog","version":1,"nodes":1}` + "\n"
	system = `{"node":0,"models":[{"name":"a","node":0,"pages":8}],"policy":{"name":"eager"},` +
		`"admission":"reserve","requests":2,"context_max":8,"page_tokens":4}` + "\n"
	empty = `{"turn":1,"node":0,"now":0,"out":{}}` + "\n"
)

// readAll returns the first error of reading a log.
func readAll(log string) error {
	r, err := turnlog.NewReader("run.jsonl", strings.NewReader(log))
	for err == nil {
		_, err = r.Next()
	}
	if err == io.EOF {
		return nil
	}
	return err
}

func TestReaderErrors(t *testing.T) {
	with := func(from, to string) string {
		return strings.Replace(head+system+empty, from, to, 1)
	}
	for _, c := range []struct{ name, log, want string }{
		{"nothing", "", "run.jsonl:1: the end of the file, want a header"},
		{"another file", `{"format":"tokenrouter-trace","version":1}`,
			`run.jsonl:1: format = "tokenrouter-trace", want "tokenrouter-turnlog"`},
		{"a later version", with(`"version":1`, `"version":2`), "run.jsonl:1: version = 2, want 1"},
		{"no nodes", with(`"nodes":1`, `"nodes":0`), "run.jsonl:1: nodes = 0, want at least 1"},
		{"no configuration", head, "run.jsonl:2: the end of the file, want a configuration"},
		{"no policy", with(`"policy":{"name":"eager"},`, ""), "run.jsonl:2: no policy, want one"},
		{"unknown policy", with(`"eager"`, `"easy"`), `run.jsonl:2: policy.name = "easy", want one of step-sync`},
		{"infeasible thresholds", with(`"name":"eager"`, `"name":"delayed","thresholds":[[2]]`),
			"run.jsonl:2: policy.thresholds: threshold table: row for N = 1"},
		{"key in the wrong case", with(`"now":0`, `"Now":0`),
			`run.jsonl:3: Now = an unknown key, want one of turn, node, now`},
		{"key twice", with(`"now":0`, `"now":0,"now":0`), `run.jsonl:3: "now", want each key once`},
		{"a fraction", with(`"now":0`, `"now":1.5`), "run.jsonl:3: now = 1.5, want a whole number"},
		{"turn out of order", with(`"turn":1`, `"turn":2`), "run.jsonl:3: turn = 2, want 1"},
		{"unknown node", with(`"turn":1,"node":0`, `"turn":1,"node":3`),
			"run.jsonl:3: node = 3, want one that the header"},
		{"time goes back", head + system + strings.Replace(empty, `"now":0`, `"now":5`, 1) +
			strings.Replace(empty, `"turn":1`, `"turn":2`, 1), "run.jsonl:4: now = 0, want at least 5"},
		{"unknown event", with(`"out"`, `"in":[{"event":"dream"}],"out"`),
			`run.jsonl:3: in[0].event = "dream", want one of ["done"`},
		{"event of no kind", with(`"out"`, `"in":[{}],"out"`), "run.jsonl:3: in[0].event = 0, want one of"},
		{"unknown model", with(`"out"`, `"in":[{"event":"done","model":1}],"out"`),
			"run.jsonl:3: in[0].model = 1, want 0 to 0"},
		{"a short row", with(`"out":{}`, `"out":{"launches":[{"model":0,"seq":1,"rows":[[0,0]]}]}`),
			"run.jsonl:3: out.launches[0].rows[0].gen = ], want a comma"},
		{"a long row", with(`"out":{}`, `"out":{"grants":[[0,0,0,0,7]]}`),
			"run.jsonl:3: out.grants[0] = ,7, want the end"},
		{"too large", with(`"out":{}`, `"out":{"grants":[[0,0,0,2147483648]]}`),
			"run.jsonl:3: out.grants[0].page = 2147483648, want a whole number -2147483648 to 2147483647"},
		{"cut in the middle", head + system + empty[:26], "run.jsonl:3: now = the end of the line, want"},
		{"an empty line", head + system + "\n" + empty, "run.jsonl:3: the end of the line, want an object"},
		{"more on the line", with(`"out":{}}`, `"out":{}} x`), "run.jsonl:3: x, want the end of the line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := readAll(c.log); err == nil || !strings.HasPrefix(err.Error(), "turn log "+c.want) {
				t.Errorf("error %v, want one that begins with %q", err, c.want)
			}
		})
	}
	if err := readAll(head + system + empty); err != nil {
		t.Errorf("a good log: %v", err)
	}
}

func TestNewWriterErrors(t *testing.T) {
	if _, err := turnlog.NewWriter(io.Discard); err == nil {
		t.Error("no configuration is taken")
	}
	if _, err := turnlog.NewWriter(io.Discard, core.Config{Node: 1}, core.Config{}); err == nil {
		t.Error("nodes out of order are taken")
	}
}

// brokenDisk fails after some bytes.
type brokenDisk struct{ left int }

func (b *brokenDisk) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestWriterKeepsTheFirstError(t *testing.T) {
	w := must(turnlog.NewWriter(&brokenDisk{left: 1000}, config(1, core.Eager{}, nil)))
	for i := range 5000 {
		w.Turn(0, core.Time(i), nil, &core.Actions{Wake: 7})
	}
	if err := w.Flush(); err != io.ErrShortWrite {
		t.Errorf("Flush = %v, want %v", err, io.ErrShortWrite)
	}
}

func TestPackedFile(t *testing.T) {
	log := record(t, []core.Config{config(2, core.Eager{}, route.R2R{Threshold: 0.65})}, 10)
	path := filepath.Join(t.TempDir(), "run.jsonl.gz")
	file, err := jsonline.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(log); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile(path)
	if err != nil || len(packed) > len(log)/2 {
		t.Errorf("%d bytes packed, %v, want less than half of %d", len(packed), err, len(log))
	}
	r, err := turnlog.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := turnlog.Replay(r); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	none := filepath.Join(t.TempDir(), "none")
	if _, err := turnlog.Open(none); err == nil || !strings.Contains(err.Error(), none) {
		t.Errorf("Open of a file that is not there: %v", err)
	}
}

func TestDiff(t *testing.T) {
	eager := schedule(t, core.Eager{})
	r := open(t, eager)
	if same, err := turnlog.Diff(io.Discard, r, open(t, eager)); !same || err != nil {
		t.Errorf("of a log with itself: %v, %v", same, err)
	}
	var out bytes.Buffer
	other, err := turnlog.NewReader("delayed.jsonl", bytes.NewReader(schedule(t, delayed(t, 0, 1, 2))))
	if err != nil {
		t.Fatal(err)
	}
	if same, err := turnlog.Diff(&out, open(t, eager), other); same || err != nil {
		t.Errorf("of two policies: %v, %v", same, err)
	}
	golden(t, "diff.txt", out.Bytes())

	out.Reset()
	short := eager[:bytes.LastIndexByte(eager[:len(eager)-1], '\n')+1]
	if same, err := turnlog.Diff(&out, open(t, short), open(t, eager)); same || err != nil {
		t.Errorf("of a log and its beginning: %v, %v", same, err)
	}
	if !strings.Contains(out.String(), "first difference: length\n- run.jsonl: ends\n+ run.jsonl: has turn") {
		t.Errorf("of a log and its beginning: %s", out.String())
	}
}

// FuzzReader holds that no input makes the package panic, and that what is read is written and
// read again as the same.
func FuzzReader(f *testing.F) {
	f.Add(head + system + empty)
	f.Add(string(schedule(f, core.Eager{})))
	f.Add(strings.Replace(head+system+empty, `"out"`, `"in":[{"event":"arrived","id":1,"to":0}],"out"`, 1))
	f.Fuzz(func(t *testing.T, log string) {
		r, err := turnlog.NewReader("fuzz", strings.NewReader(log))
		if err != nil {
			return
		}
		var again bytes.Buffer
		w, err := turnlog.NewWriter(&again, r.Configs()...)
		if err != nil {
			t.Fatal(err)
		}
		turns := 0
		for {
			turn, err := r.Next()
			if err != nil {
				break
			}
			w.Turn(turn.Node, turn.Now, turn.In, &turn.Out)
			turns++
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		second := open(t, again.Bytes())
		for range turns {
			if _, err := second.Next(); err != nil {
				t.Fatalf("written again: %v\n%s", err, again.Bytes())
			}
		}
		_ = turnlog.Perfetto(io.Discard, open(t, again.Bytes()))
	})
}
