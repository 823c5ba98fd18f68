// Package lint checks the project's own rules: the size of files, functions and lines, the direction of
// imports, what the scheduler core may touch, documentation, and tests that are never skipped.
//
// A rule here is one that no public tool knows. gofmt, go vet and staticcheck run beside it; see `make lint`.
package lint
