package model

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func shape(t testing.TB, text string) Config {
	t.Helper()
	c, err := ParseShape(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// made makes a model in a new folder and returns its path.
func made(t testing.TB, text string, seed uint64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "made")
	if err := Make(context.Background(), dir, shape(t, text), seed, nil); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestConfigJSON: what is written is read as the same, for every kind of configuration.
func TestConfigJSON(t *testing.T) {
	llama := []string{"architectures", `["LlamaForCausalLM"]`, "model_type", `"llama"`}
	for name, changes := range map[string]map[string]string{
		"published": nil,
		"Qwen2":     {"architectures": `["Qwen2ForCausalLM"]`, "model_type": `"qwen2"`, "eos_token_id": "[1,2]"},
		"Qwen3 with biases": {"attention_bias": "true", "tie_word_embeddings": "false", "bos_token_id": "null",
			"eos_token_id": "null"},
		"Llama":   small(append(llama, "attention_bias", "true", "mlp_bias", "true", "rope_scaling", llama3)...),
		"sliding": {"sliding_window": "4", "use_sliding_window": "true", "max_window_layers": "20"},
		"yarn": {"rope_scaling": `{"rope_type":"yarn","factor":40,"original_max_position_embeddings":4096,
			"mscale":1.0,"mscale_all_dim":0.707,"truncate":false}`},
	} {
		want := parsed(t, changes)
		got, err := ParseConfig(want.JSON(BF16), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParseShape(t *testing.T) {
	for _, test := range []struct {
		text  string
		holds func(c Config) bool
	}{
		{"tiny", func(c Config) bool { return c.Layers == 4 && c.Hidden == 256 && c.Vocab == 320 && c.QKNorm }},
		{"Qwen3-8B",
			func(c Config) bool { return c.Layers == 36 && c.Hidden == 4096 && !c.Tied && c.BOS == 151643 }},
		{"qwen3-0.6b,layers=2,tied=false",
			func(c Config) bool { return c.Layers == 2 && c.Hidden == 1024 && !c.Tied }},
		{"qwen3-0.6b,vocab=1000", func(c Config) bool { return c.Vocab == 1000 && c.BOS == -1 && len(c.EOS) == 0 }},
		{"layers=2,hidden=128,heads=4,intermediate=256,vocab=100",
			func(c Config) bool { return c.KVHeads == 4 && c.HeadDim == 32 && c.Tied && c.Architecture == Qwen3 }},
		{"tiny,architecture=qwen2", func(c Config) bool { return c.QKVBias && !c.QKNorm }},
		{"tiny,architecture=llama", func(c Config) bool { return !c.QKVBias && !c.QKNorm }},
	} {
		if c := shape(t, test.text); !test.holds(c) {
			t.Errorf("%s gives %+v", test.text, c)
		}
	}
}

func TestParseShapeRefuses(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", `shape "" is unknown, want tiny, qwen3-0.6b`},
		{"qwen3-9b", `shape "qwen3-9b" is unknown`},
		{"layers=2", "no hidden"},
		{"tiny,layers=0", `layers = "0"`},
		{"tiny,layers", `layers = ""`},
		{"tiny,depth=2", `no key "depth"`},
		{"tiny,layers=2,layers=3", "layers is given twice"},
		{"tiny,tied=yes", `tied = "yes"`},
		{"tiny,architecture=gpt2", `architecture = "gpt2"`},
		{"tiny,heads=5", "num_attention_heads = 5"},
		{"tiny,layers=1000000", "num_hidden_layers = 1000000"},
	} {
		if _, err := ParseShape(test.text); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: error %v, want %q in it", test.text, err, test.want)
		}
	}
}

// TestMake: the made folder is whole, and its bytes are those that they always were.
func TestMake(t *testing.T) {
	dir := made(t, ShapeTiny, 1)
	f := opened(t, dir)
	if len(f.Warnings) != 0 {
		t.Errorf("warnings %q", f.Warnings)
	}
	if diff := cmp.Diff(shape(t, ShapeTiny), f.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	faults, err := f.Check(context.Background(), nil)
	if err != nil || len(faults) != 0 {
		t.Errorf("check finds %v, %v", faults, err)
	}
	const want = "d6cb869168eee298a996578dfd1df4df5b047f78421af833ec8e19c7b687f37c"
	content, err := os.ReadFile(filepath.Join(dir, weightsFile))
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != want {
		t.Errorf("SHA-256 %x, want %s: made models change their weights", sum, want)
	}
	other, err := os.ReadFile(filepath.Join(made(t, ShapeTiny, 2), weightsFile))
	if err != nil || len(other) != len(content) || string(other) == string(content) {
		t.Errorf("another seed: %d bytes for %d, want others (%v)", len(other), len(content), err)
	}
}

// TestFirstWeights works the first numbers of a tensor out anew, from the published splitmix64 and FNV-1a.
func TestFirstWeights(t *testing.T) {
	f := opened(t, made(t, "tiny,layers=1", 7))
	tensor, _ := f.Lookup("model.layers.0.mlp.up_proj.weight")
	next := func(z uint64) uint64 {
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
		z = (z ^ (z >> 27)) * 0x94d049bb133111eb
		return z ^ (z >> 31)
	}
	name := uint64(0xcbf29ce484222325)
	for _, b := range []byte(tensor.Name) {
		name = (name ^ uint64(b)) * 0x100000001b3
	}
	state := next(7 ^ name)
	for i := range 100 {
		z := next(state + uint64(i+1)*0x9e3779b97f4a7c15)
		sum := 0.0
		for range 4 {
			sum += float64(z % 65536)
			z /= 65536
		}
		want := (sum - 131070) / math.Sqrt((65536.0*65536-1)/3) / math.Sqrt(256)
		got := float64(FromBF16(binary.LittleEndian.Uint16(f.Bytes(tensor)[2*i:])))
		if math.Abs(got-want) > math.Abs(want)/256 {
			t.Fatalf("number %d is %v, want %v", i, got, want)
		}
	}
}

// TestSpread: mean and standard deviation of each kind of tensor; the bounds are more than 6 standard errors
// of the mean of 10,000 numbers.
func TestSpread(t *testing.T) {
	f := opened(t, made(t, "tiny,architecture=qwen2", 3))
	for name, want := range map[string]bell{
		"model.embed_tokens.weight":              {0, 1.0 / 16},
		"model.layers.3.self_attn.o_proj.weight": {0, 1.0 / 16 / math.Sqrt(8)},
		"model.layers.0.mlp.down_proj.weight":    {0, 1 / math.Sqrt(768) / math.Sqrt(8)},
	} {
		tensor, _ := f.Lookup(name)
		numbers := make([]float32, tensor.Elements())
		ToFloat32(numbers, f.Bytes(tensor), BF16)
		sum, squares := 0.0, 0.0
		for _, x := range numbers {
			sum += float64(x)
			squares += float64(x) * float64(x)
		}
		n := float64(len(numbers))
		mean, spread := sum/n, math.Sqrt(squares/n)
		if math.Abs(mean-want.mean) > 6*want.spread/100 || math.Abs(spread/want.spread-1) > 0.03 {
			t.Errorf("%s: mean %v and spread %v, want %v", name, mean, spread, want)
		}
	}
	if norm := first(t, f, "model.norm.weight"); math.Abs(float64(norm)-1) > 0.4 {
		t.Errorf("a norm is %v, want one near 1", norm)
	}
}

func TestMakeRefusesFullFolder(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "notes.txt", nil)
	err := Make(context.Background(), dir, shape(t, ShapeTiny), 1, nil)
	if !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), "notes.txt") {
		t.Errorf("error %v, want one that names notes.txt", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files, want the one that was there", len(entries))
	}
}

// TestMakeInterrupted: nothing is left of a model that was not finished.
func TestMakeInterrupted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stop")
	err := Make(ctx, dir, shape(t, ShapeTiny), 1, func(done, total int64) {
		if done > total/2 {
			cancel(stop)
		}
	})
	if !errors.Is(err, stop) {
		t.Errorf("error %v, want %v", err, stop)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is still there (%v)", err)
	}
}

// TestCheck finds what is bad in each type of weights, with its place.
func TestCheck(t *testing.T) {
	const name = "model.layers.1.mlp.up_proj.weight"
	bytes := func(d DType, place int, bits uint32) Declared {
		raw := make([]byte, 30*d.Bytes())
		if d == F32 {
			binary.LittleEndian.PutUint32(raw[4*place:], bits)
		} else {
			binary.LittleEndian.PutUint16(raw[2*place:], uint16(bits))
		}
		return Declared{name, d, []int64{5, 6}, func(w io.Writer) error {
			_, err := w.Write(raw)
			return err
		}}
	}
	for _, test := range []struct {
		name   string
		tensor Declared
		isNaN  bool
	}{
		{"BF16 NaN", bytes(BF16, 29, 0x7fc0), true},
		{"BF16 minus infinity", bytes(BF16, 29, 0xff80), false},
		{"F16 NaN", bytes(F16, 29, 0x7c01), true},
		{"F16 infinity", bytes(F16, 29, 0x7c00), false},
		{"F32 NaN", bytes(F32, 29, 0xff800001), true},
		{"F32 infinity", bytes(F32, 29, 0x7f800000), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := opened(t, folder(t, small(), func(tensors []Declared) []Declared {
				for i := range tensors {
					if tensors[i].Name == name {
						tensors[i] = test.tensor
					}
				}
				return tensors
			}))
			faults, err := f.Check(context.Background(), nil)
			if err != nil || len(faults) != 1 {
				t.Fatalf("%v faults, want one (%v)", faults, err)
			}
			fault := faults[0]
			x := float64(fault.Value)
			if fault.Tensor.Name != name || fault.Count != 1 || fault.First != 29 || math.IsNaN(x) != test.isNaN ||
				math.IsInf(x, 0) == test.isNaN {
				t.Errorf("fault %+v", fault)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := opened(t, folder(t, small(), nil)).Check(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was ended", err)
	}
}

// BenchmarkFill makes 1 MiB of weights.
func BenchmarkFill(b *testing.B) {
	c, e := Config{Layers: 1}, Expected{"w", []int64{512, 1024}}
	b.SetBytes(1 << 20)
	for b.Loop() {
		if err := fill(io.Discard, &c, e, 1, func(int) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
