package core_test

import (
	"fmt"

	"tokenrouter/core"
	"tokenrouter/core/route"
)

// halfFull is a policy of one's own: the large model waits until half of all live requests
// wait for it, but never longer than patience; every other model starts at once. One method
// is all that a Policy needs. What a started model then takes (all of its queue that pages,
// rows and tokens allow), N, and the promise that nothing stalls are the Scheduler's.
type halfFull struct {
	large    int
	patience core.Time
}

// Start is asked in every turn for every idle model m with a queue.
func (p halfFull) Start(m int, v *core.View) bool {
	if m != p.large || 2*v.Queued(m) >= v.Live() {
		return true
	}
	due := v.OldestSince(m) + p.patience
	if v.Now() >= due {
		return true
	}
	v.WakeBy(due) // or a lone request would wait for the next event
	return false
}

// A researcher's own policy in a few lines: halfFull waits for half of the live requests. Of
// five, three are sent to the large model, one at a time; it starts once three wait.
func ExamplePolicy() {
	s, err := core.New(core.Config{
		Models:    []core.Model{{Name: "small", Pages: 100}, {Name: "large", Pages: 100}},
		Algorithm: route.Recorded{}, Policy: halfFull{large: 1, patience: 100}, Admission: core.Reserve,
		Requests: 5, ContextMax: 64, PageTokens: 16,
	})
	if err != nil {
		panic(err)
	}
	var in []core.Event
	for id := range uint64(5) {
		in = append(in, core.Event{Kind: core.Submitted, Submission: &core.Submission{
			ID: id, PromptTokens: 1, TokensMax: 8,
		}})
	}
	var out core.Actions
	for now := core.Time(0); now < 40; now += 10 {
		s.Turn(now, in, &out)
		in = in[:0]
		for _, launch := range out.Launches {
			fmt.Printf("t=%d %d rows start at model %d\n", now, len(launch.Rows), launch.Model)
			results := make([]core.Result, len(launch.Rows))
			for i, row := range launch.Rows {
				if row.ID == uint64(now/10) {
					results[i].Next = 1 // request 0 after the first step, 1 after the second, ...
				}
			}
			in = append(in, core.Event{Kind: core.BatchDone, Model: launch.Model, Results: results})
		}
	}
	// Output:
	// t=0 5 rows start at model 0
	// t=10 4 rows start at model 0
	// t=20 3 rows start at model 0
	// t=30 2 rows start at model 0
	// t=30 3 rows start at model 1
}
