package system

import (
	"fmt"
	"slices"

	"tokenrouter/core"
	"tokenrouter/core/route"
	"tokenrouter/exec/model/router"
	"tokenrouter/experiments/spec"
)

// openRouter reads the router folder, if there is one, and completes r with what it says: the algorithm and
// the threshold. It returns nil where the algorithm has no network.
func openRouter(r *spec.Router) (*router.Router, error) {
	if r.Dir == "" {
		return nil, nil
	}
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

// routing makes the routing rule of a completed r; nil for one model alone.
func routing(r *spec.Router, models int) (core.Algorithm, error) {
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
			weights = slices.Repeat([]float64{1}, models)
		}
		return route.NewME(weights)
	case "small", "large":
		return nil, nil
	default:
		panic("system: algorithm " + r.Algorithm)
	}
}
