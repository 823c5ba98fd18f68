package load

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tokenrouter/exec/model/chat"
	"tokenrouter/sim/workload"
)

// Prompt is what a request asks: one of Text, Messages and Tokens.
type Prompt struct {
	ID       string // in its data set; may be empty
	Text     string
	Messages []chat.Message // for chat
	Tokens   []int32        // for completions
}

// Config says what is sent where.
type Config struct {
	URL   string // base of the API, such as http://127.0.0.1:8080/v1 (Base)
	Model string
	Key   string // sent as a bearer token; empty: none
	// Chat asks /chat/completions; otherwise /completions.
	Chat bool
	// Stream asks for streams. Without, there is no time to the first token, nor between tokens.
	Stream bool
	// Usage asks for the count of tokens at the end of a stream (stream_options). A server that does not
	// know it may refuse; then tokens are counted by what chunks say, at worst one a chunk.
	Usage bool
	// Fields are more of each request's body, such as temperature. They win over what this package sets.
	Fields map[string]any

	// Source has arrivals and lengths. With Prompts its lengths of prompts are not looked at; its output
	// lengths are sent as max_tokens with ignore_eos, its limits as max_tokens.
	Source workload.Source
	// Prompts are asked in turn, over again when there are more requests; nil: random ones of Source's
	// lengths, of token ids in completions and of words, about one a token, in chats.
	Prompts  []Prompt
	TokenIDs [2]int32 // least and greatest of random prompts
	Seed     uint64   // of random prompts
	// Open keeps to Source's arrivals. Otherwise the next request is sent as one ends, and after one that
	// was refused as long later as the server asked for (Retry-After).
	Open     bool
	InFlight int           // requests at a time
	Until    time.Duration // no request is sent, and none waited for, after it; 0: no limit
	Timeout  time.Duration // of a request, from when it is sent

	WarmupRequests     int  // that must leave before the window opens
	Steady             bool // the window closes when the last request is sent, not with the last token
	GoodTTFT, GoodTPOT time.Duration

	Client *http.Client // nil: one of its own
	// Progress is told how many requests have ended, and Done is shown each as it ends; both may be nil.
	// Neither is called twice at a time.
	Progress func(done int)
	Done     func(*Ended)
}

// Base is the base URL that text names: without a path, that of OpenAI's API is meant, /v1.
func Base(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
		return "", fmt.Errorf("%q, want a URL such as http://127.0.0.1:8080/v1", text)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1"
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u.String(), nil
}

// check refuses what can not be.
func (c *Config) check() error {
	if c.Source == nil || c.Model == "" || c.InFlight < 1 || c.Timeout <= 0 {
		return fmt.Errorf("load: Model %q, InFlight = %d, Timeout = %v, want a Source, a name, at least 1 and"+
			" above 0", c.Model, c.InFlight, c.Timeout)
	}
	if c.Prompts == nil && !(0 <= c.TokenIDs[0] && c.TokenIDs[0] <= c.TokenIDs[1]) {
		return fmt.Errorf("load: TokenIDs = %v, want the least and the greatest, from 0", c.TokenIDs)
	}
	for i := range c.Prompts {
		p := &c.Prompts[i]
		switch {
		case p.Messages != nil && !c.Chat:
			return fmt.Errorf("load: prompt %d has messages, want text: they are for chats", i)
		case p.Tokens != nil && c.Chat:
			return fmt.Errorf("load: prompt %d has token ids, want text or messages in a chat", i)
		}
	}
	return nil
}
