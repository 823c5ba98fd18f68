package remote_test

import (
	"strings"
	"testing"

	"tokenrouter/exec/remote"
	"tokenrouter/exec/remote/remotetest"
)

// Which algorithm runs with which model on which engine: what an engine gives decides for the model that
// makes the signal, which is both of R-Stitch and the small one of R2R, CITER and Co-LLM.
func TestRefusal(t *testing.T) {
	refused := map[string]string{ // algorithm, engine: why
		"r2r llama.cpp": "neither hidden states nor raw logits", "r2r vllm": "no hidden states",
		"r2r sglang": "raw logits", "citer llama.cpp": "no hidden states", "citer vllm": "no hidden states",
		"citer sglang": "as text only", "collm llama.cpp": "deferral row", "collm vllm": "raw_logits",
		"collm sglang": "deferral row",
	}
	for _, algorithm := range []string{"r2r", "citer", "collm", "rstitch", "me", "query", "small", "large"} {
		for _, engine := range engines {
			why := refused[algorithm+" "+engine.String()]
			err := remote.Refusal(engine, algorithm, 0)
			if (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
				t.Errorf("%s with a small model on %s: %v, want %q", algorithm, engine, err, why)
			}
			if err := remote.Refusal(engine, algorithm, 1); err != nil {
				t.Errorf("%s with a large model on %s: %v, want none", algorithm, engine, err)
			}
		}
	}
}

// R-Stitch needs whole distributions, which vLLM does not give unless it is told to.
func TestCheckEntropy(t *testing.T) {
	f := &remotetest.Engine{Kind: remote.VLLM, Logits: three, Name: "m", TopMax: 2}
	if err := open(t, f, nil).CheckEntropy(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "greater than max allowed: 2") ||
		!strings.Contains(err.Error(), "--max-logprobs -1") {
		t.Errorf("error %v, want one with --max-logprobs -1", err)
	}
	f.TopMax = 0
	if err := open(t, f, nil).CheckEntropy(t.Context()); err != nil {
		t.Error(err)
	}
}
