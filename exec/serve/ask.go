package serve

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"tokenrouter/core"
	"tokenrouter/exec"
)

// ask is what a client wants, checked but for the room that its prompts leave.
type ask struct {
	chat      bool           // or a completion
	name      string         // of the model, as asked for
	model     int            // of those of the scheduler; all: the router decides
	algorithm core.Algorithm // of its own; nil: the server's
	threshold *float64       // of its own, with routing by request; nil: the server's
	prompts   [][]int32
	n         int    // choices of each prompt
	tokensMax int    // 0: as many as there is room for
	limit     string // the field that says tokensMax
	sampling  exec.Sampling
	seed      *uint64
	stop      []string
	logprobs  bool
	top       int // most likely tokens beside each token

	stream, usage      bool // usage: in the stream
	ids, origin, score bool // are wanted in the answer
	time               time.Duration
}

// all stands for the router in place of a model.
const all = -1

// What fields may be.
const (
	stopsMax       = 16
	stopBytesMax   = 256
	temperatureMax = 2 // as OpenAI's API
	penaltyMax     = 2
	biasMax        = 100
	tokensMost     = math.MaxInt32
	timeMin        = 1e-3  // seconds
	unlikely       = 1e-30 // top_p of 0: the most likely token alone
)

// common reads the fields that both endpoints have.
func (s *Server) common(f *fields, a *ask) {
	s.whom(f, a)
	a.n = 1
	if n, set := whole(f, "n", 1, 1, int64(s.c.ChoicesMax)); set {
		a.n = int(n)
	}
	limits(f, a)
	s.draws(f, a)
	a.stop = stops(f)
	a.stream = boolean(f, "stream")
	type options struct {
		IncludeUsage       bool `json:"include_usage"`
		IncludeObfuscation bool `json:"include_obfuscation"`
	}
	if o, set := take[options](f, "stream_options", "an object with include_usage"); set {
		a.usage = o.IncludeUsage
		switch {
		case !a.stream:
			f.wrong("stream_options", "stream_options: want it with stream = true only")
		case o.IncludeObfuscation:
			f.wrong("stream_options", "stream_options.include_obfuscation: want false: nothing is obfuscated")
		}
	}
	a.ids, a.origin = boolean(f, "return_token_ids"), boolean(f, "return_origin")
	a.score = boolean(f, "return_router_score")
	a.time = s.c.TimeMax
	if t, set := number(f, "timeout_s", 0, timeMin, s.c.TimeMax.Seconds()); set {
		a.time = time.Duration(t * float64(time.Second))
	}
}

// whom reads who shall answer: all models under their router, one alone, or the router with another
// threshold.
func (s *Server) whom(f *fields, a *ask) {
	a.model = all
	name, set := take[string](f, "model", "the name of a model")
	a.name = name
	switch at := slices.Index(s.c.Models, name); {
	case !set:
		f.wrong("model", "model is missing, want one of %q", s.names())
		return
	case name == s.c.Name:
	case at >= 0:
		a.model = at
	default:
		if f.failed == nil {
			missing := "model_not_found"
			f.failed = invalid("model", "there is no model %q, want one of %q", name, s.names())
			f.failed.status, f.failed.Code = 404, &missing
		}
		return
	}
	if routing, set := take[bool](f, "routing", "true or false"); set && !routing && a.model == all {
		a.model = len(s.c.Models) - 1
	}
	threshold, set := number(f, "routing_threshold", 0, -1, 2)
	switch {
	case !set:
	case a.model != all || len(s.c.Models) < 2:
		f.wrong("routing_threshold", "routing_threshold: want it where the router decides, not for one model alone")
	case s.c.Entry != nil:
		a.threshold = &threshold
	case s.c.Rule == nil:
		f.wrong("routing_threshold", "routing_threshold: the routing of this server compares nothing")
	default:
		a.algorithm = s.c.Rule(threshold)
	}
}

// limits reads the most tokens of an answer, under either name.
func limits(f *fields, a *ask) {
	older, given := whole(f, "max_tokens", 0, 1, tokensMost)
	newer, also := int64(0), false
	if a.chat {
		newer, also = whole(f, "max_completion_tokens", 0, 1, tokensMost)
	}
	if given && also && older != newer {
		f.wrong("max_tokens", "max_tokens = %d and max_completion_tokens = %d, want one of them or the same", older,
			newer)
	}
	a.tokensMax, a.limit = int(older), "max_tokens"
	if also {
		a.tokensMax, a.limit = int(newer), "max_completion_tokens"
	}
}

// draws reads how tokens are drawn.
func (s *Server) draws(f *fields, a *ask) {
	p := &a.sampling
	p.Temperature, _ = number(f, "temperature", 1, 0, temperatureMax)
	if p.Temperature > 0 && p.Temperature < exec.SamplingTemperatureMin {
		f.wrong("temperature", "temperature = %v, want 0 or at least %v", p.Temperature,
			exec.SamplingTemperatureMin)
	}
	p.TopP, _ = number(f, "top_p", 1, 0, 1)
	p.TopP = max(p.TopP, unlikely)
	p.MinP, _ = number(f, "min_p", 0, 0, 1)
	k, _ := whole(f, "top_k", 0, -1, 1<<30)
	p.TopK = int(max(k, 0))
	p.PresencePenalty, _ = number(f, "presence_penalty", 0, -penaltyMax, penaltyMax)
	p.FrequencyPenalty, _ = number(f, "frequency_penalty", 0, -penaltyMax, penaltyMax)
	p.IgnoreEOS = boolean(f, "ignore_eos")
	if seed, set := take[int64](f, "seed", "a whole number of 64 bits"); set {
		bits := uint64(seed)
		a.seed = &bits
	}
	biases, _ := take[map[string]float64](f, "logit_bias", "an object of numbers by token id")
	if len(biases) > exec.SamplingBiasesMax {
		f.wrong("logit_bias", "logit_bias has %d tokens, want at most %d", len(biases), exec.SamplingBiasesMax)
		return
	}
	for _, text := range slices.Sorted(maps.Keys(biases)) { // so that the error is the same each time
		id, err := strconv.Atoi(text)
		bias := biases[text]
		switch {
		case err != nil || text != strconv.Itoa(id) || id < 0 || id >= s.c.Vocab: // +1 and 01 name 1 again
			f.wrong("logit_bias", "logit_bias: token %q, want an id from 0 to %d", text, s.c.Vocab-1)
		case !(bias >= -biasMax && bias <= biasMax):
			f.wrong("logit_bias", "logit_bias of token %s = %v, want %d to %d", text, bias, -biasMax, biasMax)
		}
		p.Bias = append(p.Bias, exec.TokenBias{Token: int32(id), Bias: bias})
	}
	slices.SortFunc(p.Bias, func(x, y exec.TokenBias) int { return int(x.Token - y.Token) })
}

// stops reads one stop string or several.
func stops(f *fields) []string {
	var list []string
	if raw := f.raw["stop"]; len(raw) > 0 && raw[0] == '"' {
		one, set := take[string](f, "stop", "a string or an array of strings")
		if !set {
			return nil
		}
		list = []string{one}
	} else {
		list, _ = take[[]string](f, "stop", "a string or an array of strings")
	}
	if len(list) > stopsMax {
		f.wrong("stop", "stop has %d strings, want at most %d", len(list), stopsMax)
	}
	for i, text := range list {
		if len(text) == 0 || len(text) > stopBytesMax {
			f.wrong("stop", "stop[%d] has %d bytes, want 1 to %d", i, len(text), stopBytesMax)
		}
	}
	return list
}

// fit sets the most tokens of an answer to what there is room for, or refuses what was asked for. standard is
// what counts where nothing was.
func (s *Server) fit(a *ask, standard int) *failure {
	context, asked := s.c.Core.ContextMax, a.tokensMax
	longest := 0
	for _, ids := range a.prompts {
		longest = max(longest, len(ids))
	}
	param := "prompt"
	if a.chat {
		param = "messages"
	}
	room := context - longest
	switch {
	case room < 1:
		f := invalid(param, "the prompt has %d tokens, want at most %d: the context has %d, answer included",
			longest, context-1, context)
		long := "context_length_exceeded"
		f.Code = &long
		return f
	case asked > room:
		return invalid(a.limit, "%s = %d, want at most %d: the prompt has %d tokens and the context %d", a.limit,
			asked, room, longest, context)
	case asked == 0:
		a.tokensMax = min(standard, room)
	}
	if choices := len(a.prompts) * a.n; choices > s.c.ChoicesMax || choices > s.c.Slots {
		return invalid("n", "%d prompts with n = %d are %d choices, want at most %d in one request", len(a.prompts),
			a.n, choices, min(s.c.ChoicesMax, s.c.Slots))
	}
	return nil
}

// requestIDMax bounds what a client calls its request.
const requestIDMax = 128

// checkRequestID refuses a name that could not stand in a header or a line of a log.
func checkRequestID(id string) error {
	if len(id) > requestIDMax {
		return fmt.Errorf("it has %d bytes, want at most %d", len(id), requestIDMax)
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("it has the byte %#02x, want printable ASCII without blanks", c)
		}
	}
	return nil
}
