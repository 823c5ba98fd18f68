package core

import "fmt"

// Admission says how KV pages are promised to a request when it is admitted.
type Admission uint8

const (
	// Reserve promises the pages of the longest possible answer in every pool that the
	// request may need. Nothing is ever preempted.
	Reserve Admission = iota + 1
	// Optimistic promises the prompt only. When a pool runs dry the youngest requests lose
	// their pages there and compute them again later.
	Optimistic
)

// Model is one model of the system, on whatever node.
type Model struct {
	Name    string
	Node    int
	Pages   int // KV pool
	RowsMax int // most rows of a launch; 0 means no bound
	// TokenCalls: every token is a call of its own, as of an ordinary engine that a dispatcher asks for one
	// token at a time. Otherwise a call is a whole visit, until the request is handed off.
	TokenCalls bool
	// Forgets: KV does not outlive a call. The next one feeds all known tokens again, and no prefix is shared.
	Forgets bool
	// DispatchNs is how long a call is on its way to the queue, 0 to DelayMax: a dispatcher, HTTP, another
	// process. It occupies nobody.
	DispatchNs Time
}

// Config describes a Scheduler. Everything in it is fixed for the Scheduler's life.
type Config struct {
	Models    []Model
	Algorithm Algorithm
	Policy    Policy
	Admission Admission
	// Static: requests are admitted only when nobody is live, up to LiveMax at once, as in engines without
	// continuous batching.
	Static bool
	// Unmixed: a step that feeds some request more than one token takes no request that goes on where it is by
	// one token, as in engines that run extend and decode steps apart. What begins or is longer goes first.
	Unmixed bool
	// Ahead: what a model does next is decided while it runs, as in engines that hide their planning: a call
	// that comes meanwhile has no part in the step that follows at once, unless nobody else can have.
	Ahead bool
	// FrontNs is how long an admitted request is on its way to its first call, 0 to DelayMax: HTTP and tokenizer
	// of a server's front. It occupies nobody.
	FrontNs Time

	// Requests is the number of slots: requests live or waiting for admission.
	Requests int
	// LiveMax bounds N, the requests live at once; 0 means Requests.
	LiveMax int
	// ContextMax is the most tokens of one request, prompt and output.
	ContextMax int
	// PageTokens is the size of a KV page, the same in every pool.
	PageTokens int
	// TokenBudget bounds the fresh tokens of a launch, so that a long prompt is fed in
	// chunks; 0 means no bound. Otherwise at least 2 * PageTokens.
	TokenBudget int

	// Node is this Scheduler's own node. Node 0 is the front: it admits all requests.
	Node int
}

// sizeMax bounds every count of tokens and pages, so that no sum of two leaves an int32.
const sizeMax = 1 << 30

// DelayMax bounds times outside the engines: 11 days in nanoseconds.
const DelayMax Time = 1e15

func (c *Config) validate() error {
	if n := len(c.Models); n < 1 || n > ModelsMax {
		return fmt.Errorf("core: %d models, want 1 to %d", n, ModelsMax)
	}
	if c.Algorithm == nil && len(c.Models) > 1 || c.Policy == nil {
		return fmt.Errorf("core: Algorithm and Policy must be set")
	}
	if c.Admission != Reserve && c.Admission != Optimistic {
		return fmt.Errorf("core: Admission = %d, want Reserve or Optimistic", c.Admission)
	}
	if c.LiveMax == 0 {
		c.LiveMax = c.Requests
	}
	if c.Requests < 1 || c.LiveMax < 1 || c.LiveMax > c.Requests {
		return fmt.Errorf("core: Requests = %d, LiveMax = %d, want 1 <= LiveMax <= Requests",
			c.Requests, c.LiveMax)
	}
	if c.ContextMax < 2 || c.ContextMax > sizeMax || c.PageTokens < 1 || c.PageTokens > sizeMax {
		return fmt.Errorf("core: ContextMax = %d, PageTokens = %d, want at least 2 and 1, at most %d",
			c.ContextMax, c.PageTokens, sizeMax)
	}
	if b := c.TokenBudget; b != 0 && (b < 2*c.PageTokens || b > sizeMax) {
		return fmt.Errorf("core: TokenBudget = %d, want 0 or 2 pages = %d to %d",
			b, 2*c.PageTokens, sizeMax)
	}
	if c.FrontNs < 0 || c.FrontNs > DelayMax {
		return fmt.Errorf("core: FrontNs = %d, want 0 to %d", c.FrontNs, DelayMax)
	}
	return c.validateModels()
}

func (c *Config) validateModels() error {
	owned, nodes := 0, 1
	for i, m := range c.Models {
		if m.Pages < 1 || m.Pages > sizeMax || m.Node < 0 || m.RowsMax < 0 {
			return fmt.Errorf("core: model %d %q: Pages = %d, Node = %d, RowsMax = %d,"+
				" want 1 to %d, at least 0, at least 0", i, m.Name, m.Pages, m.Node, m.RowsMax, sizeMax)
		}
		if m.DispatchNs < 0 || m.DispatchNs > DelayMax {
			return fmt.Errorf("core: model %d %q: DispatchNs = %d, want 0 to %d", i, m.Name, m.DispatchNs, DelayMax)
		}
		if m.Node == c.Node {
			owned++
		}
		nodes = max(nodes, m.Node+1)
	}
	if owned == 0 && c.Node != 0 {
		return fmt.Errorf("core: node %d has no model", c.Node)
	}
	if nodes > 1 && c.Requests < 2*c.LiveMax {
		return fmt.Errorf("core: Requests = %d with LiveMax = %d on %d nodes, want at least"+
			" twice: news of an end may come late", c.Requests, c.LiveMax, nodes)
	}
	if a, ok := c.Algorithm.(Sized); ok && a.Models() != len(c.Models) {
		return fmt.Errorf("core: %T for %d models, want %d", c.Algorithm, a.Models(), len(c.Models))
	}
	if d, ok := c.Policy.(Delayed); ok && d.Thresholds.models() != len(c.Models) {
		return fmt.Errorf("core: thresholds for %d models, want %d", d.Thresholds.models(), len(c.Models))
	}
	if _, ok := c.Policy.(Barrier); ok && owned < len(c.Models) {
		return fmt.Errorf("core: policy %T is a barrier over all models: node %d owns %d of %d",
			c.Policy, c.Node, owned, len(c.Models))
	}
	return nil
}
