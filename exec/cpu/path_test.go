package cpu

import "testing"

func TestPathNames(t *testing.T) {
	want := []string{"plain", "avx2", "avx512", "avx512-bf16", "amx"}
	for i, p := range paths {
		if p.String() != want[i] {
			t.Errorf("path %d is %q, want %q", i+1, p, want[i])
		}
		if p.Available() != (p <= Best()) {
			t.Errorf("%v available: %v, best is %v", p, p.Available(), Best())
		}
	}
	for _, p := range []Path{0, 6, -1} {
		if p.Available() {
			t.Errorf("%v is available, want not", p)
		}
	}
	if got := Path(9).String(); got != "Path(9)" {
		t.Errorf("%q, want Path(9)", got)
	}
}

// onEachPath runs f for every path that this machine has and says which it lacks. Those must be refused: see
// TestUnavailable.
func onEachPath(t *testing.T, f func(t *testing.T, p Path)) {
	t.Helper()
	for _, p := range paths {
		if !p.Available() {
			t.Logf("%v: unavailable on this machine", p)
			continue
		}
		t.Run(p.String(), func(t *testing.T) { f(t, p) })
	}
}
