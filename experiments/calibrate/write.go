package calibrate

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
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

// Write writes the fits to path, as a calibration file for specs, and every sample to SamplesPath.
func Write(path string, of Origin, fits []ModelFit, samples []Sample) error {
	if err := result.WriteFile(SamplesPath(path), CSV(samples)); err != nil {
		return err
	}
	return result.WriteFile(path, TOML(of, filepath.Base(SamplesPath(path)), fits))
}

// Origin says what a calibration is of.
type Origin struct {
	System string // the file of the models
	Device string // the machine
	Date   string // as in 2026-10-02, UTC
	Commit string // of the program
}

// Here is the origin of what is measured on this machine today: on its processors, or on a card if that is
// not empty.
func Here(systemFile, card string) Origin {
	e := result.ThisEnvironment()
	device := card
	if device == "" {
		device = fmt.Sprintf("%s, %d cores", e.Processor, e.Cores)
	}
	return Origin{System: filepath.Base(systemFile), Device: device,
		Date: time.Now().UTC().Format(time.DateOnly), Commit: e.Commit}
}

// samplesHead names the columns of samples. Tokens are sums over the rows of a step.
const samplesHead = "model,beside,rows,fresh_tokens,context_tokens,step_ms,round,at"

// atLayout is a time of a sample, UTC.
const atLayout = "2006-01-02T15:04:05.000Z"

// CSV lists samples in the order in which they were measured.
func CSV(samples []Sample) []byte {
	var b bytes.Buffer
	b.WriteString(samplesHead + "\n")
	for _, s := range samples {
		total := s.Shape.Total()
		fmt.Fprintf(&b, "%s,%t,%d,%d,%d,%s,%d,%s\n", s.Model, s.Beside, total.Rows, total.FreshTokens,
			total.ContextTokens, strconv.FormatFloat(float64(s.StepNs)/1e6, 'f', 6, 64), s.Round,
			s.At.Format(atLayout))
	}
	return b.Bytes()
}

// Samples reads what CSV has written. An error names the line.
func Samples(text []byte) ([]Sample, error) {
	r := csv.NewReader(bytes.NewReader(text))
	lines, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 || strings.Join(lines[0], ",") != samplesHead {
		return nil, fmt.Errorf("line 1: want %s", samplesHead)
	}
	var samples []Sample
	for i, fields := range lines[1:] {
		s, err := sampleOf(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		samples = append(samples, s)
	}
	return samples, nil
}

func sampleOf(fields []string) (Sample, error) {
	numbers := make([]int, 4) // rows, fresh tokens, context tokens, round
	for i, at := range []int{2, 3, 4, 6} {
		var err error
		if numbers[i], err = strconv.Atoi(fields[at]); err != nil {
			return Sample{}, err
		}
	}
	beside, err := strconv.ParseBool(fields[1])
	if err != nil {
		return Sample{}, err
	}
	ms, err := strconv.ParseFloat(fields[5], 64)
	if err != nil {
		return Sample{}, err
	}
	at, err := time.Parse(atLayout, fields[7])
	if err != nil {
		return Sample{}, err
	}
	rows := numbers[0]
	if rows < 1 || !(ms > 0) {
		return Sample{}, fmt.Errorf("%d rows in %g ms, want both above 0", rows, ms)
	}
	return Sample{
		Model: fields[0], Beside: beside, StepNs: int64(math.Round(ms * 1e6)), Round: numbers[3], At: at,
		Shape: Shape{Rows: rows, Fresh: numbers[1] / rows, Context: numbers[2] / rows},
	}, nil
}

// TOML writes where the numbers come from, and the models and their latencies, with the errors of the fits as
// comments.
func TOML(of Origin, samplesFile string, fits []ModelFit) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Step times of the models of %s,\n# measured on %s, %s, at commit %s.\n", of.System,
		of.Device, of.Date, of.Commit)
	fmt.Fprintf(&b, "# Every step that was measured is in %s. A spec takes this in with calibration.\n\n",
		samplesFile)
	fmt.Fprintf(&b, "[calibration]\ndevice = %q\nengine = %q\ndate = %q\nsource = %q\nrange = %q\n", of.Device,
		"tokenrouter, the models of "+of.System, of.Date, "measured at commit "+of.Commit+"; steps in "+samplesFile,
		rangeText(fits))
	b.WriteString("constants = [\n")
	for _, f := range fits {
		for _, key := range f.keys() {
			fmt.Fprintf(&b, "  { key = %q, from = %q },\n", key, fmt.Sprintf("means of %d shapes", f.Alone.Count))
		}
	}
	b.WriteString("]\n")
	for _, f := range fits {
		a := f.Alone
		fmt.Fprintf(&b, "\n[[models]]\nname = %q\n\n", f.Model)
		fmt.Fprintf(&b, "# Fitted to the means of %d shapes: off by %.1f %% in the mean, at most %.1f %% (%s).\n",
			a.Count, 100*a.MeanRelative, 100*a.MaxRelative, shapeText(a.Worst.Shape))
		fmt.Fprintf(&b, "# Beside the other models steps take %.3f times as long (%.3f to %.3f over shapes).\n",
			f.Beside, f.BesideMin, f.BesideMax)
		if f.Both {
			b.WriteString("# That is no longer than in turn with them: the fit is to the mean of both.\n")
		}
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

// keys are those of the terms that the fit has.
func (f ModelFit) keys() []string {
	name := f.Model
	if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		name = strconv.Quote(name)
	}
	var keys []string
	for _, term := range []struct {
		key   string
		value float64
	}{
		{"base", f.Alone.BaseNs}, {"per_row", f.Alone.PerRowNs}, {"per_fresh_ns", f.Alone.PerFreshNs},
		{"per_block", f.Alone.PerBlockNs}, {"per_context_ns", f.Alone.PerContextNs}, {"beside", f.Beside - 1},
	} {
		if term.value != 0 {
			keys = append(keys, "models."+name+".latency."+term.key)
		}
	}
	return keys
}

// rangeText says where the fits hold.
func rangeText(fits []ModelFit) string {
	var parts []string
	for _, f := range fits {
		v := f.Alone.Valid
		parts = append(parts, fmt.Sprintf("%s: %d to %d rows, %d to %d fresh tokens and %d to %d in KV, in all",
			f.Model, v.Rows.Min, v.Rows.Max, v.Fresh.Min, v.Fresh.Max, v.Context.Min, v.Context.Max))
	}
	return strings.Join(parts, "; ")
}

func shapeText(s latency.Shape) string {
	return fmt.Sprintf("%d rows, %d fresh tokens, %d in KV", s.Rows, s.FreshTokens, s.ContextTokens)
}

func duration(ns float64) string { return time.Duration(ns + 0.5).String() }

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func span(s latency.Span) string { return fmt.Sprintf("[%d, %d]", s.Min, s.Max) }
