package gguf

import (
	"fmt"
	"slices"
)

// source is a tensor of the folder and the one in the file that it comes from.
type source struct {
	name  string // in the folder
	from  Tensor
	shape []int64
	heads int64 // heads whose rows are put into half-split order; 0: rows stay
}

// wanted is a tensor that a shape needs.
type wanted struct {
	ggml, name string
	shape      []int64
	heads      int64
}

// wantedTensors lists the tensors of a model in the order in which they are written.
func (s *shape) wantedTensors() []wanted {
	rows := []int64{s.vocab, s.hidden}
	list := []wanted{{ggml: "token_embd.weight", name: "model.embed_tokens.weight", shape: rows}}
	for i := range s.layers {
		list = append(list, s.layer(fmt.Sprintf("blk.%d.", i), fmt.Sprintf("model.layers.%d.", i))...)
	}
	list = append(list, wanted{ggml: "output_norm.weight", name: "model.norm.weight", shape: rows[1:]})
	if !s.tied {
		list = append(list, wanted{ggml: "output.weight", name: "lm_head.weight", shape: rows})
	}
	return list
}

func (s *shape) layer(ggml, name string) []wanted {
	queries, keys := s.heads*s.headDim, s.kvHeads*s.headDim
	var queryHeads, keyHeads int64
	if s.permute {
		queryHeads, keyHeads = s.heads, s.kvHeads
	}
	list := []wanted{
		{"attn_norm.weight", "input_layernorm.weight", []int64{s.hidden}, 0},
		{"attn_q.weight", "self_attn.q_proj.weight", []int64{queries, s.hidden}, queryHeads},
		{"attn_k.weight", "self_attn.k_proj.weight", []int64{keys, s.hidden}, keyHeads},
		{"attn_v.weight", "self_attn.v_proj.weight", []int64{keys, s.hidden}, 0},
		{"attn_output.weight", "self_attn.o_proj.weight", []int64{s.hidden, queries}, 0},
		{"ffn_norm.weight", "post_attention_layernorm.weight", []int64{s.hidden}, 0},
		{"ffn_gate.weight", "mlp.gate_proj.weight", []int64{s.intermediate, s.hidden}, 0},
		{"ffn_up.weight", "mlp.up_proj.weight", []int64{s.intermediate, s.hidden}, 0},
		{"ffn_down.weight", "mlp.down_proj.weight", []int64{s.hidden, s.intermediate}, 0},
	}
	if s.biased {
		list = append(list,
			wanted{"attn_q.bias", "self_attn.q_proj.bias", []int64{queries}, queryHeads},
			wanted{"attn_k.bias", "self_attn.k_proj.bias", []int64{keys}, keyHeads},
			wanted{"attn_v.bias", "self_attn.v_proj.bias", []int64{keys}, 0})
	}
	if s.biased && s.biases == optionalBiases {
		list = append(list, wanted{"attn_output.bias", "self_attn.o_proj.bias", []int64{s.hidden}, 0})
	}
	if s.qkNorm {
		list = append(list,
			wanted{"attn_q_norm.weight", "self_attn.q_norm.weight", []int64{s.headDim}, 0},
			wanted{"attn_k_norm.weight", "self_attn.k_norm.weight", []int64{s.headDim}, 0})
	}
	for i := range list {
		list[i].ggml, list[i].name = ggml+list[i].ggml, name+list[i].name
	}
	return list
}

// sources finds every tensor that the shape needs and refuses any other.
func (s *shape) sources(f *File) ([]source, error) {
	// Names before anything is made for them: the metadata may say more layers than the file has tensors.
	if s.layers > int64(len(f.Tensors())) {
		return nil, fmt.Errorf("%s.block_count = %d in a file with %d tensors", s.name, s.layers, len(f.Tensors()))
	}
	used := map[string]bool{}
	var list []source
	for _, w := range s.wantedTensors() {
		t, ok := f.Lookup(w.ggml)
		if !ok {
			return nil, fmt.Errorf("no tensor %s", w.ggml)
		}
		if !slices.Equal(t.Shape, w.shape) {
			return nil, fmt.Errorf("tensor %s has shape %d (rows first), want %d", t.Name, t.Shape, w.shape)
		}
		used[w.ggml] = true
		list = append(list, source{name: w.name, from: t, shape: w.shape, heads: w.heads})
	}
	for _, t := range f.Tensors() {
		if !used[t.Name] {
			return nil, fmt.Errorf("tensor %s is not supported in %s", t.Name, s.name)
		}
	}
	return list, nil
}

// rowOf returns the row of the file that is row i of the folder's tensor with the given number of rows.
//
// A head of d rows turns pairs of them. GGUF's llama has the two of pair j next to one another, at 2j and
// 2j+1; transformers has them half a head apart, at j and d/2+j (llama.cpp, convert_hf_to_gguf.py,
// LlamaModel.permute, whose inverse this is).
func rowOf(i, rows, heads int64) int64 {
	if heads == 0 {
		return i
	}
	size := rows / heads
	head, within := i/size, i%size
	part, pair := within/(size/2), within%(size/2)
	return head*size + 2*pair + part
}
