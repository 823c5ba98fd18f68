// Package jsonline reads and writes files of one JSON value a line, strictly and fast: turn
// logs and recorded traces.
//
// It reads with a Cursor, which knows what it wants at every place: an unknown key, a repeated
// key, a key in the wrong case, a number out of range, anything after the value is an *Error
// that names the place, what was there and what was wanted. Floats are written in the shortest
// form that reads back to the same bits.
package jsonline
