package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
	"tokenrouter/core/route"
	"tokenrouter/exec"
	"tokenrouter/exec/model/chat"
	"tokenrouter/exec/model/tokenizer"
	"tokenrouter/exec/replan"
	"tokenrouter/exec/serve/servetest"
)

// Tokens of the tests: the end, the bytes (value plus 1), a control word, and a test's own words.
const (
	endToken  = 0
	turnToken = 257
	firstWord = 258
)

// byteText is a byte as byte-level tokenizers write it.
func byteText(b int) string {
	if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
		return string(rune(b))
	}
	n := 0
	for i := range b {
		if !(i >= '!' && i <= '~' || i >= 0xa1 && i <= 0xac || i >= 0xae) {
			n++
		}
	}
	return string(rune(256 + n))
}

// vocabulary has the bytes (id: value plus 1), an end token, a control word and the words.
func vocabulary(t testing.TB, words []string) *tokenizer.Tokenizer {
	t.Helper()
	var vocab []string
	add := func(text string, id int) { vocab = append(vocab, strconv.Quote(text)+": "+strconv.Itoa(id)) }
	for b := range 256 {
		add(byteText(b), b+1)
	}
	add("<end>", endToken)
	add("<turn>", turnToken)
	for i, w := range words {
		var level strings.Builder
		for _, b := range []byte(w) {
			level.WriteString(byteText(int(b)))
		}
		if len(w) > 1 {
			add(level.String(), firstWord+i)
		} else {
			add("<none "+strconv.Itoa(i)+">", firstWord+i)
		}
	}
	special := func(id int, text string) string {
		return fmt.Sprintf(`{"id": %d, "content": %q, "single_word": false, "lstrip": false, "rstrip": false,
			"normalized": false, "special": true}`, id, text)
	}
	tokens, err := tokenizer.Parse("tokenizer.json", []byte(`{
		"added_tokens": [`+special(endToken, "<end>")+`,`+special(turnToken, "<turn>")+`],
		"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
		"decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
		"model": {"type": "BPE", "vocab": {`+strings.Join(vocab, ",")+`}, "merges": []}}`))
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// machine stands for a model: the answer to any prompt is the script, then the end token, and without a
// script the tokens that seed, place and model draw, for ever. Each pass takes step.
type machine struct {
	model  int
	step   time.Duration
	script []int32
	score  func(position int) float64                  // of the router
	judge  func(c *exec.Context, position int) float64 // the same, by the request
	logs   func(position int) float32
	fail   func(pass int) error
	empty  func(id uint64, position int) bool // logits that are not numbers

	mu     sync.Mutex
	passes int
	seen   []exec.Sampling
	rows   int
}

// Step implements exec.Device.
func (d *machine) Step(p *exec.Pass) error {
	time.Sleep(d.step)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.passes++
	d.rows += len(p.Launch.Rows)
	if d.fail != nil {
		if err := d.fail(d.passes); err != nil {
			return err
		}
	}
	for i := range p.Launch.Rows {
		row, c := &p.Launch.Rows[i], &p.Contexts[i]
		if !row.Head {
			continue
		}
		at := int(row.Start+row.Fresh) - c.Prompt
		if d.empty != nil && d.empty(row.ID, at) {
			p.Results[i].Failed = true
			continue
		}
		d.seen = append(d.seen, *c.Sampling)
		p.Results[i] = d.result(row.ID, at, c)
		for k := range c.Sampling.Top {
			p.Top[i] = append(p.Top[i], exec.Candidate{Token: int32('a' + 1 + k), LogProb: float32(-k)})
		}
	}
	return nil
}

func (d *machine) rowsSeen() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rows
}

func (d *machine) result(id uint64, at int, c *exec.Context) core.Result {
	r := core.Result{LogProb: -0.5, TopProb: 0.5}
	switch {
	case d.script == nil:
		seed := uint64(99)
		if c.Sampling.Seed != nil {
			seed, id = *c.Sampling.Seed, 0
		}
		r.Token = 'a' + 1 + int32(keyed.Hash(seed, id, uint32(at), uint32(d.model), keyed.Token)%26)
	case at < len(d.script):
		r.Token = d.script[at]
	default:
		r.Token, r.EOS = endToken, !c.Sampling.IgnoreEOS
	}
	switch {
	case d.score != nil:
		r.Score = d.score(at)
	case d.judge != nil:
		r.Score = d.judge(c, at)
	}
	if d.logs != nil {
		r.LogProb = d.logs(at)
	}
	return r
}

// rig is a server of a small and a large model on a virtual clock.
type rig struct {
	t        *testing.T
	server   *Server
	client   *http.Client
	machines [2]*machine
	listener *servetest.Pipes
	end      context.CancelFunc
	served   chan error
}

// setting is what a test may change.
type setting struct {
	words  []string
	config Config
	core   core.Config
	plan   bool
	now    [2]*machine
}

const template = `{% for m in messages %}<turn>{{ m.role }}
{{ m.content }}<turn>
{% endfor %}{% if add_generation_prompt %}<turn>assistant
{% endif %}`

// serving runs test on a server. The answer to every prompt is the words, in order, then the end token.
func serving(t *testing.T, words []string, change func(*setting), test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, words, change)
		test(r)
		r.stop()
	})
}

func start(t *testing.T, words []string, change func(*setting)) *rig {
	t.Helper()
	s, server, loop := build(t, words, change)
	r := &rig{t: t, server: server, machines: s.now, listener: servetest.NewPipes(), served: make(chan error, 1)}
	ctx, end := context.WithCancel(t.Context())
	r.end = end
	r.client = r.listener.Client()
	go func() { r.served <- r.server.Serve(ctx, r.listener, loop) }()
	return r
}

// build makes a server and its loop, of which neither runs yet.
func build(t testing.TB, words []string, change func(*setting)) (*setting, *Server, *exec.Loop) {
	t.Helper()
	var script []int32
	for i, w := range words {
		id := int32(firstWord + i)
		if len(w) == 1 {
			id = int32(w[0]) + 1
		}
		script = append(script, id)
	}
	s := &setting{words: words, core: core.Config{
		Models:    []core.Model{{Name: "small", Pages: 64}, {Name: "large", Pages: 64}},
		Algorithm: route.R2R{Threshold: 0.5}, Policy: core.Eager{}, Admission: core.Reserve,
		Requests: 12, LiveMax: 4, ContextMax: 256, PageTokens: 16,
	}}
	for m := range s.now {
		s.now[m] = &machine{model: m, step: time.Duration(1+3*m) * time.Millisecond, script: script}
	}
	tokens := vocabulary(t, words)
	layout, err := chat.Parse("template", template, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.config = Config{
		Name: "pair", Models: []string{"small", "large"}, Tokenizer: tokens, Template: layout,
		EOS: func(id int32) bool { return id == endToken }, Vocab: firstWord + len(words), Slots: 8,
		Rule:   func(threshold float64) core.Algorithm { return route.R2R{Threshold: threshold} },
		Scores: true,
	}
	if change != nil {
		change(s)
	}
	if s.plan {
		s.config.Planner, err = replan.New(replan.Config{Models: 2, LiveMax: s.core.LiveMax})
		if err != nil {
			t.Fatal(err)
		}
		s.core.Policy, s.core.Algorithm = s.config.Planner, s.config.Planner.Watched(s.core.Algorithm)
	}
	s.config.Core = s.core
	server, err := New(s.config)
	if err != nil {
		t.Fatal(err)
	}
	loop, err := exec.New(exec.Config{
		Core: s.core, Devices: []exec.Device{s.now[0], s.now[1]}, OwnAlgorithms: true,
		Vocab:   s.config.Vocab,
		Observe: server.Observe, Failed: server.Failed,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, server, loop
}

// stop ends the server: it must end in order, with nothing left in the loop.
func (r *rig) stop() {
	r.t.Helper()
	r.end()
	r.client.CloseIdleConnections()
	if err := <-r.served; err != nil {
		r.t.Errorf("Serve: %v", err)
	}
	r.idle()
}

// idle checks that nothing is left in the loop: no request, page or clock.
func (r *rig) idle() {
	r.t.Helper()
	time.Sleep(time.Second) // passes that a request has left in the middle end, and its pages are free
	synctest.Wait()
	n := r.server.metrics.copy()
	taken, _ := r.server.places.now()
	r.server.metrics.mu.Lock()
	clocks := len(r.server.metrics.requests)
	r.server.metrics.mu.Unlock()
	if n.live+n.waiting+n.queued[0]+n.queued[1]+n.pages[0]+n.pages[1]+taken+clocks != 0 {
		r.t.Errorf("left in the loop: %+v, %d places, %d clocks", n, taken, clocks)
	}
}

// reply is an answer as it came.
type reply struct {
	status int
	header http.Header
	body   []byte
	frames []string // of a stream, without "data: "
}

// do sends a request and reads the whole answer.
func (r *rig) do(method, path, body string, headers ...string) *reply {
	r.t.Helper()
	request := r.request(r.t.Context(), method, path, body, headers...)
	response, err := r.client.Do(request)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatalf("%s %s: body: %v", method, path, err)
	}
	return read(response.StatusCode, response.Header, data)
}

// read takes an answer apart.
func read(status int, header http.Header, data []byte) *reply {
	p := &reply{status: status, header: header, body: data}
	if strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		lines := bufio.NewScanner(bytes.NewReader(data))
		for lines.Scan() {
			if frame, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				p.frames = append(p.frames, frame)
			}
		}
	}
	return p
}

func (r *rig) request(ctx context.Context, method, path, body string, headers ...string) *http.Request {
	r.t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, "http://server"+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return request
}

// completion asks for a completion with more fields, given as JSON without braces.
func (r *rig) completion(more string) *reply {
	r.t.Helper()
	if !strings.Contains(more, "max_tokens") {
		more += `,"max_tokens":40`
	}
	return r.do("POST", "/v1/completions", `{"model":"pair","prompt":"x"`+more+`}`)
}

func (r *rig) chat(more string) *reply {
	r.t.Helper()
	return r.do("POST", "/v1/chat/completions",
		`{"model":"pair","messages":[{"role":"user","content":"hi"}]`+more+`}`)
}

// answerDocument is what tests read of an answer or a chunk.
type answerDocument struct {
	ID, Object, Model string
	Choices           []struct {
		Index   int
		Text    string
		Message struct{ Role, Content string }
		Delta   struct {
			Role    string
			Content *string
		}
		LogProbs     json.RawMessage
		FinishReason *string `json:"finish_reason"`
		TokenIDs     []int32 `json:"token_ids"`
		Origin       []int
	}
	Usage *struct {
		Prompt     int            `json:"prompt_tokens"`
		Completion int            `json:"completion_tokens"`
		Total      int            `json:"total_tokens"`
		ByModel    map[string]int `json:"tokens_by_model"`
		Share      float64        `json:"large_model_share"`
		Dropped    int            `json:"dropped_drafts"`
	}
	Error *struct {
		Message, Type string
		Param, Code   *string
	}
}

// read decodes an answer of status 200.
func (p *reply) read(t *testing.T) *answerDocument {
	t.Helper()
	if p.status != http.StatusOK {
		t.Fatalf("status %d: %s", p.status, p.body)
	}
	return decoded(t, p.body)
}

func decoded(t *testing.T, data []byte) *answerDocument {
	t.Helper()
	var d answerDocument
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return &d
}

// failure decodes an error.
func (p *reply) failure(t *testing.T) (param, message string) {
	t.Helper()
	d := decoded(t, p.body)
	if d.Error == nil {
		t.Fatalf("status %d without an error: %s", p.status, p.body)
	}
	if d.Error.Param != nil {
		param = *d.Error.Param
	}
	return param, d.Error.Message
}

// text is what the chunks of a stream say of a choice, and how it ended.
func (p *reply) text(t *testing.T, choice int) (text, finish string) {
	t.Helper()
	for _, frame := range p.frames {
		if frame == "[DONE]" {
			continue
		}
		for _, c := range decoded(t, []byte(frame)).Choices {
			if c.Index != choice {
				continue
			}
			text += c.Text
			if c.Delta.Content != nil {
				text += *c.Delta.Content
			}
			if c.FinishReason != nil {
				finish += *c.FinishReason
			}
		}
	}
	return text, finish
}
