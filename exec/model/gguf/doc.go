// Package gguf reads files in the GGUF format of versions 2 and 3 and turns those of llama, qwen2 and qwen3
// models into Hugging Face folders.
//
// Open reads the header: metadata with their types, and the place, type and shape of each tensor. A file is
// taken as hostile: every count, length and offset is checked against the file's size before anything is
// allocated for it, and what this package does not know is refused by name. Weights are read as float32 a run
// of rows at a time.
//
// The format is that of ggml's docs/gguf.md; block layouts are those of ggml-common.h.
package gguf
