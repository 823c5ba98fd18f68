package native

// #include "native.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// Request is one request of a Batch: Rows tokens, for the positions Start to Start+Rows-1 of Slot. Its pages
// up to the last must have been granted, and what lies before Start computed, by it or by a request that
// shares the pages. The fields are those of tr_request.
type Request struct {
	Slot        int32
	Start, Rows int32
	Head        int32 // 1: sample after the last row
	Top         int32 // entries of the top list that are wanted
	Biases      int32 // entries of Batch.Biases that are for it
	Temperature float32
	TopK        int32
	TopP, MinP  float32
	Random      uint64
}

// Bias is added to the logit of a token before sampling, and to nothing else.
type Bias struct {
	Token int32
	Bias  float32
}

// Grant says that block Index of the slot's KV lies in Page.
type Grant struct{ Slot, Index, Page int32 }

// Result is what a head gives. Signals are of the logits before bias and temperature, as in native.h.
type Result struct {
	Token          int32
	Finite         int32   // 0: there is a NaN or +infinity, or nothing that may be sampled: all else is void
	LogProbability float32 // natural log
	TopProbability float32
	Margin         float32 // largest probability less the second largest
	Entropy        float32 // divided by ln V
	LogSumExp      float32
	Top            int32   // entries of the top list
	Score          float64 // of the router; NaN without one
}

// Candidate is an entry of a top list, which goes from the most likely token down.
type Candidate struct {
	LogProbability float32 // natural log
	Token          int32
}

// Batch is one forward pass. Requests lie one after another in Tokens and Biases. Results, Top, Hidden and
// Logits have an entry for each request, with a head or not.
type Batch struct {
	Tokens   []int32
	Requests []Request
	Biases   []Bias
	Grants   []Grant // after Freed, in order
	Freed    []int32 // slots that lose their pages
	Results  []Result
	Top      []Candidate // Limits.TopMax a request; nil only if that is 0
	Hidden   []float32   // nil, or [request][hidden]: after the last norm
	Logits   []float32   // nil, or [request][vocab]
	Info     StepInfo
}

// StepInfo says what a step did.
type StepInfo struct {
	RowsComputed   int // with padding
	Graph          bool
	StartNs, EndNs int64 // of the work itself, by the device's clock
}

// The Go structs are handed to C as they are.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(Request{})-C.sizeof_tr_request]
	_ = [1]struct{}{}[unsafe.Offsetof(Request{}.Random)-unsafe.Offsetof(C.tr_request{}.random)]
	_ = [1]struct{}{}[unsafe.Sizeof(Bias{})-C.sizeof_tr_bias]
	_ = [1]struct{}{}[unsafe.Sizeof(Grant{})-C.sizeof_tr_grant]
	_ = [1]struct{}{}[unsafe.Sizeof(Result{})-C.sizeof_tr_result]
	_ = [1]struct{}{}[unsafe.Offsetof(Result{}.Score)-unsafe.Offsetof(C.tr_result{}.score)]
	_ = [1]struct{}{}[unsafe.Sizeof(Candidate{})-C.sizeof_tr_candidate]
)

// check panics unless C may read and write as far as the counts say.
func (b *Batch) check(m *Model) {
	n, tokens, biases := len(b.Requests), int64(0), int64(0)
	for i := range b.Requests {
		r := &b.Requests[i]
		if r.Rows < 1 || r.Biases < 0 {
			panic(fmt.Sprintf("native: request %d of a batch has %d rows and %d biases", i, r.Rows, r.Biases))
		}
		tokens += int64(r.Rows)
		biases += int64(r.Biases)
	}
	if tokens != int64(len(b.Tokens)) || biases != int64(len(b.Biases)) || len(b.Results) != n ||
		len(b.Top) != n*m.limits.TopMax || b.Hidden != nil && len(b.Hidden) != n*m.config.Model.Hidden ||
		b.Logits != nil && len(b.Logits) != n*m.config.Model.Vocab {
		panic(fmt.Sprintf("native: a batch of %d requests, %d rows and %d biases has %d tokens, %d biases,"+
			" %d results, %d top entries, %d hidden, %d logits", n, tokens, biases, len(b.Tokens),
			len(b.Biases), len(b.Results), len(b.Top), len(b.Hidden), len(b.Logits)))
	}
}
