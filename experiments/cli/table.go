package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table is text in columns: words stand to the left of their column, numbers to the right.
type table struct {
	head []string
	rows [][]string
}

func (t *table) titles(names ...string) { t.head = names }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// write aligns and writes all rows. A row may have cells beyond the titles.
func (t *table) write(w io.Writer) error {
	widths := make([]int, len(t.head))
	for _, cells := range append([][]string{t.head}, t.rows...) {
		for i, cell := range cells {
			if i < len(widths) {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			}
		}
	}
	for _, cells := range append([][]string{t.head}, t.rows...) {
		var line strings.Builder
		for i, cell := range cells {
			if i > 0 {
				line.WriteString("  ")
			}
			room := ""
			if i < len(widths) {
				room = strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			}
			if t.words(i) {
				line.WriteString(cell + room)
			} else {
				line.WriteString(room + cell)
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// words reports whether a column holds anything that does not begin as a number does.
func (t *table) words(i int) bool {
	for _, cells := range t.rows {
		if i < len(cells) && strings.Trim(cells[i][:min(1, len(cells[i]))], "+-0123456789") != "" {
			return true
		}
	}
	return false
}
