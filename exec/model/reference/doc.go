// Package reference computes what a model computes in the plainest way: float64, the whole sequence at once,
// no cache, no batch, one loop a formula. It is what devices are compared with, and is itself compared with
// Hugging Face transformers (package transformers) and with answers worked out by hand.
//
// It is slow: about a second for a billion multiplications.
package reference
