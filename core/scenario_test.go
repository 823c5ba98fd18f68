package core_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core"
	"tokenrouter/core/route"
)

var update = flag.Bool("update", false, "write what the scenarios give into their files")

// TestScenarios plays testdata/scenario/*.txt: a system and its requests above the line of
// dashes, what must happen, turn by turn, below it. Times are milliseconds.
//
//	model NAME pages N step MS [node N] [rows N] [calls token] [reuse no]
//	policy step-sync | model-sync | eager | delayed B... [wait MS]
//	set page N | budget N | requests N | live N | context N | admission optimistic | batching static |
//	    steps apart
//	link FROM TO MS
//	request ID at MS prompt N or IDS max N [entry NAME] [models A,B] [prefix KEYS] : PASSES
//	cancel ID at MS [stop string]
//	fail NAME SEQ
//
// PASSES are what the request's forward passes give, one after another: a token; >NAME, the
// model that goes on; ! if the token is dropped; . if it is an EOS. After the last, tokens
// 100, 101, ... stay where they are. In the log, 7@5+2 is a row of request 7: 2 tokens fed
// behind 5 in KV; * marks its first of a visit, ... that more chunks follow.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenario/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			given, want, _ := strings.Cut(string(data), "---\n")
			got := playScenario(t, given)
			if *update {
				if err := os.WriteFile(file, []byte(given+"---\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// scenario is a file on its way to a world.
type scenario struct {
	t        testing.TB
	config   core.Config
	steps    []core.Time
	policy   []string
	links    map[[2]int]core.Time
	fails    map[[2]int]bool
	requests []func(w *world)
	passes   map[uint64][]core.Result
}

func playScenario(t testing.TB, given string) string {
	sc := &scenario{
		t: t, links: map[[2]int]core.Time{}, fails: map[[2]int]bool{}, passes: map[uint64][]core.Result{},
		config: core.Config{Algorithm: route.Recorded{}, PageTokens: 4, Requests: 16, LiveMax: 8},
	}
	for line := range strings.Lines(given) {
		line, _, _ = strings.Cut(line, "#")
		if fields := strings.Fields(line); len(fields) > 0 {
			sc.line(fields)
		}
	}
	sc.config.Policy = sc.makePolicy()
	w := newWorld(t, sc.config, sc.steps...)
	w.delay = func(from, to int) core.Time { return sc.links[[2]int{from, to}] }
	w.fails = func(model int, seq uint64) bool { return sc.fails[[2]int{model, int(seq)}] }
	w.result = sc.result
	log := &scenarioLog{w: w}
	w.observe = log.turn
	for _, do := range sc.requests {
		do(w)
	}
	w.run().settled()
	log.end()
	return log.String()
}

func (sc *scenario) result(id uint64, n, _, model int) core.Result {
	if passes := sc.passes[id]; n < len(passes) {
		r := passes[n]
		if r.Next == stays {
			r.Next = uint8(model)
		}
		return r
	}
	return core.Result{Token: int32(100 + n - len(sc.passes[id])), Next: uint8(model)}
}

// stays stands for the model that has just run.
const stays = 255

func (sc *scenario) line(f []string) {
	o := options{sc, f[0], f[1:]}
	switch f[0] {
	case "model":
		sc.config.Models = append(sc.config.Models, core.Model{
			Name: f[1], Pages: o.number("pages"), Node: o.number("node"), RowsMax: o.number("rows"),
			TokenCalls: o.text("calls") == "token", Forgets: o.text("reuse") == "no",
			DispatchNs: core.Time(o.number("dispatch")) * ms,
		})
		sc.steps = append(sc.steps, core.Time(o.number("step"))*ms)
	case "policy":
		sc.policy = f[1:]
	case "set":
		sc.config.PageTokens = max(o.number("page"), sc.config.PageTokens*o.missing("page"))
		sc.config.TokenBudget += o.number("budget")
		sc.config.Requests = max(o.number("requests"), sc.config.Requests*o.missing("requests"))
		sc.config.LiveMax = max(o.number("live"), sc.config.LiveMax*o.missing("live"))
		sc.config.ContextMax += o.number("context")
		sc.config.FrontNs += core.Time(o.number("front")) * ms
		if o.text("admission") == "optimistic" {
			sc.config.Admission = core.Optimistic
		}
		sc.config.Unmixed = sc.config.Unmixed || o.text("steps") == "apart"
		sc.config.Ahead = sc.config.Ahead || o.text("plan") == "ahead"
		sc.config.Static = sc.config.Static || o.text("batching") == "static"
	case "link":
		sc.links[[2]int{sc.int(f[1]), sc.int(f[2])}] = core.Time(sc.int(f[3])) * ms
	case "fail":
		sc.fails[[2]int{sc.model(f[1]), sc.int(f[2])}] = true
	case "cancel":
		at, id := core.Time(o.number("at"))*ms, uint64(sc.int(f[1]))
		reason := core.Reason(0)
		if o.text("stop") != "" {
			reason = core.StopString
		}
		sc.requests = append(sc.requests, func(w *world) { w.cancel(at, id, reason) })
	case "request":
		sc.request(o)
	default:
		sc.t.Fatalf("scenario: no such line: %v", f)
	}
}

func (sc *scenario) request(o options) {
	id := uint64(sc.int(o.f[0]))
	colon := slices.Index(o.f, ":")
	if colon >= 0 {
		for _, pass := range o.f[colon+1:] {
			sc.passes[id] = append(sc.passes[id], sc.pass(pass))
		}
		o.f = o.f[:colon]
	}
	sub := core.Submission{ID: id, TokensMax: int32(o.number("max"))}
	if entry := o.text("entry"); entry != "" {
		sub.Entry = sc.model(entry)
	}
	for _, name := range o.list("models") {
		sub.Models |= 1 << sc.model(name)
	}
	for _, key := range o.list("prefix") {
		sub.Prefix = append(sub.Prefix, uint64(sc.int(key)))
	}
	prompt := []int32{}
	if list := o.list("prompt"); len(list) > 1 {
		for _, token := range list {
			prompt = append(prompt, int32(sc.int(token)))
		}
	} else {
		for i := range sc.int(list[0]) {
			prompt = append(prompt, -int32(i)-1)
		}
	}
	at := core.Time(o.number("at")) * ms
	sc.requests = append(sc.requests, func(w *world) { w.submit(at, sub, prompt...) })
}

// pass reads TOKEN[.][>NAME[!]].
func (sc *scenario) pass(text string) core.Result {
	token, next, moves := strings.Cut(text, ">")
	r := core.Result{Next: stays, EOS: strings.HasSuffix(token, "."), Drop: strings.HasSuffix(next, "!")}
	r.Token = int32(sc.int(strings.TrimSuffix(token, ".")))
	if moves {
		r.Next = uint8(sc.model(strings.TrimSuffix(next, "!")))
	}
	return r
}

func (sc *scenario) makePolicy() core.Policy {
	switch sc.policy[0] {
	case "step-sync":
		return core.StepSync{}
	case "model-sync":
		return core.ModelSync{}
	case "eager":
		return core.Eager{}
	case "delayed":
		var policy core.Delayed
		var b []int
		for i, word := range sc.policy[1:] {
			if word == "wait" {
				policy.MaxWait = core.Time(sc.int(sc.policy[i+2])) * ms
				break
			}
			b = append(b, sc.int(word))
		}
		var err error
		if policy.Thresholds, err = core.FixedThresholds(b, sc.config.LiveMax); err != nil {
			sc.t.Fatal(err)
		}
		return policy
	}
	sc.t.Fatalf("scenario: no policy %v", sc.policy)
	return nil
}

func (sc *scenario) int(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		sc.t.Fatal(err)
	}
	return n
}

func (sc *scenario) model(name string) int {
	for i, m := range sc.config.Models {
		if m.Name == name {
			return i
		}
	}
	sc.t.Fatalf("scenario: no model %q", name)
	return 0
}

// options reads the pairs of a line: name, value.
type options struct {
	sc   *scenario
	line string
	f    []string
}

func (o options) text(name string) string {
	if i := slices.Index(o.f, name); i >= 0 && i+1 < len(o.f) {
		return o.f[i+1]
	}
	return ""
}

func (o options) list(name string) []string {
	if text := o.text(name); text != "" {
		return strings.Split(text, ",")
	}
	return nil
}

func (o options) number(name string) int {
	if text := o.text(name); text != "" {
		return o.sc.int(text)
	}
	return 0
}

// missing is 1 if the line lacks name, else 0.
func (o options) missing(name string) int {
	if o.text(name) == "" {
		return 1
	}
	return 0
}

// numbers writes ids with blanks between.
func numbers(ids []int32) string { return strings.Trim(fmt.Sprint(ids), "[]") }
