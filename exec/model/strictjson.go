package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// depthMax bounds how deep the objects and lists of a JSON file may be nested.
const depthMax = 32

// CheckJSON refuses what readers of JSON disagree on: a key given twice, text that is not UTF-8, more than
// one document. It also bounds the depth.
func CheckJSON(document []byte) error {
	if !utf8.Valid(document) {
		return errors.New("text is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var open []map[string]bool // the keys of each object around, nil for a list
	key := false               // the next token is a key
	for {
		token, err := decoder.Token()
		if err != nil {
			return jsonError(err)
		}
		switch t := token.(type) {
		case json.Delim:
			switch t {
			case '{':
				open = append(open, map[string]bool{})
			case '[':
				open = append(open, nil)
			default:
				open = open[:len(open)-1]
			}
			if len(open) > depthMax {
				return fmt.Errorf("is nested more than %d deep", depthMax)
			}
			key = len(open) > 0 && open[len(open)-1] != nil
		case string:
			if !key {
				key = len(open) > 0 && open[len(open)-1] != nil
				break
			}
			if open[len(open)-1][t] {
				return fmt.Errorf("key %q is given twice", t)
			}
			open[len(open)-1][t] = true
			key = false
		default:
			key = len(open) > 0 && open[len(open)-1] != nil
		}
		if len(open) == 0 {
			break
		}
	}
	if rest := bytes.TrimLeft(document[decoder.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return fmt.Errorf("has %d bytes after the JSON document", len(rest))
	}
	return nil
}

// jsonError gives the errors of package json a place where they lack one.
func jsonError(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("is not JSON at byte %d: %w", syntax.Offset, err)
	}
	return fmt.Errorf("is not JSON: %w", err)
}

// kindOf names the kind of a JSON value for an error.
func kindOf(raw json.RawMessage) string {
	switch text := strings.TrimSpace(string(raw)); {
	case text == "null":
		return "null"
	case strings.HasPrefix(text, "{"):
		return "an object"
	case strings.HasPrefix(text, "["):
		return "a list"
	case len(text) > 40:
		return strings.ToValidUTF8(text[:40], "") + "..."
	default:
		return text
	}
}
