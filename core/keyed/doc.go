// Package keyed draws randomness by name instead of by turn.
//
// A draw is a function of what it is for: the seed of the run, the request, the position in its
// output, the model, and a Purpose. It does not depend on what was drawn before. Therefore every
// scheduling policy sees the same requests with the same outcomes, a request meets the same
// outcomes alone and in a batch, a draft that is dropped shifts no later draw, and a point added
// to a sweep changes no other point.
//
// Three layers:
//
//   - Hash, or the faster Key.At for many draws of one request: 64 uniform bits.
//   - Float, Chance, Below, Exponential, Normal, Geometric, ...: one value from one hash.
//   - Stream: any number of draws under one name, for laws that need more than one uniform
//     (Gamma). It is a math/rand/v2 Source, so gonum's distuv laws may be drawn from it too.
//
// Derive makes the seed of a sweep point or replicate from names and values.
//
// The mixing is two rounds of a 64 by 64 to 128 bit multiplication, folded; it passes the tests of
// this package (uniformity, independence along every argument, avalanche) and is not fit for
// secrets. Hash, Below, Chance and Derive give the same bits on every machine. Draws that need a
// logarithm or exponential are the same on every machine of one architecture, because package math
// has assembly for some.
package keyed
