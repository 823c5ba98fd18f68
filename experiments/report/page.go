package report

import (
	"slices"
	"strings"
)

// page is a document of blocks, which two writers turn into text.
type page struct{ blocks []block }

// block is a heading, a paragraph, a list, a table or a figure.
type block interface{ isBlock() }

type heading struct {
	level int // 1 is the title of the page
	text  string
	id    string // empty: nothing links to it
}

// paragraph is text in which `code` may stand.
type paragraph string

type items []string

// cells is a table. A column whose cells are numbers stands to the right.
type cells struct {
	head []string
	rows []row
}

// row is a row of a table; strong ones are sums.
type row struct {
	texts  []string
	marks  []mark // of each text; nil for none
	link   string // id of the heading that the first text leads to; empty for none
	strong bool
}

// mark says how good what a cell tells is.
type mark int

const (
	plain mark = iota
	good
	fair
	poor
)

// picture is a figure: name.png beside the Markdown page, and svg within the HTML page.
type picture struct {
	name  string
	title string
	width int // in the HTML page, CSS pixels
	png   []byte
	svg   []byte
}

func (heading) isBlock()   {}
func (paragraph) isBlock() {}
func (items) isBlock()     {}
func (cells) isBlock()     {}
func (picture) isBlock()   {}

func (p *page) add(blocks ...block) { p.blocks = append(p.blocks, blocks...) }

// prose adds a text of several paragraphs: an empty line ends one, and lines that begin with a hyphen are a
// list.
func (p *page) prose(text string) {
	for part := range strings.SplitSeq(strings.TrimSpace(strings.ReplaceAll(text, "\r", "")), "\n\n") {
		lines := strings.Split(strings.TrimSpace(part), "\n")
		if !strings.HasPrefix(lines[0], "- ") {
			if joined := strings.Join(lines, " "); strings.TrimSpace(joined) != "" {
				p.add(paragraph(joined))
			}
			continue
		}
		var list items
		for _, line := range lines {
			if item, ok := strings.CutPrefix(line, "- "); ok {
				list = append(list, item)
			} else {
				list[len(list)-1] += " " + strings.TrimSpace(line)
			}
		}
		p.add(list)
	}
}

// numeric reports whether a column of a table holds nothing but numbers and dashes.
func (c *cells) numeric(column int) bool {
	found := false
	for _, r := range c.rows {
		text := r.texts[column]
		if text == "" || text == missing {
			continue
		}
		if strings.Trim(text, "0123456789+-−.,±% []×x") != "" || strings.Trim(text, "+-−.,±% []×x") == "" {
			return false
		}
		found = true
	}
	return found
}

// filled is the table without the columns that are empty in every row.
func (c cells) filled() cells {
	var kept []int
	for i := range c.head {
		if slices.ContainsFunc(c.rows, func(r row) bool { return r.texts[i] != "" }) {
			kept = append(kept, i)
		}
	}
	out := cells{rows: slices.Clone(c.rows)}
	for _, i := range kept {
		out.head = append(out.head, c.head[i])
	}
	for k := range out.rows {
		r := &out.rows[k]
		texts, marks := r.texts, r.marks
		r.texts, r.marks = nil, nil
		for _, i := range kept {
			r.texts = append(r.texts, texts[i])
			if marks != nil {
				r.marks = append(r.marks, marks[i])
			}
		}
	}
	return out
}

// missing stands where there is no value.
const missing = "-"
