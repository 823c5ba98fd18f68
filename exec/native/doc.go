// Package native runs models on native devices: it wraps the C ABI of native.h for Go and makes an
// exec.Device of a loaded model.
//
// A Backend is an implementation of the ABI; packages exec/cpu and cuda have one each. This package knows
// neither: whoever wires a program hands it in.
package native
