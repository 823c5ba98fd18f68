package turnlog

import (
	"fmt"

	"tokenrouter/core"
)

// header is the first line of a log.
type header struct {
	Format  string
	Version int
	Nodes   int // how many lines with configurations follow
}

func showHeader(f *fields, h *header) {
	text(f, "format", &h.Format)
	signed(f, "version", &h.Version)
	signed(f, "nodes", &h.Nodes)
}

var admissionNames = []string{"", "reserve", "optimistic"}

func showConfig(f *fields, c *core.Config) {
	always(f, "node", &c.Node)
	list(f, "models", &c.Models, asObjects, showModel)
	showAlgorithm(f, &c.Algorithm)
	showPolicy(f, &c.Policy)
	word(f, "admission", &c.Admission, admissionNames)
	flag(f, "static", &c.Static)
	flag(f, "unmixed", &c.Unmixed)
	flag(f, "ahead", &c.Ahead)
	signed(f, "front_ns", &c.FrontNs)
	signed(f, "requests", &c.Requests)
	signed(f, "live_max", &c.LiveMax)
	signed(f, "context_max", &c.ContextMax)
	signed(f, "page_tokens", &c.PageTokens)
	signed(f, "token_budget", &c.TokenBudget)
}

func showModel(f *fields, m *core.Model) {
	text(f, "name", &m.Name)
	always(f, "node", &m.Node)
	signed(f, "pages", &m.Pages)
	signed(f, "rows_max", &m.RowsMax)
	flag(f, "token_calls", &m.TokenCalls)
	flag(f, "forgets", &m.Forgets)
	signed(f, "dispatch_ns", &m.DispatchNs)
}

// parameters is what a policy or an algorithm is made of. Each uses the fields that it needs.
type parameters struct {
	Name       string
	Type       string // of one that has no name here
	Threshold  float64
	Thresholds [][]int // for N = 1, 2, ...
	MaxWaitNs  core.Time
	Weights    []float64
	Routing    [][]float64
	Commit     [][]float64
}

func showParameters(f *fields, p *parameters) {
	text(f, "name", &p.Name)
	text(f, "type", &p.Type)
	float(f, "threshold", &p.Threshold)
	list(f, "thresholds", &p.Thresholds, asValues, showInts)
	signed(f, "max_wait_ns", &p.MaxWaitNs)
	list(f, "weights", &p.Weights, asValues, showNumber)
	list(f, "routing", &p.Routing, asValues, showNumbers)
	list(f, "commit", &p.Commit, asValues, showNumbers)
}

func showInts(f *fields, p *[]int)        { list(f, "row", p, asValues, showInt) }
func showInt(f *fields, p *int)           { signed(f, "value", p) }
func showNumbers(f *fields, p *[]float64) { list(f, "row", p, asValues, showNumber) }
func showNumber(f *fields, p *float64)    { float(f, "value", p) }

func showAlgorithm(f *fields, a *core.Algorithm) {
	if f.writes() {
		if *a == nil {
			return // one model alone needs none
		}
		p := describeAlgorithm(*a)
		group(f, "algorithm", func() { showParameters(f, &p) })
		return
	}
	var p parameters
	group(f, "algorithm", func() { showParameters(f, &p) })
	if f.err != nil || p.Name == "" && p.Type == "" {
		return
	}
	made, err := makeAlgorithm(&p)
	if err != nil {
		f.fail("algorithm", err)
		return
	}
	*a = made
}

func showPolicy(f *fields, a *core.Policy) {
	if f.writes() {
		p := describePolicy(*a)
		group(f, "policy", func() { showParameters(f, &p) })
		return
	}
	var p parameters
	group(f, "policy", func() { showParameters(f, &p) })
	if f.err != nil || p.Name == "" && p.Type == "" {
		return
	}
	made, err := makePolicy(&p)
	if err != nil {
		f.fail("policy", err)
		return
	}
	*a = made
}

// Custom stands for a policy or an algorithm of somebody's own in a configuration that was
// read from a log: it has its Go type and can decide nothing.
type Custom struct{ Type string }

// Start panics.
func (c Custom) Start(int, *core.View) bool { panic(c.Error()) }

// Route panics.
func (c Custom) Route(*core.Visit, *core.Result) int { panic(c.Error()) }

// Send panics.
func (c Custom) Send(*core.Visit, *core.Result, int) bool { panic(c.Error()) }

// Error says what is needed.
func (c Custom) Error() string {
	return fmt.Sprintf("turnlog: %s is not a policy or algorithm that a log can name: replay with"+
		" configurations of your own (ReplayWith)", c.Type)
}
