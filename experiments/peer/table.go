package main

import (
	"fmt"
	"io"
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
		"- Times are the best, in brackets medians; targets are for ratios of the best.\n",
		"- Logits apart: root mean square of the difference over the standard deviation of a row.\n")
}

// printResults prints the tables of one format.
func printResults(w io.Writer, f format, weightBytes int64, results []*result) {
	fmt.Fprintf(w, "\n%s against llama.cpp's %s\n\n", f.ours, f.theirs)
	fmt.Fprint(w, "| step | ours, ms | llama.cpp, ms | faster by | target | reached | logits apart",
		" | llama.cpp with |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		target := speedupMin(r.work)
		fmt.Fprintf(w, "| %v | %s | %s | %s | at least %.1f | %s | %.3f | %v |\n", r.work, r.ours, r.theirs,
			ratioText(r.theirs, r.ours), target, yes(ratio(r.theirs, r.ours) >= target), r.spreads, r.variant)
	}
	fmt.Fprintf(w, "\n| of ours | ratio | target | reached |\n|---|---|---|---|\n")
	one, largest := results[0], results[0]
	for _, r := range results {
		if r.work.Start == 0 {
			continue
		}
		largest = r
		if r.work.Requests > 8 {
			continue
		}
		fmt.Fprintf(w, "| %v, over a read of %.0f MB at %.1f GB/s | %s | at most %.2f | %s |\n", r.work,
			float64(weightBytes)/1e6, float64(weightBytes)/float64(r.read.best()), ratioText(r.ours, r.read),
			streamMax, yes(ratio(r.ours, r.read) <= streamMax))
	}
	fmt.Fprintf(w, "| %v, over %v | %s | at most %.2f | %s |\n", largest.work, one.work,
		ratioText(largest.ours, one.ours), batchMax, yes(ratio(largest.ours, one.ours) <= batchMax))
}

// String is the best time and the median in brackets.
func (t times) String() string {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return fmt.Sprintf("%.1f (%.1f)", ms(t.best()), ms(t.median()))
}

func ratio(a, b times) float64 { return float64(a.best()) / float64(b.best()) }

func ratioText(a, b times) string {
	return fmt.Sprintf("%.2f (%.2f)", ratio(a, b), float64(a.median())/float64(b.median()))
}

func yes(reached bool) string {
	if reached {
		return "yes"
	}
	return "no"
}
