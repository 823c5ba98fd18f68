package native

// #include "native.h"
import "C"

import (
	"fmt"
	"math"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/router"
)

// Weights says how a device keeps matrices. Norms and biases are always float32.
type Weights int32

// The formats.
const (
	WeightsBF16 Weights = C.TR_WEIGHTS_BF16
	WeightsInt8 Weights = C.TR_WEIGHTS_INT8 // with a scale an output channel, or a group of its inputs
)

// Config is all that decides what a model computes on a device, but for the weights themselves.
type Config struct {
	Model       model.Config
	Samplable   int          // ids below it may be sampled; 0: all
	Weights     Weights      // 0: WeightsBF16
	GroupInputs int          // WeightsInt8: inputs of a scale, a multiple of 64; 0: all of a channel
	Router      router.Shape // of the network that judges each token; the zero value is none
}

// native is the C form.
func (c *Config) native() (C.tr_model_config, error) {
	m := &c.Model
	if m.Positions > math.MaxInt32 || m.Vocab > math.MaxInt32 || c.Samplable < 0 || c.Samplable > m.Vocab {
		return C.tr_model_config{}, fmt.Errorf("native: %w: %d positions, %d tokens, %d of them samplable",
			ErrInvalid, m.Positions, m.Vocab, c.Samplable)
	}
	if r := &c.Router; r.Algorithm != 0 && (r.Hidden != m.Hidden || r.Top > m.Vocab) {
		return C.tr_model_config{}, fmt.Errorf("native: %w: router %v for a model of hidden size %d and %d tokens",
			ErrInvalid, r, m.Hidden, m.Vocab)
	}
	n := C.tr_model_config{
		size: C.sizeof_tr_model_config, layers: C.int32_t(m.Layers), hidden: C.int32_t(m.Hidden),
		heads: C.int32_t(m.Heads), kv_heads: C.int32_t(m.KVHeads), head_dim: C.int32_t(m.HeadDim),
		intermediate: C.int32_t(m.Intermediate), vocab: C.int32_t(m.Vocab), samplable: C.int32_t(c.Samplable),
		positions: C.int32_t(m.Positions), tied: flag(m.Tied), qkv_bias: flag(m.QKVBias),
		output_bias: flag(m.OutputBias), mlp_bias: flag(m.MLPBias), qk_norm: flag(m.QKNorm),
		weights: C.int32_t(c.Weights), group_inputs: C.int32_t(c.GroupInputs),
		norm_epsilon: C.float(m.NormEpsilon), rope_factor: C.float(m.Rope.AttentionFactor),
		router: C.int32_t(c.Router.Algorithm), router_top: C.int32_t(c.Router.Top),
		router_width: C.int32_t(c.Router.Width), router_blocks: C.int32_t(c.Router.Blocks),
		router_expanded: C.int32_t(c.Router.Expanded),
	}
	if c.Samplable == 0 {
		n.samplable = n.vocab
	}
	if c.Weights == 0 {
		n.weights = C.TR_WEIGHTS_BF16
	}
	return n, nil
}

// Limits say what a model shall be able to do. Everything that steps need is allocated for it at once.
type Limits struct {
	Slots       int // requests that hold pages at a time
	Pages       int // of KV
	PageTokens  int
	ContextMax  int // tokens of a request
	RowsMax     int // tokens that one step is given
	RequestsMax int // requests in one step
	TopMax      int // entries of a top list
	BiasesMax   int // in one step
}

func (l *Limits) native() (C.tr_limits, error) {
	for _, n := range []int{l.Slots, l.Pages, l.PageTokens, l.ContextMax, l.RowsMax, l.RequestsMax, l.TopMax,
		l.BiasesMax} {
		if n < 0 || n > math.MaxInt32 {
			return C.tr_limits{}, fmt.Errorf("native: %w: limits %+v, want 0 to %d each", ErrInvalid, *l,
				math.MaxInt32)
		}
	}
	return C.tr_limits{
		size: C.sizeof_tr_limits, slots: C.int32_t(l.Slots), pages: C.int32_t(l.Pages),
		page_tokens: C.int32_t(l.PageTokens), context_max: C.int32_t(l.ContextMax),
		rows_max: C.int32_t(l.RowsMax), requests_max: C.int32_t(l.RequestsMax), top_max: C.int32_t(l.TopMax),
		biases_max: C.int32_t(l.BiasesMax),
	}, nil
}

// Needs is the memory of a model, in bytes.
type Needs struct {
	WeightBytes     int64 // as kept, the router included
	KVBytes         int64 // of all pages
	KVBytesPerToken int64
	WorkBytes       int64 // activations, logits, tables, graphs
}

// Total is all of it.
func (n Needs) Total() int64 { return n.WeightBytes + n.KVBytes + n.WorkBytes }

func needsOf(n *C.tr_needs) Needs {
	return Needs{int64(n.weight_bytes), int64(n.kv_bytes), int64(n.kv_bytes_per_token), int64(n.work_bytes)}
}

func flag(b bool) C.int32_t {
	if b {
		return 1
	}
	return 0
}
