package keyed

import "math/bits"

// Purpose says what a draw is for, so that two uses of one position share nothing.
type Purpose uint8

// The purposes of the simulator. Their numbers are part of every result: append, never reorder.
// A user's own purposes begin at Custom.
const (
	Route      Purpose = iota + 1 // the routing verdict after a step
	Token                         // the id of a sampled token
	Stop                          // whether an output ends here
	Length                        // the natural output length of a request
	Arrival                       // the gap before a request's arrival
	Prompt                        // the prompt length of a request
	Entry                         // the model at which a request enters
	Prefix                        // the shared prefix a prompt begins with
	Difficulty                    // the state of a request's difficulty chain
	Jitter                        // variation of a step time
	Cancel                        // whether and when a client gives up
	Custom     Purpose = 128      // first of the user's own purposes
)

// Odd constants without structure: the fractional parts of the golden ratio, of pi and of e, and
// the multipliers of the SplitMix64 finaliser (Steele, Lea and Flood, OOPSLA 2014).
const (
	golden    = 0x9e3779b97f4a7c15
	fracPi    = 0x243f6a8885a308d3
	fracE     = 0xb7e151628aed2a6b
	splitMul1 = 0xbf58476d1ce4e5b9
	splitMul2 = 0x94d049bb133111eb
)

// Key is the part of a name that all draws of one request share: seed and request, mixed once.
// Two (seed, request) pairs never have equal keys.
type Key struct{ a, b uint64 }

// NewKey mixes a seed and a request id. It costs about ten nanoseconds; keep the result.
func NewKey(seed, request uint64) Key {
	s := mix(seed + golden)
	a := mix(request ^ s)
	return Key{a: a, b: mix(a ^ bits.RotateLeft64(s, 32) ^ fracPi)}
}

// At returns 64 uniform bits for one position, model and purpose of the key's request.
func (k Key) At(position, model uint32, purpose Purpose) uint64 {
	hi, lo := bits.Mul64(k.a^(uint64(model)<<32|uint64(position)), k.b^uint64(purpose)*golden)
	hi, lo = bits.Mul64(hi^k.b, lo^fracE)
	return hi ^ lo
}

// Hash returns 64 uniform bits named by all its arguments: NewKey(seed, request).At(position,
// model, purpose).
func Hash(seed, request uint64, position, model uint32, purpose Purpose) uint64 {
	return NewKey(seed, request).At(position, model, purpose)
}

// mix is the SplitMix64 finaliser: a bijection in which every input bit moves every output bit.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * splitMul1
	x = (x ^ x>>27) * splitMul2
	return x ^ x>>31
}

// Stream is a counter-based sequence of draws under one name. It implements the Source interface of
// math/rand/v2. A Stream is a small value; a copy continues independently of the original.
type Stream struct {
	a, b, count uint64
}

// Stream returns the stream of one position, model and purpose. Its draws are independent of what
// At returns for the same name.
func (k Key) Stream(position, model uint32, purpose Purpose) Stream {
	a := k.At(position, model, purpose)
	return Stream{a: mix(a ^ fracE), b: mix(a ^ bits.RotateLeft64(k.a, 17) + golden)}
}

// Uint64 returns the next 64 uniform bits.
func (s *Stream) Uint64() uint64 {
	s.count++
	hi, lo := bits.Mul64(s.a^s.count, s.b^s.count*golden)
	hi, lo = bits.Mul64(hi^s.b, lo^fracE)
	return hi ^ lo
}

// Float64 returns the next uniform value in [0, 1).
func (s *Stream) Float64() float64 { return Float(s.Uint64()) }
