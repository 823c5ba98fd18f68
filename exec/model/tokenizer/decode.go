package tokenizer

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// stage is a step of a decoder: it takes tokens one by one and gives out what is final.
type stage interface {
	push(token string, out func(string))
	flush(out func(string)) // gives out what was held, at the end of the tokens
}

// stageMaker makes a stage for one text. An eager one gives characters out as soon as they are whole.
type stageMaker func(eager bool) stage

// perToken is a stage that changes each token alone; index counts tokens from 0.
type perToken struct {
	change func(token string, index int) string
	index  int
}

func (s *perToken) push(token string, out func(string)) {
	out(s.change(token, s.index))
	s.index++
}

func (s *perToken) flush(func(string)) {}

// joinSpaces is what happens without a decoder.
func joinSpaces(token string, index int) string {
	if index == 0 {
		return token
	}
	return " " + token
}

// metaspaceDecoder turns marks into spaces, and drops those of the first token if marks were put in front.
func metaspaceDecoder(mark string, s scheme) func(token string, index int) string {
	return func(token string, index int) string {
		if index == 0 && s != schemeNever {
			return strings.ReplaceAll(token, mark, "")
		}
		return strings.ReplaceAll(token, mark, " ")
	}
}

// levelStage turns byte-level tokens into text. It holds the bytes of a character that is not whole yet.
type levelStage struct{ held []byte }

func (s *levelStage) push(token string, out func(string)) {
	data, ok := levelBytes(token)
	if !ok {
		data = []byte(token)
	}
	text, rest := appendText(nil, append(s.held, data...), false)
	s.held = bytes.Clone(rest)
	if len(text) > 0 {
		out(string(text))
	}
}

func (s *levelStage) flush(out func(string)) {
	text, _ := appendText(nil, s.held, true)
	s.held = nil
	if len(text) > 0 {
		out(string(text))
	}
}

// fallbackStage turns runs of tokens <0x00> to <0xFF> into text. The library takes a run for text if all
// of it is, and otherwise gives one U+FFFD a byte. That is known only at the end of a run, so an eager
// stage gives whole characters out at once and one U+FFFD for each byte that belongs to none.
type fallbackStage struct {
	eager bool
	held  []byte
}

func (s *fallbackStage) push(token string, out func(string)) {
	b, ok := fallbackByte(token)
	if !ok {
		s.flush(out)
		out(token)
		return
	}
	s.held = append(s.held, b)
	for s.eager && utf8.FullRune(s.held) {
		r, size := utf8.DecodeRune(s.held)
		out(string(r))
		s.held = s.held[size:]
	}
}

func (s *fallbackStage) flush(out func(string)) {
	if utf8.Valid(s.held) {
		if len(s.held) > 0 {
			out(string(s.held))
		}
	} else {
		for range s.held {
			out(bad)
		}
	}
	s.held = s.held[:0]
}

// fallbackByte returns the byte of a token <0x00> to <0xFF>. The library also reads <0x+F>.
func fallbackByte(token string) (byte, bool) {
	if len(token) != 6 || !strings.HasPrefix(token, "<0x") || token[5] != '>' {
		return 0, false
	}
	high, low := hexDigit(token[3]), hexDigit(token[4])
	if token[3] == '+' {
		high = 0
	}
	return byte(high<<4 | low), high >= 0 && low >= 0
}

// hexDigit returns the value of a hexadecimal digit, -1 where b is none.
func hexDigit(b byte) int {
	if b >= 'A' && b <= 'F' {
		b += 'a' - 'A'
	}
	return strings.IndexByte("0123456789abcdef", b)
}

// stripToken cuts up to start and stop characters that are content from the ends of a token.
func stripToken(content rune, start, stop int) func(token string, index int) string {
	return func(token string, _ int) string {
		for range start {
			r, size := utf8.DecodeRuneInString(token)
			if size == 0 || r != content {
				break
			}
			token = token[size:]
		}
		for range stop {
			r, size := utf8.DecodeLastRuneInString(token)
			if size == 0 || r != content {
				break
			}
			token = token[:len(token)-size]
		}
		return token
	}
}

// stripStage is stripToken for the fused text. It holds back as many characters as it may have to cut.
type stripStage struct {
	content     rune
	start, stop int
	held        string
}

func (s *stripStage) push(token string, out func(string)) {
	for s.start > 0 && token != "" {
		r, size := utf8.DecodeRuneInString(token)
		if r != s.content {
			s.start = 0
			break
		}
		token = token[size:]
		s.start--
	}
	s.held += token
	tail := len(s.held)
	for range s.stop {
		r, size := utf8.DecodeLastRuneInString(s.held[:tail])
		if size == 0 || r != s.content {
			break
		}
		tail -= size
	}
	if tail > 0 {
		out(s.held[:tail])
		s.held = s.held[tail:]
	}
}

func (s *stripStage) flush(out func(string)) {
	if token := stripToken(s.content, 0, s.stop)(s.held, 0); token != "" {
		out(token)
	}
	s.held = ""
}

// chain runs tokens through stages one after the other.
type chain struct {
	stages []stage
	outs   []func(string) // outs[i] takes what stage i gives out
	text   strings.Builder
}

func newChain(makers []stageMaker, eager bool) *chain {
	c := &chain{}
	for i, maker := range makers {
		c.stages = append(c.stages, maker(eager))
		if i == len(makers)-1 {
			c.outs = append(c.outs, func(token string) { c.text.WriteString(token) })
			continue
		}
		c.outs = append(c.outs, func(token string) { c.stages[i+1].push(token, c.outs[i+1]) })
	}
	return c
}

func (c *chain) push(token string) { c.stages[0].push(token, c.outs[0]) }

func (c *chain) flush() {
	for i, s := range c.stages {
		s.flush(c.outs[i])
	}
}

// take returns the text that came out since the last call.
func (c *chain) take() string {
	text := c.text.String()
	c.text.Reset()
	return text
}

// Decoder turns the tokens of one answer into text while they come. It belongs to the answer, not to a
// model: a character whose bytes come from several models with the same tokenizer is held until it is
// whole. A Decoder is for one goroutine at a time.
type Decoder struct {
	tokenizer   *Tokenizer
	skipSpecial bool
	chain       *chain
}

// NewDecoder returns a decoder for one text. With skipSpecial, special tokens give no text.
func (t *Tokenizer) NewDecoder(skipSpecial bool) *Decoder {
	return &Decoder{tokenizer: t, skipSpecial: skipSpecial, chain: newChain(t.decoder, true)}
}

// Next takes one token and returns the text that is final with it, often "" inside a character. Text that was
// returned never changes. Ids that the vocabulary lacks give no text.
func (d *Decoder) Next(id int32) string {
	if token, ok := d.tokenizer.decoded(id, d.skipSpecial); ok {
		d.chain.push(token)
	}
	return d.chain.take()
}

// Flush ends the text: it returns what was held, an unfinished character as U+FFFD. All texts of Next
// and Flush together are what Decode returns, with one exception: a run of byte tokens that is not UTF-8
// as a whole is all U+FFFD there, but here keeps its whole characters, which were out before the run was
// known to be bad. The decoder is then as new.
func (d *Decoder) Flush() string {
	d.chain.flush()
	text := d.chain.take()
	d.chain = newChain(d.tokenizer.decoder, true)
	return text
}
