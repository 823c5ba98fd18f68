// Package model reads and makes model folders in the form that Hugging Face publishes: config.json,
// generation_config.json, and weights in model.safetensors or in shards with model.safetensors.index.json.
//
// Open reads a folder and gives its Config and the table of all tensors that the architecture needs, each
// with its type, shape, file and place in the file. Weights are mapped, not read. What a folder asks for and
// this package does not know is refused by name: a model is computed as published or not at all. Files are
// taken as hostile: sizes are checked before anything is allocated for them.
//
// Make writes a model of a given shape with random weights, for work on speed and for tests.
//
// The architectures are Qwen3ForCausalLM, Qwen2ForCausalLM and LlamaForCausalLM.
package model
