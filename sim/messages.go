package sim

import (
	"container/heap"

	"tokenrouter/core"
)

// message is a hand-off or a control message on its way to a node.
type message struct {
	at      core.Time
	seq     uint64
	to      int
	handoff *core.Handoff
	news    core.News
}

// messages are all that is on its way, earliest first; of equal times, first sent first.
type messages struct {
	heap messageHeap
	seq  uint64
	last [][]core.Time // [from][to]: arrival of the latest message: links keep order
}

func newMessages(nodes int) messages {
	m := messages{last: make([][]core.Time, nodes)}
	for i := range m.last {
		m.last[i] = make([]core.Time, nodes)
	}
	return m
}

func (m *messages) earliest() core.Time {
	if len(m.heap) == 0 {
		return never
	}
	return m.heap[0].at
}

func (m *messages) send(from int, msg message) {
	m.seq++
	msg.seq = m.seq
	msg.at = max(msg.at, m.last[from][msg.to])
	m.last[from][msg.to] = msg.at
	heap.Push(&m.heap, msg)
}

// take appends the events of node to at instant t. Messages of one instant for other nodes
// stay.
func (m *messages) take(in []core.Event, to int, t core.Time) []core.Event {
	var others []message
	for len(m.heap) > 0 && m.heap[0].at == t {
		msg := heap.Pop(&m.heap).(message)
		switch {
		case msg.to != to:
			others = append(others, msg)
		case msg.handoff != nil:
			in = append(in, core.Event{Kind: core.Arrived, Handoff: msg.handoff})
		default:
			in = append(in, core.Event{Kind: core.NewsCame, News: msg.news})
		}
	}
	for _, msg := range others {
		heap.Push(&m.heap, msg)
	}
	return in
}

// send puts a turn's hand-offs and news on the links: news first, as the piggy-back of what
// follows.
func (w *world) send(from int, n *node, t core.Time) {
	for _, news := range n.out.News {
		for to := range w.nodes {
			if to != from {
				ns := w.c.Link(from, to).TransferNs(w.newsBytes(news, to))
				w.links.send(from, message{at: t + ns, to: to, news: news})
			}
		}
	}
	for k := range n.out.Sends {
		h := n.out.Sends[k]
		to := w.c.Core.Models[h.To].Node
		bytes := headerBytes + tokenBytes*int64(h.Tokens)
		w.links.send(from, message{at: t + w.c.Link(from, to).TransferNs(bytes), to: to, handoff: &h})
	}
}

// newsBytes is the size of a control message. The end of a request takes to the front the
// tokens that the front may not have.
func (w *world) newsBytes(news core.News, to int) int64 {
	if news.Kind != core.NewsEnded || to != 0 {
		return headerBytes
	}
	known := w.coming[news.ID].PromptTokens + news.Tokens
	return headerBytes + tokenBytes*int64(known-news.Anchor)
}

type messageHeap []message

func (h messageHeap) Len() int { return len(h) }
func (h messageHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h messageHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *messageHeap) Push(x any)   { *h = append(*h, x.(message)) }
func (h *messageHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
