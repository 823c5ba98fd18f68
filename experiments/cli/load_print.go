package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"tokenrouter/core/meter/quantile"
	"tokenrouter/experiments/load"
	"tokenrouter/experiments/result"
)

// loadJSON is what load --json prints.
type loadJSON struct {
	URL         string `json:"url"`
	Model       string `json:"model"`
	Endpoint    string `json:"endpoint"`
	Stream      bool   `json:"stream"`
	Loop        string `json:"loop"` // closed or open
	Concurrency int    `json:"concurrency"`
	// RatePerS is of planned arrivals; null in a closed loop.
	RatePerS       *float64 `json:"rate_per_s"`
	WarmupRequests int      `json:"warmup_requests"`
	Steady         bool     `json:"steady"`
	Seed           uint64   `json:"seed"`
	RequestsSent   int      `json:"requests_sent"`
	Cut            bool     `json:"cut"`
	Percentiles    string   `json:"percentiles"` // their rule
	// Values are by name; null: there was nothing to measure.
	Values   map[string]*float64 `json:"values"`
	Failed   []load.Failures     `json:"failed"`
	Warnings []string            `json:"warnings"`
	Metrics  []result.Metric     `json:"metrics"`
}

func loadDocument(l *load.Config, f *loadFlags, got *load.Result) *loadJSON {
	d := &loadJSON{
		URL: l.URL, Model: l.Model, Endpoint: endpointOf(l), Stream: l.Stream, Loop: "closed",
		Concurrency: l.InFlight, WarmupRequests: l.WarmupRequests, Steady: l.Steady, Seed: l.Seed,
		RequestsSent: got.Sent, Cut: got.Cut, Percentiles: quantile.RuleName, Values: map[string]*float64{},
		Failed: got.Failed, Warnings: append([]string{}, got.Warnings...), Metrics: load.Metrics(got.Models),
	}
	if l.Open {
		d.Loop, d.RatePerS = "open", &f.rate.of
	}
	for _, m := range d.Metrics {
		d.Values[m.Name] = nil
		if v, ok := got.Values[m.Name]; ok {
			d.Values[m.Name] = &v
		}
	}
	return d
}

func endpointOf(l *load.Config) string {
	if l.Chat {
		return "chat"
	}
	return "completions"
}

// printLoad writes what was measured for people.
func printLoad(stdout, stderr io.Writer, l *load.Config, f *loadFlags, got *load.Result) error {
	d := loadDocument(l, f, got)
	value := func(name string) float64 { return *d.Values[name] }
	loop := fmt.Sprintf("closed loop, %d in flight", l.InFlight)
	if l.Open {
		loop = fmt.Sprintf("open loop, %s arrivals a second, at most %d in flight", f.rate.text, l.InFlight)
	}
	manner := "streamed"
	if !l.Stream {
		manner = "whole answers"
	}
	cut := ""
	if got.Cut {
		cut = " (cut: the run was interrupted)"
	}
	fmt.Fprintf(stdout, "%s, model %s, %s, %s\n%s: %s sent%s\n\n", l.URL, l.Model, d.Endpoint, manner, loop,
		count(got.Sent, "request"), cut)
	fmt.Fprintf(stdout, "window    %.3f s, opened after %d had left; %.0f left out as warm-up\n",
		value("window_s"), l.WarmupRequests, value("requests_warmup"))
	fmt.Fprintf(stdout, "requests  %.0f finished, %.0f failed, %.0f refused, %.0f open, %.0f never sent\n",
		value("requests_finished"), value("requests_failed"), value("requests_rejected"), value("requests_open"),
		value("requests_unsent"))
	fmt.Fprintf(stdout, "tokens    %s tok/s, good %s, a user %s; %.0f in the window, prompts %.0f\n",
		scaled(d.Values["throughput_tok_s"], 1, 2), scaled(d.Values["goodput_tok_s"], 1, 2),
		scaled(d.Values["user_speed_tok_s"], 1, 2), value("tokens"), value("prompt_tokens"))
	for i, name := range got.Models {
		word := "made by   "
		if i > 0 {
			word = "          "
		}
		fmt.Fprintf(stdout, "%s%s %s %%\n", word, name, scaled(d.Values[result.Slug(name)+"_share"], 100, 1))
	}
	if d.Values["drafts_dropped"] != nil {
		fmt.Fprintf(stdout, "dropped   %.0f drafts\n", value("drafts_dropped"))
	}
	fmt.Fprintln(stdout)
	if err := timesTable(d).write(stdout); err != nil {
		return err
	}
	for i, failed := range got.Failed {
		if i == 0 {
			fmt.Fprintln(stdout)
		}
		fmt.Fprintf(stdout, "%d x %s: %s\n", failed.Count, failed.Kind, failed.Example)
	}
	for _, w := range got.Warnings {
		fmt.Fprintln(stderr, "warning:", w)
	}
	return nil
}

// timesTable has a row for each distribution of times.
func timesTable(d *loadJSON) *table {
	t := &table{}
	t.titles("ms", "mean", "p50", "p90", "p95", "p99", "n")
	for _, row := range [][2]string{{"TTFT", "ttft"}, {"latency", "latency"}, {"time per token", "tpot"},
		{"between chunks", "chunk_gap"}, {"wait to be sent", "send_wait"}} {
		cells := []string{row[0]}
		for _, of := range []string{"mean", "p50", "p90", "p95", "p99"} {
			cells = append(cells, scaled(d.Values[row[1]+"_"+of+"_ms"], 1, 2))
		}
		t.row(append(cells, scaled(d.Values[row[1]+"_n"], 1, 0))...)
	}
	return t
}

// keptRequest is a line of load --out. Times are from the beginning of the run.
type keptRequest struct {
	ID        string         `json:"id,omitempty"`
	PlannedMs *float64       `json:"planned_ms,omitempty"` // in an open loop
	SentMs    float64        `json:"sent_ms"`
	ChunksMs  []float64      `json:"chunks_ms"`
	EndMs     float64        `json:"end_ms"`
	Error     string         `json:"error,omitempty"` // its kind; none: finished
	Message   string         `json:"message,omitempty"`
	Finish    string         `json:"finish_reason,omitempty"`
	Prompt    int            `json:"prompt_tokens"`
	Tokens    int            `json:"completion_tokens"`
	Origin    []int          `json:"origin,omitempty"`
	ByModel   map[string]int `json:"tokens_by_model,omitempty"`
	Dropped   int            `json:"dropped_drafts,omitempty"`
	Text      string         `json:"text"`
}

// keptRequests writes requests as they end.
type keptRequests struct {
	file  *os.File
	out   *bufio.Writer
	lines *json.Encoder
	err   error // the first
}

func newKeptRequests(file *os.File) *keptRequests {
	k := &keptRequests{file: file, out: bufio.NewWriter(file)}
	k.lines = json.NewEncoder(k.out)
	k.lines.SetEscapeHTML(false)
	return k
}

func (k *keptRequests) add(e *load.Ended) {
	const microsecond = 1e3
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / microsecond }
	line := keptRequest{
		ID: e.ID, SentMs: ms(e.Sent), ChunksMs: []float64{}, EndMs: ms(e.End), Finish: e.Finish,
		Prompt: e.PromptTokens, Tokens: e.Tokens, Origin: e.Origin, ByModel: e.ByModel, Dropped: e.Dropped,
		Text: e.Text,
	}
	if e.Planned >= 0 {
		planned := ms(e.Planned)
		line.PlannedMs = &planned
	}
	if e.Err != nil {
		line.Error, line.Message = e.Err.Kind, e.Err.Message
	}
	for _, c := range e.Chunks {
		line.ChunksMs = append(line.ChunksMs, ms(c.At))
	}
	if k.err == nil {
		k.err = k.lines.Encode(&line)
	}
}

func (k *keptRequests) close() error { return errors.Join(k.err, k.out.Flush(), k.file.Close()) }
