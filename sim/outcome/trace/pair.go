package trace

import (
	"fmt"
	"slices"

	"tokenrouter/core/turnlog/jsonline"
)

// Pair says by what a trace was made, as far as it is known: empty strings are not. Hashes are of whatever
// tells two of a kind apart, in hexadecimal; SHA-256 of files, as a rule.
type Pair struct {
	Weights   []string // a model each; nil: not known
	Tokenizer string
	Algorithm string // its name in specs
	Router    string // hash of the router network
}

// pairKeys are the keys of a header that are of its Pair.
var pairKeys = [...]string{"weights", "tokenizer", "algorithm", "router"}

// text is the field of a key that holds one string.
func (p *Pair) text(key string) *string {
	switch key {
	case "tokenizer":
		return &p.Tokenizer
	case "algorithm":
		return &p.Algorithm
	case "router":
		return &p.Router
	default:
		return nil
	}
}

func (p *Pair) read(key string, c *jsonline.Cursor) (err error) {
	if key == pairKeys[0] {
		return c.Array(func(int) error {
			hash, err := c.String()
			p.Weights = append(p.Weights, hash)
			return err
		})
	}
	text := p.text(key)
	if text == nil {
		return jsonline.Unknown(append([]string{"format", "version", "models", "signals"}, pairKeys[:]...)...)
	}
	*text, err = c.String()
	return err
}

// append adds what is known to a header.
func (p *Pair) append(line []byte) []byte {
	for _, key := range pairKeys {
		text := p.text(key)
		switch {
		case text == nil && p.Weights != nil:
			line = append(line, `,"weights":[`...)
			for m, hash := range p.Weights {
				line = jsonline.AppendString(comma(line, m), hash)
			}
			line = append(line, ']')
		case text != nil && *text != "":
			line = append(jsonline.AppendString(append(line, ','), key), ':')
			line = jsonline.AppendString(line, *text)
		}
	}
	return line
}

// CheckPair refuses to take the trace for one of the models of want: their names must be the same, and so
// must be all that both headers know of weights and tokenizer.
func (h *Header) CheckPair(want *Header) error {
	if !slices.Equal(h.Models, want.Models) {
		return wrong("models", fmt.Sprintf("%q", h.Models), "%q: it is of another pair", want.Models)
	}
	for m := range min(len(h.Pair.Weights), len(want.Pair.Weights)) {
		got, known := h.Pair.Weights[m], want.Pair.Weights[m]
		if got != "" && known != "" && got != known {
			return wrong("weights", fmt.Sprintf("%.12s of %s", got, h.Models[m]), "%.12s: it is of another pair",
				known)
		}
	}
	if got, known := h.Pair.Tokenizer, want.Pair.Tokenizer; got != "" && known != "" && got != known {
		return wrong("tokenizer", fmt.Sprintf("%.12s", got), "%.12s: it is of another pair", known)
	}
	return nil
}

// CheckAlgorithm refuses to take the scores of the trace for those of another algorithm than the one that
// made them, or of another router; empty strings are not known.
func (h *Header) CheckAlgorithm(name, router string) error {
	if got := h.Pair.Algorithm; got != "" && name != "" && got != name {
		return wrong("algorithm", fmt.Sprintf("%q", got), "%q, which decides on other signals", name)
	}
	if got := h.Pair.Router; got != "" && router != "" && got != router {
		return wrong("router", fmt.Sprintf("%.12s", got), "%.12s: its scores are of another router", router)
	}
	return nil
}
