// Package cli is the command line of tokenrouter, one file a command.
//
// Results go to standard output, everything else to standard error. With --json a command prints one JSON
// document on standard output and nothing else there. Exit codes: 0 done, 1 failed, 2 misuse (a bad flag,
// file or value, or thresholds that are infeasible).
package cli
