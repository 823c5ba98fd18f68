// Package spec reads experiment specs: TOML files, decoded strictly, into validated points. After Load
// nothing else validates.
//
// Every problem of a file is an error of its own, with file, line, key, value, what was wanted and, for a
// key that does not exist, the nearest one that does; Load reports all of them together. KEYS.md lists
// every key; Keys gives the same list to a program.
package spec
