// Package report writes what several experiments show of published values, as one Markdown and one HTML page:
// every figure, the error of every cell, what was fitted and to what, and what each experiment says of
// itself.
//
// Nothing in a report depends on the clock, the machine or the order of a map: the same results give the same
// bytes.
package report
