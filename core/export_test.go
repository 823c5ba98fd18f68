package core

// FreeSlots is the number of slots that no request, tomb or launch uses.
func (s *Scheduler) FreeSlots() int { return len(s.free) }

// HeldByPeers is the largest number of requests announced to a node that it has not freed.
func (s *Scheduler) HeldByPeers() int {
	held := 0
	for _, p := range s.peers {
		held = max(held, p.held)
	}
	return held
}

// Promised is the number of pages promised at model m.
func (s *Scheduler) Promised(m int) int { return s.models[m].reserved }
