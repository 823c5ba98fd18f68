package jsonline

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// lineBytesMax is the longest line that Lines reads: 64 MiB.
const lineBytesMax = 1 << 26

// Lines reads a file line by line and knows where it is.
type Lines struct {
	name    string
	scanner *bufio.Scanner
	line    int
	ended   bool // the last line has its end
}

// NewLines reads from r; name is the file's name in errors.
func NewLines(name string, r io.Reader) *Lines {
	l := &Lines{name: name, scanner: bufio.NewScanner(r)}
	l.scanner.Buffer(make([]byte, 0, 1<<16), lineBytesMax)
	l.scanner.Split(func(text []byte, atEOF bool) (advance int, line []byte, err error) {
		advance, line, err = bufio.ScanLines(text, atEOF)
		l.ended = advance > len(line)
		return advance, line, err
	})
	return l
}

// Next returns the next line without its end, valid until the call after, or io.EOF.
func (l *Lines) Next() ([]byte, error) {
	l.line++
	if l.scanner.Scan() {
		return l.scanner.Bytes(), nil
	}
	switch err := l.scanner.Err(); {
	case err == nil:
		return nil, io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return nil, l.Wrap(Wrong("", "a line that is too long", fmt.Sprintf("at most %d bytes", lineBytesMax)))
	default:
		return nil, l.Wrap(err)
	}
}

// Name is the file's name.
func (l *Lines) Name() string { return l.name }

// Line is the number of the line that Next returned last, from 1.
func (l *Lines) Line() int { return l.line }

// Ended reports whether the line that Next returned last has an end: that of a file whose writing was
// interrupted has none.
func (l *Lines) Ended() bool { return l.ended }

// Wrap says in which file and line err came up.
func (l *Lines) Wrap(err error) error { return fmt.Errorf("%s:%d: %w", l.name, l.line, err) }

// Open opens a file to read. If its name ends in .gz it is unpacked.
func Open(path string) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return file, err
	}
	packed, err := gzip.NewReader(bufio.NewReader(file))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w, want a gzip file", path, err), file.Close())
	}
	return both{packed, file.Close}, nil // Close of packed would only say again what Read has said
}

// Create makes a file to write, in place of one that is there. If its name ends in .gz it is
// packed, with no time or name inside, so that equal contents are equal bytes. The caller must
// look at the error of Close.
func Create(path string) (io.WriteCloser, error) {
	file, err := os.Create(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return file, err
	}
	packed := gzip.NewWriter(file)
	return bothWrite{packed, func() error { return errors.Join(packed.Close(), file.Close()) }}, nil
}

type both struct {
	io.Reader
	close func() error
}

func (b both) Close() error { return b.close() }

type bothWrite struct {
	io.Writer
	close func() error
}

func (b bothWrite) Close() error { return b.close() }
