package exec_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"tokenrouter/core"
	"tokenrouter/exec"
)

// truth is what every request's tokens are, prompt included, as the turns commit them.
type truth struct {
	mu  sync.Mutex
	ids map[uint64][]int32
}

func (tr *truth) observe(_ int, _ core.Time, _ []core.Event, out *core.Actions) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, token := range out.Tokens {
		tr.ids[token.ID] = append(tr.ids[token.ID], token.Token)
	}
}

// of is the tokens of a request so far.
func (tr *truth) of(id uint64) []int32 {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.ids[id]
}

// paged is a device with a KV memory of pages, in which it keeps the token that was fed at each
// position. It believes only what it is handed: page tables grow from Pass.Grants and end with
// Pass.Freed. A page that is lost, shared wrongly or given twice, a slot that still has the
// pages of the one before, a suffix that is wrong: all show as a token that is not the
// request's own.
type paged struct {
	t      *testing.T
	m      int
	truth  *truth
	inner  exec.Device
	page   int
	tables [][]int32 // [slot] pages
	pages  [][]int32 // [page] ids
	passes int
	fails  func(pass int) bool
	seen   map[uint64]bool // requests fed
}

var errDevice = errors.New("device lost")

// Step implements exec.Device.
func (d *paged) Step(p *exec.Pass) error {
	for _, slot := range p.Freed {
		d.tables[slot] = nil
	}
	for _, g := range p.Grants {
		if g.Model != d.m {
			d.t.Errorf("model %d is handed the grant %+v", d.m, g)
		}
		table := d.tables[g.Slot]
		for len(table) <= int(g.Index) {
			table = append(table, -1)
		}
		table[g.Index] = g.Page
		d.tables[g.Slot] = table
	}
	for i := range p.Launch.Rows {
		d.check(p, i)
	}
	if err := d.inner.Step(p); err != nil {
		return err
	}
	if d.passes++; d.fails != nil && d.fails(d.passes) {
		return fmt.Errorf("pass %d: %w", d.passes, errDevice)
	}
	for i := range p.Launch.Rows {
		row := &p.Launch.Rows[i]
		for j, id := range p.Tokens[i] {
			*d.at(row, int(row.Start)+j) = id
		}
		d.check(p, i) // nobody has touched its context meanwhile
		if row.Head {
			p.Results[i].Token = int32(1000*row.ID) + 100*int32(d.m) + int32(d.passes)%100
		}
	}
	return nil
}

// check compares a row's context and what it is fed with the request's own tokens.
func (d *paged) check(p *exec.Pass, i int) {
	row := &p.Launch.Rows[i]
	d.seen[row.ID] = true
	want := d.truth.of(row.ID)
	end := int(row.Start + row.Fresh)
	if end > len(want) || row.Head != (end == len(want)) || !slices.Equal(p.Tokens[i], want[row.Start:end]) {
		d.t.Errorf("model %d: %+v is fed %v, the request is %v", d.m, row, p.Tokens[i], want)
		return
	}
	for position := range int(row.Start) {
		if got := *d.at(row, position); got != want[position] {
			d.t.Errorf("model %d: %+v: KV of position %d is of token %d, want %d",
				d.m, row, position, got, want[position])
			return
		}
	}
}

// at is where the token of a position is kept.
func (d *paged) at(row *core.Row, position int) *int32 {
	table := d.tables[row.Slot]
	if position/d.page >= len(table) || table[position/d.page] < 0 {
		d.t.Errorf("model %d: %+v: position %d has no page in %v", d.m, row, position, table)
		return new(int32)
	}
	return &d.pages[table[position/d.page]][position%d.page]
}

// withPages puts a paged device around every device of the world, and returns them.
func withPages(t *testing.T, w *world) []*paged {
	tr := &truth{ids: map[uint64][]int32{}}
	for i := range w.s.requests {
		tr.ids[uint64(i)] = w.prompt(&w.s.requests[i])
	}
	w.observe = tr.observe
	devices := make([]*paged, len(w.s.core.Models))
	w.wrap = func(m int, d exec.Device) exec.Device {
		p := &paged{
			t: t, m: m, truth: tr, inner: d, page: w.s.core.PageTokens,
			tables: make([][]int32, w.s.core.Requests), seen: map[uint64]bool{},
		}
		for range w.s.core.Models[m].Pages {
			p.pages = append(p.pages, slices.Repeat([]int32{-1}, p.page))
		}
		devices[m] = p
		return p
	}
	return devices
}

// answers fails the test unless every client has exactly the tokens that were committed.
func (w *world) answers(t *testing.T, tr *truth) {
	t.Helper()
	for i, c := range w.clients {
		want := tr.of(uint64(i))[w.s.requests[i].PromptTokens:]
		if len(c.leaves) != 1 || !slices.Equal(c.ids(), want) {
			t.Errorf("request %d: ends %+v, tokens %v, want %v", i, c.leaves, c.ids(), want)
		}
	}
}

// TestPages: on random systems, with preemption, shared prefixes, budgets and slots taken
// again, on one node and on several, every row finds its own context in its pages (I2, I7) and
// every client gets the whole answer.
func TestPages(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 2
	}
	eachScenario(t, seeds, func(t *testing.T, s *scenario) {
		var devices []*paged
		w := s.execute(t, func(w *world) { devices = withPages(t, w) })
		w.answers(t, devices[0].truth)
	})
}

// TestPagesWithCancelsAndFailures: the same with clients that leave at any time, and devices
// that fail now and then: what one request leaves behind harms no other (case 15).
func TestPagesWithCancelsAndFailures(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 2
	}
	outcomes := map[core.Outcome]int{}
	eachScenario(t, seeds, func(t *testing.T, s *scenario) {
		rng := rand.New(rand.NewPCG(s.seed, 12))
		var devices []*paged
		w := s.execute(t, func(w *world) {
			devices = withPages(t, w)
			wrap := w.wrap
			w.wrap = func(m int, d exec.Device) exec.Device {
				d = wrap(m, d)
				devices[m].fails = func(pass int) bool { return pass%17 == 16-m }
				return d
			}
			w.failed = func(err error) {
				if !errors.Is(err, errDevice) {
					t.Error(err)
				}
			}
			w.cancelAt = map[uint64]core.Time{}
			end := s.requests[len(s.requests)-1].ArrivalNs
			for range 6 {
				w.cancelAt[rng.Uint64N(14)] = rng.Int64N(end + end/2 + 100)
			}
		})
		w.answers(t, devices[0].truth)
		for _, c := range w.clients {
			outcomes[c.leaves[0].Outcome]++
		}
	})
	for _, o := range []core.Outcome{core.Finished, core.CancelledOutcome, core.Failed} {
		if outcomes[o] == 0 {
			t.Errorf("ends %v, want some %v", outcomes, o)
		}
	}
}
