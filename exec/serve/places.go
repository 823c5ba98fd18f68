package serve

import (
	"net/http"
	"sync"
	"time"
)

// places bounds the choices in the loop, and keeps how long they stay.
type places struct {
	mu     sync.Mutex
	room   int
	taken  int
	closed *failure      // nil: places are given
	stay   time.Duration // of a choice, smoothed
	served int           // at a time
	empty  chan struct{} // closed when closed and none is taken
	told   bool          // empty is closed
}

// stayWeight is the weight of the last choice in the smoothed stay.
const stayWeight = 8

// retryMax bounds what clients are told to wait.
const retryMax = time.Minute

// take takes n places, or says why there are none.
func (p *places) take(n int) *failure {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil {
		return p.closed
	}
	if p.taken+n > p.room {
		f := fail(http.StatusTooManyRequests, "rate_limit_error", "queue_full",
			"%d of %d places are taken, %d are wanted: try again", p.taken, p.room, n)
		f.retryAfter = p.wait(n)
		return f
	}
	p.taken += n
	return nil
}

// wait is about how long it takes until n places are free: served choices leave in the time of one stay.
func (p *places) wait(n int) time.Duration {
	return min(max(p.stay*time.Duration(n)/time.Duration(p.served), time.Second), retryMax)
}

// release gives n places back.
func (p *places) release(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= n
	p.check()
}

// left gives back the place of a choice that has stayed so long.
func (p *places) left(stay time.Duration) {
	p.mu.Lock()
	p.stay += (stay - p.stay) / stayWeight
	p.mu.Unlock()
	p.release(1)
}

// close gives no more places, for a reason.
func (p *places) close(why *failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed == nil {
		p.closed = why
	}
	p.check()
}

func (p *places) check() {
	if p.closed != nil && p.taken == 0 && !p.told {
		p.told = true
		close(p.empty)
	}
}

// now is how many places are taken, and why no more are given, nil if they are.
func (p *places) now() (taken int, closed *failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken, p.closed
}
