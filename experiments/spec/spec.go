package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
	"tokenrouter/experiments/result"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/workload"
)

// Spec is a validated experiment.
type Spec struct {
	File  string
	Name  string
	Title string

	Seed                uint64
	Replicates          int
	CommonRandomNumbers bool

	Axes       []Axis  // swept, outermost first, in the order of AxisNames
	Points     []Point // every combination of the axes' values
	Figures    []result.Figure
	References []result.Reference

	Calibrations []result.Calibration // that models and costs come from
	Checks       []result.Check
	Noise        float64 // what published values of one setting differ by; variants closer than that are tied
	Caption      string  // which numbers calibrated the models, and which are predictions
	Discussion   string  // what is wrong, and why

	Variants bool      // the outermost axis is VariantAxis
	Hardware *Hardware // nil: the points are simulated only
	Answered bool      // the points are systems that answer problems (Point.Task)

	Requests bool // write requests.parquet
	TurnLog  bool // write a turn log a point
	Trace    bool // write a trace a point, of answers

	// Resolved is the spec with all that it extends, as TOML with sorted keys; files that it names follow
	// as comments with their SHA-256. Hash is that of Resolved, in hexadecimal.
	Resolved []byte
	Hash     string

	reload        func(calibration string) (*Spec, error)
	reloadSystems func(calibrations map[string]string) (*Spec, error)
}

// Run is the name of the results folder of the spec: the first 12 digits of its Hash, so that the same spec
// always goes to the same folder.
func (s *Spec) Run() string { return s.Hash[:12] }

// Axis is a swept key.
type Axis struct {
	Name   string
	Values []string // every Text that a point has on it, in order
}

// Value is the place of a point on an axis.
type Value struct {
	Axis     string
	Text     string // as it names the point
	Number   float64
	IsNumber bool // durations are milliseconds
}

// Model is one model of a point.
type Model struct {
	Name    string
	Node    int
	RowsMax int
	Pages   int // 0: as many as all requests could ever need
	Latency latency.Model
	Beside  float64 // factor of the step time while another model of the node runs, from 1

	// InFlight and Context are the requests in flight, and the tokens of one of them, for which costs were
	// calibrated; the zero Span where nothing is said.
	InFlight, Context latency.Span

	TokenCalls, Forgets bool  // as in core.Model
	DispatchNs          int64 // as in core.Model

	// ByRows holds the step time in ns of a batch of 1, 2, ... rows up to the concurrency; nil if the throughput
	// model can not tell it. If the time depends on more than the rows, it is that of the mean row, of FreshMean
	// fresh tokens and ContextMean in KV, of which the share ReturnMean begins a call. They are 0 otherwise.
	ByRows                             []int64
	FreshMean, ContextMean, ReturnMean float64

	unknown   string   // why ByRows is nil
	devices   []string // that share its weights and KV evenly
	footprint core.Footprint
}

// Point is one system under one workload: everything that a run needs but a seed.
type Point struct {
	Index  int
	Values []Value // of the swept axes
	Key    string  // the values as one text, such as "concurrency=4 thresholds=1,3"

	Models      []Model
	Links       map[[2]int]latency.Link
	Concurrency int
	Queue       int // requests that may wait for admission, open loops

	Algorithm core.Algorithm // nil for a single model
	Outcome   outcome.Source // nil with Paths or a Trace
	Paths     [][]int        // a request each: the model that makes each token
	First     bool           // the first token of every answer has one verdict, which the chain does not know
	Trace     string         // file of recorded requests, their workload too; empty if there is none
	Play      outcome.Play   // what of Trace is played
	// Routing and Commit are P and C of the throughput model; nil if verdicts are not independent draws.
	Routing, Commit [][]float64

	Policy     Policy
	Admission  core.Admission
	Static     bool  // batches, as in core.Config
	Unmixed    bool  // steps, as in core.Config
	Ahead      bool  // plan, as in core.Config
	FrontNs    int64 // as in core.Config
	PageTokens int
	Budget     int
	ContextMax int
	// ContextNeed is what the longest request of the workload may take; above ContextMax, the answers of
	// some are cut or they are refused.
	ContextNeed int

	Workload Workload

	// Warnings are what a reader of the results must know of the point's models.
	Warnings []string

	// Task is what is asked, and System who answers, with the router of the point; nil where requests have
	// lengths only. Then verdicts come from real signals, there is no Algorithm, and Routing and Commit are
	// nil as long as the point is not Measured. SystemKey is the key that names the system, for what only the
	// models' folders can tell.
	Task      *Task
	System    *System
	SystemKey Problem
}

// Policy says when idle models start. Kind is one of step-sync, model-sync, eager and delayed.
type Policy struct {
	Kind      string
	Table     [][]int // delayed: thresholds for N = 1, 2, ...; nil if Planned
	Planned   bool    // found by the chain
	Hold      []int   // Planned: thresholds that are not searched, 0 leaves one free
	MaxWaitNs int64
}

// Workload is the stream of requests of a point, but for its seed.
type Workload struct {
	Kind      string // closed, poisson, gamma, trace, recorded or task
	Requests  uint64 // workload.Endless if only UntilNs ends it
	UntilNs   int64  // 0: when all is done
	Lengths   workload.Lengths
	Rate      float64 // arrivals a second
	Variation float64
	File      string
	Options   workload.TraceOptions

	WarmupRequests     int
	Steady             bool
	GoodTTFT, GoodTPOT int64 // ns
}

// Closed reports whether a request arrives whenever a worker is free.
func (w *Workload) Closed() bool { return w.Kind == "closed" || w.Kind == "task" }

// Source opens the stream of requests under a seed. It is not for a point with a Trace or a Task.
func (w *Workload) Source(seed uint64) (workload.Source, error) {
	switch w.Kind {
	case "closed":
		return workload.NewClosed(seed, w.Requests, w.Lengths)
	case "poisson":
		return workload.NewPoisson(seed, w.Requests, w.Rate, w.Lengths)
	case "gamma":
		return workload.NewGamma(seed, w.Requests, w.Rate, w.Variation, w.Lengths)
	case "trace":
		return workload.OpenTrace(w.File, w.Options)
	default:
		panic("spec: workload of kind " + w.Kind)
	}
}

// seedBits keeps derived seeds below 2^53, so that every reader of JSON and CSV gets them whole.
const seedBits = 53

// WorldSeed is the seed of the world that a point meets in a replicate, 0 to Replicates-1. It is named by
// the spec's seed, the replicate and, without common random numbers, the point's values; never by places in
// lists, so that a new point or replicate changes no old one.
func (s *Spec) WorldSeed(p *Point, replicate int) uint64 {
	labels := []keyed.Label{keyed.Text("replicate"), keyed.Number(uint64(replicate))}
	if !s.CommonRandomNumbers {
		for _, v := range p.Values {
			labels = append(labels, keyed.Text(v.Axis), keyed.Text(v.Text))
		}
	}
	return keyed.Derive(s.Seed, labels...) >> (64 - seedBits)
}

// Load reads and checks a spec, with all that it extends and all files that it names. Its error is always
// of type Problems: everything that is wrong, not only the first.
func Load(path string) (*Spec, error) {
	return load(path, os.ReadFile, calibrated{})
}

// Parse is Load for the text of a spec; name is its file in problems, and files that it names are looked
// for beside that.
func Parse(name, text string) (*Spec, error) {
	return load(name, func(path string) ([]byte, error) {
		if path == name {
			return []byte(text), nil
		}
		return os.ReadFile(path)
	}, calibrated{})
}

// calibrated are the files of step times of a spec that measures them itself, once that is done.
type calibrated struct {
	file    string
	systems map[string]string // with [[routing]]: by the file of the system
}

// load reads a spec.
func load(path string, read func(string) ([]byte, error), times calibrated) (*Spec, error) {
	root, problems := readTree(path, read, nil)
	if problems != nil {
		return nil, problems
	}
	l := newLoader(path, root, read)
	l.calibration, l.calibrations = times.file, times.systems
	l.build()
	if problems := l.problems.sorted(); len(problems) > 0 {
		return nil, problems
	}
	l.resolve()
	l.spec.reload = func(file string) (*Spec, error) { return load(path, read, calibrated{file: file}) }
	l.spec.reloadSystems = func(files map[string]string) (*Spec, error) {
		return load(path, read, calibrated{systems: files})
	}
	return l.spec, nil
}

// loader turns a tree into a Spec.
type loader struct {
	reader
	spec   *Spec
	root   *node
	whole  *node // as resolved: root before files of step times are taken in
	read   func(string) ([]byte, error)
	traces map[string]traceFacts
	files  map[string]string // name as given: SHA-256
	sweep  sweep

	warnings []string // of the point that is read

	recordings map[string]recordedFacts

	calibration  string // file of step times that were measured for this run
	calibrations map[string]string
	routing      []*routing // nil: the spec has one system, whose verdicts are drawn
}

func newLoader(path string, root *node, read func(string) ([]byte, error)) *loader {
	return &loader{
		reader: reader{manual: Keys}, spec: &Spec{File: path}, root: root, read: read,
		traces: make(map[string]traceFacts), files: make(map[string]string),
		recordings: make(map[string]recordedFacts),
	}
}

// pointsMax bounds a sweep: each point is checked before anything runs.
const pointsMax = 20000

func (l *loader) build() {
	l.fragments()
	l.whole = l.root
	l.root = l.calibrated(l.root, false)
	top := l.section(l.root, "")
	l.head(top)
	if l.spec.Answered = top.has("routing"); l.spec.Answered {
		l.routings(top)
	} else {
		l.hardware(top, l.calibration)
	}
	l.spec.Variants = top.has("variant") && !isEmpty(top.keys["variant"])
	l.sweep = l.readSweep(top.sub("sweep"))
	combinations := l.sweep.combinations(l, l.readVariants(top))
	if len(combinations) > pointsMax {
		l.add(l.root.value.(table)["sweep"], "sweep",
			fmt.Sprintf("want at most %d points, not %d", pointsMax, len(combinations)))
		return
	}
	l.spec.Axes = l.sweep.axes(combinations, l.spec.Variants)
	if l.spec.Answered {
		l.routedPoints(combinations)
		l.spec.Axes = append(l.routingAxes(), l.spec.Axes...)
		combinations = nil
	}
	for i, c := range combinations {
		p := l.point(l.section(c.root, ""), nil)
		p.Index, p.Values, p.Key = i, c.values, keyOf(c.values)
		l.spec.Points = append(l.spec.Points, p)
	}
	l.checkReplicates(top)
	l.checkHonoured()
	l.views(top)
	for _, key := range []string{"models", "devices", "links", "router", "routing", "workload", "policy",
		"scheduler", "calibration"} {
		top.get(key)
	}
	top.done()
}

// head reads what concerns the whole spec.
func (l *loader) head(s *section) {
	l.spec.Name = s.text("name", "")
	if n := s.keys["name"]; n == nil {
		s.missing("name", "want a name for the folder of the results")
	} else if l.spec.Name != "" && strings.Trim(l.spec.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		s.wrong("name", "want small letters, digits and hyphens only")
	}
	l.spec.Title = s.text("title", l.spec.Name)
	const seedMax = 1<<63 - 1
	l.spec.Seed = uint64(s.whole("seed", 0, 0, seedMax))
	const replicatesMax = 10000
	l.spec.Replicates = int(s.whole("replicates", 1, 1, replicatesMax))
	l.spec.CommonRandomNumbers = s.boolean("common_random_numbers", true)
	l.spec.Requests = true
	if o := s.sub("output"); o != nil {
		l.spec.Requests = o.boolean("requests", true)
		l.spec.TurnLog = o.boolean("turn_log", false)
		if l.spec.Trace = o.boolean("trace", false); l.spec.Trace && !s.has("routing") {
			o.wrong("trace", "want [[routing]] for it: the trace of a run whose verdicts are drawn is its seed")
		}
		o.done()
	}
}

// point reads the system and workload of one combination; of, if not nil, is the system that answers.
func (l *loader) point(s *section, of *routing) Point {
	p := Point{}
	l.warnings = nil
	l.models(s, &p)
	l.links(s, &p)
	if of != nil {
		// its file says it
	} else if r := s.sub("router"); r == nil {
		s.missing("router", "want a table with the algorithm")
	} else {
		l.router(r, &p)
	}
	if w := s.sub("workload"); w == nil {
		s.missing("workload", "want a table with kind, concurrency and lengths")
	} else {
		l.workload(w, &p)
	}
	l.beyond(&p)
	l.scheduler(s.sub("scheduler"), &p)
	p.byRows(p.Workload.contextMean())
	if q := s.sub("policy"); q == nil {
		s.missing("policy", "want a table with the kind")
	} else if of != nil && of.stays() {
		l.stayingPolicy(q, &p)
	} else {
		l.policy(q, &p)
	}
	l.pages(s, &p)
	p.Warnings = l.warnings
	return p
}

// scheduler reads what every policy shares.
func (l *loader) scheduler(s *section, p *Point) {
	p.Admission, p.PageTokens = core.Reserve, 16
	if s == nil {
		return
	}
	if s.word("admission", "reserve", "reserve", "optimistic") == "optimistic" {
		p.Admission = core.Optimistic
	}
	p.Static = s.word("batching", "continuous", "continuous", "static") == "static"
	p.Unmixed = s.word("steps", "mixed", "mixed", "apart") == "apart"
	if p.Unmixed && p.goOn() {
		l.warnings = append(l.warnings, "the chain, where it predicts and plans, lets requests that come to a"+
			" model and requests that go on there share a step, which scheduler.steps = \"apart\" does not")
	}
	p.Ahead = s.word("plan", "now", "now", "ahead") == "ahead"
	p.FrontNs = s.duration("front", 0, 0)
	if p.FrontNs > core.DelayMax {
		s.wrong("front", "want at most %v", time.Duration(core.DelayMax))
	}
	const tokensMax = 1 << 30
	p.PageTokens = int(s.whole("page_tokens", 16, 1, 1<<16))
	p.Budget = int(s.whole("token_budget", 0, 0, tokensMax))
	if p.Budget > 0 && p.Budget < 2*p.PageTokens {
		s.wrong("token_budget", "want 0 or at least 2 pages = %d", 2*p.PageTokens)
	}
	p.ContextNeed = p.ContextMax
	p.ContextMax = int(s.whole("context_max", int64(p.ContextMax), 2, tokensMax))
	s.done()
}

// resolve fills in Resolved and Hash, from the spec as it was read.
func (l *loader) resolve() {
	text := writeDocument(l.whole.value.(table))
	for _, name := range sortedKeys(l.files) {
		text = append(text, fmt.Sprintf("# file %s sha256 %s\n", name, l.files[name])...)
	}
	sum := sha256.Sum256(text)
	l.spec.Resolved, l.spec.Hash = text, hex.EncodeToString(sum[:])
}

// file reads a file that a key names, relative to the spec that has the key.
func (l *loader) file(s *section, key string) (path string, content []byte) {
	if s.text(key, "") == "" {
		return "", nil
	}
	return l.fileAt(s.keys[key], s.name(key))
}

// fileAt reads the file that a node names: a string that is not empty.
func (l *loader) fileAt(n *node, key string) (path string, content []byte) {
	path = beside(n.file, n.value.(string))
	content, err := l.read(path)
	if err != nil {
		l.add(n, key, fmt.Sprintf("want a file that can be read: %v", err))
		return "", nil
	}
	sum := sha256.Sum256(content)
	l.files[l.named(path)] = hex.EncodeToString(sum[:])
	return path, content
}

// named is a file as it goes by in a resolved spec and in results: from the spec's own folder.
func (l *loader) named(path string) string {
	folder, failed := filepath.Abs(filepath.Dir(l.spec.File))
	full, fault := filepath.Abs(path)
	from, err := filepath.Rel(folder, full)
	if errors.Join(failed, fault, err) != nil {
		return path
	}
	return filepath.ToSlash(from)
}
