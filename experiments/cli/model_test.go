package cli

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/sim/latency"
)

// madeModel makes a model with the command and returns its folder.
func madeModel(t *testing.T, shape string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "made")
	mustRun(t, "model", "make", "--shape", shape, dir)
	return dir
}

func TestModelMake(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	// By arithmetic: the embedding, two layers (4 and 2 heads of 64 for q and o, k and v; the feed-forward part;
	// norms) and the last norm.
	const parameters = 320*256 + 2*(256*64*12+3*256*768+2*256+2*64) + 256
	out := mustRun(t, "model", "make", "--shape", "tiny,layers=2", "--seed", "18446744073709551615", dir)
	if want := dir + ": 1656320 parameters, 3.2 MiB of BF16, seed 18446744073709551615\n"; out != want ||
		parameters != 1656320 {
		t.Errorf("got %q, want %q (%d)", out, want, parameters)
	}
	want := dir + ": 24 tensors, 3.2 MiB, all numbers are finite; 259 tokens, a chat template\n"
	if out := mustRun(t, "model", "check", dir); out != want {
		t.Errorf("check prints %q, want %q", out, want)
	}
}

func TestModelInfo(t *testing.T) {
	dir := madeModel(t, "tiny,layers=1")
	want := `architecture  Qwen3ForCausalLM
parameters    869248
weights       1.7 MiB in 13 tensors, BF16
KV a token    0.5 KiB in bf16
layers        1
hidden        256
heads         4 of 64, 2 for keys and values
intermediate  768
vocabulary    320, the head is the embedding
has           norms of q and k
context       4096
RoPE          theta 1e+06
end tokens    256, 258
`
	if out := mustRun(t, "model", "info", dir); out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	var info infoJSON
	decode(t, mustRun(t, "model", "info", dir, "--json"), &info)
	if info.Parameters != 869248 || len(info.Tensors) != 13 || info.KVBytesPerToken != 512 ||
		info.Warnings == nil {
		t.Errorf("got %+v", info)
	}
	if first := info.Tensors[0]; first.Name != "model.embed_tokens.weight" || first.DType != model.BF16 ||
		first.Size != 2*320*256 || first.Offset%64 != 0 {
		t.Errorf("first tensor %+v", first)
	}
}

// TestModelCheckFaults: a NaN is found with its tensor and place, a cut file with its name; both exit 1.
func TestModelCheckFaults(t *testing.T) {
	dir := madeModel(t, "tiny,layers=1")
	folder, err := model.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	tensor, _ := folder.Lookup("model.layers.0.mlp.up_proj.weight")
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(tensor.File)
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint16(content[tensor.Offset+2*77:], 0x7fc0)
	if err := os.WriteFile(tensor.File, content, 0o644); err != nil {
		t.Fatal(err)
	}
	o := runCLI(t, "model", "check", dir)
	want := "tensor model.layers.0.mlp.up_proj.weight has 1 number NaN or infinite, " +
		"the first NaN at 77 of 196608"
	if o.code != ExitFailed || o.stdout != "" || !strings.Contains(o.stderr, want) {
		t.Errorf("exit %d, stdout %q, stderr %q, want exit 1 and %q", o.code, o.stdout, o.stderr, want)
	}
	if err := os.WriteFile(tensor.File, content[:len(content)-1], 0o644); err != nil {
		t.Fatal(err)
	}
	o = runCLI(t, "model", "check", dir)
	if o.code != ExitFailed || !strings.Contains(o.stderr, `model.safetensors: tensor "model.norm.weight"`) {
		t.Errorf("cut file: exit %d, stderr %q", o.code, o.stderr)
	}
}

// TestModelCheckText: what makes tokens of text is checked with the weights, and is not needed.
func TestModelCheckText(t *testing.T) {
	for _, c := range []struct{ name, file, text, want, fault string }{
		{"a template", "chat_template.jinja", "{{ messages[0].content }}", "259 tokens, a chat template", ""},
		{"no template", "tokenizer_config.json", "", "259 tokens, no chat template", ""},
		{"a broken one", "chat_template.jinja", "{% if %}", "", "chat_template.jinja: chat template: "},
		{"a broken tokenizer", "tokenizer.json", "{}", "", "tokenizer.json"},
		{"none", "tokenizer.json", "", "no tokenizer", ""},
		{"another model's", "tokenizer.json", `{"model":{"type":"BPE","vocab":{"a":320},"merges":[]}}`, "",
			"tokenizer.json has ids up to 320, want at most 319: the model knows 320 tokens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := madeModel(t, "tiny,layers=1")
			path := filepath.Join(dir, c.file)
			err := os.WriteFile(path, []byte(c.text), 0o600)
			if c.text == "" {
				err = os.Remove(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			o := runCLI(t, "model", "check", dir)
			if o.code == 0 != (c.fault == "") || !strings.Contains(o.stderr, c.fault) ||
				c.fault == "" && !strings.HasSuffix(o.stdout, "; "+c.want+"\n") {
				t.Errorf("exit %d, stdout %q, stderr %q; want %q or %q", o.code, o.stdout, o.stderr, c.want, c.fault)
			}
		})
	}
}

func TestModelRefuses(t *testing.T) {
	empty, full := t.TempDir(), madeModel(t, "tiny,layers=1")
	refuse(t, []refusal{
		{"no command", []string{"model"}, []string{"want info, check, make or convert"}},
		{"unknown command", []string{"model", "show"}, []string{`no command "show"`}},
		{"no folder", []string{"model", "info"}, []string{"want a model folder"}},
		{"absent folder", []string{"model", "info", filepath.Join(empty, "none")}, []string{"config.json"}},
		{"absent folder, check", []string{"model", "check", filepath.Join(empty, "none")},
			[]string{"want a folder"}},
		{"empty folder", []string{"model", "info", empty}, []string{"config.json"}},
		{"no shape", []string{"model", "make", empty}, []string{"no --shape, want one of tiny, qwen3-0.6b"}},
		{"unknown shape", []string{"model", "make", "--shape", "qwen3-9b", empty},
			[]string{`shape "qwen3-9b" is unknown`}},
		{"negative seed", []string{"model", "make", "--shape", "tiny", "--seed", "-1", empty},
			[]string{"--seed", "-1"}},
		{"full folder", []string{"model", "make", "--shape", "tiny", full}, []string{"not empty", "config.json"}},
	})
}

// TestModelInterrupted: an interrupt ends both long commands; make leaves nothing.
func TestModelInterrupted(t *testing.T) {
	made, dir := madeModel(t, "tiny,layers=1"), filepath.Join(t.TempDir(), "made")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"model", "make", "--shape", "tiny", dir}, "interrupted; nothing is left in " + dir},
		{[]string{"model", "check", made}, "tokenrouter model check: interrupted\n"},
	} {
		var stdout, stderr strings.Builder
		code := Main(ctx, test.args, &stdout, &stderr)
		if code != ExitFailed || stdout.String() != "" || !strings.Contains(stderr.String(), test.want) {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", test.args, code, stdout.String(), stderr.String())
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is there (%v)", dir, err)
	}
}

// TestModelShapes: the shapes that the executor can make are those that the simulator knows, and their sizes,
// parameters and KV are the same in both.
func TestModelShapes(t *testing.T) {
	names := latency.DimensionNames()
	if known := model.ShapeNames(); len(known) != len(names)+1 || known[0] != model.ShapeTiny {
		t.Errorf("shapes %q, want tiny and those of the simulator, %q", known, names)
	}
	for _, name := range names {
		want, err := latency.DimensionsNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := model.ParseShape(strings.ToLower(name))
		if err != nil {
			t.Fatal(err)
		}
		got := latency.Dimensions{Name: name, Layers: c.Layers, Hidden: c.Hidden, Heads: c.Heads,
			KVHeads: c.KVHeads, HeadDim: c.HeadDim, Intermediate: c.Intermediate, Vocab: c.Vocab, Tied: c.Tied}
		if got != want {
			t.Errorf("%+v, the simulator has %+v", got, want)
		}
		if c.Parameters() != want.Parameters() || c.KVBytesPerToken(2) != want.KVBytesPerToken(2) {
			t.Errorf("%s: %d parameters and %d bytes of KV a token, the simulator has %d and %d", name,
				c.Parameters(), c.KVBytesPerToken(2), want.Parameters(), want.KVBytesPerToken(2))
		}
	}
}
