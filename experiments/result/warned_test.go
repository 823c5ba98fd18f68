package result

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWarned: a warning is told once, with the points that have it, and of those that differ in numbers the
// first.
func TestWarned(t *testing.T) {
	s := &Summary{Rows: []Row{
		{Point: "a", Warnings: []string{"3 requests were refused: too long",
			"rounded to 50 ns, at a cost of -0.1 %"}},
		{Point: "b", Warnings: []string{"rounded to 100 ns, at a cost of 0.1 %", "nothing was measured"}},
		{Point: "c", Warnings: []string{"rounded to 50 ns, at a cost of -0.1 %",
			"rounded to 20 ns, at a cost of 2 %"}},
	}}
	want := [][2]string{
		{"a", "3 requests were refused: too long"},
		{"3 of 3 points", "rounded to 50 ns, at a cost of -0.1 %; others with other numbers"},
		{"b", "nothing was measured"},
	}
	var got [][2]string
	for _, w := range s.Warned() {
		got = append(got, [2]string{w.Where(len(s.Rows)), w.Text})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
