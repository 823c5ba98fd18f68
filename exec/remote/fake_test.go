package remote_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tokenrouter/exec/remote"
	"tokenrouter/exec/serve/servetest"
)

// fake is an engine with a model that is a function from ids to logits. It speaks an engine's own protocol.
type fake struct {
	engine remote.Engine
	logits func(ids []int32) []float64
	name   string
	slots  int
	topMax int // most log-probabilities; 0: no bound
	// fault, if set, may answer in its stead, and then reports true.
	fault func(w http.ResponseWriter, r *http.Request, ids []int32) bool
	text  func(id int32) string

	mutex    sync.Mutex
	asked    []string // bodies of calls
	topAsked int      // most log-probabilities that a call has wanted
}

// ServeHTTP implements http.Handler.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	switch r.URL.Path {
	case "/v1/models":
		answer(w, map[string]any{"data": []any{map[string]any{
			"id": f.name, "max_model_len": 4096, "meta": map[string]any{"n_vocab": len(f.logits([]int32{0}))},
		}}})
		return
	case "/props":
		answer(w, map[string]any{
			"total_slots": f.slots, "default_generation_settings": map[string]any{"n_ctx": 512},
		})
		return
	case "/detokenize":
		f.detokenize(w, data)
		return
	}
	ids, top, biases := f.read(data)
	f.mutex.Lock()
	f.asked = append(f.asked, string(data))
	f.topAsked = max(f.topAsked, top)
	f.mutex.Unlock()
	if f.fault != nil && f.fault(w, r, ids) {
		return
	}
	if f.topMax > 0 && top > f.topMax {
		w.WriteHeader(http.StatusBadRequest)
		answer(w, map[string]any{"error": map[string]any{
			"message": fmt.Sprintf("Requested sample logprobs of %d, which is greater than max allowed: %d", top,
				f.topMax),
		}})
		return
	}
	answer(w, f.answer(ids, top, biases))
}

func answer(w http.ResponseWriter, of any) {
	if err := json.NewEncoder(w).Encode(of); err != nil {
		panic(err)
	}
}

func (f *fake) detokenize(w http.ResponseWriter, data []byte) {
	var body struct{ Tokens []int32 }
	if f.text == nil || json.Unmarshal(data, &body) != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	text := ""
	for _, id := range body.Tokens {
		text += f.text(id)
	}
	key := map[remote.Engine]string{remote.LlamaCPP: "content", remote.VLLM: "prompt", remote.SGLang: "text"}
	answer(w, map[string]any{key[f.engine]: text})
}

// read takes a call apart.
func (f *fake) read(data []byte) (ids []int32, top int, biases map[int32]float64) {
	var body struct {
		Prompt   []int32         `json:"prompt"`
		IDs      []int32         `json:"input_ids"`
		Probs    int             `json:"n_probs"`
		LogProbs int             `json:"logprobs"`
		Top      int             `json:"top_logprobs_num"`
		Biases   json.RawMessage `json:"logit_bias"`
		Sampling struct {
			Biases json.RawMessage `json:"logit_bias"`
		} `json:"sampling_params"`
	}
	if err := json.Unmarshal(data, &body); err != nil {
		panic(err)
	}
	if f.engine == remote.SGLang {
		body.Biases = body.Sampling.Biases
	}
	biases = map[int32]float64{}
	if f.engine == remote.LlamaCPP && body.Biases != nil {
		var pairs [][2]float64
		if err := json.Unmarshal(body.Biases, &pairs); err != nil {
			panic(err)
		}
		for _, p := range pairs {
			biases[int32(p[0])] = p[1]
		}
	} else if body.Biases != nil {
		if err := json.Unmarshal(body.Biases, &biases); err != nil {
			panic(err)
		}
	}
	return append(body.Prompt, body.IDs...), body.Probs + body.LogProbs + body.Top, biases
}

// answer is greedy.
func (f *fake) answer(ids []int32, top int, biases map[int32]float64) any {
	logits := f.logits(ids)
	logProbs := logProbsOf(logits)
	order := make([]int32, len(logits))
	token, best := int32(0), math.Inf(-1)
	for id := range order {
		order[id] = int32(id)
		if z := logits[id] + biases[int32(id)]; z > best {
			token, best = int32(id), z
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		if logProbs[a] > logProbs[b] {
			return -1
		} else if logProbs[a] < logProbs[b] {
			return 1
		}
		return 0
	})
	order = order[:min(top, len(order))]
	switch f.engine {
	case remote.LlamaCPP:
		return f.llama(token, order, logProbs)
	case remote.VLLM:
		tops := map[string]float64{"token_id:" + strconv.Itoa(int(token)): logProbs[token]}
		for _, id := range order {
			tops["token_id:"+strconv.Itoa(int(id))] = logProbs[id]
		}
		choice := map[string]any{"token_ids": []int32{token}, "finish_reason": "length"}
		if top > 0 {
			choice["logprobs"] = map[string]any{
				"token_logprobs": []float64{logProbs[token]}, "top_logprobs": []any{tops},
			}
		}
		return map[string]any{"model": f.name, "choices": []any{choice}}
	default:
		tops := []any{}
		for _, id := range order {
			tops = append(tops, []any{logProbs[id], id, nil})
		}
		return map[string]any{"text": "", "output_ids": []int32{token}, "meta_info": map[string]any{
			"output_token_logprobs": []any{[]any{logProbs[token], token, nil}}, "output_top_logprobs": []any{tops},
		}}
	}
}

// llama keeps probabilities of a token back that is no whole character.
func (f *fake) llama(token int32, order []int32, logProbs []float64) any {
	a := map[string]any{
		"model": f.name, "tokens": []int32{token}, "stop": true, "stop_type": "limit",
		"timings": map[string]any{"prompt_ms": 1.5, "predicted_ms": 0.25},
	}
	whole := f.text == nil || strings.ToValidUTF8(f.text(token), "") == f.text(token)
	if len(order) > 0 && whole {
		tops := []any{}
		for _, id := range order {
			tops = append(tops, map[string]any{"id": id, "logprob": logProbs[id]})
		}
		a["completion_probabilities"] = []any{map[string]any{
			"id": token, "logprob": logProbs[token], "top_logprobs": tops,
		}}
	}
	return a
}

// logProbsOf is the log-softmax.
func logProbsOf(logits []float64) []float64 {
	most, sum := slices.Max(logits), 0.0
	for _, z := range logits {
		sum += math.Exp(z - most)
	}
	out := make([]float64, len(logits))
	for i, z := range logits {
		out[i] = z - most - math.Log(sum)
	}
	return out
}

// entropyOf is divided by ln V.
func entropyOf(logits []float64) float64 {
	h := 0.0
	for _, l := range logProbsOf(logits) {
		h -= math.Exp(l) * l
	}
	return h / math.Log(float64(len(logits)))
}

// within serves a handler over connections in memory, so that time may be virtual.
func within(t *testing.T, handler http.Handler) *http.Transport {
	pipes := servetest.NewPipes()
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(pipes) }()
	transport := &http.Transport{MaxIdleConnsPerHost: 100, DialContext: pipes.Dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return transport
}

// open is a client of the fake.
func (f *fake) open(t *testing.T, change func(*remote.Config)) *remote.Client {
	t.Helper()
	c := remote.Config{
		Name: "large", Engine: f.engine, URL: "http://engine", Vocab: len(f.logits([]int32{0})),
		Transport: within(t, f),
	}
	if change != nil {
		change(&c)
	}
	client, err := remote.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
