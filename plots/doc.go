// Package plots draws the project's figures from plain numbers, as PNG (300 dpi) and SVG.
//
// A figure is one function that takes one struct of series and returns a [Figure]:
//
//	Threshold        throughput against the large model's threshold, a panel per concurrency
//	Schedules        the four-schedule timeline
//	ThroughputSpeed  throughput against single-user speed, a line per policy
//	Pareto           accuracy against throughput, a panel per concurrency and a line per routing
//	Bars             any metric of several systems in groups of bars, with published values
//	Sweep            any metric against any sweep axis
//	Timeline         launches of a trace
//
// The package knows results, never the world that made them: no scheduler, simulator or device is
// imported here.
//
// # Looks
//
// Figures are made for a paper: [ColumnWidth] or [TextWidth] wide, text of 7 pt or more at that size,
// the Okabe-Ito palette (distinguishable with the common forms of colour blindness), and a dash and a mark
// beside each colour so that they survive grey printing. A policy or a model looks the same in every figure;
// see [PolicyNames] and [ModelNames].
//
// # Values that cannot be drawn
//
// No input panics. A NaN is a missing value and breaks its line. Zero and negative values on a log axis, and
// infinite values on any axis, are left out, never moved; their number is printed on the figure and kept in
// [Figure.LeftOut]. A figure without values is an empty frame that says "no data". Series whose slices differ
// in length are an error.
//
// # Same input, same bytes
//
// Nothing depends on the clock, the machine's fonts or the order of a map. The text of an SVG names
// Liberation Sans and, after it, Arial and Helvetica, which have the same widths; PNGs use the Liberation
// Sans that gonum/plot carries.
//
// gonum.org/v1/plot gives the canvases, fonts and lengths. Its plot.Plot is not used: in v0.17 it panics on a
// log axis for an empty, flat or single-point series, and it cannot share labels among panels.
package plots
