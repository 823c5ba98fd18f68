package remote_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"tokenrouter/exec/remote"
	"tokenrouter/exec/remote/remotetest"
)

func TestStream(t *testing.T) {
	const (
		llama = `data: {"index":0,"content":"a","tokens":[5],"stop":false}` + "\n\n" +
			`data: {"index":0,"content":"b","tokens":[6],"stop":false}` + "\n\n" +
			`data: {"index":0,"content":"","tokens":[],"stop":true,"stop_type":"limit"}` + "\n\n"
		vllm = `data: {"id":"x","model":"m","choices":[{"index":0,"text":"a","token_ids":[5]}]}` + "\n\n" +
			`data: {"id":"x","model":"m","choices":[{"index":0,"text":"b","token_ids":[6]}]}` + "\n\ndata: [DONE]\n\n"
	)
	for _, c := range []struct {
		name   string
		engine remote.Engine
		events string
		cut    bool
		errHas string
	}{
		{"llama.cpp", remote.LlamaCPP, llama, false, ""},
		{"vllm", remote.VLLM, vllm, false, ""},
		{"an end token", remote.LlamaCPP, strings.Replace(llama, "[6]", "[]", 1), false, "1 tokens, want 2"},
		{"cut", remote.VLLM, vllm[:strings.Index(vllm, "\n\n")+12], true,
			"the stream is cut with 1 tokens to come: unexpected EOF"},
		{"no JSON", remote.VLLM, "data: hello\n\n", false, "the answer is not what it should be"},
		{"another engine", remote.SGLang, "", false, "streams are read of llama.cpp and vllm only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &remotetest.Engine{Kind: c.engine, Logits: three, Name: "m"}
			f.Fault = func(w http.ResponseWriter, _ *http.Request, _ []int32) bool {
				_, _ = w.Write([]byte(c.events))
				if c.cut {
					w.(http.Flusher).Flush()
					panic(http.ErrAbortHandler)
				}
				return true
			}
			var got []int32
			err := open(t, f, nil).Stream(t.Context(), []int32{1}, 2, func(ids []int32) { got = append(got, ids...) })
			if c.errHas != "" {
				if err == nil || !strings.Contains(err.Error(), c.errHas) {
					t.Errorf("error %v, want one with %q", err, c.errHas)
				}
				return
			}
			if err != nil || !slices.Equal(got, []int32{5, 6}) {
				t.Errorf("tokens %v, %v, want 5 and 6", got, err)
			}
		})
	}
}
