package system

import (
	"fmt"
	"slices"

	"tokenrouter/core"
	"tokenrouter/core/route"
	"tokenrouter/exec/model/router"
	"tokenrouter/experiments/spec"
)

// openRouter reads the router folder, if there is one, and completes the description with what it says: the
// algorithm and the threshold. scorer, if not nil, stands for the folder of the algorithm query.
func (p *Plan) openRouter(scorer Scorer) (err error) {
	r := &p.Spec.Router
	switch {
	case r.Algorithm == "query":
		return p.openQuery(r, scorer)
	case r.Dir == "":
		return nil
	}
	p.network, err = openNetwork(r)
	return err
}

// openNetwork reads the folder of a router network.
func openNetwork(r *spec.Router) (*router.Router, error) {
	network, err := router.Open(r.Dir)
	if err != nil {
		return nil, err
	}
	name := network.Shape.Algorithm.String()
	if r.Algorithm == "" {
		r.Algorithm = name
	}
	if r.Algorithm != name {
		return nil, fmt.Errorf("router %s is for the algorithm %s, want one for %s", r.Dir, name, r.Algorithm)
	}
	if !r.HasThreshold {
		if r.Threshold, r.HasThreshold = network.Threshold, network.HasThreshold; !r.HasThreshold {
			return nil, fmt.Errorf("router %s has no threshold of its own: one must be given", r.Dir)
		}
	}
	return network, nil
}

// Rule is the routing rule of r, which is complete: an algorithm of the plan's kind, with a threshold or
// weights of its own; nil for one model alone.
func (p *Plan) Rule(r spec.Router) (core.Algorithm, error) {
	switch r.Algorithm {
	case "r2r":
		return route.R2R{Threshold: r.Threshold}, nil
	case "citer":
		return route.CITER{Threshold: r.Threshold}, nil
	case "collm":
		return route.CoLLM{Threshold: r.Threshold}, nil
	case "rstitch":
		return route.RStitch{Threshold: r.Threshold}, nil
	case "me":
		weights := r.Weights
		if weights == nil {
			weights = slices.Repeat([]float64{1}, len(p.models))
		}
		return route.NewME(weights)
	case "query":
		return route.Stay{}, nil
	case "small", "large":
		return nil, nil
	default:
		panic("system: algorithm " + r.Algorithm)
	}
}
