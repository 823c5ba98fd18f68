package cli

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how far long work is, on a terminal only; on anything else it is silent.
type progress struct {
	bar *progressbar.ProgressBar // nil: silent
}

// newProgress returns a bar on w if w is a terminal.
func newProgress(w io.Writer, what string) *progress {
	if !isTerminal(w) {
		return &progress{}
	}
	return &progress{progressbar.NewOptions(-1,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionUseANSICodes(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(30),
	)}
}

// begin draws the empty bar, so that long first steps are seen to be under way.
func (p *progress) begin(total int) {
	if p.bar != nil && total > 0 {
		p.bar.ChangeMax(total)
		_ = p.bar.RenderBlank()
	}
}

// show draws that done of total are done. It is not safe for concurrent use.
func (p *progress) show(done, total int) {
	if p.bar == nil {
		return
	}
	if p.bar.GetMax() != total {
		p.bar.ChangeMax(total)
	}
	// A terminal that can not be written to is no reason to end the work.
	_ = p.bar.Set(done)
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
