package cli

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tokenrouter/core"
	"tokenrouter/exec/native"
	"tokenrouter/exec/replan"
	"tokenrouter/exec/serve"
	"tokenrouter/experiments/spec"
	"tokenrouter/experiments/system"
)

// serveFlags are the flags of serve as given.
type serveFlags struct {
	backend native.Backend
	system  systemFlags

	listen, name, keyFile     string
	origins                   []string
	thresholds                value[string]
	concurrency, queue        value[int]
	choicesMax, bodyMax       value[int]
	seed                      value[uint64]
	timeMax, writeTime, drain value[core.Time]
}

const (
	listenDefault = "127.0.0.1:8080"
	bodyMost      = 1 << 30 // bytes
	keyVariable   = "TOKENROUTER_API_KEY"
)

func newServe() *cobra.Command { return newServeOn(native.Backend{}) }

// newServeOn makes the command for models on a backend, none: what the file or --backend names.
func newServeOn(backend native.Backend) *cobra.Command {
	f := serveFlags{
		backend: backend, system: newSystemFlags(),
		thresholds:  value[string]{kind: "how", parse: word("planned", "given")},
		concurrency: value[int]{kind: "count", parse: integer(1, inFlightMax)},
		queue:       value[int]{kind: "count", parse: integer(0, inFlightMax)},
		choicesMax: value[int]{of: serve.ChoicesMaxDefault, text: "8", kind: "count",
			parse: integer(1, inFlightMax)},
		bodyMax: value[int]{of: serve.BodyBytesMaxDefault, text: "4194304", kind: "bytes",
			parse: integer(1, bodyMost)},
		seed: value[uint64]{kind: "number", parse: seed},
		timeMax: value[core.Time]{of: int64(serve.TimeMaxDefault), text: "10m", kind: "duration",
			parse: duration},
		writeTime: value[core.Time]{of: int64(serve.WriteTimeoutDefault), text: "30s", kind: "duration",
			parse: duration},
		drain: value[core.Time]{of: int64(serve.DrainTimeDefault), text: "30s", kind: "duration",
			parse: duration},
	}
	c := &cobra.Command{
		Use:   "serve [SYSTEM.toml]",
		Short: "Answer over HTTP as OpenAI's API does, with real models that route tokens among themselves",
		Long: `Load models and serve them over HTTP, until interrupted: /v1/models, /v1/chat/completions,
/v1/completions, /tokenize, /health, /metrics (Prometheus) and /openapi.json, which documents all of
it. A client of OpenAI's API works once its base URL is http://ADDRESS/v1. All models answer together
under one name, and each alone under its own. The models, router and scheduling come from a file, or
from flags.

Where several models answer and no policy but eager is given, thresholds are planned while the server
runs: by the throughput model, from measured step times and routing, for each number of live requests
that comes up. /health and /metrics show what is in force. --thresholds given leaves it at the policy
of the file.

An interrupt lets live requests end for --drain, and refuses others; a second one ends the process.`,
		Example: `  tokenrouter serve --small .models/smollm2-135m-instruct
  tokenrouter serve pair.toml --listen 0.0.0.0:8080 --api-key-file key
  curl http://127.0.0.1:8080/v1/chat/completions -d '{"model":"pair","stream":true,
    "messages":[{"role":"user","content":"Why is the sky blue?"}]}'`,
		Args:              between(0, 1, "a SYSTEM.toml, or flags that name models"),
		ValidArgsFunction: specFiles,
		RunE:              func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	f.add(c)
	return c
}

func (f *serveFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.listen, "listen", listenDefault, "address to listen on; port 0: any free one")
	f.system.add(c)
	flags.StringVar(&f.name, "name", "", "of all models together (default: the file's name, else tokenrouter)")
	flags.Var(&f.thresholds, "thresholds", "planned or given: where batching thresholds come from")
	flags.VarP(&f.concurrency, "concurrency", "n",
		"requests that are live at a time, without a file (default: 8)")
	flags.Var(&f.queue, "queue", "requests that may wait beyond them, without a file (default: 64)")
	flags.Var(&f.choicesMax, "choices-max", "most choices of one request")
	flags.Var(&f.bodyMax, "body-max", "most bytes of a request's body")
	flags.Var(&f.timeMax, "time-max", "longest time of a request")
	flags.Var(&f.writeTime, "write-timeout", "longest time for a client to take a piece of its answer")
	flags.Var(&f.drain, "drain", "time for live requests once the server is told to end")
	flags.StringVar(&f.keyFile, "api-key-file", "", "file with the key that clients must send (default: $"+
		keyVariable+", or none)")
	flags.StringArrayVar(&f.origins, "cors-origin", nil,
		"origin of pages that may call the server, or *; may be given again")
	flags.Var(&f.seed, "seed", "of requests without one (default: another each time)")
	completeFlag(c, "thresholds", cobra.FixedCompletions([]string{"planned", "given"},
		cobra.ShellCompDirectiveNoFileComp))
	completeNumbers(c)
}

// describe is the description of the system. It has room for one more request at each live one: a slot stays
// taken until the pass that names it has ended, and its place in the queue of the server does not.
func (f *serveFlags) describe(args []string, flags *pflag.FlagSet) (s *spec.System, places int, err error) {
	if s, err = f.system.load(args, flags); err != nil {
		return nil, 0, err
	}
	if s.File != "" && (f.concurrency.set || f.queue.set) {
		return nil, 0, misuse("-n, --queue and %s: want scheduler.concurrency and scheduler.queue in the file",
			s.File)
	}
	if f.concurrency.set {
		s.Concurrency = f.concurrency.of
	}
	if f.queue.set {
		s.Queue = f.queue.of
	}
	places = s.Concurrency + s.Queue
	s.Queue += s.Concurrency
	return s, places, nil
}

// run serves until the context of c ends.
func (f *serveFlags) run(c *cobra.Command, args []string) (err error) {
	key, err := apiKey(f.keyFile)
	if err != nil {
		return err
	}
	described, places, err := f.describe(args, c.Flags())
	if err != nil {
		return err
	}
	backend, err := backendOf(f.backend, described)
	if err != nil {
		return err
	}
	plan, err := system.Prepare(described, system.Choice{Backend: backend})
	if err != nil {
		return badInput(err)
	}
	defer func() { err = errors.Join(err, plan.Close()) }()
	for _, w := range plan.Warnings() {
		fmt.Fprintln(c.ErrOrStderr(), "warning:", w)
	}
	listener, err := net.Listen("tcp", f.listen) // before the weights are read: it may be taken
	if err != nil {
		return badInput(fmt.Errorf("--listen = %q: %w", f.listen, err))
	}
	defer listener.Close()
	config, err := f.config(plan, places)
	if err != nil {
		return err
	}
	config.APIKey = key
	config.Log = slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil))
	server, err := serve.New(config)
	if err != nil {
		return badInput(err)
	}
	return f.open(c, plan, server, config, listener)
}

// open loads the models and serves.
func (f *serveFlags) open(c *cobra.Command, plan *system.Plan, server *serve.Server, config serve.Config,
	listener net.Listener) error {
	loading := newProgress(c.ErrOrStderr(), "loading")
	const megabyte = 1e6
	running, err := plan.Open(c.Context(), system.Run{
		Seed: config.Seed, Observe: server.Observe, Failed: server.Failed, OwnAlgorithms: config.Rule != nil,
		Progress: func(done, total int64) { loading.show(int(done/megabyte), int(total/megabyte)) },
	})
	loading.end()
	if err != nil {
		if c.Context().Err() != nil {
			return errors.New("interrupted while the models were loaded")
		}
		return err
	}
	defer running.Close()
	for _, line := range []string{plan.Device(), running.Graphs()} {
		if line != "" {
			config.Log.Info(line)
		}
	}
	fmt.Fprintf(c.OutOrStdout(), "listening on http://%s/v1, model %s\n", listener.Addr(), config.Name)
	return server.Serve(c.Context(), listener, running.Loop)
}

// apiKey is what --api-key-file = file says, or the variable; empty for none.
func apiKey(file string) (string, error) {
	if file == "" {
		return os.Getenv(keyVariable), nil
	}
	if err := regularFile("--api-key-file", file); err != nil {
		return "", err
	}
	data, err := os.ReadFile(file)
	key := strings.TrimSpace(string(data))
	if err == nil && key == "" {
		err = fmt.Errorf("%s is empty, want a key", file)
	}
	return key, badInput(err)
}

// config is what the server offers: what the plan has, under the scheduler that this sets in the plan.
func (f *serveFlags) config(p *system.Plan, places int) (serve.Config, error) {
	encoder, err := p.Encoder(true)
	if err != nil {
		return serve.Config{}, badInput(err)
	}
	c := serve.Config{
		Name: f.nameOf(p), Tokenizer: encoder.Tokenizer, Template: encoder.Template, Vocab: p.Samplable(),
		EOS:   func(id int32) bool { return slices.Contains(p.EOS, int(id)) },
		Fatal: func(err error) bool { return errors.Is(err, native.ErrFailed) },
		Slots: places, ChoicesMax: f.choicesMax.of, BodyBytesMax: int64(f.bodyMax.of),
		TimeMax: time.Duration(f.timeMax.of), WriteTimeout: time.Duration(f.writeTime.of),
		DrainTime: time.Duration(f.drain.of), Origins: f.origins, Seed: f.seed.of,
	}
	if !f.seed.set {
		var bits [8]byte
		_, _ = rand.Read(bits[:]) // which never fails
		c.Seed = binary.NativeEndian.Uint64(bits[:])
	}
	for _, m := range p.Core.Models {
		c.Models = append(c.Models, m.Name)
	}
	if p.Scorer() != nil {
		c.Entry = p.Entry
	}
	router := p.Spec.Router
	c.Scores = router.Scored()
	// A server's entropies are bounded about one threshold.
	if c.Scores || router.Algorithm == "rstitch" && !p.Remote() {
		c.Rule = func(threshold float64) core.Algorithm {
			own := router
			own.Threshold = threshold
			rule, _ := p.Rule(own) // of a kind that the plan has made before
			return rule
		}
	}
	if err := f.schedule(p, &c); err != nil {
		return c, err
	}
	c.Core = p.Core
	return c, nil
}

// schedule has thresholds planned, or shows the given ones.
func (f *serveFlags) schedule(p *system.Plan, c *serve.Config) error {
	several := len(c.Models) > 1 && p.Scorer() == nil
	switch {
	case f.thresholds.of == "planned" && !several:
		return misuse("--thresholds planned: want several models among which tokens are routed")
	case f.thresholds.of == "planned" && p.Spec.Policy.Kind != "eager":
		return misuse("--thresholds planned: want no policy but eager in %s, not %s", p.Spec.File,
			p.Spec.Policy.Kind)
	case f.thresholds.of == "given" || !several || p.Spec.Policy.Kind != "eager":
		if d, ok := p.Core.Policy.(core.Delayed); ok {
			c.Thresholds = &d.Thresholds
		}
		return nil
	}
	planner, err := replan.New(replan.Config{Models: len(c.Models), LiveMax: p.Spec.Concurrency})
	if err != nil {
		return err
	}
	p.Core.Policy, p.Core.Algorithm = planner, planner.Watched(p.Core.Algorithm)
	c.Planner = planner
	return nil
}

// nameOf is the name of all models together.
func (f *serveFlags) nameOf(p *system.Plan) string {
	switch {
	case f.name != "":
		return f.name
	case p.Spec.File != "":
		base := filepath.Base(p.Spec.File)
		return strings.TrimSuffix(base, filepath.Ext(base))
	default:
		return "tokenrouter"
	}
}
