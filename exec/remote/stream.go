package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"tokenrouter/exec/sse"
)

// streamer is a dialect that can be asked for many tokens, as they come.
type streamer interface {
	// stream is the path and the body of such a call.
	stream(c *Client, ids []int32, tokens int) (path string, body any)
	// piece reads the data of one event: the tokens that it brings.
	piece(data []byte) ([]int32, error)
}

// Stream has the engine make so many tokens after ids by itself, the most likely each time, whether one ends
// an answer or not; piece is told of them as they come. It is what an engine is made for, for comparison: the
// call has no time limit but ctx. llama.cpp stops at a token that ends an answer, which is an error here.
func (c *Client) Stream(ctx context.Context, ids []int32, tokens int, piece func(ids []int32)) error {
	d, ok := c.dialect.(streamer)
	if !ok {
		return c.failed(fmt.Errorf("streams are read of %v and %v only", LlamaCPP, VLLM))
	}
	path, body := d.stream(c, ids, tokens)
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	response, err := c.send(ctx, http.MethodPost, path, data)
	if err != nil {
		return c.failed(err)
	}
	defer response.Body.Close()
	left := tokens
	events := sse.NewReader(response.Body, answerBytesMax)
	for {
		event, err := events.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return c.failed(fmt.Errorf("%s: the stream is cut with %d tokens to come: %w", path, left, err))
		}
		if string(event.Data) == "[DONE]" {
			continue
		}
		ids, err := d.piece(event.Data)
		if err != nil {
			return c.failed(fmt.Errorf("%s: %w", path, err))
		}
		left -= len(ids)
		if len(ids) > 0 {
			piece(ids)
		}
	}
	if left != 0 {
		return c.failed(fmt.Errorf("%s: %d tokens, want %d", path, tokens-left, tokens))
	}
	return nil
}
