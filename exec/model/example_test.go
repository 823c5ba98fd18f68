package model_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"tokenrouter/exec/model"
)

// A model of a small shape is made, opened and checked.
func ExampleOpen() {
	parent, err := os.MkdirTemp("", "model")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "tiny")
	shape, err := model.ParseShape("tiny,layers=2")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := model.Make(context.Background(), dir, shape, 1, nil); err != nil {
		fmt.Println(err)
		return
	}
	folder, err := model.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer folder.Close()
	keys, _ := folder.Lookup("model.layers.1.self_attn.k_proj.weight")
	fmt.Println(folder.Config.Architecture, keys.DType, keys.Shape, keys.Size, "bytes")
	faults, err := folder.Check(context.Background(), nil)
	fmt.Println(len(faults), "faults,", folder.Config.KVBytesPerToken(2), "bytes of KV a token", err)
	// Output:
	// Qwen3ForCausalLM BF16 [128 256] 65536 bytes
	// 0 faults, 1024 bytes of KV a token <nil>
}

// Llama 3's rotary positions, stretched 32 times.
func ExampleRope_InverseFrequencies() {
	rope := model.Rope{Theta: 500000, Scaling: model.RopeLlama3, Factor: 32, OriginalPositions: 8192,
		LowFactor: 1, HighFactor: 4}
	frequencies := rope.InverseFrequencies(64)
	fmt.Printf("%.4g %.4g %.4g\n", frequencies[0], frequencies[15], frequencies[31])
	// Output: 1 0.001291 9.418e-08
}
