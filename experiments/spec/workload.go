package spec

import (
	"math"

	"tokenrouter/sim/workload"
)

// traceFacts are what a point must know of a trace before it runs.
type traceFacts struct {
	requests   uint64
	contextMax int // prompt and longest output
	err        error
}

// workload reads arrivals, lengths and the window of measurement.
func (l *loader) workload(s *section, p *Point) {
	w := &p.Workload
	w.Kind = s.word("kind", "", "closed", "poisson", "gamma", "trace", "recorded", "task")
	const concurrencyMax = 1 << 16
	if !s.has("concurrency") {
		s.missing("concurrency", "want how many requests may be in flight")
	}
	p.Concurrency = int(s.whole("concurrency", 0, 1, concurrencyMax)) // 0: reported
	if !w.Closed() {
		p.Queue = int(s.whole("queue_max", 1024, 1, 1<<20))
	}
	w.Requests = workload.Endless
	if w.Kind != "trace" && w.Kind != "recorded" && w.Kind != "task" && p.Trace == "" && s.has("requests") {
		w.Requests = uint64(s.whole("requests", 1, 1, math.MaxInt64))
	}
	w.UntilNs = s.duration("until", 0, 1)
	w.WarmupRequests = int(s.whole("warmup_requests", 0, 0, math.MaxInt32))
	w.Steady = s.boolean("steady", w.Closed())
	w.GoodTTFT = s.duration("good_ttft", 0, 1)
	w.GoodTPOT = s.duration("good_tpot", 0, 1)
	switch {
	case p.Trace != "" || w.Kind == "recorded":
		l.recordedWorkload(s, p)
		s.done()
		return
	case w.Kind == "task":
		l.taskWorkload(s, p)
		s.done()
		return
	}
	w.Lengths.MaxTokens = int32(s.whole("max_tokens", 0, 1, math.MaxInt32))
	switch w.Kind {
	case "trace":
		l.trace(s, p)
	case "poisson", "gamma":
		w.Rate, w.Variation = s.number("rate", 1, aboveZero, workload.MaxPerSecond), 1
		if !s.has("rate") {
			s.missing("rate", "want arrivals a second")
		}
		if w.Kind == "gamma" {
			w.Variation = s.number("variation", 1, 0.01, 100)
			if !s.has("variation") {
				s.missing("variation", "want the standard deviation of the gaps over their mean")
			}
		}
	}
	if w.Kind == "" {
		s.giveUp()
	}
	if w.Kind != "trace" {
		l.lengths(s, p)
	}
	s.done()
}

// trace reads a whole trace once, so that a bad line shows before anything runs.
func (l *loader) trace(s *section, p *Point) {
	w := &p.Workload
	if !s.has("file") {
		s.missing("file", "want a CSV or JSONL file")
		return
	}
	path, _ := l.file(s, "file")
	w.File = path
	w.Options = workload.TraceOptions{
		MaxTokens: w.Lengths.MaxTokens, FromZero: s.boolean("from_zero", false),
	}
	if path == "" {
		return
	}
	facts, ok := l.traces[path]
	if !ok {
		facts = scanTrace(path, w.Options)
		l.traces[path] = facts
	}
	if facts.err != nil {
		s.wrong("file", "want a trace without faults: %v", facts.err)
	}
	w.Requests = facts.requests
	p.ContextMax = facts.contextMax
}

func scanTrace(path string, options workload.TraceOptions) (facts traceFacts) {
	t, err := workload.OpenTrace(path, options)
	if err != nil {
		return traceFacts{err: err}
	}
	for {
		r, ok := t.Next()
		if !ok {
			facts.err = t.Err()
			return facts
		}
		facts.requests++
		limit := r.MaxTokens
		if limit == 0 {
			limit = r.OutputTokens
		}
		facts.contextMax = max(facts.contextMax, int(r.PromptTokens)+int(limit))
	}
}

// lengths reads prompts and answers of a generated workload.
func (l *loader) lengths(s *section, p *Point) {
	w := &p.Workload
	if !s.has("prompt") && p.Paths == nil {
		s.missing("prompt", "want an integer or a law of lengths")
	}
	w.Lengths.Prompt, _ = workload.Fixed(1)
	if s.has("prompt") {
		w.Lengths.Prompt = l.length(s, "prompt")
	}
	switch {
	case p.Paths != nil:
		l.recordedLengths(s, p)
	case s.has("output"):
		w.Lengths.Output = l.length(s, "output")
	case w.Lengths.MaxTokens == 0:
		s.missing("output", "want an integer or a law of lengths, or max_tokens")
	}
	w.Lengths.PrefixGroups = uint32(s.whole("prefix_groups", 0, 1, math.MaxInt32))
	w.Lengths.PrefixTokens = int32(s.whole("prefix_tokens", 0, 1, math.MaxInt32))
	if s.has("prefix_groups") != s.has("prefix_tokens") {
		s.missing("prefix_groups", "want prefix_groups and prefix_tokens, both or neither")
	}
	if w.Requests == workload.Endless && w.UntilNs == 0 && w.Kind != "" {
		s.missing("requests", "want requests or until: something must end the run")
	}
	if w.Requests <= uint64(w.WarmupRequests) {
		s.wrong("warmup_requests", "want fewer than the %d requests, or nothing is measured", w.Requests)
	}
	_, prompt := w.Lengths.Prompt.Bounds()
	_, output := w.Lengths.Output.Bounds()
	if limit := w.Lengths.MaxTokens; limit > 0 {
		output = limit // the scheduler knows the limit only, and promises for that
	}
	const contextMax = 1 << 30
	if total := int64(prompt) + int64(output); total <= contextMax {
		p.ContextMax = max(int(total), 2)
	} else {
		s.wrong("prompt", "want prompt and output of at most %d tokens together, not up to %d", contextMax, total)
	}
	l.checkSource(s, w)
}

// checkSource opens the generator once: what it refuses is a problem of the spec.
func (l *loader) checkSource(s *section, w *Workload) {
	if len(l.problems) > 0 || w.Kind == "" {
		return
	}
	if _, err := w.Source(0); err != nil {
		s.wrong("kind", "%v", err)
	}
}

// recordedLengths takes the lengths of recorded requests from their paths.
func (l *loader) recordedLengths(s *section, p *Point) {
	w := &p.Workload
	count := uint64(len(p.Paths))
	if w.Requests == workload.Endless {
		w.Requests = count
	}
	if w.Requests > count {
		s.wrong("requests", "want at most %d, as many as router.paths", count)
	}
	longest := 1
	for _, path := range p.Paths {
		longest = max(longest, len(path))
	}
	if w.Lengths.MaxTokens == 0 {
		w.Lengths.MaxTokens = int32(longest)
	}
}

// length reads an integer, or a table with a law.
func (l *loader) length(s *section, key string) workload.Length {
	var length workload.Length
	n := s.get(key)
	if _, isTable := n.value.(table); !isTable {
		tokens, ok := l.wholeAt(n, s.name(key), 1, math.MaxInt32)
		if ok {
			length, _ = workload.Fixed(int32(tokens))
		}
		return length
	}
	before := len(l.problems)
	t := s.sub(key)
	kind := t.word("law", "", "uniform", "geometric", "lognormal", "empirical")
	tokens := func(key string, otherwise int64) int32 { return int32(t.whole(key, otherwise, 1, math.MaxInt32)) }
	var err error
	switch kind {
	case "empirical":
		var values []int32
		for _, v := range t.wholes("values", 1, math.MaxInt32) {
			values = append(values, int32(v))
		}
		length, err = workload.Empirical(values)
	case "uniform":
		length, err = workload.Uniform(tokens("min", 1), tokens("max", 0))
	case "geometric":
		length, err = workload.Geometric(t.number("mean", 0, 1, math.MaxInt32), tokens("min", 1), tokens("max", 0))
	case "lognormal":
		sigma := t.number("sigma", 0, 0, 10)
		if t.has("median") {
			median := t.number("median", 0, 1, math.MaxInt32)
			length, err = workload.LognormalMedian(median, sigma, tokens("min", 1), tokens("max", 0))
		} else {
			mean := t.number("mean", 0, 1, math.MaxInt32)
			length, err = workload.LognormalMean(mean, sigma, tokens("min", 1), tokens("max", 0))
		}
	}
	if kind == "" {
		t.giveUp()
	}
	t.done()
	if err != nil && len(l.problems) == before {
		s.wrong(key, "%v", err)
	}
	return length
}
