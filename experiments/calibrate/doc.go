// Package calibrate measures how long the steps of real models take on this machine, over batch size, fresh
// tokens and context, alone and while the other models run, and fits the simulator's step-time law to them.
//
// A calibration is two files: every single step as CSV, and a TOML file with the fits, which a spec takes in
// with extends = "FILE". The fit minimises relative errors of the mean times of each shape; how far it is
// from them, and where it is valid, stands beside it.
//
// Alone, steps of the models come in turns, as they do in a run: a row of steps of the first model, to which
// requests come back after every step of another (RowOf), then one of each other model.
package calibrate
