package serve

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"tokenrouter/exec"
)

// document is an answer, or a chunk of one: chat completions and completions, whole and streamed.
type document struct {
	ID          string    `json:"id"`
	Object      string    `json:"object"`
	Created     int64     `json:"created"` // seconds since 1970
	Model       string    `json:"model"`
	Fingerprint string    `json:"system_fingerprint"`
	Choices     []part    `json:"choices"`
	Usage       any       `json:"usage,omitempty"`         // *usage; null in all chunks but the last
	Origins     []string  `json:"origin_models,omitempty"` // what the numbers of part.Origin stand for
	PromptIDs   [][]int32 `json:"prompt_token_ids,omitempty"`
}

// part is a choice, or what a chunk adds to one.
type part struct {
	Index    int      `json:"index"`
	Message  *message `json:"message,omitempty"` // chat, whole
	Delta    *delta   `json:"delta,omitempty"`   // chat, streamed
	Text     *string  `json:"text,omitempty"`    // completions
	LogProbs any      `json:"logprobs"`          // *contentLogProbs, *legacyLogProbs or null
	Finish   *string  `json:"finish_reason"`
	IDs      []int32  `json:"token_ids,omitempty"`
	Origin   []int32  `json:"origin,omitempty"` // of each token
	// Scores are the router's, of the draft that is each token or was dropped for it; null: it judged none.
	Scores []*float64 `json:"router_score,omitempty"`
}

type message struct {
	Role    string  `json:"role"`
	Content string  `json:"content"`
	Refusal *string `json:"refusal"`
}

type delta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

// usage counts tokens. What goes beyond OpenAI's API: who made them, and drafts that were dropped.
type usage struct {
	Prompt     int            `json:"prompt_tokens"`
	Completion int            `json:"completion_tokens"`
	Total      int            `json:"total_tokens"`
	ByModel    map[string]int `json:"tokens_by_model"`
	Share      float64        `json:"large_model_share"` // of the completion tokens; 0 of none
	Dropped    int            `json:"dropped_drafts"`
}

// usage is that of a call whose choices have all ended.
func (c *call) usage() *usage {
	u := &usage{ByModel: make(map[string]int)}
	models := c.s.c.Models
	for _, ids := range c.ask.prompts {
		u.Prompt += len(ids)
	}
	for _, m := range models {
		u.ByModel[m] = 0
	}
	for _, ch := range c.choices {
		for _, t := range ch.answer.Tokens {
			u.ByModel[models[t.Model]]++
		}
		u.Completion += len(ch.answer.Tokens)
		u.Dropped += int(ch.answer.Leave.Dropped)
	}
	u.Total = u.Prompt + u.Completion
	if u.Completion > 0 {
		u.Share = float64(u.ByModel[models[len(models)-1]]) / float64(u.Completion)
	}
	return u
}

// document is one without choices.
func (c *call) document(object string) *document {
	d := &document{
		ID: c.id, Object: object, Created: c.created.Unix(), Model: c.ask.name, Fingerprint: c.s.fingerprint,
		Choices: []part{},
	}
	if c.ask.origin {
		d.Origins = c.s.c.Models
	}
	return d
}

// part is what text and tokens of a choice are to its client.
func (c *call) part(index int, text string, tokens []token, finish string) part {
	p := part{Index: index}
	if finish != "" {
		p.Finish = &finish
	}
	switch {
	case !c.ask.logprobs:
	case c.ask.chat:
		p.LogProbs = c.s.contentLogProbs(tokens, c.ask.top)
	default:
		p.LogProbs = c.s.legacyLogProbs(tokens, c.ask.top)
	}
	switch {
	case !c.ask.chat:
		p.Text = &text
	case c.ask.stream:
		p.Delta = &delta{}
		if text != "" {
			p.Delta.Content = &text
		}
	default:
		p.Message = &message{Role: "assistant", Content: text}
	}
	for _, t := range tokens {
		if c.ask.ids {
			p.IDs = append(p.IDs, t.Token.Token)
		}
		if c.ask.origin {
			p.Origin = append(p.Origin, t.Model)
		}
		if c.ask.score {
			p.Scores = append(p.Scores, c.score(&t))
		}
	}
	return p
}

// score is what the router said at the place of a token, nil where it was not asked.
func (c *call) score(t *token) *float64 {
	switch {
	case !c.s.c.Scores || c.ask.model != all:
		return nil
	case t.detail.Draft == nil && t.Model == 0:
		return &t.detail.Score
	default:
		return t.detail.Draft
	}
}

// contentLogProbs are those of chat completions.
type contentLogProbs struct {
	Content []tokenLogProb `json:"content"`
	Refusal []tokenLogProb `json:"refusal"` // null: nothing is refused in an answer
}

type tokenLogProb struct {
	likely
	Top []likely `json:"top_logprobs"`
}

type likely struct {
	Token   string  `json:"token"`
	LogProb float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

func (s *Server) contentLogProbs(tokens []token, top int) *contentLogProbs {
	l := &contentLogProbs{Content: []tokenLogProb{}}
	for _, t := range tokens {
		entry := tokenLogProb{s.likely(t.Token.Token, t.LogProb), []likely{}}
		for _, other := range first(t.detail.Top, top) {
			entry.Top = append(entry.Top, s.likely(other.Token, other.LogProb))
		}
		l.Content = append(l.Content, entry)
	}
	return l
}

func (s *Server) likely(id int32, p float32) likely {
	data := s.c.Tokenizer.Bytes(id)
	bytes := make([]int, len(data)) // a []byte would be base64
	for i, b := range data {
		bytes[i] = int(b)
	}
	return likely{Token: shown(data), LogProb: finite(p), Bytes: bytes}
}

// shown is a token as text: its bytes, where they are no whole characters, in hexadecimal.
func shown(data []byte) string {
	if utf8.Valid(data) {
		return string(data)
	}
	var text strings.Builder
	text.WriteString("bytes:")
	for _, b := range data {
		fmt.Fprintf(&text, `\x%02x`, b)
	}
	return text.String()
}

// unlikelyLogProb stands for what JSON has no number for (OpenAI's API).
const unlikelyLogProb = -9999

func finite(p float32) float64 {
	if math.IsNaN(float64(p)) || math.IsInf(float64(p), 0) {
		return unlikelyLogProb
	}
	return float64(p)
}

func first(list []exec.Candidate, n int) []exec.Candidate { return list[:min(n, len(list))] }

// legacyLogProbs are those of completions.
type legacyLogProbs struct {
	Tokens  []string             `json:"tokens"`
	Log     []float64            `json:"token_logprobs"`
	Top     []map[string]float64 `json:"top_logprobs"`
	Offsets []int                `json:"text_offset"` // characters of text that was final before the token
}

func (s *Server) legacyLogProbs(tokens []token, top int) *legacyLogProbs {
	l := &legacyLogProbs{Tokens: []string{}, Log: []float64{}, Top: []map[string]float64{}, Offsets: []int{}}
	for _, t := range tokens {
		own := shown(s.c.Tokenizer.Bytes(t.Token.Token))
		l.Tokens, l.Log = append(l.Tokens, own), append(l.Log, finite(t.LogProb))
		l.Offsets = append(l.Offsets, t.offset)
		likely := map[string]float64{own: finite(t.LogProb)}
		for _, other := range first(t.detail.Top, top) {
			likely[shown(s.c.Tokenizer.Bytes(other.Token))] = finite(other.LogProb)
		}
		l.Top = append(l.Top, likely)
	}
	return l
}
