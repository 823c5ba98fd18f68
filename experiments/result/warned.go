package result

import (
	"fmt"
	"slices"
	"strings"
)

// Warned is a warning and the points that have it. Warnings that differ in nothing but numbers are one.
type Warned struct {
	Text   string // of the first point
	Points []string
	kind   string
}

// Warned lists the warnings of all points, each kind once.
func (s *Summary) Warned() []Warned {
	var all []Warned
	for i := range s.Rows {
		r := &s.Rows[i]
		for _, text := range r.Warnings {
			kind := withoutNumbers(text)
			at := slices.IndexFunc(all, func(w Warned) bool { return w.kind == kind })
			if at < 0 {
				at = len(all)
				all = append(all, Warned{Text: text, kind: kind})
			}
			w := &all[at]
			if w.Text != text && !strings.HasSuffix(w.Text, otherNumbers) {
				w.Text += otherNumbers
			}
			if !slices.Contains(w.Points, r.Point) {
				w.Points = append(w.Points, r.Point)
			}
		}
	}
	return all
}

const otherNumbers = "; others with other numbers"

func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("0123456789.-", r) {
			return -1
		}
		return r
	}, text)
}

// Where names the points out of so many.
func (w *Warned) Where(of int) string {
	if n := len(w.Points); n > 1 {
		return fmt.Sprintf("%d of %d points", n, of)
	}
	return w.Points[0]
}
