package tokenizer

import "strings"

// Bytes returns the bytes that a token adds to a text, which need not be whole characters. What a decoder
// cuts at the beginning of a text it leaves: the token is taken for one in the middle. Ids that the
// vocabulary lacks have none.
func (t *Tokenizer) Bytes(id int32) []byte {
	token, ok := t.decoded(id, false)
	if !ok {
		return nil
	}
	for _, maker := range t.decoder {
		switch maker(true).(type) {
		case *levelStage:
			if data, ok := levelBytes(token); ok {
				return data
			}
			return []byte(token)
		case *fallbackStage:
			if b, ok := fallbackByte(token); ok {
				return []byte{b}
			}
		}
	}
	const before = "a"
	c := newChain(t.decoder, true)
	c.push(before)
	c.flush() // what is held of the first token comes before that of the second
	first := c.take()
	c = newChain(t.decoder, true)
	c.push(before)
	c.push(token)
	c.flush()
	return []byte(strings.TrimPrefix(c.take(), first))
}
