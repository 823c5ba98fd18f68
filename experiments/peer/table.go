package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"tokenrouter/exec/native"
)

// The project's targets.
const (
	streamMax = 1.25 // decode step over the read of the weights, batch 1 and 8
	batchMax  = 1.4  // decode step of the largest batch over that of one request
)

// speedupMin is by how much a work must be faster than llama.cpp.
func speedupMin(w work) float64 {
	switch {
	case w.Start == 0:
		return 1
	case w.Requests == 1:
		return 1.2
	}
	return 2
}

// printHead says what is compared.
func printHead(w io.Writer, shape string, device native.Info, peer answer) {
	fmt.Fprintf(w, "%s with random weights, %d threads, context of %d tokens.\n\n", shape, threads,
		contextTokens)
	fmt.Fprintf(w, "- Processor: %s, kernels %s\n", device.Name, device.Kernels)
	fmt.Fprintf(w, "- llama.cpp: llama-cpp-python %s, %s\n", peer.Version, peer.System)
	fmt.Fprint(w, "- Ours includes greedy sampling, log-probability, entropy and margin of every row;",
		" llama.cpp's ends with the logits.\n",
		"- Times are the best, in brackets medians, and so are ratios; targets are for the best.\n",
		"- Reads and our decode steps went in turn, one by one: brackets have the median of ratios there.\n",
		"- Logits apart: root mean square of the difference over the standard deviation of a row.\n")
}

// printResults prints the tables of one format.
func printResults(w io.Writer, f format, m *measured) {
	fmt.Fprintf(w, "\n%s against llama.cpp's %s\n\n", f.ours, f.theirs)
	fmt.Fprint(w, "| step | ours, ms | llama.cpp, ms | faster by | target | reached | logits apart",
		" | llama.cpp with |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range m.results {
		best, target := ratio(r.theirs.best(), r.ours.best()), speedupMin(r.work)
		fmt.Fprintf(w, "| %v | %s | %s | %.2f (%.2f) | at least %.1f | %s | %.3f | %v |\n",
			r.work, r.ours, r.theirs, best, ratio(r.theirs.median(), r.ours.median()), target,
			yes(best >= target), r.spreads, r.variant)
	}
	fmt.Fprint(w, "\n| of ours | ratio | target | reached |\n|---|---|---|---|\n")
	own := func(over string, a, b times, target float64) {
		best := ratio(a.best(), b.best())
		fmt.Fprintf(w, "| %s | %.2f (%.2f) | at most %.2f | %s |\n", over, best, pairedRatio(a, b), target,
			yes(best <= target))
	}
	one, several, most := m.results[0], m.results[1], m.results[2]
	for _, r := range []*result{one, several} {
		own(fmt.Sprintf("%v, over a read of %.0f MB at %.1f GB/s", r.work, float64(m.weightBytes)/1e6,
			float64(m.weightBytes)/float64(m.read.best())), r.ours, m.read, streamMax)
	}
	own(fmt.Sprintf("%v, over %v", most.work, one.work), most.ours, one.ours, batchMax)
}

// String is the best time and the median in brackets.
func (t times) String() string {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return fmt.Sprintf("%.1f (%.1f)", ms(t.best()), ms(t.median()))
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

// pairedRatio is the median of the ratios of equal places.
func pairedRatio(a, b times) float64 {
	var all []float64
	for i := range a {
		all = append(all, ratio(a[i], b[i]))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func yes(reached bool) string {
	if reached {
		return "yes"
	}
	return "no"
}
