package core

// Time is nanoseconds since the start of a run, virtual or real. The core compares and
// adds times; it never asks for one.
type Time = int64

// ModelsMax bounds the models of one system.
const ModelsMax = 8

// State is what an Algorithm remembers of one request between tokens. It belongs to the
// request, never to a row or a slot, and travels with it in a Handoff.
type State [2]uint64

// EventKind says what happened. Events of one turn are handled in this order, so that a
// turn is a set (I9): completions first, then what came from elsewhere, then clients.
type EventKind uint8

const (
	// BatchDone: a launch of Model has ended; Results has one entry a row, or Failed is set.
	BatchDone EventKind = iota + 1
	// Arrived: Handoff came from another node.
	Arrived
	// NewsCame: News came from another node.
	NewsCame
	// Lost: the link could not take the hand-off of request ID that the last turn asked for.
	// The request ends here: it is nowhere else.
	Lost
	// Cancelled: the client of request ID wants no more of it; Reason says why.
	Cancelled
	// Submitted: a new request, described by Submission.
	Submitted
	// Woken: the time of Actions.Wake has come. It carries nothing: any turn looks at Now.
	Woken
)

// Event is one thing that happened. Only the fields of its kind are read.
type Event struct {
	Kind       EventKind
	Failed     bool   // BatchDone: the device failed; every row's request leaves as Failed
	Reason     Reason // Cancelled: ClientLeft, TimedOut, Stopped or StopString; zero means ClientLeft
	Model      int    // BatchDone
	ID         uint64 // Cancelled, Lost
	Results    []Result
	Submission *Submission
	Handoff    *Handoff
	News       News
}

// Result is what a forward pass says of one row: the sampled token and the signals that the
// device has already reduced from logits and hidden states. The core reads Token, LogProb,
// EOS and Failed; the rest is for the Algorithm. A row whose Head is false has an empty Result.
type Result struct {
	Token   int32
	LogProb float32 // natural log, of the sampled token
	TopProb float32 // probability of the most likely token
	EOS     bool    // the token is one of the end-of-sequence ids
	Next    uint8   // recorded runs: the model that goes on
	Drop    bool    // recorded runs: the token was dropped on the move to Next
	Failed  bool    // all else is void: the row failed, as where logits are no numbers, and its request ends
	Score   float64 // router network, CITER confidence or Co-LLM deferral probability
	Entropy float64 // of the next-token distribution, divided by ln V: 0 to 1
	Draw    float64 // uniform in [0, 1), keyed by request and position, from the world
}

// Submission describes a new request. The scheduler keeps the pointed-to Prefix until the
// request leaves; the rest is copied.
type Submission struct {
	ID           uint64
	Arrival      Time // planned; handed on in Admit, not used
	PromptTokens int32
	TokensMax    int32  // most tokens to commit
	Entry        int    // model that gets the prompt, unless the Algorithm draws it
	Models       uint32 // bit m: the request may visit model m; 0 means all
	Draw         float64
	// Prefix names the whole pages of the prompt, first to last: key i stands for all tokens
	// up to the end of page i. Requests with equal keys share those pages. May be nil.
	Prefix []uint64
}

// Handoff moves a request to a model of another node. Token ids are not in it: the driver
// adds those of positions [Anchor, Anchor+Tokens) from its own list.
type Handoff struct {
	ID     uint64
	From   int
	To     int
	Anchor int32 // tokens the target knows already, its own last token included
	Tokens int32 // tokens it does not know: the suffix
	Prompt int32
	Limit  int32 // prompt + most output tokens
	Slot   int32 // at the sender
	Age    uint64
	Models uint32
	Drops  uint8 // drafts dropped since the last commit
	State  State
	Seen   [ModelsMax]int32 // tokens each model knew when the request last left it
	Prefix []uint64
}

// NewsKind is the kind of a control message between nodes.
type NewsKind uint8

const (
	// NewsAdmitted: request ID is live; N grows by one.
	NewsAdmitted NewsKind = iota + 1
	// NewsEnded: request ID is gone, Tokens committed in all; N shrinks by one.
	NewsEnded
	// NewsCancel: whoever holds request ID shall end it.
	NewsCancel
	// NewsFreed: node Node has freed what it held of request ID. Only the front heeds it: it
	// admits no more than each node has slots for, however late news of ends may come.
	NewsFreed
)

// News is a control message; it goes to every other node. Links keep the order of what one
// node sends to another, News and Handoffs alike.
type News struct {
	Kind    NewsKind
	Outcome Outcome
	Reason  Reason
	ID      uint64
	Tokens  int32
	Anchor  int32 // NewsEnded: tokens that the front is sure to know (prompt included)
	Node    int32 // NewsFreed: the sender
}
