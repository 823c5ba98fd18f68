// Package task makes the problems that the project's own models are trained and measured on, and scores
// answers.
//
// There are two families. Both give plain text, worked steps and a final line "Answer: ...".
//
//   - arith: an expression of sums, differences, products and brackets. A step is a line such as
//     "387 * 6 = 2322". Copying and form are easy; the carries of sums, which are written with the
//     largest digit first, and products are hard. A factor of two digits is worked in three lines.
//   - symbols: letters that are reversed, rotated, sorted, exchanged and moved along the alphabet, a
//     line a step.
//
// Levels go from 1 to 6 and make problems longer and their numbers or words larger. Without a level,
// problem i has level 1 + i mod 6.
//
// A problem is named by task, split, seed and index, and is the same on every machine, whatever else is
// made. Training, validation and test are disjoint by construction, for any seeds: a hash of the problem
// itself, without its wording, says which split it belongs to (14, 1 and 1 of 16), and problems of other
// splits are drawn again.
//
// The 500 test problems that results are given for are those of seed 1, indices 0 to 499 (Fixed); a test
// compares them with testdata.
package task
