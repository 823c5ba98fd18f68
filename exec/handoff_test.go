package exec_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core"
	"tokenrouter/exec"
)

// spy is a link that remembers the hand-offs.
type spy struct {
	exec.Link
	handoffs *[]handoff
}

type handoff struct {
	To     int
	Anchor int32
	IDs    []int32
}

// Send implements exec.Link.
func (s spy) Send(m exec.Message) error {
	if m.Handoff != nil {
		h := handoff{m.Handoff.To, m.Anchor, nil}
		for _, token := range m.Tokens {
			h.IDs = append(h.IDs, token.ID)
		}
		*s.handoffs = append(*s.handoffs, h)
	}
	return s.Link.Send(m)
}

// case5 is the script of case 5: what each model samples at a position of the context.
func case5() (small, large *scripted) {
	script := func(tokens map[int32]core.Result) func(uint64, int32) core.Result {
		return func(_ uint64, position int32) core.Result { return tokens[position] }
	}
	small = &scripted{script: script(map[int32]core.Result{
		3: {Token: 10}, 4: {Token: 11}, 5: {Token: 12, Score: 1}, 6: {Token: 13}, 7: {Token: 14, Score: 1},
	})}
	large = &scripted{script: script(map[int32]core.Result{5: {Token: 20}, 7: {Token: 21}})}
	return small, large
}

// TestSuffixes is case 5: prompt 1 5 9; small 10, 11, draft 12 routed, large 20, small 13, draft
// 14 routed, large 21. The ids that each device is fed, and those on the link, are exact.
func TestSuffixes(t *testing.T) {
	wantSmall := [][]fed{
		{{7, 0, []int32{1, 5, 9}}}, {{7, 3, []int32{10}}}, {{7, 4, []int32{11}}},
		{{7, 5, []int32{20}}}, {{7, 6, []int32{13}}},
	}
	wantLarge := [][]fed{{{7, 0, []int32{1, 5, 9, 10, 11}}}, {{7, 5, []int32{20, 13}}}}
	for name, nodes := range map[string][]int{"one node": {0, 0}, "two nodes": {0, 1}, "front alone": {1, 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				small, large := case5()
				var handoffs []handoff
				s := start(t, config(nodes...), 3*time.Millisecond, []exec.Device{small, large},
					func(c *exec.Config) {
						if c.Core.Node == c.Core.Models[0].Node && len(c.Links) > 1 {
							to := c.Core.Models[1].Node
							c.Links[to] = spy{c.Links[to], &handoffs}
						}
					})
				c := s.submit(7, []int32{1, 5, 9}, 5)
				s.settle(time.Second)
				s.stop()
				c.ended(core.Finished, core.TokensMax, 10, 11, 20, 13, 21)
				if d := cmp.Diff(wantSmall, small.passes); d != "" {
					t.Errorf("small model, want - got +:\n%s", d)
				}
				if d := cmp.Diff(wantLarge, large.passes); d != "" {
					t.Errorf("large model, want - got +:\n%s", d)
				}
				if made := models(c); !slices.Equal(made, []int32{0, 0, 1, 0, 1}) {
					t.Errorf("tokens are of models %v, want 0 0 1 0 1", made)
				}
				if name == "one node" {
					return
				}
				want := []handoff{{1, 0, []int32{1, 5, 9, 10, 11}}, {1, 6, []int32{13}}}
				if d := cmp.Diff(want, handoffs); d != "" {
					t.Errorf("hand-offs, want - got +:\n%s", d)
				}
			})
		})
	}
}

// models are those that made the tokens of an answer.
func models(c *client) []int32 {
	made := []int32{}
	for _, token := range c.tokens {
		made = append(made, token.Model)
	}
	return made
}

// TestEndElsewhere: an answer that ends at another node, by EOS, reaches the client whole.
func TestEndElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := &scripted{script: routes}
		large := &scripted{script: func(uint64, int32) core.Result { return core.Result{Token: 99, EOS: true} }}
		s := start(t, config(0, 1), 5*time.Millisecond, []exec.Device{small, large}, nil)
		c := s.submit(1, []int32{4, 4}, 9)
		s.settle(10 * time.Millisecond) // small 1 ms, link 5 ms, large 1 ms, link 5 ms: 12 ms
		if len(c.tokens) != 0 {
			t.Errorf("tokens %v after 10 ms, want none", c.ids())
		}
		s.settle(3 * time.Millisecond)
		c.ended(core.Finished, core.EndOfSequence, 99)
		s.stop()
	})
}

// TestReturnsStream: what another node has made is told when the request comes back, before
// the answer ends.
func TestReturnsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := &scripted{script: func(_ uint64, position int32) core.Result {
			return core.Result{Token: position, Score: float64(1 - position%2)} // even positions are routed
		}}
		large := &scripted{script: func(_ uint64, position int32) core.Result {
			return core.Result{Token: 100 + position}
		}}
		s := start(t, config(0, 1), 5*time.Millisecond, []exec.Device{small, large}, nil)
		c := s.submit(1, []int32{4, 4}, 4)
		s.settle(12500 * time.Microsecond) // back at the front after 12 ms
		if got := c.ids(); !slices.Equal(got, []int32{102}) || len(c.leaves) > 0 {
			t.Errorf("after the first return: tokens %v, ends %v, want 102 and no end", got, c.leaves)
		}
		s.settle(time.Second)
		c.ended(core.Finished, core.TokensMax, 102, 3, 104, 5)
		s.stop()
	})
}
