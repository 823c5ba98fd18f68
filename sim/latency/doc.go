// Package latency says how long things take in a simulated world: forward passes, host work, links.
//
// A Model maps the Shape of a launch to whole nanoseconds. Kinds:
//
//   - Constant: the same time always, as the throughput chain assumes.
//   - Affine: base + perRow*rows + perFresh*fresh + perBlock*blocks + perContext*context; FitAffine and
//     FitRelative make one from samples.
//   - Table: measured times on a grid, interpolated (NewTable, or NewTableOf samples).
//   - Roofline: from a model's dimensions and a device's peaks (NewRoofline, DimensionsNamed, DeviceNamed).
//   - Overhead and Launched wrap a Model with host time, and with graphs: shapes padded to a captured grid,
//     and eager launches outside it.
//
// A calibrated model knows the Range of its samples. Asked outside, it either clamps the shape to the
// range or refuses, as its Outside says; in both cases it reports inRange = false, and a Tally
// turns the number of such launches into a warning for the result. A time is never negative, never
// NaN and never extrapolated.
package latency
