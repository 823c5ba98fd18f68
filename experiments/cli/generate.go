package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tokenrouter/core"
	"tokenrouter/exec"
	"tokenrouter/exec/answer"
	"tokenrouter/exec/native"
	"tokenrouter/experiments/system"
)

// generateFlags are the flags of generate as given.
type generateFlags struct {
	backend native.Backend
	system  systemFlags
	prompts promptFlags

	inFlight  value[int]
	tokensMax value[int]
	sampling  samplingFlags
	stop      []string
	files     outputFiles
	json      bool
}

// outputFiles are what a run writes besides its answers; empty names are not written.
type outputFiles struct{ turnlog, trace string }

// samplingFlags say how tokens are drawn.
type samplingFlags struct {
	temperature, topP, minP, presence, frequency value[float64]
	topK                                         value[int]
	seed                                         value[uint64]
}

const (
	inFlightMax      = 4096
	tokensMaxDefault = 256
	tokensMaxMost    = 1 << 24
	topKMax          = 1 << 30
)

func newGenerateFlags(backend native.Backend) generateFlags {
	number := func(of float64) value[float64] {
		return value[float64]{of: of, text: strconv.FormatFloat(of, 'g', -1, 64), kind: "number", parse: anyNumber}
	}
	return generateFlags{
		backend: backend,
		system:  newSystemFlags(),
		prompts: promptFlags{
			arguments: value[map[string]any]{kind: "name=value", parse: templateArguments()},
		},
		inFlight:  value[int]{kind: "count", parse: integer(1, inFlightMax)},
		tokensMax: value[int]{of: tokensMaxDefault, text: "256", kind: "tokens", parse: integer(1, tokensMaxMost)},
		sampling: samplingFlags{
			temperature: number(0), topP: number(1), minP: number(0), presence: number(0), frequency: number(0),
			topK: value[int]{text: "0", kind: "count", parse: integer(0, topKMax)},
			seed: value[uint64]{text: "0", kind: "number", parse: seed},
		},
	}
}

func newGenerate() *cobra.Command { return newGenerateOn(native.Backend{}) }

// newGenerateOn makes the command for models on a backend, none: what the file or --backend names.
func newGenerateOn(backend native.Backend) *cobra.Command {
	f := newGenerateFlags(backend)
	c := &cobra.Command{
		Use:   "generate [SYSTEM.toml]",
		Short: "Answer prompts with real models, and show which model made each token",
		Long: `Load models and answer one prompt, or a file of prompts with several in flight. On a terminal text
streams as it comes, coloured by the model that made each token; otherwise one JSON document comes
at the end (--json=false: text). Of a file of prompts each answer is printed, in their order, once it
and all before it are whole, in JSON on a line of its own. The models, router and scheduling come
from a file, or from flags with the eager policy.

The prompt goes through the chat template of the first model that has one; --no-chat takes it as it
is. The seed of the first prompt is --seed, that of each further one is 1 more; the same seed gives
the same answer, alone and in a batch.`,
		Example: `  tokenrouter generate --small .models/smollm2-135m-instruct --prompt "What is a token?"
  tokenrouter generate --small small --large large --router router --prompt "Why is the sky blue?"
  tokenrouter generate --small small --large large --algorithm rstitch --threshold 0.03 --prompt -
  tokenrouter generate --small a --large b --model c --algorithm me --lambda 0.5,0.3,0.2 --prompt Hi
  tokenrouter generate pair.toml --prompts questions.jsonl -n 8 --json`,
		Args:              between(0, 1, "a SYSTEM.toml, or flags that name models"),
		ValidArgsFunction: specFiles,
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c, args)
		},
	}
	f.add(c)
	return c
}

func (f *generateFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.prompts.prompt, "prompt", "", "what to answer; - reads it from standard input")
	flags.StringVar(&f.prompts.file, "prompts", "",
		"file with a prompt a line; .jsonl: objects with prompt or messages; - is standard input")
	f.system.add(c)
	flags.VarP(&f.inFlight, "in-flight", "n", "prompts at a time (default: 8, or the file's concurrency)")
	flags.BoolVar(&f.prompts.chat, "chat", false, "want a chat template")
	flags.BoolVar(&f.prompts.noChat, "no-chat", false, "take prompts as they are")
	flags.StringVar(&f.prompts.system, "system", "", "system message before each prompt")
	flags.Var(&f.prompts.arguments, "template-arg",
		"variable of the chat template, such as enable_thinking=false; may be given again")
	flags.Var(&f.tokensMax, "max-tokens", "most tokens of an answer")
	s := &f.sampling
	flags.Var(&s.temperature, "temperature", "0 takes the most likely token each time")
	flags.Var(&s.topK, "top-k", "draw from so many most likely tokens; 0: all")
	flags.Var(&s.topP, "top-p", "draw from the fewest most likely tokens of this probability")
	flags.Var(&s.minP, "min-p", "draw from tokens so likely, as a share of the most likely one's")
	flags.Var(&s.presence, "presence-penalty", "taken from logits of tokens that the answer has")
	flags.Var(&s.frequency, "frequency-penalty", "the same for each time that it has them")
	flags.Var(&s.seed, "seed", "of all draws")
	flags.StringArrayVar(&f.stop, "stop", nil, "the answer ends before this text; may be given again")
	flags.StringVar(&f.files.turnlog, "turnlog", "", "file for the log of all turns, which trace replay reads")
	flags.StringVar(&f.files.trace, "trace", "",
		"file for a trace of all answers, .jsonl or .jsonl.gz, which specs play; its steps lie beside it")
	flags.BoolVar(&f.json, "json", false, "print one JSON document (default where the output is no terminal)")
	completeFlag(c, "prompts", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
	completeNumbers(c)
}

// check refuses what can be refused before anything is read.
func (f *generateFlags) check(flags *pflag.FlagSet) error {
	given := func(name string) bool { return flags.Changed(name) }
	switch {
	case given("prompt") == given("prompts"):
		return misuse("want --prompt or --prompts, one of them")
	case f.prompts.chat && f.prompts.noChat:
		return misuse("--chat and --no-chat: want one of them")
	case given("in-flight") && given("prompt"):
		return misuse("-n: want it with --prompts only")
	}
	for _, stop := range f.stop {
		if stop == "" {
			return misuse("--stop = \"\", want text")
		}
	}
	sampling := f.sampling.of(0)
	if err := sampling.Validate(); err != nil {
		return misuse("--%s", strings.ReplaceAll(err.Error(), "_", "-"))
	}
	return nil
}

// of is the sampling of prompt i.
func (s *samplingFlags) of(i int) exec.Sampling {
	seed := s.seed.of + uint64(i)
	return exec.Sampling{
		Temperature: s.temperature.of, TopK: s.topK.of, TopP: s.topP.of, MinP: s.minP.of,
		PresencePenalty: s.presence.of, FrequencyPenalty: s.frequency.of, Seed: &seed,
	}
}

// run answers and prints.
func (f *generateFlags) run(c *cobra.Command, args []string) (err error) {
	if err := f.check(c.Flags()); err != nil {
		return err
	}
	asked, err := f.prompts.read(c.InOrStdin())
	if err != nil {
		return err
	}
	plan, err := f.prepare(args, c.Flags(), len(asked))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plan.Close()) }()
	for _, w := range plan.Warnings() {
		fmt.Fprintln(c.ErrOrStderr(), "warning:", w)
	}
	prompts, err := f.encode(plan, asked)
	if err != nil {
		return err
	}
	if err := plan.Narrow(longest(prompts)); err != nil {
		return err
	}
	s := session{
		plan: plan, prompts: prompts, stdout: c.OutOrStdout(), stderr: c.ErrOrStderr(),
		many: f.prompts.file != "", inFlight: plan.Spec.Concurrency,
	}
	for _, p := range asked {
		s.ids = append(s.ids, p.id)
	}
	if f.inFlight.set {
		s.inFlight = f.inFlight.of
	}
	s.json = f.json || !c.Flags().Changed("json") && !isTerminal(s.stdout)
	return s.run(c.Context(), f.files, f.sampling.seed.of)
}

// prepare makes the plan of the system, with as many live requests as are asked for.
func (f *generateFlags) prepare(args []string, flags *pflag.FlagSet, asked int) (*system.Plan, error) {
	s, err := f.system.load(args, flags)
	if err != nil {
		return nil, err
	}
	switch {
	case s.File != "" && f.inFlight.set && f.inFlight.of > s.Concurrency:
		return nil, misuse("-n = %d, want at most scheduler.concurrency = %d of %s", f.inFlight.of, s.Concurrency,
			s.File)
	case s.File == "" && f.inFlight.set:
		s.Concurrency = f.inFlight.of
	case s.File == "":
		s.Concurrency = min(s.Concurrency, asked)
	}
	backend, err := backendOf(f.backend, s)
	if err != nil {
		return nil, err
	}
	p, err := system.Prepare(s, system.Choice{Backend: backend})
	return p, badInput(err)
}

// encode makes ids of the prompts and refuses those that leave no room for an answer.
func (f *generateFlags) encode(p *system.Plan, asked []prompt) ([]system.Prompt, error) {
	e, err := f.prompts.encoder(p)
	if err != nil {
		return nil, err
	}
	prompts := make([]system.Prompt, len(asked))
	for i, a := range asked {
		ids, err := a.encode(e)
		if err != nil {
			return nil, badInput(err)
		}
		room := p.Core.ContextMax - len(ids)
		switch {
		case len(ids) == 0:
			return nil, badInput(fmt.Errorf("%s: the prompt is empty, want at least one token", a.where))
		case room < 1:
			return nil, badInput(fmt.Errorf("%s: the prompt has %d tokens, want at most %d: the context has %d,"+
				" answer included", a.where, len(ids), p.Core.ContextMax-1, p.Core.ContextMax))
		case f.tokensMax.set && f.tokensMax.of > room:
			return nil, badInput(fmt.Errorf("--max-tokens = %d, want at most %d: the prompt of %s has %d tokens and"+
				" the context %d", f.tokensMax.of, room, a.where, len(ids), p.Core.ContextMax))
		}
		prompts[i] = system.Prompt{
			IDs: ids, TokensMax: min(f.tokensMax.of, room), Sampling: f.sampling.of(i), Stop: f.stop,
			Arrival: -1, // whenever there is room
		}
		if prompts[i].Entry, err = p.Entry(ids, nil); err != nil {
			return nil, fmt.Errorf("%s: %w", a.where, err)
		}
	}
	return prompts, nil
}

// longest is the most tokens that a prompt and its answer can have.
func longest(prompts []system.Prompt) int {
	most := 0
	for _, p := range prompts {
		most = max(most, len(p.IDs)+p.TokensMax)
	}
	return most
}

// session is one call of generate.
type session struct {
	plan           *system.Plan
	prompts        []system.Prompt
	ids            []string // of the prompts; "" for none
	inFlight       int
	many, json     bool
	stdout, stderr io.Writer

	stream  *stream          // of many answers
	pieces  [][]answer.Piece // of each of them, where text is printed
	answers []system.Answered
	timings []exec.Timing
	wallNs  core.Time
	failed  error    // the first of a device
	why     []string // by prompt: the error of its row; "" if it had none
}

func (s *session) run(ctx context.Context, files outputFiles, seed uint64) (err error) {
	s.why = make([]string, len(s.prompts))
	r := system.Run{Seed: seed, Failed: func(err error) {
		if s.failed == nil {
			s.failed = err
		}
		if row := new(exec.RowError); errors.As(err, &row) {
			s.why[row.Request] = err.Error()
		}
	}}
	close, err := s.observe(&r, files)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, close()) }()
	loading := newProgress(s.stderr, "loading")
	const megabyte = 1e6
	r.Progress = func(done, total int64) { loading.show(int(done/megabyte), int(total/megabyte)) }
	running, err := s.plan.Open(ctx, r)
	loading.end()
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted while the models were loaded; there is no answer")
		}
		return err
	}
	defer running.Close()
	if s.plan.Card() != "" {
		fmt.Fprintln(s.stderr, s.plan.Device())
		defer func() { fmt.Fprintln(s.stderr, running.Graphs()) }()
	}
	if err := s.answer(ctx, running); err != nil && ctx.Err() == nil {
		return err
	}
	if err := s.print(); err != nil {
		return err
	}
	return s.outcome()
}

// answer runs the system and keeps what comes. Text goes out as it comes where a person looks on; of many
// answers each goes out when it is whole.
func (s *session) answer(ctx context.Context, running *system.System) error {
	s.answers = make([]system.Answered, len(s.prompts))
	if s.many {
		s.stream = newStream(s)
		defer s.stream.close()
		s.pieces = make([][]answer.Piece, len(s.prompts))
		for i := range s.prompts {
			s.prompts[i].Ended = func(a system.Answered) {
				s.answers[i] = a
				s.stream.ended <- i
			}
			if !s.json {
				s.prompts[i].Piece = func(p answer.Piece) { s.pieces[i] = append(s.pieces[i], p) }
			}
		}
	} else if !s.json {
		live := newPainter(s.stdout, s.plan)
		live.legend(s.stderr)
		pieces := newPieces(live.piece)
		defer func() {
			pieces.close()
			live.end()
		}()
		s.prompts[0].Piece = pieces.put
	}
	started := running.Loop.Now()
	answers, err := running.Answers(ctx, s.prompts, s.inFlight, nil)
	s.timings, s.wallNs = running.Loop.Timings(), running.Loop.Now()-started
	for i, a := range answers {
		if s.answers[i].Answer == nil { // never ended
			s.answers[i] = a
		}
	}
	return err
}

// outcome says what did not go as it should.
func (s *session) outcome() error {
	whole, cancelled := 0, false
	for _, a := range s.answers {
		switch finish := finishOf(a); finish {
		case "stop", "length":
			whole++
		case "cancelled":
			cancelled = true
		}
	}
	switch {
	case whole == len(s.prompts):
		return nil
	case cancelled:
		return fmt.Errorf("interrupted; %d of %s whole", whole, count(len(s.prompts), "answer"))
	case s.failed != nil:
		return fmt.Errorf("%d of %s failed: %w", len(s.prompts)-whole, count(len(s.prompts), "answer"), s.failed)
	}
	for i, a := range s.answers {
		if finishOf(a) == "error" {
			return fmt.Errorf("%d of %s failed, the first for prompt %d: %s", len(s.prompts)-whole,
				count(len(s.prompts), "answer"), i+1, s.failure(i))
		}
	}
	panic("cli: answers that neither ended nor failed")
}

// failure says why an answer failed: at which model and step, or else after how many tokens.
func (s *session) failure(i int) string {
	if s.why[i] != "" {
		return s.why[i]
	}
	a := s.answers[i]
	text := a.Leave.Reason.String()
	if m := a.Leave.Model; m >= 0 && m < len(s.plan.Core.Models) {
		text += " at model " + s.plan.Core.Models[m].Name
	}
	return text + " after " + count(len(a.Tokens), "token")
}

// finishOf is how an answer ended; one that was never begun was cancelled.
func finishOf(a system.Answered) string {
	if a.Answer == nil {
		return "cancelled"
	}
	return a.Finish()
}

func anyNumber(s string) (float64, error) {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, errors.New("want a number")
	}
	return x, nil
}

func seed(s string) (uint64, error) {
	x, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, errors.New("want a whole number from 0 to 2^64 - 1")
	}
	return x, nil
}
