package spec

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"tokenrouter/core"
	"tokenrouter/exec/model"
	"tokenrouter/exec/remote"
)

// SystemKeys lists every key of a system's file, in its order.
var SystemKeys = []Key{
	{"extends", "file", "any system", "take all keys of another file, then replace those given here"},

	{"models[].name", "string", "any model", "default: the folder's or the shape's name"},
	{"models[].dir", "folder", "a model with weights", "a model folder"},
	{"models[].shape", "shape", "a model with random weights",
		"as in model make, such as qwen3-0.6b or tiny,layers=2"},
	{"models[].seed", "integer >= 0", "a model with random weights", "default 0"},
	{"models[].weights", "bf16 | int8", "any model", "how matrices are kept; default bf16"},
	{"models[].group", "integer", `weights "int8"`, "inputs that share a scale, a multiple of 64; default all"},
	{"models[].rows_max", "integer >= 0", "any model", "most requests of a step; default 0, no bound"},
	{"models[].processors", "integers", "any model, then all of them", "that it runs on, one a thread"},
	{"models[].threads", "integer >= 1", "any model, then all of them",
		"as many, on any processor; cuda: multiprocessors of its own"},
	{"models[].engine", "llama.cpp | vllm | sglang", "a model that a server runs",
		"the kind of server; of dir it takes the configuration and the tokenizer, weights need not be there"},
	{"models[].url", "URL", "a model that a server runs", "the server, such as http://127.0.0.1:8000"},
	{"models[].model", "string", "a model that a server runs",
		"the server's name for it; default the only one that it has"},
	{"models[].timeout", "duration", "a model that a server runs", "longest time of a call; default 2m"},

	{"device.backend", "cpu | cuda", "any system", "what runs the models; default cpu"},
	{"device.memory", "size", "any system", "for all models together; default nine tenths of what is free"},
	{"device.kernels", "plain | avx2 | avx512 | avx512-bf16 | amx, graphs | eager | own | eager own",
		"any system, by its backend", "default the best there are; eager: no graphs; own: no cuBLASLt"},
	{"device.graph_batches", "integers", "backend cuda",
		"requests of a step to which batches are padded, ascending; default 1 to 64 in 12 sizes"},
	{"device.graph_tokens", "integers", "backend cuda",
		"the same of fed tokens; default 1 to 256 in 16 sizes; a step beyond either is not captured"},
	{"device.shared", "boolean", "models without processors and threads",
		"all models run on all processors; default false: each on its part, where there is one for each"},

	{"router.algorithm", "r2r | citer | collm | rstitch | me | query | small | large", "any router",
		"default: that of router.dir; query: requests as a whole; small: the first model alone; large: the last"},
	{"router.threshold", "number", "r2r, citer, collm, rstitch and query",
		"default: that of router.dir; query: 0.5, the score from which a request goes to the large model"},
	{"router.dir", "folder", "r2r, citer, collm and query", "a router folder; query: a router of prompts"},
	{"router.weights", "numbers", "me", "weight of each model; default all the same"},

	{"policy.kind", "step-sync | model-sync | eager | delayed", "any system",
		"when an idle model starts; default eager"},
	{"policy.thresholds", "integers", "policy delayed", "one a model, for the full concurrency"},
	{"policy.table", "table of integers", "policy delayed", "thresholds for N = 1, 2, ... by model name"},
	{"policy.max_wait", "duration", "policy delayed", "longest wait for a threshold; default none"},

	{"scheduler.concurrency", "integer >= 1", "any system", "requests that are live at a time; default 8"},
	{"scheduler.queue", "integer >= 0", "any system", "requests that may wait beyond them; default 64"},
	{"scheduler.admission", "reserve | optimistic", "any system", "how KV is promised; default reserve"},
	{"scheduler.context_max", "integer >= 2", "any system",
		"most tokens of a request, prompt and answer; default 4096, or what the models can"},
	{"scheduler.page_tokens", "integer", "any system", "tokens of a KV page; default as the device likes it"},
	{"scheduler.token_budget", "integer", "any system", "most tokens fed in a step; default 512"},
}

// LoadSystem reads and checks the file of a system. Its error is always of type Problems. Folders are
// relative to the file that names them.
func LoadSystem(path string) (*System, error) {
	return readSystem(path, os.ReadFile)
}

// readSystem is LoadSystem by another way to read files.
func readSystem(path string, read func(string) ([]byte, error)) (*System, error) {
	s, problems := loadSystem(path, read, nil)
	for i := range problems {
		problems[i].Document = "system"
	}
	if len(problems) > 0 {
		return nil, problems.sorted()
	}
	return s, nil
}

func loadSystem(path string, read func(string) ([]byte, error), seen map[string]bool) (*System, Problems) {
	root, problems := readTree(path, read, nil)
	if problems != nil {
		return nil, problems
	}
	l := newLoader(path, root, read)
	l.manual, l.seen = SystemKeys, seen
	top := l.section(root, "")
	s := l.system(top)
	top.done()
	if len(l.problems) > 0 {
		return nil, l.problems
	}
	for _, f := range s.Faults() {
		l.fault(top, f)
	}
	return s, l.problems
}

// fault reports a fault where its key stands, or where what should have it does.
func (l *loader) fault(top *section, f Fault) {
	n, rest := top.at, f.Key
	for rest != "" {
		var part string
		part, rest, _ = strings.Cut(rest, ".")
		name, at, indexed := strings.Cut(part, "[")
		inner := n.value.(table)[name]
		if inner == nil {
			l.problems = append(l.problems,
				Problem{File: n.file, Line: n.line, Key: f.Key, Text: "missing, " + f.Text})
			return
		}
		if n = inner; indexed {
			var i int
			fmt.Sscanf(at, "%d", &i)
			n = n.value.(list)[i]
		}
	}
	l.add(n, f.Key, f.Text)
}

func (l *loader) system(top *section) *System {
	s := NewSystem()
	s.File = l.spec.File
	sections := top.subs("models")
	if len(sections) == 0 {
		top.missing("models", "want an array of tables, small model first")
	}
	for i, m := range sections {
		s.Models = append(s.Models, l.systemModel(m, i))
		m.done()
	}
	if d := top.sub("device"); d != nil {
		d.device(s)
		d.done()
	}
	if r := top.sub("router"); r != nil {
		l.systemRouter(r, &s.Router)
		r.done()
	} else if len(s.Models) == 1 {
		s.Router.Algorithm = "small"
	}
	l.systemScheduler(top.sub("scheduler"), s)
	p := Point{Concurrency: s.Concurrency}
	for _, m := range s.Models {
		p.Models = append(p.Models, Model{Name: m.Name})
	}
	if q := top.sub("policy"); q != nil {
		if n := q.get("thresholds"); n != nil && n.value == "planned" {
			q.wrong("thresholds", "want integers: tokenrouter predict finds the best from the share of tokens that"+
				" are routed (--p) and the step times that tokenrouter calibrate measures")
			q.giveUp()
		} else {
			l.policy(q, &p)
		}
		s.Policy = p.Policy
	}
	return s
}

// device reads what the models run on.
func (s *section) device(y *System) {
	y.Backend = s.word("backend", Backends[0], Backends...)
	y.MemoryBytes = int64(s.bytes("memory"))
	if s.get("kernels") != nil {
		kernels := []string{"plain", "avx2", "avx512", "avx512-bf16", "amx"}
		if y.Backend == "cuda" {
			kernels = []string{"graphs", "eager", "own", "eager own"}
		}
		y.Kernels = s.word("kernels", "", kernels...)
	}
	y.Shared = s.boolean("shared", false)
	y.GraphBatches = s.graphSizes("graph_batches")
	y.GraphTokens = s.graphSizes("graph_tokens")
}

// graphSizes reads sizes of graphs: each larger than the one before.
func (s *section) graphSizes(key string) []int {
	const sizesMax, sizeMax = 32, 1 << 16 // TR_GRAPH_SIZES_MAX of native.h
	sizes := s.wholes(key, 1, sizeMax)
	if len(sizes) > sizesMax || s.has(key) && len(sizes) == 0 {
		s.wrong(key, "want 1 to %d numbers", sizesMax)
	}
	for i := 1; i < len(sizes); i++ {
		if sizes[i] <= sizes[i-1] {
			s.wrong(key, "want each number larger than the one before")
			break
		}
	}
	return sizes
}

// systemModel reads one model.
func (l *loader) systemModel(s *section, i int) SystemModel {
	m := SystemModel{Name: fmt.Sprintf("model %d", i)}
	switch {
	case s.has("dir") && s.has("shape"):
		for _, key := range []string{"dir", "shape", "seed"} {
			s.get(key)
		}
		s.wrong("shape", "want dir or shape, not both")
	case s.has("dir"):
		if dir := s.text("dir", ""); dir != "" {
			m = Folder(beside(s.keys["dir"].file, dir))
		}
	case s.has("shape"):
		m.Name = s.text("shape", m.Name)
		shape, err := model.ParseShape(m.Name)
		if err != nil {
			s.wrong("shape", "%v", err)
		}
		m.Shape = &shape
		const seedMax = 1<<63 - 1
		m.Seed = uint64(s.whole("seed", 0, 0, seedMax))
	default:
		s.missing("dir", "want dir, or shape for random weights")
	}
	m.Name = s.text("name", m.Name)
	m.RowsMax = int(s.whole("rows_max", 0, 0, 1<<20))
	if m.Server = s.server(); m.Server != nil {
		if m.Shape != nil {
			s.wrong("shape", "want dir: a server runs the model, and knows its weights")
		}
		return m
	}
	switch s.word("weights", "bf16", "bf16", "int8") {
	case "int8":
		m.Int8 = true
		const inputsMax = 1 << 20
		if m.Group = int(s.whole("group", 0, 0, inputsMax)); m.Group%64 != 0 {
			s.wrong("group", "want a multiple of 64")
		}
	case "":
		s.get("group")
	}
	if s.has("processors") && s.has("threads") {
		s.wrong("threads", "want processors or threads, not both")
	}
	const processorsMax = 256 // TR_PROCESSORS_MAX of native.h
	m.Processors = s.wholes("processors", 0, 1<<16)
	if len(m.Processors) > processorsMax {
		s.wrong("processors", "want at most %d", processorsMax)
	}
	if sorted := slices.Sorted(slices.Values(m.Processors)); len(slices.Compact(sorted)) < len(m.Processors) {
		s.wrong("processors", "want each once")
	}
	m.Threads = int(s.whole("threads", 0, 1, processorsMax))
	return m
}

// server reads what runs a model elsewhere; nil if nothing does.
func (s *section) server() *Server {
	if !s.has("engine") {
		return nil
	}
	var of Server
	if name := s.word("engine", "", remote.EngineNames...); name != "" {
		of.Engine, _ = remote.ParseEngine(name)
	}
	if of.URL = s.text("url", ""); of.URL == "" && !s.has("url") {
		s.missing("url", "want where the server is, such as http://127.0.0.1:8000")
	}
	of.Model = s.text("model", "")
	of.TimeoutNs = s.duration("timeout", int64(remote.TimeoutDefault), 1)
	return &of
}

func (l *loader) systemRouter(s *section, r *Router) {
	if s.get("algorithm") != nil {
		r.Algorithm = s.word("algorithm", "", SystemAlgorithms...)
	}
	r.HasThreshold = s.has("threshold")
	r.Threshold = s.number("threshold", 0, ThresholdMin, ThresholdMax)
	if dir := s.text("dir", ""); dir != "" {
		r.Dir = beside(s.keys["dir"].file, dir)
	}
	r.Weights = s.numbers("weights", 0, 1e12)
}

// Thresholds lie in these bounds: scores are 0 to 1, and those beyond never or always route.
const (
	ThresholdMin = -1
	ThresholdMax = 2
)

func (l *loader) systemScheduler(s *section, y *System) {
	if s == nil {
		return
	}
	const requestsMax, tokensMax, pageMax = 4096, 1 << 24, 1 << 12
	y.Concurrency = int(s.whole("concurrency", int64(y.Concurrency), 1, requestsMax))
	y.Queue = int(s.whole("queue", int64(y.Queue), 0, requestsMax))
	if s.word("admission", "reserve", "reserve", "optimistic") == "optimistic" {
		y.Admission = core.Optimistic
	}
	y.ContextMax = int(s.whole("context_max", 0, 2, tokensMax))
	if y.PageTokens = int(s.whole("page_tokens", 0, 16, pageMax)); y.PageTokens%16 != 0 {
		s.wrong("page_tokens", "want a multiple of 16")
	}
	y.Budget = int(s.whole("token_budget", int64(y.Budget), 64, tokensMax))
	if 2*y.PageTokens > y.Budget {
		s.wrong("token_budget", "want at least 2 pages = %d", 2*y.PageTokens)
	}
	s.done()
}
