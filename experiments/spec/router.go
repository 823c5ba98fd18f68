package spec

import (
	"slices"
	"strings"

	"tokenrouter/core"
	"tokenrouter/core/route"
	"tokenrouter/sim/outcome"
)

// router reads the algorithm and the law of its verdicts.
func (l *loader) router(s *section, p *Point) {
	before := len(l.problems)
	algorithm := s.word("algorithm", "", "r2r", "citer", "collm", "rstitch", "me", "matrix", "recorded",
		"single", "query")
	p.Outcome = outcome.Uniform{}
	switch algorithm {
	case "r2r", "citer", "collm":
		l.twoModels(s, p)
		l.judged(s, p, algorithm)
	case "rstitch":
		l.twoModels(s, p)
		if s.word("outcome", "bernoulli", "bernoulli", "trace") == "trace" {
			l.signals(s, p, algorithm)
			break
		}
		leave, back := s.probability("p"), s.probability("p_return")
		l.first(s, p, algorithm, leave)
		p.Routing = [][]float64{{1 - leave, leave}, {back, 1 - back}}
		p.Commit = [][]float64{{1, 0}, {1, 1}}
	case "me":
		weights := s.weights(p)
		for range weights {
			p.Routing = append(p.Routing, weights)
			p.Commit = append(p.Commit, slices.Repeat([]float64{1}, len(weights)))
		}
	case "matrix":
		for _, key := range []string{"routing", "commit"} {
			if !s.has(key) {
				s.missing(key, "want a row of numbers for each model")
			}
		}
		p.Routing, p.Commit = s.matrix("routing", 0, 1), s.matrix("commit", 0, 1)
		if s.has("routing") && len(p.Routing) != len(p.Models) {
			s.wrong("routing", "want %d rows, one for each model, not %d", len(p.Models), len(p.Routing))
		}
	case "recorded":
		if s.has("trace") {
			l.recordedTrace(s, p, outcome.Paths)
			p.Algorithm = route.Recorded{}
			break
		}
		l.paths(s, p)
	case "single":
		l.single(s, p)
	case "query":
		l.twoModels(s, p)
		l.query(s, p)
	default:
		s.number("p", 0, 0, 1)
		s.giveUp()
	}
	s.done()
	if len(l.problems) == before {
		l.algorithm(s, p, algorithm)
	}
}

// algorithm makes what the matrices describe.
func (l *loader) algorithm(s *section, p *Point, name string) {
	if p.Algorithm != nil || p.Trace != "" || name == "recorded" || name == "single" {
		return
	}
	var err error
	if name == "me" {
		p.Algorithm, err = route.NewME(p.Routing[0])
	} else {
		p.Algorithm, err = route.NewMatrix(p.Routing, p.Commit)
	}
	if err != nil {
		s.wrong("algorithm", "%v", err)
	}
}

func (l *loader) twoModels(s *section, p *Point) {
	if n := len(p.Models); n != 2 && n > 0 {
		s.wrong("algorithm", "want 2 models for it, not %d", n)
	}
}

func (s *section) probability(key string) float64 {
	if !s.has(key) {
		s.missing(key, "want a probability of 0 to 1")
	}
	return s.number(key, 0, 0, 1)
}

// judged reads the law of the verdicts on the small model's tokens: a token is dropped and made again by
// the large model, or kept.
func (l *loader) judged(s *section, p *Point, algorithm string) {
	law := s.word("outcome", "bernoulli", "bernoulli", "bursts", "modulated", "trace")
	if law == "trace" {
		l.signals(s, p, algorithm)
		return
	}
	if law == "modulated" {
		route := s.numbers("states", 0, 1)
		transition := s.matrix("transition", 0, 1)
		if len(l.problems) > 0 {
			return
		}
		source, err := outcome.NewModulated(route, transition)
		if err != nil {
			s.wrong("outcome", "%v", err)
			return
		}
		p.Outcome = source
	}
	share := 0.0
	if law != "modulated" {
		share = s.probability("p")
	}
	if law == "bursts" {
		b := outcome.Bursts{
			RouteShare: share, Easy: s.probability("easy"), Hard: s.probability("hard"),
			HardTokens: s.number("hard_tokens", 1, 1, 1e9),
		}
		if len(l.problems) > 0 {
			return
		}
		source, err := outcome.NewBursts(b)
		if err != nil {
			s.wrong("outcome", "%v", err)
			return
		}
		p.Outcome = source
	}
	p.Algorithm = judgedBy(algorithm, law, share)
	l.first(s, p, algorithm, share)
	if law == "bernoulli" {
		p.Routing = [][]float64{{1 - share, share}, {1, 0}}
		p.Commit = [][]float64{{1, 0}, {1, 0}}
	}
}

// first reads whether all answers begin with a token of one model. CITER's score of a token is high where it
// is to be kept.
func (l *loader) first(s *section, p *Point, algorithm string, share float64) {
	word := s.word("first", "drawn", "drawn", "small", "large")
	if word == "drawn" {
		return
	}
	if len(l.problems) == 0 && (word == "large" && share == 0 || word == "small" && share == 1) {
		s.wrong("first", "want drawn beside p = %v: no other token of that model is possible", share)
		return
	}
	first := outcome.First{Source: p.Outcome}
	_, confident := p.Algorithm.(route.CITER)
	if (word == "large") != confident {
		first.Verdict = outcome.AlwaysRouted
	}
	p.Outcome, p.First = first, true
}

// judgedBy gives the rule whose threshold makes the verdict of the law. Bernoulli scores are uniform in
// [0, 1); those of the other laws are 1 for a token that is to be routed, else 0, which CITER would read the
// other way round.
func judgedBy(algorithm, law string, share float64) core.Algorithm {
	switch {
	case law != "bernoulli" && algorithm == "collm":
		return route.CoLLM{Threshold: 0.5}
	case law != "bernoulli":
		return route.R2R{Threshold: 0.5}
	case algorithm == "citer":
		return route.CITER{Threshold: share}
	case algorithm == "collm" && share < 1:
		return route.CoLLM{Threshold: 1 - share}
	default:
		return route.R2R{Threshold: 1 - share}
	}
}

// weights reads one weight a model and divides them by their sum.
func (s *section) weights(p *Point) []float64 {
	if !s.has("weights") {
		s.missing("weights", "want a number for each model")
		return nil
	}
	given := s.numbers("weights", 0, 1e12)
	if len(given) != len(p.Models) {
		s.wrong("weights", "want %d numbers, one for each model, not %d", len(p.Models), len(given))
		return nil
	}
	sum := 0.0
	for _, w := range given {
		sum += w
	}
	if !(sum > 0) {
		s.wrong("weights", "want a sum above 0")
		return nil
	}
	out := make([]float64, len(given))
	for i, w := range given {
		out[i] = w / sum
	}
	return out
}

// paths reads requests by the models that make their tokens.
func (l *loader) paths(s *section, p *Point) {
	if !s.has("paths") {
		s.missing("paths", `want a string for each request, such as "SLS", or trace`)
		return
	}
	letters := make(map[rune]int)
	for i, m := range p.Models {
		first := []rune(strings.ToUpper(m.Name))[0]
		if other, ok := letters[first]; ok {
			s.wrong("algorithm", "want model names with different first letters, not %q and %q",
				p.Models[other].Name, m.Name)
			return
		}
		letters[first] = i
	}
	for i, n := range s.list("paths") {
		text, ok := n.value.(string)
		name := element(s.name("paths"), i)
		if !ok || text == "" {
			l.add(n, name, "want a string that is not empty")
			continue
		}
		var path []int
		for _, letter := range text {
			m, known := letters[letter]
			if !known {
				l.add(n, name, "want first letters of model names only, not "+quote(string(letter)))
				break
			}
			path = append(path, m)
		}
		p.Paths = append(p.Paths, path)
	}
	p.Algorithm, p.Outcome = route.Recorded{}, nil
}

// query draws for each request which model answers it.
func (l *loader) query(s *section, p *Point) {
	if !s.has("share") {
		s.missing("share", "want the share of requests for the large model, 0 to 1")
		return
	}
	share := s.number("share", 0, 0, 1)
	born, err := route.NewBorn([]float64{1 - share, share})
	if err != nil {
		s.wrong("share", "%v", err)
		return
	}
	p.Algorithm = born
}

// single sends every request to one model.
func (l *loader) single(s *section, p *Point) {
	name := s.text("model", "")
	at := slices.IndexFunc(p.Models, func(m Model) bool { return m.Name == name })
	if at < 0 {
		var names []string
		for _, m := range p.Models {
			names = append(names, m.Name)
		}
		s.wrong("model", "want one of %s", quoteAll(names))
		return
	}
	weights := make([]float64, len(p.Models))
	weights[at] = 1
	for range weights {
		p.Routing = append(p.Routing, weights)
		p.Commit = append(p.Commit, slices.Repeat([]float64{1}, len(weights)))
	}
	if len(p.Models) > 1 {
		me, err := route.NewME(weights)
		if err != nil {
			s.wrong("model", "%v", err)
		}
		p.Algorithm = me
	}
}
