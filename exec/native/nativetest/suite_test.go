package nativetest

import "testing"

// TestFake: the suite's own steps, pages and refusals are right where the backend is.
func TestFake(t *testing.T) { Suite{Backend: Fake(), SameBits: true}.RunSteps(t) }
