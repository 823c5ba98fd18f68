package report

import (
	"encoding/base64"
	"fmt"
	"html"
	"strings"
)

// style is all that the page needs: nothing is loaded.
const style = `body { font: 15px/1.5 "Liberation Sans", Arial, Helvetica, sans-serif; color: #222;
  max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; }
h2 { font-size: 1.3rem; margin-top: 2.6rem; border-top: 1px solid #ccc; padding-top: 1rem; }
h3 { font-size: 1.05rem; margin-top: 1.6rem; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.87rem; }
th, td { padding: 0.22rem 0.7rem; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top; }
th { border-bottom: 2px solid #888; } .n { text-align: right; font-variant-numeric: tabular-nums; }
tr.strong td { font-weight: bold; border-top: 2px solid #888; }
td.n, td.good, td.fair, td.poor { white-space: nowrap; } a { color: #0072b2; text-decoration: none; }
td.good { background: #e3f2e6; } td.fair { background: #fdf3d3; } td.poor { background: #f9d9d2; }
figure { margin: 1.2rem 0; } figure img { max-width: 100%; height: auto; border: 1px solid #eee; }
code { font-size: 0.92em; background: #f3f3f3; padding: 0 0.2em; } .scroll { overflow-x: auto; }
@media print { body { max-width: none; } .scroll { overflow: visible; } tr, figure { break-inside: avoid; }
  h2, h3 { break-after: avoid; } }
`

// html writes the page with everything in it.
func (p *page) html(title string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"+
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>%s</title>\n"+
		"<style>\n%s</style>\n</head>\n<body>\n", html.EscapeString(title), style)
	for _, one := range p.blocks {
		switch one := one.(type) {
		case heading:
			id := ""
			if one.id != "" {
				id = fmt.Sprintf(" id=%q", one.id)
			}
			fmt.Fprintf(&b, "<h%d%s>%s</h%d>\n", one.level, id, inline(one.text), one.level)
		case paragraph:
			fmt.Fprintf(&b, "<p>%s</p>\n", inline(string(one)))
		case items:
			b.WriteString("<ul>\n")
			for _, item := range one {
				fmt.Fprintf(&b, "<li>%s</li>\n", inline(item))
			}
			b.WriteString("</ul>\n")
		case cells:
			one.html(&b)
		case picture:
			fmt.Fprintf(&b, "<figure><img alt=\"%s\" width=\"%d\" src=\"data:image/svg+xml;base64,%s\"></figure>\n",
				html.EscapeString(one.title), one.width, base64.StdEncoding.EncodeToString(one.svg))
		}
	}
	b.WriteString("</body>\n</html>\n")
	return []byte(b.String())
}

func (c *cells) html(b *strings.Builder) {
	b.WriteString("<div class=\"scroll\"><table>\n<thead><tr>")
	classes := make([]string, len(c.head))
	for i, text := range c.head {
		if c.numeric(i) {
			classes[i] = "n"
		}
		fmt.Fprintf(b, "<th%s>%s</th>", class(classes[i]), inline(text))
	}
	b.WriteString("</tr></thead>\n<tbody>\n")
	for _, r := range c.rows {
		strong := ""
		if r.strong {
			strong = "strong"
		}
		fmt.Fprintf(b, "<tr%s>", class(strong))
		for i, text := range r.texts {
			names := classes[i]
			if r.marks != nil {
				names = strings.TrimSpace(names + " " + r.marks[i].class())
			}
			text = inline(text)
			if i == 0 && r.link != "" {
				text = fmt.Sprintf("<a href=\"#%s\">%s</a>", html.EscapeString(r.link), text)
			}
			fmt.Fprintf(b, "<td%s>%s</td>", class(names), text)
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody>\n</table></div>\n")
}

func class(names string) string {
	if names == "" {
		return ""
	}
	return fmt.Sprintf(" class=%q", names)
}

func (m mark) class() string {
	return [...]string{plain: "", good: "good", fair: "fair", poor: "poor"}[m]
}

// inline escapes a text and marks its `code`.
func inline(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			b.WriteString("<code>" + html.EscapeString(part) + "</code>")
			continue
		}
		b.WriteString(html.EscapeString(part))
	}
	return b.String()
}
