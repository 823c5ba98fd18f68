package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"tokenrouter/exec/model/tokenizer"
)

// vocabularySamples are the tokens that are compared at most.
const vocabularySamples = 256

// CheckVocabulary compares what ids stand for at the engine and in t, by tokens of letters and digits that
// are spread over the vocabulary. It reports false where the engine has no way to ask. No call may run.
func (c *Client) CheckVocabulary(ctx context.Context, t *tokenizer.Tokenizer) (compared bool, err error) {
	if c.info.Vocab > 0 && c.info.Vocab < c.c.Samplable {
		return false, c.failed(fmt.Errorf("the engine knows %d tokens, want at least %d", c.info.Vocab,
			c.c.Samplable))
	}
	ids, texts := plain(t, c.c.Samplable)
	if len(ids) == 0 {
		return false, nil
	}
	c.whole = ids[0]
	data, err := c.post(ctx, "/detokenize", c.dialect.detokenize(c, ids))
	var status *StatusError
	if errors.As(err, &status) && status.Status == http.StatusNotFound {
		return false, nil
	}
	if err != nil {
		return false, c.failed(err)
	}
	text, err := c.dialect.text(data)
	if err != nil {
		return false, c.failed(err)
	}
	for i, want := range texts {
		rest, ok := strings.CutPrefix(text, want)
		if !ok {
			return false, c.failed(fmt.Errorf("another vocabulary: token %d is %q here, and the engine goes on with"+
				" %q", ids[i], want, shortest([]byte(text))))
		}
		text = rest
	}
	if text != "" {
		return false, c.failed(fmt.Errorf("another vocabulary: %d tokens have %q too much at their end", len(ids),
			shortest([]byte(text))))
	}
	return true, nil
}

// plain are tokens below end that are letters and digits only, which every decoder gives as they are, spread
// evenly.
func plain(t *tokenizer.Tokenizer, end int) (ids []int32, texts []string) {
	for id := range int32(end) {
		text := string(t.Bytes(id))
		if text != "" && !t.IsSpecial(id) && strings.Trim(text, lettersAndDigits) == "" {
			ids, texts = append(ids, id), append(texts, text)
		}
	}
	every := max(1, (len(ids)+vocabularySamples-1)/vocabularySamples)
	n := 0
	for i := 0; i < len(ids); i += every {
		ids[n], texts[n] = ids[i], texts[i]
		n++
	}
	return ids[:n], texts[:n]
}

const lettersAndDigits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
