package remote

import (
	"context"
	"fmt"
)

// Refusal says why an algorithm can not run with a model on an engine, nil if it can. model is its place, 0
// the small one. Algorithms have the names of a system's file. R2R, CITER and Co-LLM judge by what only the
// small model computes: the large one is asked for tokens, and may be anywhere.
func Refusal(e Engine, algorithm string, model int) error {
	switch algorithm {
	case "me", "query", "small", "large", "rstitch":
		return nil
	case "r2r", "citer", "collm":
	default:
		panic("remote: algorithm " + algorithm)
	}
	if model > 0 {
		return nil
	}
	return fmt.Errorf("%s can not run with its small model on %s, which %s", algorithm, e, lacks[algorithm][e])
}

// lacks is what stands in the way.
var lacks = map[string]map[Engine]string{
	"r2r": {
		LlamaCPP: "gives neither hidden states nor raw logits",
		VLLM:     "gives no hidden states",
		SGLang: "gives log-probabilities, and the router reads raw logits: they differ by a number that changes" +
			" with the position",
	},
	"citer": {
		LlamaCPP: "gives no hidden states",
		VLLM:     "gives no hidden states",
		SGLang:   "gives hidden states as text only, at a multiple of the time of a step: they are not asked for",
	},
	"collm": {
		LlamaCPP: "gives no raw logit of the deferral row",
		VLLM: "gives the raw logit of the deferral row only where it serves a checkpoint with that row in" +
			" raw_logits mode: it is not asked for",
		SGLang: "gives log-probabilities, from which the raw logit of the deferral row can not be told",
	},
}

// CheckEntropy asks for a whole distribution, as a token near the threshold of R-Stitch will: vLLM gives 20
// log-probabilities unless it was started with --max-logprobs -1.
func (c *Client) CheckEntropy(ctx context.Context) error {
	_, err := c.Next(ctx, &Ask{IDs: []int32{0}, Top: c.c.Vocab, Slot: -1})
	if err != nil && c.c.Engine == VLLM {
		return fmt.Errorf("%w (rstitch needs vLLM with --max-logprobs -1)", err)
	}
	return err
}
