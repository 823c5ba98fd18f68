package model

import (
	"encoding/json"
	"fmt"
)

// configJSON is a config.json as this package writes it.
type configJSON struct {
	Architectures []string        `json:"architectures"`
	ModelType     string          `json:"model_type"`
	Layers        int             `json:"num_hidden_layers"`
	Hidden        int             `json:"hidden_size"`
	Heads         int             `json:"num_attention_heads"`
	KVHeads       int             `json:"num_key_value_heads"`
	HeadDim       int             `json:"head_dim"`
	Intermediate  int             `json:"intermediate_size"`
	Vocab         int             `json:"vocab_size"`
	Activation    string          `json:"hidden_act"`
	NormEpsilon   float64         `json:"rms_norm_eps"`
	Theta         float64         `json:"rope_theta"`
	Scaling       *scalingJSON    `json:"rope_scaling"`
	Positions     int             `json:"max_position_embeddings"`
	Tied          bool            `json:"tie_word_embeddings"`
	AttentionBias *bool           `json:"attention_bias,omitempty"`
	MLPBias       *bool           `json:"mlp_bias,omitempty"`
	UseWindow     *bool           `json:"use_sliding_window,omitempty"`
	Window        int             `json:"sliding_window,omitempty"`
	LayerTypes    []string        `json:"layer_types,omitempty"`
	BOS           *int            `json:"bos_token_id"`
	EOS           json.RawMessage `json:"eos_token_id"`
	TorchDType    string          `json:"torch_dtype"`
}

type scalingJSON struct {
	Kind              string   `json:"rope_type"`
	Factor            float64  `json:"factor"`
	OriginalPositions int      `json:"original_max_position_embeddings"`
	LowFactor         float64  `json:"low_freq_factor,omitempty"`
	HighFactor        float64  `json:"high_freq_factor,omitempty"`
	BetaFast          float64  `json:"beta_fast,omitempty"`
	BetaSlow          float64  `json:"beta_slow,omitempty"`
	Truncate          *bool    `json:"truncate,omitempty"`
	AttentionFactor   *float64 `json:"attention_factor,omitempty"`
}

// JSON returns the configuration as a config.json, whose weights are said to be of type stored. ParseConfig
// of it gives the same configuration.
func (c *Config) JSON(stored DType) []byte {
	out := configJSON{Architectures: []string{c.Architecture.String()}, Layers: c.Layers, Hidden: c.Hidden,
		Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim, Intermediate: c.Intermediate, Vocab: c.Vocab,
		Activation: "silu", NormEpsilon: c.NormEpsilon, Theta: c.Rope.Theta, Scaling: scalingOf(c.Rope),
		Positions: c.Positions, Tied: c.Tied, EOS: json.RawMessage("null")}
	for _, known := range architectures {
		if known.architecture == c.Architecture {
			out.ModelType = known.kind
		}
	}
	if c.Architecture != Qwen2 {
		out.AttentionBias = &c.QKVBias
	}
	if c.Architecture == Llama {
		out.MLPBias = &c.MLPBias
	} else {
		used := c.SlidingLayers != nil
		out.UseWindow, out.Window = &used, c.Window
	}
	for _, sliding := range c.SlidingLayers {
		kind := "full_attention"
		if sliding {
			kind = "sliding_attention"
		}
		out.LayerTypes = append(out.LayerTypes, kind)
	}
	if c.BOS >= 0 {
		out.BOS = &c.BOS
	}
	switch len(c.EOS) {
	case 0:
	case 1:
		out.EOS = encoded(c.EOS[0])
	default:
		out.EOS = encoded(c.EOS)
	}
	out.TorchDType = map[DType]string{BF16: "bfloat16", F16: "float16", F32: "float32"}[stored]
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("model: %+v as JSON: %v", *c, err)) // its numbers are finite
	}
	return append(text, '\n')
}

func scalingOf(rope Rope) *scalingJSON {
	if rope.Scaling == RopeUnscaled {
		return nil
	}
	out := &scalingJSON{Kind: rope.Scaling.String(), Factor: rope.Factor,
		OriginalPositions: rope.OriginalPositions, LowFactor: rope.LowFactor, HighFactor: rope.HighFactor,
		BetaFast: rope.BetaFast, BetaSlow: rope.BetaSlow}
	if rope.Scaling == RopeYaRN {
		out.Truncate, out.AttentionFactor = &rope.Truncate, &rope.AttentionFactor
	}
	return out
}

func encoded(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("model: %v as JSON: %v", v, err))
	}
	return text
}
