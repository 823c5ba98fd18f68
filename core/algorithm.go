package core

import "reflect"

// Visit is a request as its Algorithm sees it after a forward pass. It shows nothing of
// future tokens or of the natural length (I11), nothing of slots, rows or batches.
type Visit struct {
	ID       uint64
	State    State
	Models   uint32 // bit m: the request may go to model m
	Position int32  // of the sampled token in the answer, from 0
	Model    int32  // that has just run
}

// Algorithm is a token-level routing rule: route and send of TokenRouter (section 3), seen
// from one request; the third function, receive, is in Receiver. All are pure but for Visit.State.
type Algorithm interface {
	// Route says which model goes on after a forward pass, prefill included. The present
	// model means "stay here": the token is then committed.
	Route(v *Visit, r *Result) int
	// Send is asked when the request leaves for peer: is the sampled token kept (committed,
	// and the end of the suffix) or dropped, so that the peer makes it again?
	Send(v *Visit, r *Result, peer int) (keep bool)
}

// Batch is implemented by an Algorithm that looks at nothing of a Visit but Model, so that it can
// judge a launch in one call, much quicker than a call or two a row. Requests that may not go to
// every model, and rows that end one, are still judged by Route and Send.
type Batch interface {
	// Judge sets verdicts[i], of as many as results, to what Route and Send say of results[i], a
	// result of the model.
	Judge(model int, results []Result, verdicts []Verdict)
}

// Verdict is what an Algorithm says of a row.
type Verdict struct {
	Next int  // the model that goes on
	Keep bool // the token is committed: always, where Next is the model that made it
}

// batchOf returns a as a Batch, or nil. It does not trust a Judge that may come from a type that
// is embedded in a: that would know nothing of a Route or Send that a has instead.
func batchOf(a Algorithm) Batch {
	batch, ok := a.(Batch)
	if !ok {
		return nil
	}
	t := reflect.TypeOf(a)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return batch
	}
	for i := range t.NumField() {
		if field := t.Field(i); field.Anonymous && mayJudge(field.Type) {
			return nil
		}
	}
	return batch
}

func mayJudge(t reflect.Type) bool {
	batch := reflect.TypeFor[Batch]()
	return t.Implements(batch) || reflect.PointerTo(t).Implements(batch)
}

// Receiver is implemented by an Algorithm whose state changes when a request comes to a
// model. By default a model accepts all the tokens that it is sent.
type Receiver interface {
	// Receive is told that the request has come to Visit.Model with a suffix of n tokens.
	Receive(v *Visit, n int)
}

// Entry is implemented by an Algorithm that draws the model that makes the first token.
type Entry interface {
	// Enter returns the first model of a request; draw is uniform in [0, 1).
	Enter(draw float64, models uint32) int
}

// Sized is implemented by an Algorithm that is made for a number of models: New refuses any
// other.
type Sized interface {
	// Models is that number.
	Models() int
}
