package serve

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tokenrouter/exec/model/chat"
)

// TestRefused: what can not be honoured is refused by name before anything runs (cases 11 and 12).
func TestRefused(t *testing.T) {
	serving(t, []string{"a"}, nil, func(r *rig) {
		for _, c := range []struct{ fields, param, message string }{
			{`"tools":[{"type":"function"}]`, "tools", "tools is not a field of this server"},
			{`"n":0`, "n", "n = 0, want 1 to 8"},
			{`"n":9`, "n", "n = 9, want 1 to 8"},
			{`"n":2.5`, "n", "n: want a whole number"},
			{`"max_tokens":0`, "max_tokens", "max_tokens = 0, want 1 to 2147483647"},
			{`"max_tokens":1000000000`, "max_tokens",
				"want at most 235: the prompt has 21 tokens and the context 256"},
			{`"max_completion_tokens":236`, "max_completion_tokens", "want at most 235"},
			{`"max_tokens":5,"max_completion_tokens":9`, "max_tokens", "want one of them or the same"},
			{`"stream_options":{"include_usage":true}`, "stream_options", "want it with stream = true only"},
			{`"stream":true,"stream_options":{"x":1}`, "stream_options", `unknown field "x"`},
			{`"temperature":-1`, "temperature", "temperature = -1, want 0 to 2"},
			{`"temperature":"0"`, "temperature", "temperature: want a number, not string"},
			{`"seed":18446744073709551615`, "seed",
				"seed: want a whole number of 64 bits, not number 18446744073709551615"},
			{`"chat_template_kwargs":{"messages":[]}`, "messages", "variable messages: want it by its own field"},
			{`"temperature":1e-9`, "temperature", "want 0 or at least 1e-06"},
			{`"top_p":1.5`, "top_p", "top_p = 1.5, want 0 to 1"},
			{`"top_k":-2`, "top_k", "top_k = -2, want -1 to"},
			{`"min_p":2`, "min_p", "min_p = 2"},
			{`"presence_penalty":3`, "presence_penalty", "want -2 to 2"},
			{`"frequency_penalty":-3`, "frequency_penalty", "want -2 to 2"},
			{`"logit_bias":{"x":1}`, "logit_bias", `token "x", want an id from 0 to 258`},
			{`"logit_bias":{"259":1}`, "logit_bias", `token "259"`},
			{`"logit_bias":{"1":1,"01":2}`, "logit_bias", `token "01"`},
			{`"logit_bias":{"50":-101}`, "logit_bias", "want -100 to 100"},
			{`"seed":1.5`, "seed", "want a whole number"},
			{`"stop":["a",""]`, "stop", "stop[1] has 0 bytes"},
			{`"stop":5`, "stop", "want a string or an array of strings"},
			{`"top_logprobs":2`, "top_logprobs", "want it with logprobs = true only"},
			{`"logprobs":true,"top_logprobs":21`, "top_logprobs", "want 0 to 20"},
			{`"logprobs":3`, "logprobs", "want true or false"},
			{`"response_format":{"type":"json_object"}`, "response_format", `want nothing, or {"type":"text"}`},
			{`"routing_threshold":3`, "routing_threshold", "want -1 to 2"},
			{`"routing_threshold":0.5,"routing":false`, "routing_threshold", "not for one model alone"},
			{`"timeout_s":1e9`, "timeout_s", "want 0.001 to 600"},
			{`"stream":false,"stream":true`, "stream", "given twice"},
			{`"echo":true`, "echo", "want nothing, or false"},
		} {
			p := r.do("POST", "/v1/chat/completions",
				`{"model":"pair","messages":[{"role":"user","content":"hi"}],`+c.fields+`}`)
			param, message := p.failure(t)
			if p.status != http.StatusBadRequest || param != c.param || !strings.Contains(message, c.message) {
				t.Errorf("%s: %d %q: %s, want 400 %q: %s", c.fields, p.status, param, message, c.param, c.message)
			}
		}
		if r.machines[0].passes+r.machines[1].passes != 0 {
			t.Errorf("%d passes for what was refused", r.machines[0].passes+r.machines[1].passes)
		}
	})
}

// TestBodiesRefused: bodies, prompts and conversations that are none.
func TestBodiesRefused(t *testing.T) {
	long := strings.Repeat("x", 255)
	small := func(s *setting) { s.config.BodyBytesMax = 1 << 16 }
	serving(t, []string{"a"}, small, func(r *rig) {
		for _, c := range []struct {
			path, body, param, message string
			status                     int
		}{
			{"chat/completions", `{"model":"pair"}`, "messages", "0 of them", 400},
			{"chat/completions", `{"messages":[]}`, "model", "model is missing", 400},
			{"chat/completions", `{"model":"x"}`, "model",
				`there is no model "x", want one of ["pair" "small" "large"]`,
				404},
			{"chat/completions", `{"model":"pair","messages":[{"role":"tool","content":"x"}]}`, "messages[0].role",
				`role = "tool"`, 400},
			{"chat/completions", `{"model":"pair","messages":[{"role":"user","content":"x","name":"n"}]}`,
				"messages[0].name", "name is not a field", 400},
			{"chat/completions", `{"model":"pair","messages":[{"role":"user","content":[{"type":"image_url"}]}]}`,
				"messages[0].content[0].type", "want text", 400},
			{"chat/completions", `{"model":"pair","messages":[{"role":"user","content":[{"type":"text","text":1}]}]}`,
				"messages[0].content[0].text", "want a string", 400},
			{"chat/completions", `{"model":"pair","messages":[{"role":"user","content":[{"type":"text","text":"x",
				"cache_control":{"type":"ephemeral"}}]}]}`, "messages[0].content[0].cache_control", "not a field", 400},
			{"chat/completions", `{"model":"pair","messages":[{"role":"user","content":["x"]}]}`,
				"messages[0].content[0]", "no JSON object", 400},
			{"chat/completions", `{"model":"pair","messages":[{"role":"user"}]}`, "messages[0].content",
				"missing", 400},
			{"chat/completions", `{"model":"pair","messages":[{"role":"system","content":null}]}`,
				"messages[0].content", "missing", 400},
			{"chat/completions", `{"model":"pair","messages":[3]}`, "messages[0]", "no JSON object", 400},
			{"chat/completions", `{"model":"pair","messages":[{"role":"user","content":"` + long + `"}]}`, "messages",
				"274 tokens, want at most 255", 400},
			{"completions", `{"model":"pair"}`, "prompt", "missing or empty", 400},
			{"completions", `{"model":"pair","prompt":""}`, "prompt", "missing or empty", 400},
			{"completions", `{"model":"pair","prompt":[` + strings.Repeat(" ", 99) + `]}`, "prompt",
				"missing or empty", 400},
			{"completions", `{"model":"pair","prompt":[1,259]}`, "prompt", "token 1 is 259, want 0 to 258", 400},
			{"completions", `{"model":"pair","prompt":[1,null]}`, "prompt", "want a string, an array of token ids",
				400},
			{"completions", `{"model":"pair","prompt":["a",""]}`, "prompt", "prompt[1]: it is empty", 400},
			{"completions", `{"model":"pair","prompt":{"a":1}}`, "prompt", "want a string", 400},
			{"completions", `{"model":"pair","prompt":"` + long + `x"}`, "prompt", "256 tokens, want at most 255",
				400},
			{"completions", `{"model":"pair","prompt":["a","b","c"],"n":3}`, "n", "9 choices, want at most 8", 400},
			{"completions", `{"model":"pair","prompt":"a","suffix":"b"}`, "suffix", "not a field", 400},
			{"completions", `{"model":"pair","prompt":"a","max_completion_tokens":3}`, "max_completion_tokens", "",
				400},
			{"completions", ``, "", "it is empty", 400},
			{"completions", `[]`, "", "no JSON object", 400},
			{"completions", `{"model":"pair"`, "", "no JSON", 400},
			{"completions", `{"model":"pair","prompt":"a"} x`, "", "more behind", 400},
			{"completions", `{"model":"pair","prompt":"` + strings.Repeat("x", 1<<16) + `"}`, "",
				"more than 65536 bytes",
				413},
		} {
			p := r.do("POST", "/v1/"+c.path, c.body)
			param, message := p.failure(t)
			if p.status != c.status || param != c.param || !strings.Contains(message, c.message) {
				t.Errorf("%.60s: %d %q: %s, want %d %q: %s", c.body, p.status, param, message, c.status, c.param,
					c.message)
			}
		}
		if r.machines[0].passes+r.machines[1].passes != 0 {
			t.Errorf("%d passes for what was refused", r.machines[0].passes+r.machines[1].passes)
		}
	})
}

// TestTemplateRefuses: what a chat template says of a conversation comes to the client, and not where its
// file is.
func TestTemplateRefuses(t *testing.T) {
	change := func(s *setting) {
		var err error
		s.config.Template, err = chat.Parse("/srv/models/chat_template.jinja",
			"{{ raise_exception('roles must alternate') }}", nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	serving(t, nil, change, func(r *rig) {
		p := r.chat("")
		param, message := p.failure(t)
		if p.status != 400 || param != "messages" || message != "messages: chat template: roles must alternate" {
			t.Errorf("%d %q: %s", p.status, param, message)
		}
	})
}

// TestAccepted: what asks for what is done anyway, and what is empty, is let through.
func TestAccepted(t *testing.T) {
	serving(t, []string{"a"}, nil, func(r *rig) {
		accepted := `,"user":"u","metadata":{"a":"b"},"store":false,"response_format":{"type":"text"},
			"tool_choice":"none","service_tier":"auto","top_k":-1,"logprobs":null,"stop":[]`
		r.chat(accepted).read(t)
		r.do("POST", "/v1/chat/completions", `{"model":"pair","messages":[{"role":"developer","content":"x"},
			{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
			{"role":"assistant","content":null,"tool_calls":[]},{"role":"assistant"},
			{"role":"user","content":""}]}`).read(t)
	})
}

// TestOthers: the other endpoints, and what is around all.
func TestOthers(t *testing.T) {
	change := func(s *setting) { s.config.APIKey, s.config.Origins = "secret", []string{"http://page"} }
	serving(t, []string{"a"}, change, func(r *rig) {
		key := []string{"Authorization", "Bearer secret"}
		for _, c := range []struct {
			method, path, body string
			headers            []string
			status             int
			want               string
		}{
			{"GET", "/v1/models", "", nil, 401, "invalid_api_key"},
			{"GET", "/v1/models", "", []string{"Authorization", "Bearer secre"}, 401, "invalid_api_key"},
			{"GET", "/v1/models", "", key, 200, `{"id":"pair","object":"model"`},
			{"GET", "/v1/models/large", "", key, 200, `{"id":"large"`},
			{"GET", "/v1/models/x", "", key, 404, "model_not_found"},
			{"GET", "/v1/completions", "", key, 405, "want POST"},
			{"POST", "/v1/embeddings", "{}", key, 404, "/openapi.json lists"},
			{"POST", "/tokenize", `{"prompt":"ab"}`, key, 200, `{"count":2,"max_model_len":256,"tokens":[98,99]}`},
			{"POST", "/tokenize", `{"messages":[{"role":"user","content":"hi<turn>"}],"return_token_strs":true}`, key,
				200,
				`{"count":27,`},
			{"POST", "/tokenize", `{"prompt":"ab","x":1}`, key, 400, `"param":"x"`},
			{"GET", "/health", "", nil, 200, `{"status":"ok","live":0,"waiting":0,"places":8,"places_taken":0`},
			{"GET", "/metrics", "", nil, 200, `tokenrouter_threshold{model="large"} 1`},
			{"GET", "/openapi.json", "", nil, 200, `"openapi"`},
			{"GET", "/health", "", []string{"X-Request-Id", "a b"}, 400, "byte 0x20"},
		} {
			p := r.do(c.method, c.path, c.body, c.headers...)
			if p.status != c.status || !strings.Contains(string(p.body), c.want) {
				t.Errorf("%s %s: %d %.300s, want %d %s", c.method, c.path, p.status, p.body, c.status, c.want)
			}
		}
		p := r.do("OPTIONS", "/v1/models", "", "Origin", "http://page", "Access-Control-Request-Method", "GET")
		if got := p.header.Get("Access-Control-Allow-Origin"); p.status != 204 || got != "http://page" {
			t.Errorf("preflight: %d %q", p.status, got)
		}
		p = r.do("GET", "/health", "", "Origin", "http://other", "X-Request-Id", "mine-1")
		if got := p.header.Get("Access-Control-Allow-Origin"); got != "" ||
			p.header.Get("X-Request-Id") != "mine-1" {
			t.Errorf("another page: %q, request ID %q", got, p.header.Get("X-Request-Id"))
		}
		p = r.do("POST", "/v1/completions", `{"model":"small","prompt":"x"}`,
			append(key, "X-Request-Id", "mine-2")...)
		if id := p.read(t).ID; id != "cmpl-mine-2" {
			t.Errorf("id %q, want cmpl-mine-2", id)
		}
	})
}

// TestOpenAPI: the document lists the fields that the server knows, and no others: one with a value of a
// wrong kind is refused by its name, and not because it is unknown.
func TestOpenAPI(t *testing.T) {
	var d struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(openAPI, &d); err != nil {
		t.Fatal(err)
	}
	free := []string{"user", "chat_template_kwargs"} // take any text, any object
	serving(t, []string{"a"}, nil, func(r *rig) {
		for schema, path := range map[string]string{
			"ChatRequest": "/v1/chat/completions", "CompletionRequest": "/v1/completions",
			"TokenizeRequest": "/tokenize",
		} {
			if n := len(d.Components.Schemas[schema].Properties); n < 6 {
				t.Errorf("%s has %d fields", schema, n)
			}
			for name := range d.Components.Schemas[schema].Properties {
				body := `{"` + name + `":{"x":[1]}}`
				if name != "model" {
					body = `{"model":"pair","` + name + `":{"x":[1]}}`
				}
				param, message := r.do("POST", path, body).failure(t)
				if !slices.Contains(free, name) && (param != name || strings.Contains(message, "not a field")) {
					t.Errorf("%s: %s: %q: %s", path, name, param, message)
				}
			}
		}
	})
}
