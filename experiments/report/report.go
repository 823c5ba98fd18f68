package report

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tokenrouter/experiments/result"
)

// Write writes out.md and out.html, and the figures of the former into the folder out. It returns the paths
// of the two pages. Experiments stand in the order in which they are given.
func Write(out string, all []*result.Summary) ([]string, error) {
	for i, s := range all {
		if slices.ContainsFunc(all[:i], func(o *result.Summary) bool { return o.Experiment == s.Experiment }) {
			return nil, fmt.Errorf("report %s: two folders are of the experiment %s, want each once", out,
				s.Experiment)
		}
	}
	p, err := build(all)
	if err != nil {
		return nil, fmt.Errorf("report %s: %w", out, err)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	for _, one := range p.blocks {
		if figure, ok := one.(picture); ok {
			if err := result.WriteFile(filepath.Join(out, figure.name+".png"), figure.png); err != nil {
				return nil, err
			}
		}
	}
	files := []string{out + ".md", out + ".html"}
	for i, text := range [][]byte{p.markdown(filepath.Base(out)), p.html(title)} {
		if err := result.WriteFile(files[i], text); err != nil {
			return nil, err
		}
	}
	return files, nil
}

const title = "Simulated and published values"

func build(all []*result.Summary) (*page, error) {
	p := &page{}
	p.add(heading{level: 1, text: title})
	p.add(paragraph("Each experiment simulates what a publication has measured. Cells to which a constant was" +
		" fitted are kept apart: the error that counts is that of the others, which are predictions. An error is" +
		" simulated / published - 1; its median and worst are of absolute values."))
	p.overview(all)
	p.rules(all)
	p.constants(all)
	for _, s := range all {
		if err := p.experiment(s); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Experiment, err)
		}
	}
	return p, nil
}

// overview is a row an experiment, and one over all.
func (p *page) overview(all []*result.Summary) {
	t := cells{head: []string{"experiment", "predicted cells", "median error %", "worst error %", "fitted cells",
		"their median %", "rows in order", "ratios"}}
	var every []result.Cell
	var rows, right, ratios, held int
	line := func(name, link string, c []result.Cell, rows, right, ratios, held int, strong bool) {
		check, fit := result.ErrorsOf(c, false), result.ErrorsOf(c, true)
		r := row{link: link, strong: strong, texts: []string{name, strconv.Itoa(check.Count),
			percent(check.Median, false), percent(check.Worst, true), strconv.Itoa(fit.Count),
			percent(fit.Median, false), outOf(right, rows), outOf(held, ratios)}}
		r.marks = make([]mark, len(r.texts))
		r.marks[2], r.marks[6], r.marks[7] = judge(check.Median), complete(right, rows), complete(held, ratios)
		t.rows = append(t.rows, r)
	}
	for _, s := range all {
		c := s.Cells()
		orders, checks := s.Orders(), predicted(s.Ratios())
		ok, holds := inOrder(orders), holding(checks)
		line(s.Title, s.Experiment, c, len(orders), ok, len(checks), holds, false)
		every = append(every, c...)
		rows, right, ratios, held = rows+len(orders), right+ok, ratios+len(checks), held+holds
	}
	if len(all) > 1 {
		line("all", "", every, rows, right, ratios, held, true)
	}
	p.add(t, paragraph(fmt.Sprintf("Rows in order: of the places at which several systems have published"+
		" values, those at which the simulated ones follow each other as published; pairs that differ by no more"+
		" than the publication's own noise are tied. Ratios: those, of the predicted ones, within the published"+
		" range, or within %.0f %% of the published value; a range that is published for many combinations at"+
		" once is a weak check.",
		100*result.RatioTolerance)))
}

// rules says over which window and seeds all was measured, where the results tell.
func (p *page) rules(all []*result.Summary) {
	for _, s := range all {
		at := slices.IndexFunc(s.Metrics, func(m result.Metric) bool { return m.Name == "window_s" })
		if at >= 0 && s.Intervals != "" {
			p.add(paragraph(fmt.Sprintf("Window of measurement (`window_s`): %s. Intervals: %s.",
				s.Metrics[at].Definition, s.Intervals)))
			return
		}
	}
}

// complete marks a count out of a total.
func complete(some, total int) mark {
	switch {
	case total == 0:
		return plain
	case some == total:
		return good
	default:
		return poor
	}
}

func outOf(some, total int) string {
	if total == 0 {
		return missing
	}
	return fmt.Sprintf("%d of %d", some, total)
}

func inOrder(orders []result.Order) (n int) {
	for _, o := range orders {
		if len(o.Wrong) == 0 {
			n++
		}
	}
	return n
}

// predicted are the ratios to which no constant was fitted.
func predicted(ratios []result.Ratio) []result.Ratio {
	return slices.DeleteFunc(ratios, func(r result.Ratio) bool { return r.Fit })
}

func holding(ratios []result.Ratio) (n int) {
	for _, r := range ratios {
		if r.Holds() {
			n++
		}
	}
	return n
}

// constants lists what was fitted, each once, and where the numbers come from.
func (p *page) constants(all []*result.Summary) {
	files := cells{head: []string{"file", "device", "engine", "date", "source", "range"}}
	fitted := cells{head: []string{"constant", "value", "fitted to", "file"}}
	seen := make(map[string]bool)
	for _, s := range all {
		for _, c := range s.Calibrations {
			if seen[c.File] {
				continue
			}
			seen[c.File] = true
			files.rows = append(files.rows, row{texts: []string{"`" + c.File + "`", c.Device, c.Engine, c.Date,
				c.Source, c.Range}})
			for _, k := range c.Constants {
				fitted.rows = append(fitted.rows, row{texts: []string{"`" + k.Key + "`", "`" + k.Value + "`", k.From,
					"`" + c.File + "`"}})
			}
		}
	}
	if len(files.rows) == 0 {
		return
	}
	p.add(heading{level: 2, text: "What was fitted", id: "constants"}, paragraph(fmt.Sprintf("%s, in %s.",
		plural(len(fitted.rows), "fitted constant"), plural(len(files.rows), "calibration file"))))
	if len(fitted.rows) > 0 {
		p.add(fitted)
	}
	p.add(files)
}

// experiment is the section of one experiment.
func (p *page) experiment(s *result.Summary) error {
	p.add(heading{level: 2, text: s.Title, id: s.Experiment})
	p.prose(s.Caption)
	for i := range s.Figures {
		f := &s.Figures[i]
		drawn, err := s.Plot(f)
		if err != nil {
			return fmt.Errorf("figure %s: %w", f.Name, err)
		}
		const pixelsPerPoint = 2 // half as large again as on paper
		one := picture{name: s.Experiment + "-" + f.Name, title: f.Title,
			width: int(drawn.Width.Points() * pixelsPerPoint)}
		if one.png, err = drawn.PNG(); err != nil {
			return err
		}
		if one.svg, err = drawn.SVG(); err != nil {
			return err
		}
		p.add(one)
	}
	seeds := fmt.Sprintf("Experiment `%s`, run `%s`: %s, %s each", s.Experiment, s.Run,
		plural(len(s.Rows), "point"), plural(s.Replicates, "seed"))
	if s.Replicates > 1 {
		seeds += "; ± is a 95 % interval over seeds"
	}
	p.add(paragraph(seeds + "."))
	p.references(s)
	p.orders(s)
	p.bests(s)
	p.ratios(s)
	p.prose(s.Discussion)
	p.warnings(s)
	return nil
}

// references is a table for each published series.
func (p *page) references(s *result.Summary) {
	every := s.Cells()
	for i := range s.References {
		reference := &s.References[i]
		own := slices.DeleteFunc(slices.Clone(every), func(c result.Cell) bool {
			return c.Reference != reference.Name || c.Metric != reference.Metric
		})
		t := cells{}
		for _, a := range s.Axes {
			t.head = append(t.head, a.Column)
		}
		t.head = append(t.head, "published", "simulated", "±", "error %", "use")
		for _, c := range own {
			r := row{}
			for _, a := range s.Axes {
				r.texts = append(r.texts, c.Row.Text(a.Name))
			}
			use := "prediction"
			if c.Fit {
				use = "fitted"
			}
			r.texts = append(r.texts, published(c.Published), short(c.Own), short(c.Half),
				percent(c.Error, true), use)
			r.marks = make([]mark, len(r.texts))
			if r.marks[len(r.marks)-2] = judge(c.Error); c.Fit {
				r.marks[len(r.marks)-2] = plain
			}
			t.rows = append(t.rows, r)
		}
		p.add(heading{level: 3, text: fmt.Sprintf("%s: `%s`", reference.Name, reference.Metric)})
		p.add(paragraph(reference.Source + ". " + sentence(own)))
		if len(t.rows) > 0 {
			p.add(t)
		}
	}
}

// sentence says the errors of some cells in words.
func sentence(c []result.Cell) string {
	var parts []string
	for _, use := range []struct {
		fit  bool
		name string
	}{{false, "predicted"}, {true, "fitted"}} {
		e := result.ErrorsOf(c, use.fit)
		if e.Count > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s %% off in the median, %s %% at worst",
				plural(e.Count, use.name+" cell"), percent(e.Median, false), percent(e.Worst, true)))
		}
		if e.Missing > 0 {
			parts = append(parts, plural(e.Missing, use.name+" cell")+" without a simulated value")
		}
	}
	if parts == nil {
		return "No point of the experiment is among them."
	}
	return upper(strings.Join(parts, "; ")) + "."
}

// plural counts things.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// orders says at which places the order of the systems is another than published.
func (p *page) orders(s *result.Summary) {
	orders := s.Orders()
	if len(orders) == 0 {
		return
	}
	tied := 0
	var wrong items
	for _, o := range orders {
		tied += o.Tied
		for _, pair := range o.Wrong {
			where := o.Metric
			if o.Place != "" {
				where += " at " + o.Place
			}
			wrong = append(wrong, fmt.Sprintf("%s: published, “%s” (%s) is above “%s” (%s); simulated, they are"+
				" %s and %s", where, pair.Variants[0], published(pair.Published[0]), pair.Variants[1],
				published(pair.Published[1]), short(pair.Own[0]), short(pair.Own[1])))
		}
	}
	text := fmt.Sprintf("The order of the systems is as published in %d of %d rows", inOrder(orders),
		len(orders))
	if s.Noise > 0 {
		text += fmt.Sprintf("; closer than the noise of %s %%, and therefore tied: %s", percent(s.Noise, false),
			plural(tied, "pair"))
	}
	p.add(paragraph(text + "."))
	if wrong != nil {
		p.add(wrong)
	}
}

// bests says where other thresholds are best than published.
func (p *page) bests(s *result.Summary) {
	all := s.Bests()
	if len(all) == 0 {
		return
	}
	same := 0
	var others items
	for _, b := range all {
		if b.Own == b.Published {
			same++
			continue
		}
		others = append(others, fmt.Sprintf("%s: published, %s is best; simulated, %s is, by %s %%", b.Place,
			b.Published, b.Own, percent(b.Gap, false)))
	}
	p.add(paragraph(fmt.Sprintf("The best thresholds are the published ones in %d of %s.", same,
		plural(len(all), "row"))))
	if others != nil {
		p.add(others)
	}
}

// ratios is a table of the published ratios.
func (p *page) ratios(s *result.Summary) {
	all := s.Ratios()
	if len(all) == 0 {
		return
	}
	t := cells{head: []string{"ratio", "source", "published", "simulated", "error %", "use"}}
	for _, r := range all {
		published := strconv.FormatFloat(r.Low, 'f', -1, 64)
		if r.High > r.Low {
			published += " to " + strconv.FormatFloat(r.High, 'f', -1, 64)
		}
		use := "prediction"
		if r.Fit {
			use = "fitted"
		}
		verdict := poor
		off := percent(r.Error, true)
		if r.Holds() {
			verdict = good
			if r.High > r.Low {
				off = "within"
			}
		}
		t.rows = append(t.rows, row{
			texts: []string{r.Name, r.Source, published, short(r.Own), off, use},
			marks: []mark{plain, plain, plain, plain, verdict, plain},
		})
	}
	p.add(heading{level: 3, text: "Ratios"}, t.filled())
}

// warnings lists what a reader must know.
func (p *page) warnings(s *result.Summary) {
	var list items
	for _, w := range s.Warned() {
		list = append(list, w.Where(len(s.Rows))+": "+w.Text)
	}
	if list != nil {
		p.add(heading{level: 3, text: "Warnings"}, list)
	}
}

// judge marks a relative error.
func judge(e float64) mark {
	const near, far = 0.15, 0.3
	switch e = math.Abs(e); {
	case math.IsNaN(e):
		return plain
	case e <= near:
		return good
	case e <= far:
		return fair
	default:
		return poor
	}
}

// percent writes a share with one decimal, and a missing one as a dash.
func percent(share float64, signed bool) string {
	if math.IsNaN(share) || math.IsInf(share, 0) {
		return missing
	}
	text := strconv.FormatFloat(100*share, 'f', 1, 64)
	if text == "-0.0" {
		text = "0.0"
	}
	if signed && share > 0 && text != "0.0" {
		text = "+" + text
	}
	return text
}

// published writes a value with the digits that it was published with.
func published(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// short writes a value with four significant digits, and a missing one as a dash.
func short(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return missing
	}
	const digits = 4
	decimals := 0
	if v != 0 {
		decimals = max(0, digits-1-int(math.Floor(math.Log10(math.Abs(v)))))
	}
	return strconv.FormatFloat(v, 'f', min(decimals, digits), 64)
}
