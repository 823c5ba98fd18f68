// Package remotetest has engines for tests: each speaks the protocol of a real one, with a model that is a
// function.
package remotetest

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"tokenrouter/exec/remote"
)

// Engine is an engine with a model that is a function from ids to logits. It speaks an engine's own protocol,
// and is greedy.
type Engine struct {
	Kind   remote.Engine
	Logits func(ids []int32) []float64
	Name   string // of the model
	Slots  int    // of llama.cpp
	// Samplable is the end of the tokens that it makes: of random weights, those beyond are as likely. 0: all.
	Samplable int
	// ContextMax is what it says that a request may have, in tokens; 0: 4096.
	ContextMax int
	TopMax     int // most log-probabilities; 0: no bound
	// Fault, if set, may answer in its stead, and then reports true.
	Fault func(w http.ResponseWriter, r *http.Request, ids []int32) bool
	Text  func(id int32) string // what ids stand for; nil: it does not say

	mutex    sync.Mutex
	asked    []string // bodies of calls
	topAsked int      // most log-probabilities that a call has wanted
}

// ServeHTTP implements http.Handler.
func (f *Engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	switch r.URL.Path {
	case "/v1/models":
		answer(w, map[string]any{"data": []any{map[string]any{
			"id": f.Name, "max_model_len": f.contextMax(),
			"meta": map[string]any{"n_vocab": len(f.Logits([]int32{0}))},
		}}})
		return
	case "/props":
		answer(w, map[string]any{
			"total_slots": f.Slots, "default_generation_settings": map[string]any{"n_ctx": f.contextMax()},
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
	if f.Fault != nil && f.Fault(w, r, ids) {
		return
	}
	if f.TopMax > 0 && top > f.TopMax {
		w.WriteHeader(http.StatusBadRequest)
		answer(w, map[string]any{"error": map[string]any{
			"message": fmt.Sprintf("Requested sample logprobs of %d, which is greater than max allowed: %d", top,
				f.TopMax),
		}})
		return
	}
	if tokens := streamed(data); tokens > 0 {
		f.stream(w, ids, tokens)
		return
	}
	answer(w, f.answer(ids, top, biases))
}

// streamed is how many tokens a call wants as they come, 0 if it wants one.
func streamed(data []byte) int {
	var body struct {
		Stream    bool
		Predict   int `json:"n_predict"`
		TokensMax int `json:"max_tokens"`
	}
	if err := json.Unmarshal(data, &body); err != nil || !body.Stream {
		return 0
	}
	return body.Predict + body.TokensMax
}

// stream makes tokens, an event each.
func (f *Engine) stream(w http.ResponseWriter, ids []int32, tokens int) {
	ids = slices.Clone(ids)
	for range tokens {
		of := f.answer(ids, 0, nil)
		fmt.Fprint(w, "data: ")
		answer(w, of)
		fmt.Fprint(w, "\n")
		ids = append(ids, f.token(ids, nil))
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// token is the most likely one with biases, of those that may be made.
func (f *Engine) token(ids []int32, biases map[int32]float64) int32 {
	token, best := int32(0), math.Inf(-1)
	for id, z := range f.Logits(ids) {
		if f.Samplable > 0 && id >= f.Samplable {
			break
		}
		if z += biases[int32(id)]; z > best {
			token, best = int32(id), z
		}
	}
	return token
}

func (f *Engine) contextMax() int {
	if f.ContextMax == 0 {
		return 4096
	}
	return f.ContextMax
}

// Asked are the bodies of the calls so far, and the most log-probabilities that one has wanted.
func (f *Engine) Asked() (bodies []string, topMax int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return slices.Clone(f.asked), f.topAsked
}

func answer(w http.ResponseWriter, of any) {
	if err := json.NewEncoder(w).Encode(of); err != nil {
		panic(err)
	}
}

func (f *Engine) detokenize(w http.ResponseWriter, data []byte) {
	var body struct{ Tokens []int32 }
	if f.Text == nil || json.Unmarshal(data, &body) != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	text := ""
	for _, id := range body.Tokens {
		text += f.Text(id)
	}
	key := map[remote.Engine]string{remote.LlamaCPP: "content", remote.VLLM: "prompt", remote.SGLang: "text"}
	answer(w, map[string]any{key[f.Kind]: text})
}

// read takes a call apart.
func (f *Engine) read(data []byte) (ids []int32, top int, biases map[int32]float64) {
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
	if f.Kind == remote.SGLang {
		body.Biases = body.Sampling.Biases
	}
	biases = map[int32]float64{}
	if f.Kind == remote.LlamaCPP && body.Biases != nil {
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
func (f *Engine) answer(ids []int32, top int, biases map[int32]float64) any {
	logits := f.Logits(ids)
	logProbs := LogProbs(logits)
	order := make([]int32, len(logits))
	for id := range order {
		order[id] = int32(id)
	}
	token := f.token(ids, biases)
	slices.SortStableFunc(order, func(a, b int32) int {
		if logProbs[a] > logProbs[b] {
			return -1
		} else if logProbs[a] < logProbs[b] {
			return 1
		}
		return 0
	})
	order = order[:min(top, len(order))]
	switch f.Kind {
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
		return map[string]any{"model": f.Name, "choices": []any{choice}}
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
func (f *Engine) llama(token int32, order []int32, logProbs []float64) any {
	a := map[string]any{
		"model": f.Name, "tokens": []int32{token}, "stop": true, "stop_type": "limit",
		"timings": map[string]any{"prompt_ms": 1.5, "predicted_ms": 0.25},
	}
	whole := f.Text == nil || strings.ToValidUTF8(f.Text(token), "") == f.Text(token)
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

// LogProbs is the log-softmax of logits.
func LogProbs(logits []float64) []float64 {
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

// Entropy is that of the softmax of logits, divided by ln V.
func Entropy(logits []float64) float64 {
	h := 0.0
	for _, l := range LogProbs(logits) {
		h -= math.Exp(l) * l
	}
	return h / math.Log(float64(len(logits)))
}
