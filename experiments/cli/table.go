package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table is text in columns: numbers to the right, the last column of a row that has no title to the left.
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
			if i < len(widths) {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
			}
			line.WriteString(cell)
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}
