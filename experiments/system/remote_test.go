package system

import (
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core"
	"tokenrouter/core/route"
	"tokenrouter/exec/cpu"
	"tokenrouter/exec/model"
	"tokenrouter/exec/model/tokenizer"
	"tokenrouter/exec/native"
	"tokenrouter/exec/native/nativetest"
	"tokenrouter/exec/remote"
	"tokenrouter/exec/remote/remotetest"
	"tokenrouter/experiments/spec"
)

// logitsOf is a model folder as a function, computed by the device that runs it here.
func logitsOf(t *testing.T, dir string) func(ids []int32) []float64 {
	t.Helper()
	folder, err := model.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	device, err := cpu.Backend().Open(native.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	const tokensMax = 64
	c := native.Config{Model: folder.Config}
	m, err := device.Load(t.Context(), native.Load{
		Name: "there", Config: c, Source: native.Files{Folder: folder},
		Limits: native.Limits{
			Slots: 1, Pages: 1, PageTokens: tokensMax, ContextMax: tokensMax, RowsMax: tokensMax, RequestsMax: 1,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var mutex sync.Mutex
	t.Cleanup(func() {
		device.Close()
		_ = folder.Close()
	})
	grants := []native.Grant{{}}
	return func(ids []int32) []float64 {
		mutex.Lock()
		defer mutex.Unlock()
		b := &native.Batch{
			Tokens: ids, Requests: []native.Request{{Rows: int32(len(ids)), Head: 1, TopP: 1}}, Grants: grants,
			Results: make([]native.Result, 1), Logits: make([]float32, folder.Config.Vocab),
		}
		if err := m.Forward(b); err != nil {
			t.Error(err)
		}
		grants = nil
		logits := make([]float64, len(b.Logits))
		for id, z := range b.Logits {
			logits[id] = float64(z)
		}
		return logits
	}
}

// serving starts an engine that serves a model folder, and has model i of s run there.
func serving(t *testing.T, s *spec.System, i int, kind remote.Engine, change func(*remotetest.Engine)) {
	t.Helper()
	tokens, err := tokenizer.Load(s.Models[i].Dir + "/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	engine := &remotetest.Engine{
		Kind: kind, Name: s.Models[i].Name, Slots: s.Concurrency, Samplable: tokens.VocabSize(),
		Logits: logitsOf(t, s.Models[i].Dir),
		Text:   func(id int32) string { return string(tokens.Bytes(id)) },
	}
	if change != nil {
		change(engine)
	}
	server := httptest.NewServer(engine)
	t.Cleanup(server.Close)
	s.Models[i].Server = &spec.Server{Engine: kind, URL: server.URL}
}

// Answers with models on engines are those of the same models here: tokens and who made them. R2R has its
// small model here and its large one on an engine, R-Stitch both on engines.
func TestEngines(t *testing.T) {
	for _, c := range []struct {
		algorithm string
		remote    []int
	}{{"r2r", []int{1}}, {"me", []int{0, 1}}, {"rstitch", []int{0, 1}}, {"large", []int{1}}} {
		s := pair(t, c.algorithm)
		if c.algorithm == "r2r" {
			s.Router.Threshold, s.Router.HasThreshold = 0.5, true
		}
		prompts := promptsOf(3, 6, 0)
		want := answers(t, s, cpu.Backend(), prompts, 3)
		for _, kind := range []remote.Engine{remote.LlamaCPP, remote.VLLM, remote.SGLang} {
			t.Run(c.algorithm+" "+kind.String(), func(t *testing.T) {
				there := *s
				there.Models = append([]spec.SystemModel(nil), s.Models...)
				for _, i := range c.remote {
					serving(t, &there, i, kind, nil)
				}
				got := answers(t, &there, cpu.Backend(), prompts, 3)
				for i := range want {
					if diff := cmp.Diff(line(want[i]), line(got[i])); diff != "" {
						t.Errorf("prompt %d (-here +there):\n%s", i, diff)
					}
				}
			})
		}
	}
}

// What does not fit is refused before weights are read, with model, URL and what is wanted.
func TestEnginesRefused(t *testing.T) {
	for _, c := range []struct {
		name      string
		algorithm string
		model     int
		kind      remote.Engine
		change    func(*remotetest.Engine)
		errHas    string
	}{
		{"no hidden states", "r2r", 0, remote.VLLM, nil,
			`model "slm": r2r can not run with its small model on vllm`},
		{"short context", "me", 1, remote.SGLang, func(e *remotetest.Engine) { e.ContextMax = 32 },
			"has a context of 32 tokens, want at least scheduler.context_max = 64"},
		{"few slots", "me", 1, remote.LlamaCPP, func(e *remotetest.Engine) { e.Slots = 3 },
			"has 3 slots, want at least scheduler.concurrency = 4: start it with -np 4"},
		{"another vocabulary", "me", 1, remote.VLLM, func(e *remotetest.Engine) {
			e.Text = func(int32) string { return "x" }
		}, "another vocabulary: token"},
		{"few log-probabilities", "rstitch", 0, remote.VLLM, func(e *remotetest.Engine) { e.TopMax = 20 },
			"--max-logprobs -1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := pair(t, c.algorithm)
			serving(t, s, c.model, c.kind, c.change)
			p, err := Prepare(s, Choice{Backend: nativetest.Fake()})
			if err == nil {
				defer p.Close()
				var y *System
				if y, err = p.Open(t.Context(), Run{}); y != nil {
					y.Close()
				}
			}
			if err == nil || !strings.Contains(err.Error(), c.errHas) ||
				!strings.Contains(err.Error(), `model "`) {
				t.Errorf("error %v, want one of a model with %q", err, c.errHas)
			}
		})
	}
}

// A threshold of a new loop over the same models is the one that entropies are bounded about.
func TestEngineThreshold(t *testing.T) {
	s := pair(t, "rstitch")
	serving(t, s, 0, remote.VLLM, nil)
	p := prepare(t, s)
	y, err := p.Open(t.Context(), Run{})
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	c := p.Core
	c.Algorithm = route.RStitch{Threshold: 0.25}
	for _, want := range []struct {
		core      core.Config
		threshold float64
	}{{p.Core, 0.9}, {c, 0.25}} {
		if got, needs := y.entropy(want.core); got != want.threshold || !needs {
			t.Errorf("threshold %v, %v, want %v", got, needs, want.threshold)
		}
	}
}
