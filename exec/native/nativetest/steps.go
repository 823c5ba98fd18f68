package nativetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/native"
)

// chunks: a prompt in parts of any size is the prompt at once.
func (s Suite) chunks(t *testing.T, c model.Config) {
	r := s.random(t, c)
	prompt := tokens(1, 70, c.Vocab)
	want := r.alone(prompt)
	for _, size := range []int{1, 3, 16, 17, 69} {
		r.release(0)
		var got answer
		for start := 0; start < len(prompt); start += size {
			end := min(start+size, len(prompt))
			got = r.step(part{slot: 0, start: start, tokens: prompt[start:end],
				Request: native.Request{Top: 3}})[0]
		}
		r.want(fmt.Sprintf("in chunks of %d", size), got, want)
	}
}

// ragged: requests of all lengths in one step, some of them with a cache, each answer as that alone.
func (s Suite) ragged(t *testing.T, c model.Config) {
	r := s.random(t, c)
	lengths := []struct{ cached, fresh int }{{0, 1}, {0, 17}, {33, 1}, {15, 1}, {16, 5}, {0, 40}, {90, 1}}
	var parts []part
	var want []answer
	for slot, n := range lengths {
		all := tokens(uint64(10+slot), n.cached+n.fresh, c.Vocab)
		want = append(want, r.alone(all))
		if n.cached > 0 {
			r.step(part{slot: slot, tokens: all[:n.cached]})
		}
		parts = append(parts, part{slot: slot, start: n.cached, tokens: all[n.cached:],
			Request: native.Request{Top: 3}})
	}
	for i, got := range r.step(parts...) {
		r.want(fmt.Sprintf("%d tokens after %d", lengths[i].fresh, lengths[i].cached), got, want[i])
	}
}

// pageSizes: the size of a page changes nothing.
func (s Suite) pageSizes(t *testing.T, c model.Config) {
	prompt := tokens(2, 100, c.Vocab)
	want := s.random(t, c).alone(prompt)
	for _, size := range []int{32, 64} {
		l := limits()
		l.PageTokens, l.Pages = size, 40
		r := s.rig(t, native.Config{Model: c}, &native.Random{Config: c, Seed: 3}, l)
		r.want(fmt.Sprintf("pages of %d tokens", size), r.alone(prompt), want)
	}
}

// sharedPages: two requests share the pages of a prefix, and neither disturbs the other.
func (s Suite) sharedPages(t *testing.T, c model.Config) {
	r := s.random(t, c)
	prefix := tokens(3, 32, c.Vocab)
	first := append(prefix[:32:32], tokens(4, 9, c.Vocab)...)
	second := append(prefix[:32:32], tokens(5, 20, c.Vocab)...)
	wantFirst, wantSecond := r.alone(first), r.alone(second)
	r.step(part{slot: 0, tokens: prefix})
	r.share(1, r.held[0][0])
	r.share(1, r.held[0][1])
	got := r.step(part{slot: 1, start: 32, tokens: second[32:], Request: native.Request{Top: 3}},
		part{slot: 0, start: 32, tokens: first[32:], Request: native.Request{Top: 3}})
	r.want("who shares", got[0], wantSecond)
	r.want("whose pages they are", got[1], wantFirst)
}

// droppedTokens: a request goes back to an earlier position and goes on otherwise.
func (s Suite) droppedTokens(t *testing.T, c model.Config) {
	r := s.random(t, c)
	kept, dropped, other := tokens(6, 21, c.Vocab), tokens(7, 14, c.Vocab), tokens(8, 3, c.Vocab)
	want := r.alone(append(kept[:21:21], other...))
	r.step(part{slot: 0, tokens: append(kept[:21:21], dropped...)})
	got := r.step(part{slot: 0, start: 21, tokens: other, Request: native.Request{Top: 3}})
	r.want("after 14 dropped tokens", got[0], want)
}

// usedPages: what another request left in a page is not seen, be it not a number.
func (s Suite) usedPages(t *testing.T, c model.Config) {
	r := s.rig(t, native.Config{Model: c}, broken{&native.Random{Config: c, Seed: 3}}, limits())
	prompt := tokens(9, 18, c.Vocab)
	want := r.alone(prompt)
	bad := tokens(10, 60, c.Vocab)
	bad[0] = NaNToken
	r.step(part{slot: 0, tokens: bad})
	pages := r.held[0]
	r.release(0)
	r.grant(1, 18)
	if r.held[1][0] != pages[0] || r.held[1][1] != pages[1] {
		t.Fatalf("pages %d, want the first two of %d", r.held[1], pages)
	}
	r.want("on used pages", r.step(part{slot: 1, tokens: prompt, Request: native.Request{Top: 3}})[0], want)
}

// broken gives token NaNToken an embedding that is not a number.
type broken struct{ native.Source }

// Tensor implements native.Source.
func (b broken) Tensor(e model.Expected) ([]byte, model.DType, error) {
	raw, kind, err := b.Source.Tensor(e)
	if err != nil || e.Name != "model.embed_tokens.weight" {
		return raw, kind, err
	}
	if kind != model.BF16 {
		return nil, kind, errors.New("nativetest: want bf16 weights")
	}
	row := raw[2*NaNToken*e.Shape[1]:][:2*e.Shape[1]]
	for i := range row {
		row[i] = []byte{0xc0, 0x7f}[i%2] // 7FC0, little-endian: a quiet NaN
	}
	return raw, kind, nil
}

// notANumber: a row that is not a number says so, at once and from then on, and harms no other.
func (s Suite) notANumber(t *testing.T, c model.Config) {
	c.Tied = false // else the logit of NaNToken is NaN for everybody
	r := s.rig(t, native.Config{Model: c}, broken{&native.Random{Config: c, Seed: 3}}, limits())
	prompt := tokens(11, 25, c.Vocab)
	want := r.alone(prompt)
	bad := tokens(12, 9, c.Vocab)
	bad[8] = NaNToken
	ask := native.Request{Top: 3}
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		r.release(0)
		r.release(1)
		parts := []part{{slot: 0, tokens: bad, Request: ask}, {slot: 1, tokens: prompt, Request: ask}}
		got := r.step(parts[order[0]], parts[order[1]])
		if got[order[0]].Finite != 0 {
			t.Errorf("row %d: %+v, want it not finite", order[0], got[order[0]].Result)
		}
		r.want("the other row", got[order[1]], want)
	}
}

// refusals: what is wrong is refused, and leaves the cache as it was.
func (s Suite) refusals(t *testing.T, c model.Config) {
	r := s.random(t, c)
	l := r.model.Limits()
	prompt := tokens(13, 20, c.Vocab)
	want := r.alone(append(prompt[:20:20], 7))
	r.step(part{slot: 0, tokens: prompt})
	r.grant(0, 33)
	good := part{slot: 0, start: 20, tokens: []int32{7}, Request: native.Request{Top: 3}}
	changed := func(change func(p *part)) []part {
		p := good
		change(&p)
		return []part{p}
	}
	for _, test := range []struct {
		name  string
		parts []part
	}{
		{"slot below 0", changed(func(p *part) { p.slot = -1 })},
		{"slot too high", changed(func(p *part) { p.slot = l.Slots })},
		{"token below 0", changed(func(p *part) { p.tokens = []int32{-1} })},
		{"token outside the vocabulary", changed(func(p *part) { p.tokens = []int32{int32(c.Vocab)} })},
		{"position below 0", changed(func(p *part) { p.start = -1 })},
		{"no page", changed(func(p *part) { p.tokens = tokens(14, 40, c.Vocab) })},
		{"no page in a slot without any", changed(func(p *part) { p.slot, p.start = 3, 0 })},
		{"context too long", changed(func(p *part) { p.start = l.ContextMax })},
		{"temperature too low", changed(func(p *part) { p.Temperature = 1e-9 })},
		{"temperature not a number", changed(func(p *part) { p.Temperature = float32(math.NaN()) })},
		{"top_p below 0", changed(func(p *part) { p.TopP = -1 })},
		{"top_p not a number", changed(func(p *part) { p.TopP = float32(math.NaN()) })},
		{"min_p above 1", changed(func(p *part) { p.MinP = 1.5 })},
		{"top_k below 0", changed(func(p *part) { p.TopK = -1 })},
		{"top list too long", changed(func(p *part) { p.Top = int32(l.TopMax + 1) })},
		{"too many requests", slicesOf(good, l.RequestsMax+1)},
	} {
		if _, err := r.try(test.parts...); !errors.Is(err, native.ErrInvalid) {
			t.Errorf("%s: error %v, want %v", test.name, err, native.ErrInvalid)
		}
	}
	for _, g := range []native.Grant{{Slot: 0, Index: 3, Page: int32(l.Pages)}, {Slot: 0, Index: 3, Page: -1},
		{Slot: int32(l.Slots), Index: 0, Page: 0}, {Slot: 0, Index: int32(l.ContextMax / l.PageTokens), Page: 0}} {
		r.batch.Grants = []native.Grant{g}
		if _, err := r.try(good); !errors.Is(err, native.ErrInvalid) {
			t.Errorf("grant %+v: error %v, want %v", g, err, native.ErrInvalid)
		}
	}
	r.want("after the refusals", r.step(good)[0], want)
}

func slicesOf(p part, n int) []part {
	parts := make([]part, n)
	for i := range parts {
		parts[i] = p
	}
	return parts
}

// twoModels: two models step at the same time, each as it does alone.
func (s Suite) twoModels(t *testing.T, c model.Config) {
	d := s.open(t)
	var rigs [2]*rig
	var want, got [2]answer
	for i := range rigs {
		rigs[i] = s.rigOn(t, d, native.Config{Model: c}, &native.Random{Config: c, Seed: uint64(3 + i)}, limits())
		want[i] = rigs[i].alone(tokens(15, 40, c.Vocab))
	}
	if s.same(want[0], want[1]) {
		t.Error("two models give the same answer")
	}
	var both sync.WaitGroup
	for i, r := range rigs {
		both.Go(func() {
			for position, token := range tokens(15, 40, c.Vocab) {
				r.grant(0, position+1)
				answers, err := r.try(part{slot: 0, start: position, tokens: []int32{token},
					Request: native.Request{Top: 3}})
				if err != nil {
					t.Errorf("model %d, position %d: %v", i, position, err)
					return
				}
				got[i] = answers[0]
			}
		})
	}
	both.Wait()
	for i, r := range rigs {
		r.want(fmt.Sprintf("model %d", i), got[i], want[i])
	}
}

// memory: a model takes what was said before, and is refused where that is more than the budget.
func (s Suite) memory(t *testing.T) {
	c := native.Config{Model: caseOf("qwen3-untied")}
	said, err := s.Backend.Probe(c, limits())
	if err != nil {
		t.Fatal(err)
	}
	perToken := c.Model.KVBytesPerToken(2)
	if said.KVBytesPerToken < perToken || said.KVBytes < perToken*16*128 || said.WorkBytes <= 0 ||
		said.WeightBytes < 2*c.Model.Parameters()*9/10 { // norms and biases may not be counted
		t.Errorf("%+v, want at least %d bytes of KV a token and %d parameters of 2 bytes", said, perToken,
			c.Model.Parameters())
	}
	for _, test := range []struct {
		name   string
		budget int64
		want   error
	}{{"enough", said.Total(), nil}, {"one byte less", said.Total() - 1, native.ErrNoMemory}} {
		options := s.Options
		options.BudgetBytes = test.budget
		d, err := s.Backend.Open(options)
		if err != nil {
			t.Fatal(err)
		}
		m, err := d.Load(context.Background(), native.Load{Name: "test", Config: c, Limits: limits(),
			Source: &native.Random{Config: c.Model, Seed: 1}})
		if !errors.Is(err, test.want) {
			t.Errorf("%s: error %v, want %v", test.name, err, test.want)
		}
		if err == nil && m.Took() != said {
			t.Errorf("%s: took %+v, want %+v", test.name, m.Took(), said)
		}
		d.Close()
	}
}
