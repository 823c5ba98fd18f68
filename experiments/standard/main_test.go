package main

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/gguf"
	"tokenrouter/exec/remote"
	"tokenrouter/exec/remote/remotetest"
)

// short is a small experiment on random weights.
const short = `
engines = ["llama.cpp", "vllm"]
concurrency = [1, 2]
outputs = [8]
prompts = ["one", "two and a half"]
small.dir = "small"
large.shape = "tiny,layers=2"
large.seed = 2

[[routing]]
algorithm = "r2r"
p = 0.35

[[routing]]
algorithm = "rstitch"
threshold = 0.9
`

// folder has the experiment's file and its small model.
func folder(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	c, err := model.ParseShape("tiny,layers=1,positions=64")
	if err != nil {
		t.Fatal(err)
	}
	if err := model.Make(t.Context(), filepath.Join(dir, "small"), c, 1, nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "short.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fakes stand for engines: their large model says 7 and their small one 5, but for each tenth place.
func fakes(t *testing.T) starter {
	return func(ctx context.Context, e *experiment, m *models, kind remote.Engine) (*engine, error) {
		g := &engine{kind: kind, about: "a fake of " + kind.String(), stop: func() error { return nil }}
		for i := range m.folders {
			f := &remotetest.Engine{Kind: kind, Name: names[i], Slots: e.live(), Logits: func(ids []int32) []float64 {
				logits := make([]float64, m.configs[i].Vocab)
				if logits[5+2*i] = 20; len(ids)%10 == 0 {
					logits[5+2*i] = 1
				}
				return logits
			}}
			server := httptest.NewServer(f)
			t.Cleanup(server.Close)
			client, err := remote.Open(ctx, remote.Config{
				Name: names[i], Engine: kind, URL: server.URL, Vocab: m.configs[i].Vocab,
			})
			if err != nil {
				return nil, err
			}
			g.clients = append(g.clients, client)
		}
		return g, nil
	}
}

// Every system is measured at every point, for as many tokens as were asked for; draws send all of them to
// the large model at the same places.
func TestShort(t *testing.T) {
	path := folder(t, short)
	e, err := load(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.measure(t.Context(), t.TempDir(), fakes(t))
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	shares := map[int]map[float64]bool{1: {}, 2: {}} // by draws, at each concurrency
	for _, m := range r.results {
		got = append(got, strings.Join([]string{m.Rule, m.System}, ": "))
		for i, answer := range m.answers {
			if len(answer) != 8 {
				t.Errorf("%s of %s: answer %d has %d tokens, want 8", m.System, m.Rule, i, len(answer))
			}
		}
		if m.ThroughputTok <= 0 || m.TTFTMs <= 0 || m.LatencyMs < m.TTFTMs || len(m.answers) != m.Requests {
			t.Errorf("%s of %s: %+v", m.System, m.Rule, m)
		}
		if strings.HasPrefix(m.Rule, "R2R") {
			shares[m.Requests][m.LargeShare] = true
			if m.System != "ours" && m.Equal == 1 {
				t.Errorf("%s makes the tokens of ours, and has another model", m.System)
			}
		}
	}
	for n, of := range shares {
		if len(of) != 1 {
			t.Errorf("%d requests: large shares %v, want one: draws are the same", n, of)
		}
	}
	for _, rule := range []string{"R2R by draws, p = 0.35", "R-Stitch, threshold 0.9", ""} {
		for range e.Concurrency {
			systems := []string{"ours", "standard serving, llama.cpp", "standard serving, vllm"}
			if rule == "" {
				systems = []string{"large only, ours", "large only, llama.cpp", "large only, vllm"}
			}
			for _, system := range systems {
				want = append(want, rule+": "+system)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	checkSaved(t, r)
}

// checkSaved writes the report twice: what stands before the results stays, and they are replaced.
func checkSaved(t *testing.T, r *report) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "page")
	if err := os.WriteFile(name+".md", []byte("# Mine\n\n<!-- results -->\nstale\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.save(name); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(name + ".md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	if !strings.HasPrefix(text, "# Mine\n\n<!-- results -->\n") || strings.Contains(text, "stale") ||
		strings.Count(text, "| standard serving, vllm |") != 4 || !strings.Contains(text, "a fake of vllm.") {
		t.Errorf("page:\n%s", text)
	}
	raw, err := os.ReadFile(name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var read struct{ Results []measurement }
	if err := json.Unmarshal(raw, &read); err != nil || len(read.Results) != 18 {
		t.Errorf("%d raw results, %v, want 18", len(read.Results), err)
	}
}

// Equal tokens count up to the first that differs.
func TestCompare(t *testing.T) {
	m := &measurement{answers: [][]int32{{1, 2, 3, 4}, {1, 9, 3, 4}}}
	m.compare([][]int32{{1, 2, 3, 4}, {1, 2, 3, 4}})
	if m.Equal != 5.0/8 || m.Different != 1 {
		t.Errorf("%v the same and %d answers that differ, want 0.625 and 1", m.Equal, m.Different)
	}
}

// The median of an even number is the slower one of the two in the middle.
func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{5, 1, 9}, 5}, {[]float64{4, 8, 2, 6}, 4}} {
		var tries []*measurement
		for _, x := range c.of {
			tries = append(tries, &measurement{ThroughputTok: x})
		}
		m := median(tries)
		if m.ThroughputTok != c.want || len(m.RoundsTok) != len(c.of) || !slices.IsSorted(m.RoundsTok) {
			t.Errorf("of %v: %v of %v, want %v", c.of, m.ThroughputTok, m.RoundsTok, c.want)
		}
	}
}

// The copies allow contexts as long as the experiment's; llama.cpp gets the same weights, with an end token
// that no answer has.
func TestPrepare(t *testing.T) {
	e, err := load(folder(t, strings.Replace(short, "outputs = [8]", "outputs = [80]", 1)))
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	m, err := e.prepare(t.Context(), work, 10)
	if err != nil {
		t.Fatal(err)
	}
	c, err := model.ReadConfig(m.folders[0])
	if err != nil || c.Positions != 106 { // 10 and 80 tokens, and 16 more
		t.Errorf("%d positions, %v, want 106", c.Positions, err)
	}
	path := filepath.Join(work, "small.gguf")
	if err := writeGGUF(m.folders[0], path); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	texts, err := f.Texts("tokenizer.ggml.tokens")
	end, err2 := f.Uint("tokenizer.ggml.eos_token_id")
	if err != nil || err2 != nil || len(texts) != 320 || end != 319 {
		t.Fatalf("%d texts and end token %d, %v, %v, want 320 and 319", len(texts), end, err, err2)
	}
	for _, text := range texts {
		if strings.HasPrefix(text, "<|") {
			t.Errorf("text %q would end an answer", text)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, c := range []struct{ name, old, with, errHas string }{
		{"unknown key", "outputs", "output", "unknown key output"},
		{"engine", `"vllm"]`, `"sglang"]`, `engines: "sglang", want llama.cpp or vllm`},
		{"no output", "outputs = [8]", "outputs = [0]", "outputs = [0], want numbers of tokens"},
		{"few prompts", "[1, 2]", "[1, 3]", "prompts: 2, want one for each of 3 requests"},
		{"both rules", "p = 0.35", "p = 0.35\nthreshold = 1.0", "want r2r with p between 0 and 1"},
		{"no small", `small.dir = "small"`, "", "small.dir: missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(folder(t, strings.Replace(short, c.old, c.with, 1)))
			if err == nil || !strings.Contains(err.Error(), c.errHas) || !strings.Contains(err.Error(), "short.toml") {
				t.Errorf("error %v, want one of short.toml with %q", err, c.errHas)
			}
		})
	}
}

// The experiment that is run for real can be read.
func TestExperiment(t *testing.T) {
	e, err := load("../standard-serving.toml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1, 4, 8}, e.Concurrency); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{256, 1024}, e.Outputs); diff != "" {
		t.Error(diff)
	}
	for i, want := range []string{"R2R by draws, p = 0.35", "R-Stitch, threshold 0.03"} {
		if got := e.Routing[i].String(); got != want {
			t.Errorf("rule %q, want %q", got, want)
		}
	}
}
