package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tokenrouter/exec/sse"
)

// Error is why a request is not finished.
type Error struct {
	// Kind is http_STATUS, connect (no answer came), timeout, cut (the answer has no end), stream_error (an
	// error frame, or a finish_reason that says so) or bad_answer (not what OpenAI's API has).
	Kind    string
	Message string
	// RetryAfter is what the server asked to wait; 0: nothing.
	RetryAfter time.Duration
}

// Error implements error.
func (e *Error) Error() string { return e.Kind + ": " + e.Message }

// Why the context of a request ends.
var (
	errOver    = errors.New("the run is over")
	errTimeout = errors.New("the request took longer than it may")
)

// Limits of what a server may send.
const (
	answerBytesMax  = 64 << 20
	messageBytesMax = 16 << 10
	messageShown    = 300 // bytes
)

// FirstModel is the first model that the server of a base URL lists (GET /models).
func FirstModel(ctx context.Context, base, key string) (string, error) {
	const longest = 30 * time.Second
	ctx, stop := context.WithTimeout(ctx, longest)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", nil)
	if err != nil {
		return "", err
	}
	authorise(request, key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax))
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: status %d: %s", request.URL, response.StatusCode, message(text))
	}
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(text, &list); err != nil || len(list.Data) == 0 || list.Data[0].ID == "" {
		return "", fmt.Errorf("%s: want a list of models, not %s", request.URL, shortened(string(text)))
	}
	return list.Data[0].ID, nil
}

func authorise(request *http.Request, key string) {
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
}

// exchange sends a request and takes its answer. A nil error is a whole answer.
func (r *run) exchange(ctx context.Context, body []byte, e *Ended) *Error {
	path := "/completions"
	if r.c.Chat {
		path = "/chat/completions"
	}
	ctx, stop := context.WithTimeoutCause(ctx, r.c.Timeout, errTimeout)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.c.URL+path, bytes.NewReader(body))
	if err != nil {
		return &Error{Kind: "connect", Message: err.Error()}
	}
	request.Header.Set("Content-Type", "application/json")
	// So says a client to net/http, which does not send it, that a request may be sent again where a kept
	// connection turns out to have been closed, as llama.cpp's server does after a stream.
	request.Header["Idempotency-Key"] = nil
	authorise(request, r.c.Key)
	response, err := r.c.Client.Do(request)
	if err != nil {
		return broken(ctx, "connect", err)
	}
	defer response.Body.Close()
	kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	switch {
	case response.StatusCode != http.StatusOK:
		text, _ := io.ReadAll(io.LimitReader(response.Body, messageBytesMax)) // what came is enough
		return &Error{
			Kind: fmt.Sprintf("http_%d", response.StatusCode), Message: message(text),
			RetryAfter: retryAfter(response.Header.Get("Retry-After")),
		}
	case !r.c.Stream:
		return r.whole(ctx, response.Body, e)
	case kind != "text/event-stream":
		return &Error{Kind: "bad_answer", Message: fmt.Sprintf("Content-Type %q, want text/event-stream", kind)}
	}
	return r.stream(ctx, response.Body, e)
}

// broken is a connection that ended early.
func broken(ctx context.Context, kind string, err error) *Error {
	if errors.Is(context.Cause(ctx), errTimeout) {
		kind, err = "timeout", errTimeout
	}
	return &Error{Kind: kind, Message: err.Error()}
}

// whole takes an answer that is no stream.
func (r *run) whole(ctx context.Context, body io.Reader, e *Ended) *Error {
	text, err := io.ReadAll(io.LimitReader(body, answerBytesMax))
	if err != nil {
		return broken(ctx, "cut", err)
	}
	failed := r.take(text, e)
	switch {
	case failed != nil:
		return failed
	case e.Finish == "":
		return &Error{Kind: "bad_answer", Message: "no choice with a finish_reason: " + shortened(string(text))}
	}
	return nil
}

// stream takes the frames of a stream. Without [DONE] an answer is whole only if it says how it finished and
// the stream ends in order.
func (r *run) stream(ctx context.Context, body io.Reader, e *Ended) *Error {
	events := sse.NewReader(body, answerBytesMax)
	for {
		event, err := events.Next()
		switch {
		case errors.Is(err, io.EOF) && e.Finish != "":
			return nil
		case err != nil:
			return broken(ctx, "cut", err)
		case string(event.Data) == "[DONE]":
			r.end(e)
			_, _ = io.Copy(io.Discard, io.LimitReader(body, messageBytesMax)) // so that the connection is kept
			if e.Finish == "" {
				return &Error{Kind: "bad_answer", Message: "[DONE] before any finish_reason"}
			}
			return nil
		}
		if failed := r.take(event.Data, e); failed != nil {
			return failed
		}
	}
}

// document is what is read of an answer or a frame.
type document struct {
	Choices []struct {
		Text     string
		Delta    content
		Message  content
		Finish   string `json:"finish_reason"`
		IDs      []int  `json:"token_ids"`
		Origin   []int  `json:"origin"`
		LogProbs struct {
			Content []json.RawMessage // chats
			Tokens  []json.RawMessage // completions
		} `json:"logprobs"`
	}
	Usage *struct {
		Prompt     int            `json:"prompt_tokens"`
		Completion int            `json:"completion_tokens"`
		ByModel    map[string]int `json:"tokens_by_model"`
		Dropped    int            `json:"dropped_drafts"`
	}
	Error json.RawMessage
	// Errors of vLLM before 0.10 have no error, but say what they are.
	Object string
}

type content struct {
	Content   string
	Reasoning string `json:"reasoning_content"`
}

// take takes a whole answer or a frame.
func (r *run) take(data []byte, e *Ended) *Error {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return &Error{Kind: "bad_answer", Message: err.Error() + ": " + shortened(string(data))}
	}
	if len(d.Error) > 0 && string(d.Error) != "null" || d.Object == "error" {
		return &Error{Kind: "stream_error", Message: message(data)}
	}
	for i := range d.Choices {
		c := &d.Choices[i]
		text := c.Text + c.Delta.Reasoning + c.Delta.Content + c.Message.Reasoning + c.Message.Content
		said := max(len(c.IDs), len(c.Origin), len(c.LogProbs.Content), len(c.LogProbs.Tokens))
		if text != "" || said > 0 {
			r.chunk(e, said)
		}
		e.Text += text
		e.Origin = append(e.Origin, c.Origin...)
		switch c.Finish {
		case "":
		case "error", "abort": // of vLLM and SGLang
			return &Error{Kind: "stream_error", Message: "finish_reason " + c.Finish}
		default:
			e.Finish = c.Finish
		}
	}
	if u := d.Usage; u != nil {
		e.PromptTokens, e.Tokens, e.ByModel, e.Dropped = u.Prompt, u.Completion, u.ByModel, u.Dropped
		e.Counted = true
	}
	return nil
}

// message is what an error says: in the document of OpenAI's API, or as it is.
func message(text []byte) string {
	var d struct {
		Error   json.RawMessage
		Message string
	}
	var inner struct{ Message string }
	if json.Unmarshal(text, &d) == nil {
		switch {
		case json.Unmarshal(d.Error, &inner) == nil && inner.Message != "":
			return shortened(inner.Message)
		case d.Message != "":
			return shortened(d.Message)
		}
	}
	return shortened(strings.TrimSpace(string(text)))
}

// shortened is the beginning of a text that may be of any length.
func shortened(text string) string {
	if len(text) <= messageShown {
		return text
	}
	return strings.ToValidUTF8(text[:messageShown], "") + "..."
}

// retryAfter reads the header of this name: seconds or a date (RFC 9110, section 10.2.3); 0 for neither.
func retryAfter(text string) time.Duration {
	const most = 24 * time.Hour
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, most)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(time.Until(at), 0), most)
}
