package nativetest

import (
	"math"
	"slices"
	"testing"

	"tokenrouter/exec/model/reference"
	"tokenrouter/exec/native"
)

// signals: everything that a step says about a row of logits is what they say.
func (s Suite) signals(t *testing.T) {
	for _, name := range []string{"qwen3-untied", "llama-plain"} {
		c := caseOf(name)
		r := s.random(t, c)
		for length := 1; length <= 8; length++ {
			got := r.step(part{slot: 0, tokens: tokens(uint64(30+length), length, c.Vocab),
				Request: native.Request{Top: 5}})[0]
			r.release(0)
			r.checkSignals(got, 5)
		}
		got := r.step(part{slot: 0, tokens: []int32{9}})[0]
		if got.Result.Top != 0 || !math.IsNaN(got.Score) {
			t.Errorf("%s: %d entries of a top list and score %v, want none and NaN", name, got.Result.Top, got.Score)
		}
	}
}

// checkSignals compares with float64, for a row from which the most likely token was taken.
func (r *rig) checkSignals(got answer, top int) {
	r.t.Helper()
	sum := reference.LogSumExp(got.logits)
	order := make([]int32, len(got.logits))
	entropy := 0.0
	for i, z := range got.logits {
		order[i] = int32(i)
		entropy -= math.Exp(z-sum) * (z - sum)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		switch {
		case got.logits[a] > got.logits[b]:
			return -1
		case got.logits[a] < got.logits[b]:
			return 1
		}
		return 0
	})
	p := func(place int) float64 { return math.Exp(got.logits[order[place]] - sum) }
	for _, signal := range []struct {
		name      string
		got, want float64
	}{
		{"token", float64(got.Token), float64(order[0])},
		{"log-probability", float64(got.LogProbability), got.logits[order[0]] - sum},
		{"top probability", float64(got.TopProbability), p(0)},
		{"margin", float64(got.Margin), p(0) - p(1)},
		{"entropy", float64(got.Entropy), entropy / math.Log(float64(len(order)))},
		{"log-sum-exp", float64(got.LogSumExp), sum},
		{"length of the top list", float64(len(got.top)), float64(top)},
	} {
		if !(math.Abs(signal.got-signal.want) <= SignalTolerance*max(1, math.Abs(signal.want))) {
			r.t.Errorf("%s %v, want %v", signal.name, signal.got, signal.want)
		}
	}
	for place, entry := range got.top {
		want := got.logits[order[place]] - sum
		if entry.Token != order[place] || !(math.Abs(float64(entry.LogProbability)-want) <= SignalTolerance*8) {
			r.t.Errorf("top list, place %d: %+v, want token %d and %v", place, entry, order[place], want)
		}
	}
}

// sampling: what leaves a single token gives that, whatever the draw; and biases move the draw alone.
func (s Suite) sampling(t *testing.T) {
	c := caseOf("qwen3-untied")
	r := s.random(t, c)
	prompt := tokens(40, 12, c.Vocab)
	plain := r.alone(prompt)
	best := plain.Token
	const other = 77
	for _, test := range []struct {
		name    string
		request native.Request
		biases  []native.Bias
		want    int32
	}{
		{"top_k 1", native.Request{Temperature: 1, TopK: 1}, nil, best},
		{"top_p tiny", native.Request{Temperature: 1, TopP: 1e-6}, nil, best},
		{"min_p 1", native.Request{Temperature: 1, MinP: 1}, nil, best},
		{"temperature lowest", native.Request{Temperature: 1e-6}, nil, best},
		{"bias up", native.Request{}, []native.Bias{{Token: other, Bias: 100}}, other},
		{"bias up, drawn", native.Request{Temperature: 1}, []native.Bias{{Token: other, Bias: 200}}, other},
		{"bias down", native.Request{}, []native.Bias{{Token: best, Bias: -100}}, second(plain.logits)},
		{"biases of one token add up", native.Request{}, []native.Bias{{Token: other, Bias: 100},
			{Token: 78, Bias: 150}, {Token: other, Bias: 100}}, other},
	} {
		for _, random := range []uint64{0, 1 << 63, math.MaxUint64} {
			test.request.Random = random
			r.release(0)
			got := r.step(part{slot: 0, tokens: prompt, Request: test.request, biases: test.biases})[0]
			if got.Token != test.want {
				t.Errorf("%s, random %#x: token %d, want %d", test.name, random, got.Token, test.want)
			}
			want := plain.logits[got.Token] - reference.LogSumExp(plain.logits)
			if math.Abs(float64(got.LogProbability)-want) > 8*SignalTolerance || got.Entropy != plain.Entropy ||
				!slices.Equal(got.logits, plain.logits) {
				t.Errorf("%s: log-probability %v and entropy %v, want %v and %v, and the logits as they were",
					test.name, got.LogProbability, got.Entropy, want, plain.Entropy)
			}
		}
	}
}

// second is the token of the second largest logit.
func second(logits []float64) int32 {
	rest := slices.Clone(logits)
	rest[reference.Best(logits)] = math.Inf(-1)
	return reference.Best(rest)
}

// samplable: rows of the head that are padding are in the softmax, and are never drawn.
func (s Suite) samplable(t *testing.T) {
	c := caseOf("qwen3-untied")
	r := s.rig(t, native.Config{Model: c, Samplable: 200}, &native.Random{Config: c, Seed: 3}, limits())
	prompt := tokens(41, 12, c.Vocab)
	for _, temperature := range []float32{0, 1} {
		r.release(0)
		got := r.step(part{slot: 0, tokens: prompt,
			Request: native.Request{Temperature: temperature, Random: 1 << 62},
			biases:  []native.Bias{{Token: 199, Bias: 50}, {Token: 230, Bias: 100}}})[0]
		if got.Token != 199 {
			t.Errorf("temperature %v: token %d, want 199", temperature, got.Token)
		}
		if sum := reference.LogSumExp(got.logits); math.Abs(float64(got.LogSumExp)-sum) > 8*SignalTolerance {
			t.Errorf("log-sum-exp %v, want %v of all rows", got.LogSumExp, sum)
		}
	}
}

// frequencies: 4,000 draws (400 of an emulated device) from the ten best of a row at temperature 0.7 come
// as often as they should, each within 5 standard deviations; and the same random bits draw the same token in
// any batch.
func (s Suite) frequencies(t *testing.T) {
	c := caseOf("qwen3-tied")
	r := s.random(t, c)
	prompt := tokens(42, 5, c.Vocab)
	logits := r.alone(prompt).logits
	const topK, temperature = 10, 0.7
	draws := 4000
	if s.Emulated {
		draws = 400
	}
	order := slices.Clone(logits)
	slices.Sort(order)
	least, total := order[len(order)-topK], 0.0
	for _, z := range order[len(order)-topK:] {
		total += math.Exp(z / temperature)
	}
	counts := make([]int, c.Vocab)
	slots := r.model.Limits().RequestsMax
	for slot := range slots {
		r.step(part{slot: slot, tokens: prompt})
	}
	var parts []part
	var drawn []answer
	for i := 0; i < draws; i += slots {
		parts = nil
		for slot := range slots {
			// Random bits in which every request of every step differs: multiples of the golden ratio are even.
			random := uint64(i+slot) * 0x9e3779b97f4a7c15
			parts = append(parts, part{slot: slot, start: len(prompt) - 1, tokens: prompt[len(prompt)-1:],
				Request: native.Request{Temperature: temperature, TopK: topK, Random: random}})
		}
		drawn = r.step(parts...)
		for _, got := range drawn {
			counts[got.Token]++
		}
	}
	for token, n := range counts {
		p := 0.0
		if logits[token] >= least {
			p = math.Exp(logits[token]/temperature) / total
		}
		expected := float64(draws) * p
		if math.Abs(float64(n)-expected) > 5*math.Sqrt(expected*(1-p)) {
			t.Errorf("token %d: %d of %d draws, want about %.1f", token, n, draws, expected)
		}
	}
	for i, p := range parts {
		if got := r.step(p)[0]; got.Token != drawn[i].Token {
			t.Errorf("random %#x: token %d alone, %d in a batch", p.Random, got.Token, drawn[i].Token)
		}
	}
}
