package gguf

import (
	"bytes"
	"encoding/json"
	"strconv"

	"tokenrouter/exec/model"
)

// number writes a float32 of the metadata with as few digits as tell it from others: 1e-05, not 9.99...e-06.
func number(x float64) json.Number {
	text := strconv.FormatFloat(x, 'g', -1, 64)
	if float64(float32(x)) == x {
		text = strconv.FormatFloat(x, 'g', -1, 32)
	}
	return json.Number(text)
}

// idOrNull is a token id, or null for none.
func idOrNull(id int64) any {
	if id < 0 {
		return nil
	}
	return id
}

// endIDs is eos_token_id: a number, or a list of several.
func (v *vocabulary) endIDs() any {
	switch len(v.ends) {
	case 0:
		return nil
	case 1:
		return v.ends[0]
	default:
		return v.ends
	}
}

// configJSON is config.json.
func configJSON(s *shape, v *vocabulary, d model.DType) object {
	config := object{
		"architectures": []string{s.class}, "model_type": s.name, "hidden_act": "silu",
		"hidden_size": s.hidden, "intermediate_size": s.intermediate, "num_hidden_layers": s.layers,
		"num_attention_heads": s.heads, "num_key_value_heads": s.kvHeads, "head_dim": s.headDim,
		"max_position_embeddings": s.positions, "rms_norm_eps": number(s.normEpsilon),
		"rope_theta": number(s.ropeBase), "rope_scaling": nil, "vocab_size": s.vocab, "tie_word_embeddings": s.tied,
		"torch_dtype": map[model.DType]string{model.BF16: "bfloat16", model.F32: "float32"}[d],
		"use_cache":   true, "initializer_range": 0.02, "attention_dropout": 0.0,
		"bos_token_id": idOrNull(v.bos), "eos_token_id": v.endIDs(), "pad_token_id": idOrNull(v.pad),
	}
	switch s.biases {
	case qkvBiases:
		config["use_sliding_window"] = false
	case optionalBiases:
		config["attention_bias"], config["mlp_bias"] = s.biased, false
	default:
		config["attention_bias"], config["use_sliding_window"] = false, false
	}
	return config
}

// generationJSON is generation_config.json.
func generationJSON(v *vocabulary) object {
	return object{"bos_token_id": idOrNull(v.bos), "eos_token_id": v.endIDs(), "pad_token_id": idOrNull(v.pad)}
}

// tokenizerJSON is tokenizer.json of the tokenizers library.
func tokenizerJSON(v *vocabulary) object {
	added := []object{}
	for id, kind := range v.types {
		if kind == tokenControl || kind == tokenUserDefined {
			added = append(added, object{"id": id, "content": v.tokens[id], "single_word": false, "lstrip": false,
				"rstrip": false, "normalized": false, "special": kind == tokenControl})
		}
	}
	return object{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added,
		"normalizer": v.splitter.normalizer, "pre_tokenizer": v.splitter.preTokenizer,
		"post_processor": v.postProcessor(), "decoder": byteLevel(true),
		"model": object{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil,
			"end_of_word_suffix": nil, "fuse_unk": false, "byte_fallback": false,
			"ignore_merges": v.splitter.ignoreMerges, "vocab": ordered{v}, "merges": v.merges},
	}
}

// postProcessor puts the tokens around a text that the file says are added.
func (v *vocabulary) postProcessor() object {
	if !v.bosAdded && !v.eosAdded {
		return byteLevel(true)
	}
	special := object{}
	token := func(id int64, sequence int) object {
		text := v.tokens[id]
		special[text] = object{"id": text, "ids": []int64{id}, "tokens": []string{text}}
		return object{"SpecialToken": object{"id": text, "type_id": sequence}}
	}
	around := func(name string, sequence int) []any {
		var list []any
		if v.bosAdded {
			list = append(list, token(v.bos, sequence))
		}
		list = append(list, object{"Sequence": object{"id": name, "type_id": sequence}})
		if v.eosAdded {
			list = append(list, token(v.eos, sequence))
		}
		return list
	}
	single := around("A", 0)
	return object{"type": "TemplateProcessing", "single": single,
		"pair": append(append([]any{}, single...), around("B", 1)...), "special_tokens": special}
}

// tokenizerConfigJSON is tokenizer_config.json of transformers.
func tokenizerConfigJSON(s *shape, v *vocabulary) object {
	config := object{"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": s.positions,
		"clean_up_tokenization_spaces": false, "add_bos_token": v.bosAdded, "add_eos_token": v.eosAdded}
	for key, id := range map[string]int64{
		"bos_token": v.bos, "eos_token": v.eos, "pad_token": v.pad, "unk_token": v.unknown} {
		if id >= 0 {
			config[key] = v.tokens[id]
		}
	}
	if v.chat != "" {
		config["chat_template"] = v.chat
	}
	return config
}

// document is v as JSON with indents; < and & stay as they are.
func document(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(v)
	return b.Bytes(), err
}
