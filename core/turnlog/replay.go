package turnlog

import (
	"fmt"
	"io"
	"reflect"

	"tokenrouter/core"
)

// Difference is the first place where two runs part.
type Difference struct {
	File  string
	Line  int
	Turn  uint64
	Node  int
	Now   core.Time
	Field string // such as launches[0].rows[2].fresh, of core.Actions
	Got   string // from the replay
	Want  string // in the log
}

// Error says where, and what was there.
func (d *Difference) Error() string {
	return fmt.Sprintf("turn log %s:%d: turn %d of node %d at %d ns: %s: replayed %s, logged %s",
		d.File, d.Line, d.Turn, d.Node, d.Now, d.Field, d.Got, d.Want)
}

// Replay builds the Schedulers that the log's header describes, hands the logged events to
// them and compares every action. It returns how many turns were equal, and nil, or a
// *Difference, or what is wrong with the log. A policy or algorithm that a log cannot name is
// refused.
func Replay(r *Reader) (turns uint64, err error) {
	for i := range r.configs {
		if err := customs(&r.configs[i]); err != nil {
			return 0, fmt.Errorf("turn log %s: %w", r.Name(), err)
		}
	}
	return ReplayWith(r, r.configs)
}

// ReplayWith is Replay with other configurations, in order of nodes: those of Reader.Configs
// with policies and algorithms of one's own put in, or of a run that is thought to be equal.
func ReplayWith(r *Reader, configs []core.Config) (turns uint64, err error) {
	schedulers := make([]*core.Scheduler, len(configs))
	for i := range configs {
		if configs[i].Node != r.configs[min(i, len(r.configs)-1)].Node || len(configs) != len(r.configs) {
			return 0, fmt.Errorf("turn log %s: configurations of other nodes than the log's", r.Name())
		}
		if schedulers[i], err = core.New(configs[i]); err != nil {
			return 0, fmt.Errorf("turn log %s: node %d: %w", r.Name(), configs[i].Node, err)
		}
	}
	p := replayer{r: r, schedulers: schedulers}
	for {
		turn, err := r.Next()
		if err == io.EOF {
			return turns, nil
		}
		if err != nil {
			return turns, err
		}
		if err := p.turn(turn); err != nil {
			return turns, err
		}
		turns++
	}
}

type replayer struct {
	r          *Reader
	schedulers []*core.Scheduler
	out        core.Actions
}

// turn replays one turn. The scheduler panics on what no driver may hand in; of a log that is
// a fault of the log.
func (p *replayer) turn(turn *Turn) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("turn log %s:%d: turn %d of node %d: the events can not have happened: %v",
				p.r.Name(), turn.Line, turn.Number, turn.Node, cause)
		}
	}()
	p.schedulers[p.r.nodeIndex(turn.Node)].Turn(turn.Now, turn.In, &p.out)
	field, got, want := firstDifference(reflect.ValueOf(&p.out), reflect.ValueOf(&turn.Out))
	if field == "" {
		return nil
	}
	return &Difference{
		File: p.r.Name(), Line: turn.Line, Turn: turn.Number, Node: turn.Node, Now: turn.Now,
		Field: field, Got: got, Want: want,
	}
}
