package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"tokenrouter/exec/cpu"
)

// conditions are what the results hold under.
func (r *report) conditions() []string {
	kernels := ""
	if devices, err := cpu.Backend().Devices(); err == nil && len(devices) > 0 {
		kernels = devices[0].Name + ", kernels " + devices[0].Kernels
	}
	lines := []string{
		fmt.Sprintf("%s, %d processors: %s.", time.Now().Format("2 January 2006"), runtime.NumCPU(), kernels),
		fmt.Sprintf("Models: %s (%.1f million parameters) and %s (%.1f million), bf16, greedy; none ends early.",
			r.e.Small.name(), float64(r.models.configs[0].Parameters())/1e6, r.e.Large.name(),
			float64(r.models.configs[1].Parameters())/1e6),
		fmt.Sprintf("Prompts of %v tokens, all requests at the same time; %d rounds, systems in turn: the"+
			" median by throughput, and its range.", r.promptTokens, r.e.Rounds),
		fmt.Sprintf("Ours: in this process, a processor a model (threads %d), thresholds planned while it runs.",
			r.e.Threads),
		"Standard serving: a dispatcher of this process, one token a call, kept connections, whole token ids; the" +
			" same rule and draws.",
	}
	for _, about := range r.engines {
		lines = append(lines, about+".")
	}
	return append(lines,
		"Small step: from when a request is ready for the small model to when its result is there; model: the"+
			" part of it that computing takes, as the device or the engine says (vLLM: from scheduling to the first"+
			" token).",
		"The same: tokens as ours up to the first that differs; in brackets, answers with any that differs.")
}

func (m *modelKeys) name() string {
	if m.Dir != "" {
		return m.Dir[strings.LastIndex(m.Dir, "/")+1:]
	}
	return "random weights of " + m.Shape
}

// write writes the table.
func (r *report) write(w io.Writer) {
	for _, line := range r.conditions() {
		fmt.Fprintln(w, "- "+line)
	}
	rule := "-"
	var ours *measurement
	for _, m := range r.results {
		if m.Rule != rule {
			rule = m.Rule
			title := rule
			if title == "" {
				title = "The large model alone, each engine making whole answers"
			}
			fmt.Fprintf(w, "\n%s\n\n| requests | tokens | system | tok/s | range | ours faster by | first token, ms |"+
				" latency, ms | large share | small step, ms | model | the same |\n|%s\n", title,
				strings.Repeat("---|", columns))
		}
		faster := ""
		if strings.HasSuffix(m.System, "ours") {
			ours = m
		} else {
			faster = fmt.Sprintf("%.2f", ours.ThroughputTok/m.ThroughputTok)
		}
		fmt.Fprintf(w, "| %d | %d | %s | %.1f | %.0f to %.0f | %s | %.1f | %.0f | %.2f | %s | %s | %.3f (%d) |\n",
			m.Requests, m.Tokens, m.System, m.ThroughputTok, m.RoundsTok[0], m.RoundsTok[len(m.RoundsTok)-1],
			faster, m.TTFTMs, m.LatencyMs, m.LargeShare, known("%.2f", m.SmallStepMs),
			known("%.2f", m.ModelShare), m.Equal, m.Different)
	}
}

const columns = 12

// known formats a number that is not 0, which stands for none.
func known(format string, x float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf(format, x)
}

// save writes the table to NAME.md, in place of what follows the line that begins the results, and the raw
// results to NAME.json.
func (r *report) save(name string) error {
	const begin = "<!-- results -->\n"
	page, err := os.ReadFile(name + ".md")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	head, _, found := strings.Cut(string(page), begin)
	if !found {
		head = "# Standard serving\n\n"
	}
	b := bytes.NewBufferString(head + begin + "\n")
	r.write(b)
	raw, err := json.MarshalIndent(map[string]any{"conditions": r.conditions(), "results": r.results}, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(name+".md", b.Bytes(), 0o644),
		os.WriteFile(name+".json", append(raw, '\n'), 0o644))
}
