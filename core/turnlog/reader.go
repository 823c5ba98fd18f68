package turnlog

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"tokenrouter/core"
	"tokenrouter/core/turnlog/jsonline"
)

// Reader reads a log.
type Reader struct {
	lines   *jsonline.Lines
	configs []core.Config
	numbers uint64 // turns read
	now     []core.Time
	closer  io.Closer
}

// NewReader reads the header from r; name is the file's name in errors.
func NewReader(name string, r io.Reader) (*Reader, error) {
	t := &Reader{lines: jsonline.NewLines(name, r)}
	var h header
	if err := t.read("a header", func(f *fields) { showHeader(f, &h) }); err != nil {
		return nil, err
	}
	switch {
	case h.Format != FormatName:
		return nil, t.wrong("format", strconv.Quote(h.Format), strconv.Quote(FormatName))
	case h.Version != Version:
		return nil, t.wrong("version", h.Version, strconv.Itoa(Version))
	case h.Nodes < 1:
		return nil, t.wrong("nodes", h.Nodes, "at least 1")
	}
	for i := range h.Nodes {
		var c core.Config
		if err := t.read("a configuration", func(f *fields) { showConfig(f, &c) }); err != nil {
			return nil, err
		}
		if i > 0 && c.Node <= t.configs[i-1].Node {
			return nil, t.wrong("node", c.Node, fmt.Sprintf("above %d, the one before", t.configs[i-1].Node))
		}
		if c.Policy == nil {
			return nil, t.wrong("", "no policy", "one")
		}
		t.configs = append(t.configs, c)
	}
	t.now = make([]core.Time, h.Nodes)
	return t, nil
}

// Open opens a log; .gz at the end of its name says that it is packed. Close it.
func Open(path string) (*Reader, error) {
	file, err := jsonline.Open(path)
	if err != nil {
		return nil, fmt.Errorf("turn log %w", err)
	}
	t, err := NewReader(path, file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	t.closer = file
	return t, nil
}

// Name is the file's name.
func (t *Reader) Name() string { return t.lines.Name() }

// Configs returns the configuration of each node's Scheduler, in order of nodes. Policies and
// algorithms without a name in this package are Custom.
func (t *Reader) Configs() []core.Config { return append([]core.Config(nil), t.configs...) }

// Close closes the file of Open. It may be called again.
func (t *Reader) Close() error {
	closer := t.closer
	t.closer = nil
	if closer == nil {
		return nil
	}
	return closer.Close()
}

// Next returns the next turn, or io.EOF, or an error that names file and line. All of it is
// newly allocated and may be kept.
func (t *Reader) Next() (*Turn, error) {
	turn := new(Turn)
	if err := t.read("", func(f *fields) { showTurn(f, turn) }); err != nil {
		return nil, err
	}
	turn.Line = t.lines.Line()
	if t.numbers++; turn.Number != t.numbers {
		return nil, t.wrong("turn", turn.Number, fmt.Sprint(t.numbers))
	}
	i := t.nodeIndex(turn.Node)
	if i < 0 {
		return nil, t.wrong("node", turn.Node, "one that the header configures")
	}
	if turn.Now < t.now[i] {
		return nil, t.wrong("now", turn.Now, fmt.Sprintf("at least %d, of the turn of the node before", t.now[i]))
	}
	t.now[i] = turn.Now
	return turn, t.checkModels(turn)
}

func (t *Reader) nodeIndex(node int) int {
	for i := range t.configs {
		if t.configs[i].Node == node {
			return i
		}
	}
	return -1
}

// checkModels refuses models that the header does not have.
func (t *Reader) checkModels(turn *Turn) error {
	models := len(t.configs[0].Models)
	for i := range turn.In {
		e := &turn.In[i]
		if e.Kind == core.BatchDone && (e.Model < 0 || e.Model >= models) {
			return t.wrong(fmt.Sprintf("in[%d].model", i), e.Model, fmt.Sprintf("0 to %d", models-1))
		}
		if e.Kind < core.BatchDone || e.Kind > core.Woken {
			return t.wrong(fmt.Sprintf("in[%d].event", i), uint8(e.Kind), fmt.Sprintf("one of %q", eventNames[1:]))
		}
	}
	for i := range turn.Out.Launches {
		if m := turn.Out.Launches[i].Model; m < 0 || m >= models {
			return t.wrong(fmt.Sprintf("out.launches[%d].model", i), m, fmt.Sprintf("0 to %d", models-1))
		}
	}
	return nil
}

// read reads one line. At the end of the file it returns io.EOF, or an error if something was
// wanted.
func (t *Reader) read(wanted string, show func(*fields)) error {
	line, err := t.lines.Next()
	if err == io.EOF {
		if wanted == "" {
			return err
		}
		return t.wrong("", "the end of the file", wanted)
	}
	if err != nil {
		return fmt.Errorf("turn log %w", err)
	}
	f := fields{c: jsonline.NewCursor(line)}
	f.readObject(func() { show(&f) })
	if f.err == nil {
		f.err = f.c.End()
	}
	if f.err != nil {
		return fmt.Errorf("turn log %w", t.lines.Wrap(f.err))
	}
	return nil
}

func (t *Reader) wrong(path string, value any, want string) error {
	return fmt.Errorf("turn log %w", t.lines.Wrap(jsonline.Wrong(path, value, want)))
}
