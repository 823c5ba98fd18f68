package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tokenrouter/core"
	"tokenrouter/experiments/load"
	"tokenrouter/experiments/task"
	"tokenrouter/sim/workload"
)

// loadFlags are the flags of load as given.
type loadFlags struct {
	model, promptFile, keyFile, out string
	endpoint, task                  value[string]
	fields                          value[map[string]any]
	whole, noUsage, steady, asJSON  bool

	promptTokens, outputTokens, tokenIDs  value[span]
	tokensMax, inFlight, requests, warmup value[int]
	rate                                  value[float64]
	until, timeout, goodTTFT, goodTPOT    value[core.Time]
	seed                                  value[uint64]
}

// span is a whole number, or all from one to another.
type span struct{ least, greatest int32 }

func parseSpan(least int) func(string) (span, error) {
	return func(s string) (span, error) {
		from, to, both := strings.Cut(s, "..")
		if !both {
			to = from
		}
		a, err := strconv.ParseInt(from, 10, 32)
		b, err2 := strconv.ParseInt(to, 10, 32)
		if err != nil || err2 != nil || a < int64(least) || a > b {
			return span{}, fmt.Errorf("want a whole number from %d, or two such as 64..256", least)
		}
		return span{int32(a), int32(b)}, nil
	}
}

// Limits of flags.
const (
	loadInFlightMax = 1 << 14 // connections
	loadRequestsMax = 1 << 24 // all of which are kept
	loadClosed      = 8       // in flight, where nothing is given
	loadOpen        = 1024
	loadRandom      = 100 // requests of random prompts
)

func newLoad() *cobra.Command {
	f := loadFlags{
		endpoint: value[string]{kind: "name", parse: word("chat", "completions")},
		task:     value[string]{kind: "name", parse: word(task.Names()...)},
		fields:   value[map[string]any]{kind: "name=value", parse: templateArguments()},

		promptTokens: value[span]{kind: "tokens", parse: parseSpan(1)},
		outputTokens: value[span]{kind: "tokens", parse: parseSpan(1)},
		tokenIDs:     value[span]{of: span{100, 250}, text: "100..250", kind: "ids", parse: parseSpan(0)},
		tokensMax: value[int]{of: tokensMaxDefault, text: "256", kind: "tokens",
			parse: integer(1, math.MaxInt32)},

		rate:     value[float64]{kind: "number", parse: arrivals},
		inFlight: value[int]{of: loadClosed, kind: "count", parse: integer(1, loadInFlightMax)},
		requests: value[int]{kind: "count", parse: integer(1, loadRequestsMax)},
		warmup:   value[int]{text: "0", kind: "count", parse: integer(0, loadRequestsMax)},
		until:    value[core.Time]{kind: "duration", parse: duration},
		timeout: value[core.Time]{of: int64(10 * time.Minute), text: "10m", kind: "duration",
			parse: duration},
		goodTTFT: value[core.Time]{kind: "duration", parse: duration},
		goodTPOT: value[core.Time]{kind: "duration", parse: duration},
		seed:     value[uint64]{text: "0", kind: "number", parse: seed},
	}
	c := &cobra.Command{
		Use:   "load URL",
		Short: "Put load on a server of OpenAI's API and measure what its clients see",
		Long: `Send requests to any server that speaks OpenAI's API: in a closed loop (-n in flight, the next as one
ends) or an open one (--rate arrivals a second, Poisson), of which all times count from the planned
arrival, whatever keeps a request from being sent. URL is the base URL of a client; without a path, /v1.

Prompts are those of a file (a line each; of .jsonl, objects with prompt or messages), the test problems
of --task, or random ones of --prompt-tokens. The window of measurement opens when --warmup requests
have left, and closes in a closed loop when the last request is sent, in an open one with the last
token; requests sent before it opens are left out. Only whole answers are measured: refusals, errors in a
stream, cut streams and timeouts are counted by kind. After a refusal a place of a closed loop stays
empty for as long as the server asks (Retry-After).

With --json the dictionary of all metrics is in the document. --out keeps each request as a line of JSON
with id and text, which task score reads. An interrupt ends with what was measured so far (exit 1).`,
		Example: `  tokenrouter load http://127.0.0.1:8080 --task arith -n 8 --warmup 8
  tokenrouter load http://127.0.0.1:8080 --prompts questions.jsonl --rate 4 --until 60s --max-tokens 256
  tokenrouter load http://127.0.0.1:8000 --prompt-tokens 64..512 --output-tokens 256 -n 4 --json`,
		Args: exactly(1, "the base URL of a server"),
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c, args[0])
		},
	}
	f.add(c)
	return c
}

func (f *loadFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.model, "model", "", "which to ask for (default: the first that the server lists)")
	flags.Var(&f.endpoint, "endpoint", "chat or completions (default: chat, but completions for random prompts)")
	flags.StringVar(&f.promptFile, "prompts", "", "file of prompts, - for standard input")
	flags.Var(&f.task, "task", strings.Join(task.Names(), " or ")+": the problems that results are given for")
	flags.Var(&f.promptTokens, "prompt-tokens", "random prompts of so many tokens, or 64..256; words in a chat")
	flags.Var(&f.tokenIDs, "token-ids", "of random prompts")
	flags.Var(&f.outputTokens, "output-tokens", "exact length of answers, or 64..256 (ignore_eos)")
	flags.Var(&f.tokensMax, "max-tokens", "most tokens of an answer")
	flags.Var(&f.fields, "field", "more of each request's body, such as temperature=0; may be given again")
	flags.BoolVar(&f.whole, "no-stream", false, "ask for whole answers")
	flags.BoolVar(&f.noUsage, "no-usage", false, "do not ask for counts in streams: for servers that refuse it")
	flags.Var(&f.rate, "rate", "arrivals a second: an open loop")
	flags.VarP(&f.inFlight, "concurrency", "n",
		"requests in flight, in an open loop at most (default: 8, open 1024)")
	flags.Var(&f.requests, "requests",
		"how many (default: each prompt once, 100 random ones, or no end with --until)")
	flags.Var(&f.warmup, "warmup", "requests that must leave before the window opens")
	flags.BoolVar(&f.steady, "steady", true,
		"close the window when the last request is sent (default: in a closed loop)")
	flags.Var(&f.until, "until", "end of the run; requests in flight are left open")
	flags.Var(&f.timeout, "timeout", "longest time of a request")
	flags.Var(&f.goodTTFT, "good-ttft", "longest time to the first token that counts as good")
	flags.Var(&f.goodTPOT, "good-tpot", "longest time per output token that counts as good")
	flags.Var(&f.seed, "seed", "of arrivals, lengths and random prompts")
	flags.StringVar(&f.keyFile, "api-key-file", "", "file with the API key (default: $"+keyVariable+", or none)")
	flags.StringVar(&f.out, "out", "", "file for each request as a line of JSON")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON document")
	completeFlag(c, "endpoint", cobra.FixedCompletions([]string{"chat", "completions"},
		cobra.ShellCompDirectiveNoFileComp))
	completeFlag(c, "task", cobra.FixedCompletions(task.Names(), cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"prompts", "api-key-file", "out"} {
		completeFlag(c, name, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
	}
	completeNumbers(c)
}

// arrivals parses arrivals a second.
func arrivals(s string) (float64, error) {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !(x > 0 && x <= workload.MaxPerSecond) {
		return 0, fmt.Errorf("want a number above 0, at most %.0f", workload.MaxPerSecond)
	}
	return x, nil
}

// config is what is to be done, but for the model.
func (f *loadFlags) config(c *cobra.Command, where string) (l load.Config, total int, err error) {
	given := c.Flags().Changed
	base, err := load.Base(where)
	if err != nil {
		return l, 0, misuse("URL = %w", err)
	}
	random := f.promptTokens.set
	if n := len(trues(f.promptFile != "", f.task.set, random)); n != 1 {
		return l, 0, misuse("--prompts, --task and --prompt-tokens: want one of them")
	}
	switch {
	case f.tokenIDs.set && (!random || f.endpoint.of == "chat"):
		return l, 0, misuse("--token-ids: want it with --prompt-tokens and completions only")
	case f.tokensMax.set && f.outputTokens.set:
		return l, 0, misuse("--max-tokens and --output-tokens: want one of them")
	case f.whole && (f.goodTTFT.set || f.goodTPOT.set || f.noUsage):
		return l, 0, misuse("--no-stream: want none of --good-ttft, --good-tpot and --no-usage with it")
	}
	l = load.Config{
		URL: base, Chat: f.endpoint.of == "chat" || !f.endpoint.set && !random, Stream: !f.whole,
		Usage: !f.noUsage, Fields: f.fields.of, Seed: f.seed.of, Open: f.rate.set, InFlight: f.inFlight.of,
		TokenIDs: [2]int32{f.tokenIDs.of.least, f.tokenIDs.of.greatest}, WarmupRequests: f.warmup.of,
		Until: time.Duration(f.until.of), Timeout: time.Duration(f.timeout.of),
		Steady:   f.steady && (given("steady") || !f.rate.set),
		GoodTTFT: time.Duration(f.goodTTFT.of), GoodTPOT: time.Duration(f.goodTPOT.of),
	}
	if l.Open && !f.inFlight.set {
		l.InFlight = loadOpen
	}
	if l.Key, err = apiKey(f.keyFile); err != nil {
		return l, 0, err
	}
	if l.Prompts, err = f.prompts(c.InOrStdin()); err != nil {
		return l, 0, err
	}
	if !l.Chat {
		for i := range l.Prompts {
			if l.Prompts[i].Messages != nil {
				return l, 0, misuse("--endpoint completions: want prompts, and %s has messages", f.promptFile)
			}
		}
	}
	total, err = f.source(&l)
	return l, total, err
}

// trues are those of some that are true.
func trues(all ...bool) []bool { return slices.DeleteFunc(all, func(b bool) bool { return !b }) }

// prompts are those of a file or task, nil for random ones.
func (f *loadFlags) prompts(stdin io.Reader) ([]load.Prompt, error) {
	var all []load.Prompt
	switch {
	case f.task.set:
		t, err := task.Find(f.task.of)
		if err != nil {
			return nil, err
		}
		for _, p := range t.Fixed() {
			all = append(all, load.Prompt{ID: p.ID, Text: p.Prompt})
		}
	case f.promptFile != "":
		read, err := (&promptFlags{file: f.promptFile}).read(stdin)
		if err != nil {
			return nil, err
		}
		for _, p := range read {
			all = append(all, load.Prompt{ID: p.id, Text: p.text, Messages: p.messages})
		}
	}
	return all, nil
}

// source sets arrivals and lengths, and returns how many requests there will be; 0: until the time is over.
func (f *loadFlags) source(l *load.Config) (total int, err error) {
	lengths := workload.Lengths{MaxTokens: int32(f.tokensMax.of)}
	prompt := span{1, 1} // that of a prompt which is there is its own
	if f.promptTokens.set {
		prompt = f.promptTokens.of
	}
	if lengths.Prompt, err = workload.Uniform(prompt.least, prompt.greatest); err != nil {
		return 0, err
	}
	if f.outputTokens.set {
		lengths.MaxTokens = 0
		lengths.Output, err = workload.Uniform(f.outputTokens.of.least, f.outputTokens.of.greatest)
		if err != nil {
			return 0, err
		}
	}
	count := workload.Endless
	switch {
	case f.requests.set:
		total = f.requests.of
	case f.until.set:
	case l.Prompts != nil:
		total = len(l.Prompts)
	default:
		total = loadRandom
	}
	if total > 0 {
		count = uint64(total)
	}
	if l.Open {
		l.Source, err = workload.NewPoisson(f.seed.of, count, f.rate.of, lengths)
	} else {
		l.Source, err = workload.NewClosed(f.seed.of, count, lengths)
	}
	return total, badInput(err)
}

// run sends the load and prints what was measured.
func (f *loadFlags) run(c *cobra.Command, where string) (err error) {
	l, total, err := f.config(c, where)
	if err != nil {
		return err
	}
	if l.Model = f.model; l.Model == "" {
		if l.Model, err = load.FirstModel(c.Context(), l.URL, l.Key); err != nil {
			return fmt.Errorf("no --model is given, and the server's list of models was not read: %w", err)
		}
	}
	if f.out != "" {
		file, err := os.Create(f.out)
		if err != nil {
			return badInput(fmt.Errorf("--out = %q, want a file that can be written: %w", f.out, err))
		}
		kept := newKeptRequests(file)
		l.Done = kept.add
		defer func() { err = errors.Join(err, kept.close()) }()
	}
	bar := newProgress(c.ErrOrStderr(), "requests")
	l.Progress = func(done int) { bar.show(done, max(total, done)) }
	got, err := load.Run(c.Context(), l)
	bar.end()
	if err != nil {
		return err
	}
	if f.asJSON {
		err = printJSON(c.OutOrStdout(), loadDocument(&l, f, got))
	} else {
		err = printLoad(c.OutOrStdout(), c.ErrOrStderr(), &l, f, got)
	}
	switch {
	case err != nil:
		return err
	case got.Cut:
		return fmt.Errorf("interrupted: %s sent, and what was measured is cut", count(got.Sent, "request"))
	case got.Finished == 0 && got.Sent > 0:
		return errors.New("no request finished")
	}
	return nil
}
