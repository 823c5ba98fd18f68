package remote_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/exec"
	"tokenrouter/exec/remote"
	"tokenrouter/exec/remote/remotetest"
)

var engines = []remote.Engine{remote.LlamaCPP, remote.VLLM, remote.SGLang}

// three is a model over three tokens, whatever came before: probabilities 1/2, 1/4 and 1/4.
func three([]int32) []float64 { return []float64{0, 0.6931471805599453, 0} }

// The requests are those that llama.cpp's, vLLM's and SGLang's documents describe.
func TestRequests(t *testing.T) {
	drawn := &exec.Sampling{Temperature: 0.7, TopK: 40, TopP: 0.9, MinP: 0.05}
	for _, c := range []struct {
		name   string
		engine remote.Engine
		ask    remote.Ask
		want   string
	}{
		{"greedy", remote.LlamaCPP, remote.Ask{IDs: []int32{1, 2}, Top: 2, Slot: 3, Seed: 7},
			`{"prompt":[1,2],"n_predict":1,"id_slot":3,"cache_prompt":true,"return_tokens":true,"stream":false,` +
				`"temperature":0,"top_k":0,"top_p":1,"min_p":0,"samplers":[],"seed":7,"n_probs":2}`},
		{"drawn", remote.LlamaCPP,
			remote.Ask{IDs: []int32{1}, Sampling: drawn, Slot: -1, Seed: 1 << 32,
				Biases: []exec.TokenBias{{Token: 2, Bias: -1.5}}},
			`{"prompt":[1],"n_predict":1,"id_slot":-1,"cache_prompt":true,"return_tokens":true,"stream":false,` +
				`"temperature":0.7,"top_k":40,"top_p":0.9,"min_p":0.05,` +
				`"samplers":["top_k","top_p","min_p","temperature"],"seed":1,"logit_bias":[[2,-1.5]]}`},
		{"greedy", remote.VLLM, remote.Ask{IDs: []int32{1, 2}, Top: 2, Slot: 3, Seed: 7},
			`{"model":"m","prompt":[1,2],"max_tokens":1,"stream":false,"temperature":0,"top_k":0,"top_p":1,` +
				`"min_p":0,"repetition_penalty":1,"presence_penalty":0,"frequency_penalty":0,"logprobs":2,` +
				`"return_token_ids":true,"return_tokens_as_token_ids":true,"ignore_eos":true,` +
				`"skip_special_tokens":false,"add_special_tokens":false}`},
		{"drawn", remote.VLLM,
			remote.Ask{IDs: []int32{1}, Sampling: drawn, Seed: 1<<64 - 1,
				Biases: []exec.TokenBias{{Token: 2, Bias: -1.5}}},
			`{"model":"m","prompt":[1],"max_tokens":1,"stream":false,"temperature":0.7,"top_k":40,"top_p":0.9,` +
				`"min_p":0.05,"repetition_penalty":1,"presence_penalty":0,"frequency_penalty":0,"seed":-1,` +
				`"logit_bias":{"2":-1.5},"return_token_ids":true,"return_tokens_as_token_ids":false,` +
				`"ignore_eos":true,"skip_special_tokens":false,"add_special_tokens":false}`},
		{"greedy", remote.SGLang, remote.Ask{IDs: []int32{1, 2}, Top: 2, Slot: 3, Seed: 7},
			`{"input_ids":[1,2],"sampling_params":{"max_new_tokens":1,"temperature":0,"top_k":-1,"top_p":1,` +
				`"min_p":0,"repetition_penalty":1,"presence_penalty":0,"frequency_penalty":0,"ignore_eos":true,` +
				`"skip_special_tokens":false},"return_logprob":true,"top_logprobs_num":2,"logprob_start_len":-1,` +
				`"stream":false}`},
		{"drawn", remote.SGLang,
			remote.Ask{IDs: []int32{1}, Sampling: drawn, Seed: 9, Biases: []exec.TokenBias{{Token: 2, Bias: -1.5}}},
			`{"input_ids":[1],"sampling_params":{"max_new_tokens":1,"temperature":0.7,"top_k":40,"top_p":0.9,` +
				`"min_p":0.05,"repetition_penalty":1,"presence_penalty":0,"frequency_penalty":0,"sampling_seed":4,` +
				`"logit_bias":{"2":-1.5},"ignore_eos":true,"skip_special_tokens":false},"return_logprob":false,` +
				`"logprob_start_len":-1,"stream":false}`},
	} {
		t.Run(c.engine.String()+" "+c.name, func(t *testing.T) {
			f := &remotetest.Engine{Kind: c.engine, Logits: three, Name: "m", Slots: 4}
			answer, err := open(t, f, nil).Next(t.Context(), &c.ask)
			if err != nil || answer.Token != 1 || len(answer.Top) != c.ask.Top {
				t.Errorf("answer %v, %v, want token 1 and %d most likely ones", answer, err, c.ask.Top)
			}
			asked, _ := f.Asked()
			if len(asked) != 1 {
				t.Fatalf("%d calls, want 1", len(asked))
			}
			if diff := cmp.Diff(c.want, asked[0]); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

// Answers as the engines' documents and sources show them, in full.
func TestAnswers(t *testing.T) {
	const half, quarter = -0.6931472, -1.3862944
	want := remote.Answer{Token: 1, LogProb: half, Top: []exec.Candidate{{Token: 1, LogProb: half},
		{Token: 0, LogProb: quarter}}}
	for engine, body := range map[remote.Engine]string{
		remote.LlamaCPP: `{"index":0,"content":"b","tokens":[1],"id_slot":0,"stop":true,"model":"m",
			"tokens_predicted":1,"tokens_evaluated":2,"generation_settings":{"n_probs":2},"prompt":"ab",
			"has_new_line":false,"truncated":false,"stop_type":"limit","stopping_word":"","tokens_cached":2,
			"timings":{"cache_n":1,"prompt_n":1,"prompt_ms":1.5,"predicted_n":1,"predicted_ms":0.25},
			"completion_probabilities":[{"id":1,"token":"b","bytes":[98],"logprob":-0.6931472,"top_logprobs":[
				{"id":1,"token":"b","bytes":[98],"logprob":-0.6931472},
				{"id":0,"token":"a","bytes":[97],"logprob":-1.3862944}]}]}`,
		remote.VLLM: `{"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,
			"text":"b","logprobs":{"text_offset":[0],"token_logprobs":[-0.6931472],"tokens":["token_id:1"],
			"top_logprobs":[{"token_id:1":-0.6931472,"token_id:0":-1.3862944,"token_id:2":-1.3862945}]},
			"finish_reason":"length","stop_reason":null,"token_ids":[1],"prompt_token_ids":[1,2],
			"prompt_logprobs":null}],"usage":{"prompt_tokens":2,"total_tokens":3,"completion_tokens":1},
			"metrics":{"time_to_first_token_ms":1.75,"queue_time_ms":0.1}}`,
		remote.SGLang: `{"text":"b","output_ids":[1],"meta_info":{"id":"x","finish_reason":{"type":"length",
			"length":1},"prompt_tokens":2,"weight_version":"default","num_retractions":0,"reasoning_tokens":0,
			"completion_tokens":1,"cached_tokens":1,"e2e_latency":0.01,"input_token_logprobs":[],
			"input_top_logprobs":[],"output_token_logprobs":[[-0.6931472,1,null]],"output_token_logprobs_length":1,
			"output_top_logprobs":[[[-0.6931472,1,null],[-1.3862944,0,null]]]}}`,
	} {
		t.Run(engine.String(), func(t *testing.T) {
			f := &remotetest.Engine{Kind: engine, Logits: three, Name: "m"}
			f.Fault = func(w http.ResponseWriter, _ *http.Request, _ []int32) bool {
				_, _ = w.Write([]byte(body))
				return true
			}
			got, err := open(t, f, nil).Next(t.Context(), &remote.Ask{IDs: []int32{1, 2}, Top: 2})
			want := want
			if engine != remote.SGLang {
				want.EngineNs = 1.75e6
			}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("error %v, answer (-want +got):\n%s", err, diff)
			}
		})
	}
}

// What goes wrong names the model, the URL and the cause.
func TestErrors(t *testing.T) {
	say := func(status int, body string) func(http.ResponseWriter, *http.Request, []int32) bool {
		return func(w http.ResponseWriter, _ *http.Request, _ []int32) bool {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
			return true
		}
	}
	for _, c := range []struct {
		name    string
		engine  remote.Engine
		fault   func(http.ResponseWriter, *http.Request, []int32) bool
		wantHas string
	}{
		{"status of llama.cpp", remote.LlamaCPP, say(400, `{"error":{"code":400,"message":"the request exceeds the`+
			` available context size","type":"exceed_context_size_error"}}`),
			"POST /completion: status 400 Bad Request: the request exceeds the available context size"},
		{"loading", remote.LlamaCPP, say(503, `{"error":{"code":503,"message":"Loading model"}}`),
			"status 503 Service Unavailable: Loading model"},
		{"status of vLLM", remote.VLLM, say(404, `{"error":{"message":"The model x does not exist","code":404}}`),
			"POST /v1/completions: status 404 Not Found: The model x does not exist"},
		{"detail", remote.SGLang, say(422, `{"detail":[{"loc":["body"]}]}`),
			`POST /generate: status 422 Unprocessable Entity: [{"loc":["body"]}]`},
		{"text", remote.SGLang, say(500, "Internal Server Error\n"),
			"status 500 Internal Server Error: Internal Server Error"},
		{"no JSON", remote.VLLM, say(200, "<html>"), "the answer is not what it should be: invalid character '<'"},
		{"cut", remote.VLLM, func(w http.ResponseWriter, _ *http.Request, _ []int32) bool {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"model"`))
			return true
		}, "the answer is cut after 8 bytes: unexpected EOF"},
		{"hung up", remote.SGLang, func(http.ResponseWriter, *http.Request, []int32) bool {
			panic(http.ErrAbortHandler)
		}, "POST /generate: EOF"},
		{"another model", remote.LlamaCPP, say(200, `{"model":"other","tokens":[1]}`),
			`the answer is of model "other", want "m"`},
		{"no token", remote.VLLM, say(200, `{"model":"m","choices":[{"token_ids":[]}]}`),
			"the answer has 0 tokens, want 1"},
		{"two tokens", remote.LlamaCPP, say(200, `{"model":"m","tokens":[1,2]}`),
			"the answer has 2 tokens, want 1"},
		{"beyond the vocabulary", remote.SGLang, say(200, `{"output_ids":[3],"meta_info":{`+
			`"output_token_logprobs":[[-1,3,null]],"output_top_logprobs":[[[-1,3,null]]]}}`),
			"token 3, want 0 to 2: another vocabulary?"},
		{"no log-probabilities", remote.VLLM, say(200, `{"model":"m","choices":[{"token_ids":[1]}]}`),
			"the answer has no logprobs of its token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &remotetest.Engine{Kind: c.engine, Logits: three, Name: "m", Fault: c.fault}
			_, err := open(t, f, nil).Next(t.Context(), &remote.Ask{IDs: []int32{1}, Top: 1})
			if err == nil {
				t.Fatal("no error")
			}
			prefix := `model "large" at http://engine (` + c.engine.String() + "): "
			if !strings.HasPrefix(err.Error(), prefix) || !strings.Contains(err.Error(), c.wantHas) {
				t.Errorf("error %q, want one with %q", err, c.wantHas)
			}
		})
	}
}

// A call ends at its time limit to the nanosecond, and leaves no goroutine behind.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &remotetest.Engine{Kind: remote.VLLM, Logits: three, Name: "m"}
		f.Fault = func(_ http.ResponseWriter, r *http.Request, _ []int32) bool {
			<-r.Context().Done() // the server hears that the client has gone
			return true
		}
		client := open(t, f, func(c *remote.Config) { c.Timeout = 3 * time.Second })
		start := time.Now()
		_, err := client.Next(context.Background(), &remote.Ask{IDs: []int32{1}, Top: 1})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer within 3s") {
			t.Errorf("error %v, want one that there was no answer within 3s", err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %v, want 3s", took)
		}
	})
}

// Calls one after another have one connection, and one that the engine has closed in between costs no call.
func TestConnections(t *testing.T) {
	f := &remotetest.Engine{Kind: remote.LlamaCPP, Logits: three, Name: "m"}
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(f)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	client, err := remote.Open(t.Context(), remote.Config{
		Name: "large", Engine: remote.LlamaCPP, URL: server.URL + "/", Vocab: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ask := func(times int) {
		for range times {
			if _, err := client.Next(t.Context(), &remote.Ask{IDs: []int32{1}, Top: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	ask(100)
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections for 100 calls, want 1", n)
	}
	server.CloseClientConnections()
	ask(1)
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections after one was closed, want 2", n)
	}
}

func TestOpen(t *testing.T) {
	const two = `{"data":[{"id":"a","max_model_len":512},{"id":"b","max_model_len":256}]}`
	for _, c := range []struct {
		name, model, models string
		url                 string
		errHas              string
		want                remote.Info
	}{
		{name: "the only one", models: `{"data":[{"id":"a","max_model_len":512}]}`,
			want: remote.Info{Model: "a", ContextMax: 512}},
		{name: "one of two", model: "b", models: two, want: remote.Info{Model: "b", ContextMax: 256}},
		{name: "which?", models: two, errHas: `the engine serves "a", "b", want model = one of them and not ""`},
		{name: "another", model: "c", models: two, errHas: `want model = one of them and not "c"`},
		{name: "no JSON", models: "hello", errHas: "GET /v1/models: the answer is not what it should be"},
		{name: "no URL", url: "localhost:8000", errHas: `url "localhost:8000", want one such as`},
	} {
		t.Run(c.name, func(t *testing.T) {
			handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(c.models))
			})
			url := "http://engine"
			if c.url != "" {
				url = c.url
			}
			client, err := remote.Open(t.Context(), remote.Config{
				Name: "small", Engine: remote.VLLM, URL: url, Model: c.model, Vocab: 3, Transport: within(t, handler),
			})
			if c.errHas != "" {
				if err == nil || !strings.Contains(err.Error(), c.errHas) || !strings.Contains(err.Error(), `"small"`) {
					t.Errorf("error %v, want one of \"small\" with %q", err, c.errHas)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, client.Info()); diff != "" {
				t.Errorf("info (-want +got):\n%s", diff)
			}
		})
	}
}

// llama.cpp's server says more: its slots, the context of each, and the vocabulary.
func TestOpenLlamaCPP(t *testing.T) {
	f := &remotetest.Engine{Kind: remote.LlamaCPP, Logits: three, Name: "m", Slots: 8, ContextMax: 512}
	want := remote.Info{Model: "m", ContextMax: 512, Slots: 8, Vocab: 3}
	if diff := cmp.Diff(want, open(t, f, nil).Info()); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
}

// llama.cpp keeps back the probabilities of a token that is no whole character. They are asked for once more
// with another token, and are those of the same place.
func TestNoWholeCharacter(t *testing.T) {
	f := &remotetest.Engine{Kind: remote.LlamaCPP, Logits: three, Name: "m", Text: func(id int32) string {
		return []string{"a", "\xe2\x82", "b"}[id]
	}}
	client := open(t, f, nil)
	if _, err := client.Next(t.Context(), &remote.Ask{IDs: []int32{0}, Top: 1}); err == nil ||
		!strings.Contains(err.Error(), "token 1 is no whole character") {
		t.Errorf("error %v, want one that token 1 is no whole character", err)
	}
	if _, err := client.CheckVocabulary(t.Context(), lettersOnly(t)); err != nil {
		t.Fatal(err)
	}
	got, err := client.Next(t.Context(), &remote.Ask{IDs: []int32{0}, Top: 2})
	if err != nil {
		t.Fatal(err)
	}
	const half, quarter = -0.6931472, -1.3862944
	if got.Token != 1 || got.LogProb != half || len(got.Top) != 2 || got.Top[1].LogProb != quarter {
		t.Errorf("answer %+v, want token 1 of probability 1/2 and one of 1/4", got)
	}
}
