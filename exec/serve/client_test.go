package serve

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// official is OpenAI's own client for Go, against the server of the rig.
func (r *rig) official(more ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{
		option.WithBaseURL("http://server/v1/"), option.WithAPIKey("none"), option.WithHTTPClient(r.client),
		option.WithMaxRetries(0),
	}, more...)...)
}

func asked(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: "pair", Messages: []openai.ChatCompletionMessageParamUnion{
			openai.DeveloperMessage("Be brief."), openai.UserMessage(text),
		},
	}
}

// TestOfficialClient: the official client reads answers, streams, log-probabilities, choices, stop strings,
// models and completions as they are.
func TestOfficialClient(t *testing.T) {
	serving(t, []string{"Hel", "lo ", "\xf0\x9f", "\x98\x80", "!"}, odd, func(r *rig) {
		ctx, client := r.t.Context(), r.official()
		const want = "Hello \U0001f600!"

		p := asked("Hi")
		p.Logprobs, p.TopLogprobs, p.N = openai.Bool(true), openai.Int(2), openai.Int(2)
		p.Temperature, p.Seed, p.MaxCompletionTokens = openai.Float(0), openai.Int(3), openai.Int(20)
		answer, err := client.Chat.Completions.New(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.Choices) != 2 || answer.Usage.CompletionTokens != 10 {
			t.Fatalf("%d choices, usage %+v, want 2 and 10 tokens", len(answer.Choices), answer.Usage)
		}
		for _, c := range answer.Choices {
			entries := c.Logprobs.Content
			if c.Message.Content != want || c.FinishReason != "stop" || len(entries) != 5 ||
				len(entries[0].TopLogprobs) != 2 || entries[2].Bytes[0] != 0xf0 || entries[0].Token != "Hel" {
				t.Errorf("choice %d: %q, %s, %+v", c.Index, c.Message.Content, c.FinishReason, entries)
			}
		}

		p = asked("Hi")
		p.StreamOptions.IncludeUsage = openai.Bool(true)
		stream := client.Chat.Completions.NewStreaming(ctx, p)
		var whole openai.ChatCompletionAccumulator
		for stream.Next() {
			if !whole.AddChunk(stream.Current()) {
				t.Errorf("the accumulator refuses %s", stream.Current().RawJSON())
			}
		}
		if err := stream.Err(); err != nil || whole.Choices[0].Message.Content != want ||
			whole.Choices[0].FinishReason != "stop" || whole.Usage.CompletionTokens != 5 ||
			whole.Choices[0].Message.Role != "assistant" {
			t.Errorf("stream: %v, %+v, %+v", err, whole.Choices, whole.Usage)
		}

		p = asked("Hi")
		p.Stop = openai.ChatCompletionNewParamsStopUnion{OfStringArray: []string{"o", "!"}}
		if answer, err = client.Chat.Completions.New(ctx, p); err != nil ||
			answer.Choices[0].Message.Content != "Hell" {
			t.Errorf("stop: %v, %+v", err, answer)
		}

		text, err := client.Completions.New(ctx, openai.CompletionNewParams{
			Model: "small", Prompt: openai.CompletionNewParamsPromptUnion{OfArrayOfTokens: []int64{98, 99}},
			MaxTokens: openai.Int(2),
		})
		if err != nil || text.Choices[0].Text != "Hello " || text.Choices[0].FinishReason != "length" {
			t.Errorf("completion: %v, %+v", err, text)
		}
		models, err := client.Models.List(ctx)
		if err != nil || len(models.Data) != 3 || models.Data[0].ID != "pair" {
			t.Errorf("models: %v, %+v", err, models)
		}
		one, err := client.Models.Get(ctx, "large")
		if err != nil || one.ID != "large" {
			t.Errorf("model: %v, %+v", err, one)
		}
	})
}

// TestOfficialErrors: refusals and failures reach the client's caller with their fields; one that says Retry-
// After is tried again by the client itself; who cancels is gone from the loop.
func TestOfficialErrors(t *testing.T) {
	change := func(s *setting) {
		endless(s)
		s.now[1].fail = func(int) error { return errors.New("a fuse blew") }
	}
	serving(t, nil, change, func(r *rig) {
		ctx, client := r.t.Context(), r.official()
		var failed *openai.Error
		p := asked("Hi")
		p.N = openai.Int(99)
		if _, err := client.Chat.Completions.New(ctx, p); !errors.As(err, &failed) || failed.StatusCode != 400 ||
			failed.Param != "n" || failed.Type != "invalid_request_error" {
			t.Errorf("n: %v", err)
		}
		p = asked("Hi")
		p.Model = "large"
		if _, err := client.Chat.Completions.New(ctx, p); !errors.As(err, &failed) || failed.StatusCode != 500 ||
			failed.Code != "device_failed" {
			t.Errorf("a model that fails: %v", err)
		}
		p = asked("Hi")
		p.MaxTokens = openai.Int(30)
		r.machines[0].script, r.machines[0].score = nil, func(at int) float64 { return float64(at / 10) }
		stream := client.Chat.Completions.NewStreaming(ctx, p)
		text := ""
		for stream.Next() {
			for _, c := range stream.Current().Choices {
				text += c.Delta.Content
			}
		}
		if err := stream.Err(); err == nil || !strings.Contains(err.Error(), "device failed at model large") ||
			len(text) != 10 {
			t.Errorf("in the middle of a stream: %v after %q", err, text)
		}
		r.machines[0].score = nil

		full := r.places(t, 8, 100)
		p = asked("Hi")
		p.MaxTokens = openai.Int(1)
		if _, err := client.Chat.Completions.New(ctx, p); !errors.As(err, &failed) ||
			failed.StatusCode != http.StatusTooManyRequests {
			t.Errorf("full: %v", err)
		}
		patient := r.official(option.WithMaxRetries(2))
		if _, err := patient.Chat.Completions.New(ctx, p); err != nil {
			t.Errorf("full, tried again: %v", err)
		}
		full.Wait()

		short, leave := context.WithTimeout(ctx, 20*time.Millisecond)
		defer leave()
		p.MaxTokens = openai.Int(200)
		if _, err := client.Chat.Completions.New(short, p); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cancelled: %v", err)
		}
		time.Sleep(3 * time.Millisecond)
		r.idle()
	})
}

// places fills so many with answers of some tokens each.
func (r *rig) places(t *testing.T, n, tokens int) *sync.WaitGroup {
	t.Helper()
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			request := asked("x")
			request.MaxTokens = openai.Int(int64(tokens))
			client := r.official()
			if _, err := client.Chat.Completions.New(r.t.Context(), request); err != nil {
				t.Error(err)
			}
		})
	}
	time.Sleep(5 * time.Millisecond)
	return &group
}
