package report

import (
	"fmt"
	"strings"
)

// markdown writes the page; pictures are in a folder of that name beside it.
func (p *page) markdown(folder string) []byte {
	var b strings.Builder
	for i, one := range p.blocks {
		if i > 0 {
			b.WriteByte('\n')
		}
		switch one := one.(type) {
		case heading:
			fmt.Fprintf(&b, "%s %s\n", strings.Repeat("#", one.level), escapeMarkdown(one.text))
		case paragraph:
			b.WriteString(escapeMarkdown(string(one)) + "\n")
		case items:
			for _, item := range one {
				b.WriteString("- " + escapeMarkdown(item) + "\n")
			}
		case cells:
			one.markdown(&b)
		case picture:
			fmt.Fprintf(&b, "![%s](%s/%s.png)\n", escapeMarkdown(one.title), folder, one.name)
		}
	}
	return []byte(b.String())
}

func (c *cells) markdown(b *strings.Builder) {
	line := func(texts []string, strong bool) {
		for _, text := range texts {
			text = strings.ReplaceAll(escapeMarkdown(text), "|", "\\|")
			if strong && text != "" {
				text = "**" + text + "**"
			}
			b.WriteString("| " + text + " ")
		}
		b.WriteString("|\n")
	}
	line(c.head, false)
	for i := range c.head {
		if c.numeric(i) {
			b.WriteString("|--:")
		} else {
			b.WriteString("|---")
		}
	}
	b.WriteString("|\n")
	for _, r := range c.rows {
		line(r.texts, r.strong)
	}
}

// escapeMarkdown keeps a text from being read as markup, but for `code`.
func escapeMarkdown(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			b.WriteString("`" + part + "`")
			continue
		}
		b.WriteString(strings.NewReplacer("\\", "\\\\", "*", "\\*", "<", "&lt;", "[", "\\[").Replace(part))
	}
	return b.String()
}
