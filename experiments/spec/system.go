package spec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tokenrouter/core"
	"tokenrouter/exec/model"
	"tokenrouter/exec/remote"
)

// System is a validated system of real models that answer together: weights, router, scheduling and memory.
// What only the folders and the machine can tell is checked when it is opened.
type System struct {
	File   string // empty: made of flags
	Models []SystemModel
	Router Router

	Backend     string // one of Backends
	MemoryBytes int64  // for all models together; 0: nine tenths of what is free
	Kernels     string // of the processor, or how a card is driven; empty: the best there are
	Shared      bool   // all models run on all processors; otherwise each has its own, if there are enough
	// Sizes to which a card's batches are padded, ascending: requests and tokens of a step; nil: the device's.
	GraphBatches, GraphTokens []int

	Policy      Policy
	Admission   core.Admission
	Concurrency int // requests that are live at a time
	Queue       int // requests that may wait beyond them
	ContextMax  int // tokens of a request; 0: SystemContextMax, or what the models can if that is less
	PageTokens  int // of a KV page; 0: as the device likes it best
	Budget      int // tokens fed in a step
}

// SystemContextMax is the context of a system whose file says nothing: a bound on memory, not on models.
const SystemContextMax = 4096

// SystemModel is one model, small first.
type SystemModel struct {
	Name    string
	Dir     string        // model folder; empty: random weights of Shape
	Shape   *model.Config // nil: as the folder says
	Seed    uint64        // of random weights
	Int8    bool          // matrices as bytes with scales; otherwise bf16
	Group   int           // Int8: inputs that share a scale; 0: all of an output
	RowsMax int           // most requests of a step; 0: no bound

	Server *Server // that runs it; nil: it runs here

	Processors []int // that it runs on; nil: its part of all
	Threads    int   // without Processors; 0: one a processor. cuda: multiprocessors of its own, 0: all
}

// Server is an ordinary engine that runs a model and is reached over HTTP. The model's folder is there for
// its configuration and tokenizer only.
type Server struct {
	Engine    remote.Engine
	URL       string
	Model     string // the engine's name for it; empty: the only one that it has
	TimeoutNs int64  // of a call
}

// Router says who makes which token.
type Router struct {
	// Algorithm is r2r, citer, collm, rstitch, me, query (each request as a whole, by its prompt), small (the
	// first model alone) or large (the last alone); empty: that of the router folder.
	Algorithm    string
	Threshold    float64
	HasThreshold bool      // otherwise the router folder's counts
	Dir          string    // router folder of r2r, citer, collm and query
	Weights      []float64 // me: one a model; nil: all the same
	// Share, if HasShare, is the part of the requests for the large model, instead of a threshold of query.
	Share    float64
	HasShare bool
}

// Scored reports whether a network gives each draft of the small model a score.
func (r *Router) Scored() bool {
	return r.Algorithm == "r2r" || r.Algorithm == "citer" || r.Algorithm == "collm"
}

// Backends are the values of System.Backend.
var Backends = []string{"cpu", "cuda"}

// SystemAlgorithms are the values of Router.Algorithm.
var SystemAlgorithms = []string{"r2r", "citer", "collm", "rstitch", "me", "query", "small", "large"}

// NewSystem is a system with the defaults of a file that gives nothing but models.
func NewSystem(models ...SystemModel) *System {
	const concurrency, queue, budget = 8, 64, 512
	return &System{
		Models: models, Backend: Backends[0], Policy: Policy{Kind: "eager"}, Admission: core.Reserve,
		Concurrency: concurrency, Queue: queue, Budget: budget,
	}
}

// Folder is the model in a folder, named after it.
func Folder(dir string) SystemModel {
	name := filepath.Base(dir)
	if absolute, err := filepath.Abs(dir); err == nil {
		name = filepath.Base(absolute)
	}
	return SystemModel{Name: name, Dir: dir}
}

// Fault is something that does not go together in a system. Key is the one at fault, as in a file.
type Fault struct{ Key, Text string }

// Faults lists what does not go together, whether it came from a file or from flags.
func (s *System) Faults() []Fault {
	var faults []Fault
	wrong := func(key, format string, args ...any) {
		faults = append(faults, Fault{key, fmt.Sprintf(format, args...)})
	}
	if n := len(s.Models); n < 1 || n > core.ModelsMax {
		wrong("models", "want 1 to %d models, not %d", core.ModelsMax, n)
		return faults
	}
	own, here := 0, 0
	for i, m := range s.Models {
		key := func(name string) string { return "models[" + strconv.Itoa(i) + "]." + name }
		if slices.ContainsFunc(s.Models[:i], func(o SystemModel) bool { return o.Name == m.Name }) {
			wrong(key("name"), "want a name that no other model has")
		}
		if err := isFolder(m.Dir); m.Dir != "" && err != nil {
			wrong(key("dir"), "want a model folder: %v", err)
		}
		if m.Server == nil {
			here++
		}
		if m.Processors != nil || m.Threads > 0 {
			own++
		}
	}
	if own > 0 && own < here {
		wrong("models", "want processors or threads for all models or for none, not for %d of %d", own, here)
	}
	if own > 0 && s.Shared {
		wrong("device.shared", "want it only without processors and threads of models")
	}
	s.routerFaults(wrong)
	return faults
}

// routerFaults checks the algorithm against what it needs.
func (s *System) routerFaults(wrong func(key, format string, args ...any)) {
	r := &s.Router
	network, pair := true, true
	switch r.Algorithm {
	case "":
		if r.Dir == "" {
			wrong("router.algorithm", "want one of %s", strings.Join(SystemAlgorithms, ", "))
			return
		}
	case "r2r", "citer", "collm", "query":
	case "rstitch":
		network = false
		if !r.HasThreshold {
			wrong("router.threshold", "want a number: the entropy above which the large model goes on")
		}
	default:
		network, pair = false, false
		if r.HasThreshold {
			wrong("router.threshold", "want none: %s compares nothing", r.Algorithm)
		}
	}
	if pair && len(s.Models) != 2 {
		wrong("router.algorithm", "want 2 models for it, the small and the large one, not %d", len(s.Models))
	}
	if r.Algorithm == "me" && len(s.Models) < 2 {
		wrong("router.algorithm", "want 2 models for it or more, not %d", len(s.Models))
	}
	if err := isFolder(r.Dir); network && err != nil {
		wrong("router.dir", "want a router folder: %v", err)
	} else if !network && r.Dir != "" {
		wrong("router.dir", "want none: %s has no network", r.Algorithm)
	}
	switch {
	case r.Weights == nil:
	case r.Algorithm != "me":
		wrong("router.weights", "want none: only me has weights")
	case len(r.Weights) != len(s.Models):
		wrong("router.weights", "want %d numbers, one for each model, not %d", len(s.Models), len(r.Weights))
	case !(slices.Max(r.Weights) > 0):
		wrong("router.weights", "want a number above 0 among them")
	}
}

// isFolder says what a path is if it is no folder.
func isFolder(path string) error {
	if path == "" {
		return errors.New("none is given")
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%q does not exist", path)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%q is a file", path)
	}
	return nil
}

// Used are the models that make tokens: all but for small and large, which have one.
func (s *System) Used() []SystemModel {
	switch s.Router.Algorithm {
	case "small":
		return s.Models[:1]
	case "large":
		return s.Models[len(s.Models)-1:]
	default:
		return s.Models
	}
}
