package exec

import "tokenrouter/core"

// Device runs the forward passes of one model. Step is called from one goroutine, one pass at
// a time, never from two threads at once but not always from the same thread.
type Device interface {
	// Step feeds the pass and fills p.Results for the rows with a Head. An error ends all
	// requests of the pass as failed; the device must be able to go on with others. A panic is
	// not caught.
	Step(p *Pass) error
}

// Pass is one forward pass. The device must not keep it, nor change what it may read.
type Pass struct {
	Launch core.Launch
	At     core.Time // of the turn that launched it
	// Tokens[i] are the ids to feed for Launch.Rows[i]: positions Start to Start+Fresh.
	Tokens [][]int32
	// Results[i] is for Launch.Rows[i]. All are zero when Step is called.
	Results []core.Result
	// Freed are slots whose requests have left since the model's last pass. What the device
	// keeps of them is void. Freed comes before Grants: a slot may have been taken again.
	Freed []int32
	// Grants are the KV pages given since the model's last pass, in order. A later grant of a
	// slot and index replaces an earlier one: pages may have been taken away and given anew.
	Grants []core.Grant
}

// runner is a device and its goroutine.
type runner struct {
	device Device
	passes chan *Pass
	pass   Pass // of the launch in flight
	grants []core.Grant
	freed  []int32
	busy   bool
}

// run steps passes until the channel is closed.
func (l *Loop) run(m int) {
	defer l.running.Done()
	for p := range l.runners[m].passes {
		err := l.runners[m].device.Step(p)
		l.inbox.complete(stamped{at: l.Now(), kind: core.BatchDone, model: m, err: err})
	}
}
