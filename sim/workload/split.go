package workload

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// column is a column of a CSV trace or a key of a JSONL one.
type column uint8

const (
	arrivalNs column = iota
	arrivalMs
	arrivalS
	promptTokens
	outputTokens
	maxTokens
	prefixGroup
	prefixTokens
	columnCount
)

var columnNames = [columnCount]string{
	"arrival_ns", "arrival_ms", "arrival_s", "prompt_tokens", "output_tokens", "max_tokens", "prefix_group",
	"prefix_tokens",
}

// fields are the texts of one row. An absent column has present = false.
type fields [columnCount]struct {
	text    string
	present bool
}

func columnNamed(name string) (column, bool) {
	for c, known := range columnNames {
		if name == known {
			return column(c), true
		}
	}
	return 0, false
}

// wantColumns describes the names a trace may use.
func wantColumns() string { return "one of " + strings.Join(columnNames[:], ", ") }

// missing returns an error when a row or header lacks a column it must have, or has two it must not.
func (t *Trace) missing(row *fields) error {
	arrivals := 0
	for _, c := range []column{arrivalNs, arrivalMs, arrivalS} {
		if row[c].present {
			arrivals++
		}
	}
	if arrivals != 1 {
		return t.wrong("", fmt.Sprintf("%d arrival columns", arrivals), "one of arrival_ns, arrival_ms, arrival_s")
	}
	for _, c := range []column{promptTokens, outputTokens} {
		if !row[c].present {
			return t.wrong("", "no "+columnNames[c], "every request to have it")
		}
	}
	if row[prefixGroup].present != row[prefixTokens].present {
		return t.wrong("", "only one of prefix_group and prefix_tokens", "both or neither")
	}
	return nil
}

func (t *Trace) readHeader() error {
	text, ok := t.scan()
	if !ok {
		if t.err != nil {
			return t.err
		}
		return t.wrong("", "an empty file", "a header with arrival_ms, prompt_tokens and output_tokens")
	}
	names, err := t.cells(text)
	if err != nil {
		return err
	}
	var seen fields
	for _, name := range names {
		c, ok := columnNamed(name)
		if !ok {
			return t.wrong("header", name, wantColumns())
		}
		if seen[c].present {
			return t.wrong("header", name, "each column once")
		}
		seen[c].present = true
		t.header = append(t.header, c)
	}
	return t.missing(&seen)
}

// cells splits a CSV line. A quoted field must end on its own line, which numbers never need to.
func (t *Trace) cells(text string) ([]string, error) {
	if !strings.Contains(text, `"`) {
		return strings.Split(text, ","), nil
	}
	record, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return nil, t.wrong("", fmt.Sprintf("%q", text), "a CSV line with balanced quotes")
	}
	return record, nil
}

func (t *Trace) splitCSV(text string) (row fields, err error) {
	cells, err := t.cells(text)
	if err != nil {
		return row, err
	}
	if len(cells) != len(t.header) {
		want := fmt.Sprintf("%d as in the header", len(t.header))
		return row, t.wrong("", fmt.Sprintf("%d fields", len(cells)), want)
	}
	for i, cell := range cells {
		c := t.header[i]
		row[c].text, row[c].present = cell, true
	}
	return row, nil
}

// splitJSON reads one flat object. What is not plain, or wrong, is left to walkJSON.
func (t *Trace) splitJSON(text string) (row fields, err error) {
	if row, ok := plainJSON(text); ok {
		return row, t.missing(&row)
	}
	return t.walkJSON(text)
}

// plainJSON splits an object of known keys without escapes and of numbers, ten times faster than a
// decoder. It reports ok = false for anything else, right or wrong.
func plainJSON(text string) (row fields, ok bool) {
	text = strings.Trim(text, " \t\r")
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return fields{}, false
	}
	rest, more := text[1:len(text)-1], true
	for more {
		var member string
		member, rest, more = strings.Cut(rest, ",")
		name, number, _ := strings.Cut(member, ":")
		name = strings.Trim(name, " \t\r")
		number = strings.Trim(number, " \t\r")
		if len(name) < 2 || name[0] != '"' || name[len(name)-1] != '"' {
			return fields{}, false
		}
		c, known := columnNamed(name[1 : len(name)-1])
		if !known || row[c].present || !isJSONNumber(number) {
			return fields{}, false
		}
		row[c].text, row[c].present = number, true
	}
	return row, true
}

// isJSONNumber reports whether text is a number as JSON writes it.
func isJSONNumber(text string) bool {
	if text == "" || text[len(text)-1] < '0' || text[len(text)-1] > '9' {
		return false
	}
	if strings.Trim(text, "0123456789") == "" {
		return len(text) == 1 || text[0] != '0'
	}
	return (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid([]byte(text))
}

// walkJSON reads one flat object token by token: the usual decoder takes keys in any case and lets
// repeated ones win.
func (t *Trace) walkJSON(text string) (row fields, err error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	broken := func() (fields, error) {
		return fields{}, t.wrong("", fmt.Sprintf("%.60q", text), "one JSON object of numbers on the line")
	}
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return broken()
	}
	for decoder.More() {
		token, err := decoder.Token()
		name, isName := token.(string)
		if err != nil || !isName {
			return broken()
		}
		c, ok := columnNamed(name)
		if !ok {
			return fields{}, t.wrong("key", name, wantColumns())
		}
		if row[c].present {
			return fields{}, t.wrong("key", name, "each key once")
		}
		value, err := decoder.Token()
		if err != nil {
			return broken()
		}
		number, ok := value.(json.Number)
		if !ok {
			return fields{}, t.wrong(name, fmt.Sprint(value), "a number")
		}
		row[c].text, row[c].present = number.String(), true
	}
	if end, err := decoder.Token(); err != nil || end != json.Delim('}') {
		return broken()
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return broken()
	}
	return row, t.missing(&row)
}
