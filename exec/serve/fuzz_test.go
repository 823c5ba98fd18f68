package serve

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// bodies are requests to start from, a line each: path, blank, body.
//
//go:embed testdata/bodies.txt
var bodies string

func addBodies(f *testing.F) {
	f.Helper()
	for line := range strings.Lines(bodies) {
		path, body, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		f.Add(path, []byte(body))
	}
}

// quick has models that take no time.
func quick(s *setting) { s.now[0].step, s.now[1].step = 0, 0 }

// FuzzBody: whatever a body is, it is read, or refused by the name of the field that is to blame.
func FuzzBody(f *testing.F) {
	addBodies(f)
	_, server, _ := build(f, []string{"a"}, quick)
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		read := server.readCompletion
		if strings.Contains(path, "chat") {
			read = server.readChat
		}
		a, failed := read(body)
		if failed != nil {
			if failed.status != http.StatusBadRequest && failed.status != http.StatusNotFound {
				t.Fatalf("status %d", failed.status)
			}
			named(t, body, failed.Param)
			return
		}
		if err := a.sampling.Validate(); err != nil || len(a.prompts)*a.n > server.c.ChoicesMax || a.tokensMax < 1 {
			t.Fatalf("%+v: %v", a, err)
		}
		for _, ids := range a.prompts {
			if len(ids) == 0 || len(ids)+a.tokensMax > server.c.Core.ContextMax ||
				slices.ContainsFunc(ids, func(id int32) bool { return id < 0 || int(id) >= server.c.Vocab }) {
				t.Fatalf("prompt %d, %d tokens beside", ids, a.tokensMax)
			}
		}
	})
}

// FuzzHandler: whatever a request is, the server answers as its status says, without an error of its own,
// and nothing of it stays. Only a time limit of the request's own can be an error of a status from 500 on.
func FuzzHandler(f *testing.F) {
	addBodies(f)
	_, server, loop := build(f, []string{"a", "lo ", "\xf0\x9f", "\x98\x80", "!"}, quick)
	handler := server.Handler(loop)
	ctx, end := context.WithCancel(f.Context())
	ended := make(chan error, 1)
	go func() { ended <- loop.Run(ctx) }()
	f.Cleanup(func() {
		end()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		if paths[path] != http.MethodPost {
			path = "/v1/completions"
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://server"+path, bytes.NewReader(body)))
		p := read(w.Code, w.Header(), w.Body.Bytes())
		limited := bytes.Contains(body, []byte("timeout_s"))
		switch {
		case p.status == http.StatusOK && p.frames != nil:
			if last := p.frames[len(p.frames)-1]; last != "[DONE]" && !limited {
				t.Fatalf("last frame %s", last)
			}
		case p.status == http.StatusOK:
			p.read(t)
		case p.status == http.StatusBadRequest:
			param, _ := p.failure(t)
			named(t, body, &param)
		case p.status >= 500 && !(p.status == http.StatusGatewayTimeout && limited):
			t.Fatalf("%d %s", p.status, p.body)
		default:
			p.failure(t)
		}
		for taken, _ := server.places.now(); taken > 0; taken, _ = server.places.now() {
			runtime.Gosched()
		}
	})
}

// named checks that a refusal of a body that is one JSON object names a field: one that the body has, or one
// that is wanted.
func named(t *testing.T, body []byte, param *string) {
	t.Helper()
	var object map[string]json.RawMessage
	if json.Unmarshal(body, &object) != nil || object == nil {
		return
	}
	if _, blank := object[""]; blank {
		return // the name of which is as good as none
	}
	if param == nil || *param == "" {
		t.Fatalf("no field is named")
	}
	for _, name := range []string{"model", "messages", "prompt", "n", "max_tokens"} {
		object[name] = nil
	}
	field := *param
	if _, has := object[field]; !has && strings.HasPrefix(field, "messages[") {
		field = "messages"
	}
	if _, has := object[field]; !has {
		t.Fatalf("%q is named, which is no field of the body", *param)
	}
}
