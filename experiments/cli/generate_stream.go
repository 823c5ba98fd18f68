package cli

import (
	"bytes"
	"fmt"
)

// stream writes the answers of many prompts in the order of the prompts, each once it and all before it have
// ended. The loop, which must not wait, says what has ended; a goroutine writes.
type stream struct {
	s     *session
	ended chan int // indexes; has room for all
	done  chan struct{}
	bar   *progress
	paint *painter // of text
	next  int      // to be written
	err   error
}

// newStream begins a stream and its progress bar.
func newStream(s *session) *stream {
	w := &stream{
		s: s, ended: make(chan int, len(s.prompts)), done: make(chan struct{}),
		bar: newProgress(s.stderr, "prompts"), paint: newPainter(s.stdout, s.plan),
	}
	w.bar.begin(len(s.prompts))
	go w.run()
	return w
}

func (w *stream) run() {
	defer close(w.done)
	whole, n := make([]bool, len(w.s.prompts)), 0
	for i := range w.ended {
		n++
		whole[i] = true
		if w.next < len(whole) && whole[w.next] {
			w.bar.end() // it may stand where the answer is to go
		}
		for w.next < len(whole) && whole[w.next] {
			w.write()
		}
		w.bar.show(n, len(whole))
	}
	w.bar.end()
}

// close waits until everything that has ended is written. Nothing ends any more.
func (w *stream) close() {
	close(w.ended)
	<-w.done
}

// write writes the next answer.
func (w *stream) write() {
	i := w.next
	w.next++
	if !w.s.json {
		w.text(i)
		return
	}
	separator := ",\n"
	if i == 0 {
		separator = "{\"answers\":[\n"
	}
	w.put([]byte(separator))
	w.put(encoded(w.s.document(i)))
}

func (w *stream) text(i int) {
	if i == 0 {
		w.paint.legend(w.s.stderr)
	}
	w.paint.plain(w.title(i) + "\n")
	for _, p := range w.s.pieces[i] {
		w.paint.piece(p)
	}
	w.paint.end()
	w.err = w.paint.err
}

// title is the line above an answer. It says if that is not whole.
func (w *stream) title(i int) string {
	title := fmt.Sprintf("--- %d of %d", i+1, len(w.s.prompts))
	if id := w.s.ids[i]; id != "" {
		title += fmt.Sprintf(" (%.64q)", id)
	}
	switch finish := finishOf(w.s.answers[i]); finish {
	case "error":
		title += ", failed: " + w.s.failure(i)
	case "cancelled":
		title += ", " + finish
	}
	return title
}

// finish writes what has not been written: answers that were begun, or never begun, when the run was ended,
// and what all of them come to. The stream is closed.
func (w *stream) finish(all totalsJSON) error {
	for w.next < len(w.s.prompts) {
		w.write()
	}
	if w.s.json {
		w.put([]byte("\n],"))
		w.put(append(encoded(all)[1:], '\n'))
	}
	return w.err
}

func (w *stream) put(b []byte) {
	if w.err == nil {
		_, w.err = w.s.stdout.Write(b)
	}
}

// encoded is a value as printJSON writes it, without the end of the line.
func encoded(v any) []byte {
	var b bytes.Buffer
	if err := printJSON(&b, v); err != nil {
		panic(fmt.Sprint("cli: ", err)) // numbers and text
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
