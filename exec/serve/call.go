package serve

import (
	"context"
	"errors"
	"net/http"
	"time"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
	"tokenrouter/exec"
	"tokenrouter/exec/answer"
)

// call is a request of a client in the loop: all its choices.
type call struct {
	s       *Server
	ask     *ask
	id      string // as told to the client
	created time.Time
	first   uint64 // ID of the first choice in the loop; the others follow
	choices []*choice
	box     box
	ended   int
	failed  *failure // of the first choice that failed
	limit   *time.Timer
}

// begin takes places for all choices and hands them to the loop, or to none.
func (s *Server) begin(ctx context.Context, a *ask, id string, arrived time.Time) (*call, *failure) {
	c := &call{s: s, ask: a, id: id, created: arrived, box: box{ready: make(chan struct{}, 1)}}
	n := len(a.prompts) * a.n
	if failed := s.places.take(n); failed != nil { // before a router computes anything
		return nil, failed
	}
	entries, failed := s.entries(ctx, a)
	if failed != nil {
		s.places.release(n)
		return nil, failed
	}
	c.first = s.ids.Add(uint64(n)) - uint64(n)
	for i := range n {
		if err := c.submit(i, entries[i/a.n], arrived); err != nil {
			s.places.release(n - i) // those of the others are released as they leave
			c.cancel(core.ClientLeft)
			if errors.Is(err, exec.ErrStopped) {
				return nil, unavailable(time.Second, "stopped", "the server ends")
			}
			return nil, invalid("", "%v", err)
		}
	}
	c.limit = time.NewTimer(time.Until(arrived.Add(a.time)))
	return c, nil
}

// errGone is told to nobody: the client has left.
var errGone = fail(statusGone, "client_error", "client_left", "the client has left")

// statusGone stands in metrics for an answer that nobody waited for (as in nginx).
const statusGone = 499

// entries are the models that prompts go to first.
func (s *Server) entries(ctx context.Context, a *ask) ([]int, *failure) {
	entries := make([]int, len(a.prompts))
	for i, ids := range a.prompts {
		var err error
		switch {
		case ctx.Err() != nil:
			return nil, errGone
		case a.model != all:
			entries[i] = a.model
		case s.c.Entry != nil:
			entries[i], err = s.c.Entry(ids, a.threshold)
		}
		if err != nil {
			s.c.Log.Error("the router failed", "error", err) // which names folders: nothing for clients
			return nil, fail(http.StatusInternalServerError, "server_error", "router_failed",
				"the router can not say which model shall answer")
		}
	}
	return entries, nil
}

// submit hands in choice i.
func (c *call) submit(i, entry int, arrived time.Time) error {
	a, id := c.ask, c.first+uint64(i)
	ch := &choice{index: i, box: &c.box, keep: !a.stream}
	ch.left = func() { c.s.left(ch, arrived) }
	sampling := a.sampling
	if a.score {
		sampling.Top = max(sampling.Top, 1) // or no details are told
	}
	if a.seed != nil {
		seed := *a.seed + uint64(i) // each choice is another
		sampling.Seed = &seed
	}
	var err error
	ch.answer, err = answer.New(answer.Config{
		Tokenizer: c.s.c.Tokenizer, Stop: a.stop, Piece: ch.piece,
		EOS:     func(token int32) bool { return !sampling.IgnoreEOS && c.s.c.EOS(token) },
		Stopped: func() { _ = c.s.loop.Cancel(id, core.StopString) },
	})
	if err != nil {
		return err
	}
	r := &exec.Request{
		ID: id, Prompt: a.prompts[i/a.n], TokensMax: int32(a.tokensMax), Entry: entry, Algorithm: a.algorithm,
		Sampling: &sampling, Sink: ch, Draw: c.s.draw(&sampling, id),
	}
	if a.model != all || c.s.c.Entry != nil {
		r.Models = 1 << entry
	}
	if err := c.s.loop.Submit(r); err != nil {
		return err
	}
	c.choices = append(c.choices, ch)
	return nil
}

// draw is that of the model that makes the first token, keyed as those of all others are.
func (s *Server) draw(p *exec.Sampling, id uint64) float64 {
	seed := s.c.Seed
	if p.Seed != nil {
		seed, id = *p.Seed, 0
	}
	return keyed.Float(keyed.Hash(seed, id, 0, 0, keyed.Entry))
}

// cancel ends all choices that go on.
func (c *call) cancel(reason core.Reason) {
	for i := range c.choices {
		_ = c.s.loop.Cancel(c.first+uint64(i), reason) // a loop that ends has cancelled them itself
	}
}

// next waits for news. It returns none when idle has passed without, and not whole when the client has left:
// then all choices are cancelled. A time limit cancels them too, and their ends are news.
func (c *call) next(ctx context.Context, idle time.Duration) (list []news, here bool) {
	var quiet <-chan time.Time
	if idle > 0 {
		t := time.NewTimer(idle)
		defer t.Stop()
		quiet = t.C
	}
	for {
		if list := c.box.take(); len(list) > 0 {
			c.fold(list)
			return list, true
		}
		select {
		case <-c.box.ready:
		case <-c.limit.C:
			c.cancel(core.TimedOut)
		case <-quiet:
			return nil, true
		case <-ctx.Done():
			return nil, false
		}
	}
}

// fold counts ends. The first choice that fails ends the call: the others are cancelled.
func (c *call) fold(list []news) {
	for _, n := range list {
		if n.finish == "" {
			continue
		}
		c.ended++
		if f := failureOf(&c.choices[n.choice].answer.Leave, c.s.c.Models); f != nil && c.failed == nil {
			c.failed = f
			c.cancel(core.ClientLeft)
		}
	}
}

// whole says whether all choices have ended.
func (c *call) whole() bool { return c.ended == len(c.choices) }

// close ends the call, whatever has become of it.
func (c *call) close() {
	c.limit.Stop()
	if !c.whole() {
		c.cancel(core.ClientLeft)
	}
}
