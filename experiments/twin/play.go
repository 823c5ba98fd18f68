package twin

import (
	"context"
	"errors"

	"tokenrouter/core/route"
	"tokenrouter/sim"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/outcome/trace"
)

// Play runs the recorded requests of a trace along their paths in the world of c, whose Algorithm, Outcome
// and Workload it sets; the rest is to be as it was in the recorded run. It refuses a trace of other models
// than those of want; nil takes any.
func Play(ctx context.Context, path string, want *trace.Header, c sim.Config) (r sim.Result, err error) {
	reader, err := trace.Open(path)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	if want != nil {
		if err := reader.CheckPair(want); err != nil {
			return r, err
		}
	}
	played, err := outcome.NewRecorded(reader, outcome.Paths)
	if err != nil {
		return r, err
	}
	c.Core.Algorithm, c.Outcome, c.Workload = route.Recorded{}, played, played
	return sim.Run(ctx, c)
}
