package turnlog

import (
	"fmt"
	"strings"

	"tokenrouter/core"
	"tokenrouter/core/route"
	"tokenrouter/core/turnlog/jsonline"
)

const (
	policyNames    = "step-sync, model-sync, eager, delayed"
	algorithmNames = "r2r, citer, co-llm, r-stitch, me, matrix, recorded, stay, born"
)

func describePolicy(p core.Policy) parameters {
	switch p := p.(type) {
	case core.StepSync:
		return parameters{Name: "step-sync"}
	case core.ModelSync:
		return parameters{Name: "model-sync"}
	case core.Eager:
		return parameters{Name: "eager"}
	case core.Delayed:
		return parameters{Name: "delayed", Thresholds: p.Thresholds.Rows(), MaxWaitNs: p.MaxWait}
	case Custom:
		return parameters{Type: p.Type}
	default:
		return parameters{Type: fmt.Sprintf("%T", p)}
	}
}

func makePolicy(p *parameters) (core.Policy, error) {
	switch p.Name {
	case "":
		return Custom{p.Type}, nil
	case "step-sync":
		return core.StepSync{}, nil
	case "model-sync":
		return core.ModelSync{}, nil
	case "eager":
		return core.Eager{}, nil
	case "delayed":
		if p.MaxWaitNs < 0 {
			return nil, jsonline.Wrong("max_wait_ns", p.MaxWaitNs, "at least 0")
		}
		thresholds, err := core.TableThresholds(p.Thresholds)
		if err != nil {
			return nil, fmt.Errorf("policy.thresholds: %w", err)
		}
		return core.Delayed{Thresholds: thresholds, MaxWait: p.MaxWaitNs}, nil
	}
	return nil, jsonline.Wrong("name", fmt.Sprintf("%q", p.Name), "one of "+policyNames)
}

func describeAlgorithm(a core.Algorithm) parameters {
	switch a := a.(type) {
	case route.R2R:
		return parameters{Name: "r2r", Threshold: a.Threshold}
	case route.CITER:
		return parameters{Name: "citer", Threshold: a.Threshold}
	case route.CoLLM:
		return parameters{Name: "co-llm", Threshold: a.Threshold}
	case route.RStitch:
		return parameters{Name: "r-stitch", Threshold: a.Threshold}
	case route.ME:
		return parameters{Name: "me", Weights: a.Weights()}
	case route.Matrix:
		p, c := a.Matrices()
		return parameters{Name: "matrix", Routing: p, Commit: c}
	case route.Recorded:
		return parameters{Name: "recorded"}
	case route.Stay:
		return parameters{Name: "stay"}
	case route.Born:
		return parameters{Name: "born", Weights: a.Weights()}
	case Custom:
		return parameters{Type: a.Type}
	default:
		return parameters{Type: fmt.Sprintf("%T", a)}
	}
}

func makeAlgorithm(p *parameters) (core.Algorithm, error) {
	switch p.Name {
	case "":
		return Custom{p.Type}, nil
	case "r2r":
		return route.R2R{Threshold: p.Threshold}, nil
	case "citer":
		return route.CITER{Threshold: p.Threshold}, nil
	case "co-llm":
		return route.CoLLM{Threshold: p.Threshold}, nil
	case "r-stitch":
		return route.RStitch{Threshold: p.Threshold}, nil
	case "me":
		return checked(route.NewME(p.Weights))
	case "matrix":
		return checked(route.NewMatrix(p.Routing, p.Commit))
	case "recorded":
		return route.Recorded{}, nil
	case "stay":
		return route.Stay{}, nil
	case "born":
		return checked(route.NewBorn(p.Weights))
	}
	return nil, jsonline.Wrong("name", fmt.Sprintf("%q", p.Name), "one of "+algorithmNames)
}

func checked[T core.Algorithm](a T, err error) (core.Algorithm, error) {
	if err != nil {
		return nil, fmt.Errorf("algorithm: %w", err)
	}
	return a, nil
}

// customs names what c has that a log cannot rebuild.
func customs(c *core.Config) error {
	var types []string
	if custom, ok := c.Policy.(Custom); ok {
		types = append(types, "policy "+custom.Type)
	}
	if custom, ok := c.Algorithm.(Custom); ok {
		types = append(types, "algorithm "+custom.Type)
	}
	if len(types) == 0 {
		return nil
	}
	return fmt.Errorf("node %d has %s, which a log cannot rebuild (it knows policies %s and algorithms %s):"+
		" replay with configurations of your own", c.Node, strings.Join(types, " and "), policyNames,
		algorithmNames)
}
