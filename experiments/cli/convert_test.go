package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/exec/model"
)

// ggufFile writes a llama of one layer, width 4, one head and three tokens, all weights 0.5. architecture
// takes the place of the value of general.architecture.
func ggufFile(t *testing.T, architecture string) string {
	t.Helper()
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			if s, ok := v.(string); ok {
				v = append(binary.LittleEndian.AppendUint64(nil, uint64(len(s))), s...)
			}
			if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	const uint32Kind, int32Kind, floatKind = uint32(4), uint32(5), uint32(6) // gguf.Kind
	const stringKind, arrayKind = uint32(8), uint32(9)
	put([]byte("GGUF"), uint32(3), uint64(11), uint64(13), "general.architecture", stringKind, architecture)
	for key, n := range map[string]uint32{"block_count": 1, "embedding_length": 4, "feed_forward_length": 4,
		"attention.head_count": 1, "context_length": 32} {
		put("llama."+key, uint32Kind, n)
	}
	put("llama.attention.layer_norm_rms_epsilon", floatKind, float32(1e-5))
	put("tokenizer.ggml.model", stringKind, "gpt2", "tokenizer.ggml.pre", stringKind, "smollm")
	put("tokenizer.ggml.tokens", arrayKind, stringKind, uint64(3), "<e>", "a", "aa")
	put("tokenizer.ggml.token_type", arrayKind, int32Kind, uint64(3), []int32{3, 1, 1})
	put("tokenizer.ggml.merges", arrayKind, stringKind, uint64(1), "a a")
	put("tokenizer.ggml.eos_token_id", uint32Kind, uint32(0))
	offset := uint64(0)
	tensor := func(name string, dimensions ...uint64) {
		put(name, uint32(len(dimensions)), dimensions, uint32(0), offset)
		offset += 64
	}
	tensor("token_embd.weight", 4, 3)
	tensor("output_norm.weight", 4)
	tensor("blk.0.attn_norm.weight", 4)
	tensor("blk.0.ffn_norm.weight", 4)
	for name := range strings.FieldsSeq("attn_q attn_k attn_v attn_output ffn_gate ffn_up ffn_down") {
		tensor("blk.0."+name+".weight", 4, 4)
	}
	put(make([]byte, 32-b.Len()%32), bytes.Repeat([]byte{0, 0, 0, 0x3f}, 11*16))
	path := filepath.Join(t.TempDir(), "a.gguf")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestModelConvert(t *testing.T) {
	path := ggufFile(t, "llama")
	for _, c := range []struct {
		args []string
		want model.DType
	}{{nil, model.BF16}, {[]string{"--dtype", "f32"}, model.F32}} {
		dir := filepath.Join(t.TempDir(), "converted")
		args := append([]string{"model", "convert", path, dir}, c.args...)
		if out := mustRun(t, args...); out != dir+": 11 tensors of "+string(c.want)+"\n" {
			t.Errorf("%q prints %q", args, out)
		}
		// The embedding, three norms, seven matrices.
		folder, err := model.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if n := folder.Config.Parameters(); n != 12+3*4+7*16 || folder.WeightBytes() != n*c.want.Bytes() {
			t.Errorf("%d parameters, %d bytes, want 136 of %s", n, folder.WeightBytes(), c.want)
		}
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
		if out := mustRun(t, "model", "check", dir); !strings.Contains(out, "all numbers are finite") {
			t.Errorf("check prints %q", out)
		}
	}
}

func TestModelConvertRefuses(t *testing.T) {
	path, other := ggufFile(t, "llama"), ggufFile(t, "gemma")
	none := filepath.Join(filepath.Dir(path), "none.gguf")
	cases := []struct {
		name string
		args []string
		want string
	}{
		{"one argument", []string{path}, "want a GGUF file and a folder to make"},
		{"type", []string{path, "x", "--dtype", "f16"}, `--dtype = "f16", want bf16, f32`},
		{"no file", []string{none, "x"}, "does not exist"},
		{"no GGUF file", []string{"convert_test.go", "x"}, `convert_test.go: begins with "pack", want GGUF`},
		{"architecture", []string{other, "x"}, `key general.architecture = "gemma" is not supported`},
		{"folder in use", []string{path, filepath.Dir(path)}, "the folder is not empty"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := Main(context.Background(), append([]string{"model", "convert"}, c.args...), &stdout, &stderr)
			if code != ExitMisuse || !strings.Contains(stderr.String(), c.want) || stdout.Len() > 0 {
				t.Errorf("exit %d, %q, want %d and %s", code, stderr.String(), ExitMisuse, c.want)
			}
		})
	}
}
