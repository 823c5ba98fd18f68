// Package system makes a running system of real models from its description (spec.System): it opens the
// folders, checks that they go together, shares memory and processors among the models, loads them onto
// their devices and puts an exec.Loop around them.
//
// Everything that can be refused is refused before a weight is read: vocabularies that differ, a router made
// for another model, a memory budget that leaves no room for one context.
package system
