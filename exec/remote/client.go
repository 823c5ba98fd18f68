package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tokenrouter/exec"
)

// Config is one engine and the model that it serves.
type Config struct {
	Name   string // of the model, for messages
	Engine Engine
	URL    string // such as http://127.0.0.1:8000, without a path
	// Model is the name that the engine has for the model; empty: the only one that it serves.
	Model string
	// Timeout bounds each call; 0: TimeoutDefault.
	Timeout time.Duration
	// Vocab is the width V of the model's logits.
	Vocab int
	// Samplable is the end of the ids that stand for something: a token from it on is an error. 0: Vocab.
	Samplable int
	// Transport makes the connections; nil: one of the Client's own, which keeps as many as are used.
	Transport http.RoundTripper
}

// TimeoutDefault leaves time for a long prompt.
const TimeoutDefault = 2 * time.Minute

// answerBytesMax bounds an answer: a vocabulary of log-probabilities has some 20 MB.
const answerBytesMax = 256 << 20

// Info is what an engine says of itself.
type Info struct {
	Model      string // its name for the model
	ContextMax int    // tokens of a request; 0: it does not say
	Slots      int    // requests that it can keep at a time; 0: it does not say
	Vocab      int    // ids that it knows; 0: it does not say
}

// Client is an engine that is there. It may be used by many goroutines.
type Client struct {
	c       Config
	dialect dialect
	http    http.Client
	info    Info
	whole   int32 // a token that is a whole character, of CheckVocabulary; -1: none is known
}

// Open asks the engine what it serves. Errors name the model, the URL and the cause.
func Open(ctx context.Context, config Config) (*Client, error) {
	c := &Client{c: config, dialect: config.Engine.dialect(), whole: -1}
	c.c.URL = strings.TrimRight(config.URL, "/")
	if u, err := url.Parse(c.c.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("model %q: url %q, want one such as http://127.0.0.1:8000", config.Name, config.URL)
	}
	if c.c.Timeout == 0 {
		c.c.Timeout = TimeoutDefault
	}
	if c.c.Samplable == 0 {
		c.c.Samplable = config.Vocab
	}
	c.http.Transport = config.Transport
	if config.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost, t.MaxIdleConns = connectionsMax, connectionsMax
		t.DisableCompression = true // answers of some hundred bytes
		c.http.Transport = t
	}
	if err := c.describe(ctx); err != nil {
		c.Close()
		return nil, c.failed(err)
	}
	return c, nil
}

// connectionsMax are kept between calls: as many as there can be calls at a time.
const connectionsMax = 4096

// Info is what the engine said when it was opened.
func (c *Client) Info() Info { return c.info }

// String names the model, the URL and the engine.
func (c *Client) String() string {
	return fmt.Sprintf("model %q at %s (%s)", c.c.Name, c.c.URL, c.c.Engine)
}

// Close lets go of the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// describe fills c.info. llama.cpp's server has more to say than what OpenAI's API has room for.
func (c *Client) describe(ctx context.Context) error {
	var models struct {
		Data []struct {
			ID         string `json:"id"`
			ContextMax int    `json:"max_model_len"`
			Meta       struct {
				Vocab int `json:"n_vocab"`
			} `json:"meta"`
		} `json:"data"`
	}
	if err := c.get(ctx, "/v1/models", &models); err != nil {
		return err
	}
	var names []string
	for _, m := range models.Data {
		names = append(names, fmt.Sprintf("%q", m.ID))
		if m.ID == c.c.Model || c.c.Model == "" && len(models.Data) == 1 {
			c.info = Info{Model: m.ID, ContextMax: m.ContextMax, Vocab: m.Meta.Vocab}
		}
	}
	if c.info.Model == "" {
		return fmt.Errorf("the engine serves %s, want model = one of them and not %q", strings.Join(names, ", "),
			c.c.Model)
	}
	if c.c.Engine != LlamaCPP {
		return nil
	}
	var props struct {
		Slots    int `json:"total_slots"`
		Settings struct {
			ContextMax int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	err := c.get(ctx, "/props", &props)
	c.info.Slots, c.info.ContextMax = props.Slots, props.Settings.ContextMax
	return err
}

// Next makes one call. Errors name the model, the URL and the cause.
func (c *Client) Next(ctx context.Context, a *Ask) (Answer, error) {
	path, body := c.dialect.body(c, a)
	data, err := c.post(ctx, path, body)
	if err != nil {
		return Answer{}, c.failed(err)
	}
	answer, err := c.dialect.answer(c, a, data)
	if errors.Is(err, errNoProbabilities) {
		answer, err = c.askAgain(ctx, a, answer)
	}
	if err == nil && (answer.Token < 0 || int(answer.Token) >= c.c.Samplable) {
		err = fmt.Errorf("token %d, want 0 to %d: another vocabulary?", answer.Token, c.c.Samplable-1)
	}
	if err == nil && len(answer.Top) < min(a.Top, c.c.Vocab) {
		err = fmt.Errorf("log-probabilities of %d tokens, want %d", len(answer.Top), min(a.Top, c.c.Vocab))
	}
	if err != nil {
		return Answer{}, c.failed(err)
	}
	return answer, nil
}

// askAgain gets the probabilities of a token that is no whole character. llama.cpp's server keeps them back
// until there is one, but those that it gives of another token, forced by a bias, are of the same logits.
func (c *Client) askAgain(ctx context.Context, a *Ask, known Answer) (Answer, error) {
	if c.whole < 0 {
		return known, fmt.Errorf("token %d is no whole character: the engine gives no probabilities of it",
			known.Token)
	}
	const forcing = 1e6
	forced := *a
	forced.Sampling, forced.Biases = nil, []exec.TokenBias{{Token: c.whole, Bias: forcing}}
	for _, forced.Top = range []int{a.Top, c.c.Vocab} { // the token need not be among the most likely ones
		path, body := c.dialect.body(c, &forced)
		data, err := c.post(ctx, path, body)
		if err != nil {
			return known, err
		}
		other, err := c.dialect.answer(c, &forced, data)
		if err != nil {
			return known, err
		}
		known.EngineNs += other.EngineNs
		for _, t := range other.Top {
			if t.Token == known.Token {
				known.LogProb, known.Top = t.LogProb, other.Top[:min(len(other.Top), a.Top)]
				return known, nil
			}
		}
	}
	return known, fmt.Errorf("no log-probability of token %d", known.Token)
}

// same refuses an answer of another model than the one that was opened.
func (c *Client) same(model string) error {
	if model != "" && model != c.info.Model {
		return fmt.Errorf("the answer is of model %q, want %q", model, c.info.Model)
	}
	return nil
}

// failed says of whom an error is.
func (c *Client) failed(err error) error {
	return fmt.Errorf("%v: %w", c, err)
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	data, err := c.call(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if err := parse(data, into); err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	return nil
}

func (c *Client) post(ctx context.Context, path string, body any) ([]byte, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return c.call(ctx, http.MethodPost, path, data)
}

// call sends a request and reads all of the answer, so that the connection can be used again.
func (c *Client) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.c.Timeout)
	defer cancel()
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax+1))
	if len(data) > answerBytesMax {
		return nil, fmt.Errorf("%s %s: an answer of more than %d bytes", method, path, answerBytesMax)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: the answer is cut after %d bytes: %w", method, path, len(data),
			c.late(ctx, err))
	}
	return data, nil
}

// send returns the answer to a request once its header is there and says that all is well.
func (c *Client) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.c.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	// A call changes nothing but caches. So says this to net/http, which does not send it: then a kept
	// connection that the engine has just closed costs another try and not the request.
	request.Header["Idempotency-Key"] = nil
	response, err := c.http.Do(request)
	if err != nil {
		var of *url.Error // names the URL once more
		if errors.As(err, &of) {
			err = of.Err
		}
		return nil, fmt.Errorf("%s %s: %w", method, path, c.late(ctx, err))
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	const errorBytesMax = 1 << 16
	data, _ := io.ReadAll(io.LimitReader(response.Body, errorBytesMax))
	return nil, fmt.Errorf("%s %s: %w", method, path, &StatusError{response.StatusCode, message(data)})
}

// late says of an error that is due to the time limit of a call that it is.
func (c *Client) late(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v: %w", c.c.Timeout, context.DeadlineExceeded)
	}
	return err
}

// StatusError is an HTTP status other than 200.
type StatusError struct {
	Status  int
	Message string // of the engine
}

// Error implements error.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("status %d %s", e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// message finds what an engine has to say in the body of a refusal: {"error": {"message": TEXT}} of
// llama.cpp and vLLM, also {"error": TEXT}, {"message": TEXT} and {"detail": ...}, or any text.
func message(data []byte) string {
	var from struct {
		Error, Detail json.RawMessage
		Message       string
	}
	if json.Unmarshal(data, &from) != nil {
		return shortest(data)
	}
	var inner struct{ Message string }
	var text string
	switch {
	case json.Unmarshal(from.Error, &inner) == nil && inner.Message != "":
		text = inner.Message
	case json.Unmarshal(from.Error, &text) == nil && text != "":
	case from.Message != "":
		text = from.Message
	case from.Detail != nil:
		text = string(from.Detail)
	default:
		text = string(data)
	}
	return shortest([]byte(text))
}
