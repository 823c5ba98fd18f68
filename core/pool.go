package core

const noPage = -1

// pool is the paged KV memory of one model. A seat holds a chain of pages, last to first
// along prev; a page of a shared prompt prefix is in several chains, which agree on all
// before it. refs counts the seats that hold a page; at zero it is free again (I2).
type pool struct {
	free   []int32
	refs   []int32
	prev   []int32
	keys   []uint64 // prefix key of a shareable page
	shared []bool   // page is in byKey
	byKey  table
	losers []int32 // scratch of canPreempt
}

func newPool(pages int) pool {
	p := pool{
		free: make([]int32, pages), refs: make([]int32, pages), prev: make([]int32, pages),
		keys: make([]uint64, pages), shared: make([]bool, pages), byKey: newTable(pages),
		losers: make([]int32, pages),
	}
	for i := range p.free {
		p.free[i] = int32(pages - 1 - i) // page 0 goes out first
	}
	return p
}

// alloc takes a free page and puts it after tail. The caller has checked that one is free.
func (p *pool) alloc(tail int32) int32 {
	last := len(p.free) - 1
	page := p.free[last]
	p.free = p.free[:last]
	p.refs[page] = 1
	p.prev[page] = tail
	return page
}

// release lets go of a chain of n pages that ends at tail.
func (p *pool) release(tail int32, n int32) {
	for ; n > 0; n-- {
		page := tail
		tail = p.prev[page]
		p.refs[page]--
		if p.refs[page] > 0 {
			continue
		}
		if p.shared[page] {
			p.shared[page] = false
			p.byKey.remove(p.keys[page])
		}
		p.free = append(p.free, page)
	}
}

// shareChain offers the chain's last len(keys) pages under keys, as far as each follows a
// shared page or is the first, and no other page has its key.
func (p *pool) shareChain(last int32, keys []uint64) {
	if len(keys) == 0 {
		return
	}
	prev := p.prev[last]
	p.shareChain(prev, keys[:len(keys)-1])
	if p.shared[last] || prev != noPage && !p.shared[prev] {
		return
	}
	key := keys[len(keys)-1]
	if p.byKey.get(key) >= 0 {
		return
	}
	p.keys[last], p.shared[last] = key, true
	p.byKey.put(key, last)
}

// adopt takes a reference on each page that holds a leading key of prefix, at most n of
// them, and returns how many and the last.
func (p *pool) adopt(prefix []uint64, n int) (count, tail int32) {
	tail = noPage
	for _, key := range prefix[:min(n, len(prefix))] {
		page := p.byKey.get(key)
		// A page computed by another request hangs after that request's own copy of what
		// is before it; equal keys mean equal contents, but a chain must be one chain.
		if page < 0 || p.prev[page] != tail {
			break
		}
		p.refs[page]++
		tail = page
		count++
	}
	return count, tail
}
