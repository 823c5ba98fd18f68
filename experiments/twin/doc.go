// Package twin plays recorded runs of real models in the simulator: the same requests with the same outcomes,
// under the same policy, with step times that were calibrated before or measured in the run itself. How far
// its throughput is from the measured one says what the simulator does not know.
package twin
