package spec

import (
	"fmt"
	"math"
	"slices"

	"tokenrouter/core"
	"tokenrouter/sim/latency"
)

// models reads the models and the memory that they share.
func (l *loader) models(s *section, p *Point) {
	sections := s.subs("models")
	none := len(sections) == 0 && (!s.has("models") || isEmpty(s.keys["models"]))
	if none && l.spec.Hardware == nil { // what is wrong with the system has been said
		s.missing("models", "want an array of tables, small model first")
	}
	if len(sections) > core.ModelsMax {
		s.wrong("models", "want at most %d models, not %d", core.ModelsMax, len(sections))
	}
	for i, m := range sections {
		model := Model{Name: m.text("name", fmt.Sprintf("model %d", i)), Beside: 1}
		if !m.has("name") {
			m.missing("name", "want a string that is not empty")
		}
		if slices.ContainsFunc(p.Models, func(other Model) bool { return other.Name == model.Name }) {
			m.wrong("name", "want a name that no other model has")
		}
		model.Node = int(m.whole("node", 0, 0, core.ModelsMax-1))
		model.RowsMax = int(m.whole("rows_max", 0, 0, math.MaxInt32))
		if inner := m.sub("latency"); inner == nil && l.toCalibrate() {
			// measured before the first point
		} else if inner == nil {
			m.missing("latency", "want a table with the kind")
		} else {
			model.Beside = inner.number("beside", 1, 1, latency.BesideMax)
			model.Latency = l.latency(inner)
		}
		l.engine(m, &model)
		if c := m.sub("calibrated"); c != nil {
			model.InFlight, model.Context = c.span("in_flight", 1), c.span("context_tokens", 0)
			c.done()
		}
		if kv := m.sub("kv"); kv != nil {
			l.kv(kv, &model)
		}
		m.done()
		p.Models = append(p.Models, model)
	}
}

// kv reads a pool of its own, or what the model needs of a shared memory.
func (l *loader) kv(s *section, model *Model) {
	const pagesMax = 1 << 28
	if !s.has("device") {
		model.Pages = int(s.whole("pages", 0, 1, pagesMax))
		s.done()
		return
	}
	if _, several := s.keys["device"].value.(list); several {
		model.devices = s.texts("device")
		if sorted := slices.Sorted(slices.Values(model.devices)); len(slices.Compact(sorted)) < len(model.devices) {
			s.wrong("device", "want no device twice")
		}
	} else {
		model.devices = []string{s.text("device", "")}
	}
	f := core.Footprint{Name: model.Name}
	if s.has("shape") {
		if d, ok := l.shape(s, "shape"); ok {
			f.WeightBytes, f.KVBytesPerTok = 2*d.Parameters(), d.KVBytesPerToken(2)
		}
	} else {
		for _, key := range []string{"weights", "per_token"} {
			if !s.has(key) {
				s.missing(key, "want shape, or weights and per_token")
			}
		}
		f.WeightBytes, f.KVBytesPerTok = int64(s.bytes("weights")), int64(s.bytes("per_token"))
	}
	model.footprint = f
	s.done()
}

func (l *loader) shape(s *section, key string) (latency.Dimensions, bool) {
	name := s.text(key, "")
	d, err := latency.DimensionsNamed(name)
	if err != nil && name != "" {
		s.wrong(key, "want one of %s", quoteAll(latency.DimensionNames()))
	}
	return d, err == nil
}

// onEach is what a model needs of each of the devices that share it evenly.
func (m *Model) onEach() core.Footprint {
	f, parts := m.footprint, int64(len(m.devices))
	f.WeightBytes = (f.WeightBytes + parts - 1) / parts
	f.KVBytesPerTok = (f.KVBytesPerTok + parts - 1) / parts
	return f
}

// pages shares the memory of each device among its models, and gives the others room for everything. A model
// on several devices has what the fullest of them leaves it.
func (l *loader) pages(s *section, p *Point) {
	pageTokens := max(p.PageTokens, 1)
	planned := make(map[string]int)
	for _, d := range s.subs("devices") {
		name := d.text("name", "")
		if !d.has("name") || !d.has("memory") {
			d.missing("name", "want name and memory")
		}
		budget := d.bytes("memory") * d.number("use", 0.9, aboveZero, 1)
		d.done()
		var models []core.Footprint
		for i := range p.Models {
			if slices.Contains(p.Models[i].devices, name) && name != "" {
				models = append(models, p.Models[i].onEach())
			}
		}
		if len(models) == 0 {
			d.wrong("name", "want a device that some models[].kv.device names")
			continue
		}
		if _, twice := planned[name]; twice {
			d.wrong("name", "want a name that no other device has")
		}
		planned[name] = 0
		if len(l.problems) > 0 {
			continue // sizes may be missing
		}
		count, err := core.PlanPages(int64(budget), models, pageTokens)
		if err != nil {
			d.wrong("memory", "%v", err)
		}
		planned[name] = count
	}
	for i := range p.Models {
		m := &p.Models[i]
		for j, name := range m.devices {
			count, ok := planned[name]
			switch {
			case !ok && name != "":
				s.wrong("models", "want a devices table named %q, as models[%d].kv.device says", name, i)
			case j == 0 || count < m.Pages:
				m.Pages = count
			}
		}
		if need := (p.ContextMax + pageTokens - 1) / pageTokens; m.Pages == 0 {
			m.Pages = max(need*p.Concurrency, 1)
		}
	}
}

// links reads the paths between nodes: one for every pair that has models.
func (l *loader) links(s *section, p *Point) {
	p.Links = make(map[[2]int]latency.Link)
	nodes := 1
	for _, m := range p.Models {
		nodes = max(nodes, m.Node+1)
	}
	for _, link := range s.subs("links") {
		ends := link.wholes("between", 0, core.ModelsMax-1)
		latencyNs := link.duration("latency", 1, 1)
		bandwidth := link.number("bandwidth", math.Inf(1), aboveZero, math.Inf(1))
		if !link.has("latency") {
			link.missing("latency", "want a duration of at least 1ns")
		}
		link.done()
		if len(ends) != 2 || ends[0] == ends[1] {
			link.wrong("between", "want two different nodes")
			continue
		}
		if _, twice := p.Links[[2]int{ends[0], ends[1]}]; twice {
			link.wrong("between", "want one link between two nodes, which works in both directions")
		} else if max(ends[0], ends[1]) >= nodes {
			link.wrong("between", "want nodes of models[].node, which go up to %d", nodes-1)
		}
		made, err := latency.NewLink(latencyNs, bandwidth)
		if err != nil {
			link.wrong("latency", "%v", err)
		}
		p.Links[[2]int{ends[0], ends[1]}], p.Links[[2]int{ends[1], ends[0]}] = made, made
	}
	for a := range nodes {
		for b := range a {
			if _, ok := p.Links[[2]int{a, b}]; !ok {
				s.wrong("links", "want a link between nodes %d and %d", b, a)
			}
		}
	}
}

// rowsOnly reports whether a step time depends on the number of rows alone, and of those that begin a call.
func rowsOnly(m latency.Model) bool {
	if latency.CountsReturnTokens(m) {
		return false
	}
	switch m := m.(type) {
	case latency.Constant:
		return true
	case *latency.Affine:
		c := m.Coefficients()
		valid, bounded := m.ValidRange()
		return c.PerFreshNs == 0 && c.PerBlockNs == 0 && c.PerContextNs == 0 &&
			(!bounded || !valid.Fresh.Bound && !valid.Context.Bound)
	case *latency.Table:
		valid, _ := m.ValidRange()
		return !valid.Fresh.Bound && !valid.Context.Bound
	case *latency.Launched:
		return !m.CountsFresh() && rowsOnly(m.Unwrap())
	case interface{ Unwrap() latency.Model }:
		return rowsOnly(m.Unwrap())
	default:
		return false
	}
}
