package exec

import (
	"fmt"

	"tokenrouter/core"
)

// owned is the node's algorithm, but for requests that have brought their own. It is no core.Batch: a launch
// is judged row by row, so that each may be judged otherwise.
type owned struct {
	common core.Algorithm
	own    map[uint64]*Request // requests of the core with an Algorithm
}

// newOwned refuses algorithms that do more than look at tokens, and systems of several nodes: a hand-off
// carries no algorithm.
func newOwned(c *Config) (*owned, error) {
	_, enters := c.Core.Algorithm.(core.Entry)
	_, receives := c.Core.Algorithm.(core.Receiver)
	if c.Core.Algorithm == nil || enters || receives {
		return nil, fmt.Errorf("exec: OwnAlgorithms with %T, want an algorithm that is no core.Entry and no"+
			" core.Receiver", c.Core.Algorithm)
	}
	for _, link := range c.Links {
		if link != nil {
			return nil, fmt.Errorf("exec: OwnAlgorithms with links, want one node")
		}
	}
	return &owned{common: c.Core.Algorithm, own: make(map[uint64]*Request)}, nil
}

func (o *owned) of(v *core.Visit) core.Algorithm {
	if r := o.own[v.ID]; r != nil {
		return r.Algorithm
	}
	return o.common
}

// Route asks the request's algorithm.
func (o *owned) Route(v *core.Visit, r *core.Result) int { return o.of(v).Route(v, r) }

// Send asks the request's algorithm.
func (o *owned) Send(v *core.Visit, r *core.Result, peer int) bool { return o.of(v).Send(v, r, peer) }

// add notes a request that is handed in. One whose ID is taken will be refused, and changes nothing.
func (o *owned) add(r *Request) {
	if o != nil && r.Algorithm != nil && o.own[r.ID] == nil {
		o.own[r.ID] = r
	}
}

// remove forgets a request that has left.
func (o *owned) remove(r *Request) {
	if o != nil && r != nil && o.own[r.ID] == r {
		delete(o.own, r.ID)
	}
}
