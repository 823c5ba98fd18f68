package core

// Row is one request of a launch: feed its tokens of positions [Start, Start+Fresh).
type Row struct {
	ID       uint64
	Since    Time // when it joined the queue
	Slot     int32
	Gen      uint32 // of the slot
	Start    int32  // tokens already in this model's KV
	Fresh    int32  // tokens to feed
	Head     bool   // the last fresh token is the last known: sample the next one
	Returned bool   // first row of a call: of a visit, or of any token where Model.TokenCalls
}

// Launch is one forward pass of one idle model. It stays as it is until the event with its
// completion is handed in.
type Launch struct {
	Model int
	Seq   uint64 // counts the launches of this model from 1
	Rows  []Row

	// Sums over Rows: tokens to feed, tokens in KV, rows with Returned, and time in the queue.
	Fresh    int64
	Context  int64
	Returned int
	WaitNs   Time
	// Ahead: decided while the step before ran (Config.Ahead).
	Ahead bool
	// Returns since the model's last launch, and how long their seats had been pending.
	Pendings  int
	PendingNs Time
}

// Token is a token committed in this turn.
type Token struct {
	ID       uint64
	Slot     int32
	Position int32 // 0 is the first token of the answer
	Token    int32
	LogProb  float32
	Model    int32 // that made it
}

// Grant tells the device that page Page holds block Index of a request's KV at Model.
type Grant struct {
	Model int
	Slot  int32
	Index int32
	Page  int32
}

// Admit says that a request has become live here. Guest: another node admitted it.
type Admit struct {
	ID      uint64
	Arrival Time // Submission.Arrival; 0 for a guest
	Slot    int32
	Guest   bool
}

// Outcome is how a request left: every submitted request leaves once, with one of these.
type Outcome uint8

const (
	// Finished: the answer has ended by itself, at its limit, or at a stop string.
	Finished Outcome = iota + 1
	// Rejected at submission: it can never be served, or not now.
	Rejected
	// CancelledOutcome: its client wants no more of it. (Cancelled is the event.)
	CancelledOutcome
	// Failed: its device or a link has failed, or its Algorithm went in circles.
	Failed
)

// Reason says why a request left.
type Reason uint8

const (
	EndOfSequence Reason = iota + 1 // Finished: an EOS token was committed
	TokensMax                       // Finished: Submission.TokensMax tokens were committed
	StopString                      // Finished: the driver saw a stop string
	ClientLeft                      // Cancelled
	TimedOut                        // Cancelled
	TooLong                         // Rejected: prompt + output exceed Config.ContextMax
	PoolTooSmall                    // Rejected: can never fit in the pool of Leave.Model
	Malformed                       // Rejected: no prompt, no output, or no such model
	Duplicate                       // Rejected: a request of this ID is here already
	Full                            // Rejected: no slot
	DeviceFailed                    // Failed
	NoProgress                      // Failed: the Algorithm moved it in a circle, committing nothing
	LinkFailed                      // Failed: its hand-off was lost
	Stopped                         // Cancelled: the executor stopped
	NotANumber                      // Failed: Result.Failed of a pass of Leave.Model
)

// Leave says that a request is gone. Slot is -1 if it never had one.
type Leave struct {
	ID      uint64
	Slot    int32
	Tokens  int32 // committed in all
	Dropped int32 // drafts dropped by models of this node
	Model   int   // PoolTooSmall: whose pool; otherwise where the request was, or -1
	Outcome Outcome
	Reason  Reason
	Guest   bool
}

// Actions is what a turn asks of its driver. Turn overwrites it; slices other than
// Launch.Rows are valid until the next turn.
type Actions struct {
	Admits   []Admit
	Tokens   []Token
	Leaves   []Leave
	Grants   []Grant
	Launches []Launch
	Sends    []Handoff
	News     []News
	Wake     Time // hand in Woken no later than this; 0 means never
}

func (a *Actions) reset() {
	a.Admits = a.Admits[:0]
	a.Tokens = a.Tokens[:0]
	a.Leaves = a.Leaves[:0]
	a.Grants = a.Grants[:0]
	a.Launches = a.Launches[:0]
	a.Sends = a.Sends[:0]
	a.News = a.News[:0]
	a.Wake = 0
}

var outcomeNames = [...]string{"", "finished", "rejected", "cancelled", "failed"}

func (o Outcome) String() string { return outcomeNames[o] }

var reasonNames = [...]string{"", "end of sequence", "length", "stop string", "client left",
	"timed out", "too long", "pool too small", "malformed", "duplicate", "full",
	"device failed", "no progress", "link failed", "stopped", "not a number"}

func (r Reason) String() string { return reasonNames[r] }
