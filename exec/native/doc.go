// Package native runs models on native devices: it wraps the C ABI of native.h for Go and makes an
// exec.Device of a loaded model.
//
// A Backend is an implementation of the ABI; packages exec/cpu and cuda have one each. This package knows
// neither: whoever wires a program hands it in. Backend.Open gives a Device with a budget of memory;
// Device.Load puts a model there, from a folder (Files) or from a seed alone (Random), with all the memory
// that its steps will ever need, and says before it reads a weight if that is too much. An Executor is what
// exec.Loop then drives. Backend.Probe says what a model would take, for whoever plans.
//
// Errors wrap ErrNoDevice, ErrInvalid, ErrUnsupported, ErrNoMemory or ErrFailed.
//
// # Draws
//
// A token is drawn with bits that are named by the request's seed, the place in its answer and the model, and
// so is Result.Draw: by the names of package keyed that the simulator uses. What else runs, and in which
// order, does not matter.
package native
