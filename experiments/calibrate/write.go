package calibrate

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tokenrouter/experiments/result"
	"tokenrouter/sim/latency"
)

// SamplesPath is where the samples of a calibration lie: beside its file.
func SamplesPath(path string) string {
	return strings.TrimSuffix(path, filepath.Ext(path)) + ".csv"
}

// Write writes the fits to path, as TOML that a spec can extend, and every sample to SamplesPath.
func Write(path, heading string, fits []ModelFit, samples []Sample) error {
	if err := result.WriteFile(SamplesPath(path), CSV(samples)); err != nil {
		return err
	}
	return result.WriteFile(path, TOML(heading, filepath.Base(SamplesPath(path)), fits))
}

// Heading says what a calibration is of: the system's file, this machine, the date and the commit.
func Heading(file string) string {
	e := result.ThisEnvironment()
	return fmt.Sprintf("Step times of the models of %s,\nmeasured on %s, %d cores, %s, at commit %s.\n", file,
		e.Processor, e.Cores, time.Now().UTC().Format(time.DateOnly), e.Commit)
}

// CSV lists samples in the order in which they were measured. Tokens are sums over the rows of a step.
func CSV(samples []Sample) []byte {
	var b bytes.Buffer
	b.WriteString("model,beside,rows,fresh_tokens,context_tokens,step_ms\n")
	for _, s := range samples {
		total := s.Shape.Total()
		fmt.Fprintf(&b, "%s,%t,%d,%d,%d,%s\n", s.Model, s.Beside, total.Rows, total.FreshTokens,
			total.ContextTokens, strconv.FormatFloat(float64(s.StepNs)/1e6, 'f', 6, 64))
	}
	return b.Bytes()
}

// TOML writes the models and their latencies, with the errors of the fits as comments. Each line of heading
// becomes a comment at the top.
func TOML(heading, samplesFile string, fits []ModelFit) []byte {
	var b bytes.Buffer
	for line := range strings.Lines(heading) {
		fmt.Fprintf(&b, "# %s\n", strings.TrimSpace(line))
	}
	fmt.Fprintf(&b, "# Every step that was measured is in %s. A spec takes this in with extends.\n", samplesFile)
	for _, f := range fits {
		a := f.Alone
		fmt.Fprintf(&b, "\n[[models]]\nname = %q\n\n", f.Model)
		fmt.Fprintf(&b, "# Fitted to the means of %d shapes: off by %.1f %% in the mean, at most %.1f %% (%s).\n",
			a.Count, 100*a.MeanRelative, 100*a.MaxRelative, shapeText(a.Worst.Shape))
		fmt.Fprintf(&b, "# Beside the other models steps take %.3f times as long (%.3f to %.3f over shapes).\n",
			f.Beside, f.BesideMin, f.BesideMax)
		b.WriteString("[models.latency]\nkind = \"affine\"\n")
		fmt.Fprintf(&b, "base = %q\nper_row = %q\n", duration(a.BaseNs), duration(a.PerRowNs))
		fmt.Fprintf(&b, "per_fresh_ns = %s\n", number(a.PerFreshNs))
		fmt.Fprintf(&b, "per_block = %q\n", duration(a.PerBlockNs))
		if a.BlockTokens > 0 {
			fmt.Fprintf(&b, "block_tokens = %d\n", a.BlockTokens)
		}
		fmt.Fprintf(&b, "per_context_ns = %s\n", number(a.PerContextNs))
		fmt.Fprintf(&b, "rows = %s\nfresh_tokens = %s\ncontext_tokens = %s\n",
			span(a.Valid.Rows), span(a.Valid.Fresh), span(a.Valid.Context))
		fmt.Fprintf(&b, "outside = \"clamp\"\nbeside = %s\n", number(f.Beside))
	}
	return b.Bytes()
}

func shapeText(s latency.Shape) string {
	return fmt.Sprintf("%d rows, %d fresh tokens, %d in KV", s.Rows, s.FreshTokens, s.ContextTokens)
}

func duration(ns float64) string { return time.Duration(ns + 0.5).String() }

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func span(s latency.Span) string { return fmt.Sprintf("[%d, %d]", s.Min, s.Max) }
