package system

import (
	"fmt"
	"strings"
	"time"
)

// Device is a line about what the models run on and what they have of it.
func (p *Plan) Device() string {
	text := fmt.Sprintf("%s: %s, %s; %d tokens of KV a model", p.backend.Kind(), p.info.Name, p.info.Kernels,
		p.Core.Models[0].Pages*p.Core.PageTokens)
	for i, m := range p.models {
		if m.spec.Server != nil {
			text += fmt.Sprintf(", %s on %s at %s", p.Core.Models[i].Name, m.spec.Server.Engine, m.spec.Server.URL)
			continue
		}
		text += fmt.Sprintf(", %s %.3g GB", p.Core.Models[i].Name, float64(m.needs.Total())/1e9)
	}
	return text
}

// Card is the name of the card that the models run on and what drives it, empty for processors.
func (p *Plan) Card() string {
	if !p.onCard() {
		return ""
	}
	return p.info.Name + ", " + p.info.Kernels
}

// Graphs is a line about what the models have captured; empty where the device has no graphs.
func (s *System) Graphs() string {
	var parts []string
	for _, m := range s.Models {
		if m == nil {
			continue
		}
		if g := m.Graphs(); g.Count > 0 {
			parts = append(parts, fmt.Sprintf("%s %d in %v, %.3g MB", m.Name(), g.Count,
				time.Duration(g.CaptureNs).Round(time.Millisecond), float64(g.Bytes)/1e6))
		}
	}
	if parts == nil {
		return ""
	}
	return "graphs: " + strings.Join(parts, "; ")
}
