package checkpoint

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/router"
)

// scores is what PyTorch computes with the weights of testdata (../testdata/make.py).
func scores(t *testing.T) (hidden, embeddings, logits [][]float32, want []float64) {
	t.Helper()
	text, err := os.ReadFile("../testdata/scores.json")
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		Hidden, Embeddings, Logits [][]float32
		R2R                        []float64
	}
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	return g.Hidden, g.Embeddings, g.Logits, g.R2R
}

// TestConvert: what torch.save writes in R2R's layout becomes a router that scores as PyTorch does.
func TestConvert(t *testing.T) {
	hidden, embeddings, logits, want := scores(t)
	for _, c := range []struct {
		file      string
		tolerance float64
	}{{"r2r.pt", 1e-13}, {"r2r_all.pt", 0.05}} { // the second has bfloat16 weights
		t.Run(c.file, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "new", "router")
			r, err := Convert(filepath.Join("testdata", c.file), dir)
			if err != nil {
				t.Fatal(err)
			}
			shape := router.Shape{Algorithm: router.R2R, Hidden: 12, Top: 10, Width: 16, Blocks: 2, Expanded: 64}
			if r.Shape != shape || !r.HasThreshold || r.Threshold != 0.42 || r.Text["small_model"] != "nobody/tiny" {
				t.Errorf("%v, threshold %v, %q, want %v, 0.42, nobody/tiny", r.Shape, r.Threshold, r.Text, shape)
			}
			if len(want) != 8 {
				t.Fatalf("%d scores, want 8", len(want))
			}
			for i := range want {
				if got := r.Score(hidden[i], embeddings[i], logits[i]); math.Abs(got-want[i]) > c.tolerance {
					t.Errorf("score %d is %v, want %v", i, got, want[i])
				}
			}
			if _, err := Convert(filepath.Join("testdata", c.file), dir); !errors.Is(err, model.ErrNotEmpty) {
				t.Errorf("again: %v, want %v", err, model.ErrNotEmpty)
			}
		})
	}
}

// part is a file in a zip file.
type part struct {
	name, content string
	method        uint16
}

// zipped is a zip file.
func zipped(t testing.TB, parts ...part) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, p := range parts {
		entry, err := w.CreateHeader(&zip.FileHeader{Name: p.name, Method: p.method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := entry.Write([]byte(p.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// saved is a checkpoint of one pickle and one storage of four float32 numbers.
func saved(t testing.TB, code string) []byte {
	return zipped(t, part{"a/data.pkl", code, zip.Store}, part{"a/byteorder", "little", zip.Store},
		part{"a/data/0", strings.Repeat("\x00\x00\x80\x3f", 4), zip.Store})
}

// Pieces of pickles.
const (
	storage0 = "(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
	rebuild  = "ctorch._utils\n_rebuild_tensor_v2\n"
	hooks    = "\x89ccollections\nOrderedDict\n)R"
	square   = rebuild + "(" + storage0 + "K\x00K\x02K\x02\x86K\x02K\x01\x86" + hooks + "tR" // [2][2]
)

// dictionary is a checkpoint's, with the given state_dict.
func dictionary(state string) string {
	word := func(s string) string { return "X" + string(rune(len(s))) + "\x00\x00\x00" + s }
	return "\x80\x02}(" + word("model_type") + word(class) + word("init_args") + "}" +
		word("common_args") + "}" + word("state_dict") + state + "u."
}

// refusal is a file that Convert must refuse with a FileError.
type refusal struct {
	name    string
	content []byte
	want    string
}

func checkRefused(t *testing.T, cases []refusal) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			path, dir := filepath.Join(folder, "file.pt"), filepath.Join(folder, "router")
			if err := os.WriteFile(path, c.content, 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := Convert(path, dir)
			var broken *FileError
			if !errors.As(err, &broken) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want a FileError with %q", err, c.want)
			}
			left, err := os.ReadDir(folder)
			if err != nil || len(left) != 1 {
				t.Errorf("%d files are left, want the checkpoint only (%v)", len(left), err)
			}
		})
	}
}

func content(t testing.TB, name string) []byte {
	t.Helper()
	read, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestRefusesFiles(t *testing.T) {
	published := content(t, "r2r.pt")
	flipped := bytes.Replace(bytes.Clone(published), []byte("normalize_inputq"), []byte("normalize_inpotq"), 1)
	repeated := func(count int, method uint16) []byte {
		return zipped(t, part{"a/data.pkl", strings.Repeat("N", count), method})
	}
	empty := part{"a/data.pkl", "", zip.Store}
	checkRefused(t, []refusal{
		{"empty", nil, `begins with "\x00\x00\x00\x00", want a zip file`},
		{"no zip file", []byte("GGUF....."), "want a zip file"},
		{"old format", []byte("\x80\x02\x8a\x0al\xfc"), "PyTorch before 1.6"},
		{"cut", published[:len(published)/2], "is no whole zip file"},
		{"bits that changed", flipped, "checksum"},
		{"compressed", repeated(100, zip.Deflate), "is compressed"},
		{"a bomb", repeated(1<<22, zip.Deflate), "is compressed"},
		{"long pickle", repeated(1<<21, zip.Store), "want at most 1048576"},
		{"two pickles", zipped(t, empty, part{"b/data.pkl", "", zip.Store}), "2 files data.pkl"},
		{"no pickle", zipped(t, part{"a/data/0", "", zip.Store}), "0 files data.pkl"},
		{"a name twice", zipped(t, empty, empty), "twice"},
		{"large end first", zipped(t, empty, part{"a/byteorder", "big", zip.Store}), `byteorder is "big"`},
	})
}

// TestRefusesCode: what a pickle could run, or make beyond plain values.
func TestRefusesCode(t *testing.T) {
	code := func(s string) []byte { return saved(t, "\x80\x02"+s+".") }
	checkRefused(t, []refusal{
		{"os.system of torch.save", content(t, "code.pt"), `global "posix.system" is refused`},
		{"os.system", code("cos\nsystem\nX\x02\x00\x00\x00id\x85R"), `global "os.system" is refused`},
		{"eval", code("c__builtin__\neval\nX\x01\x00\x00\x001\x85R"), `global "__builtin__.eval"`},
		{"a dotted name", code("ctorch\nserialization.os.system\n"), "is refused"},
		{"a class of torch", code("ctorch.jit\nload\n"), `global "torch.jit.load" is refused`},
		{"doubles", code("ctorch\nDoubleStorage\n"), `global "torch.DoubleStorage" is refused`},
		{"global without an end", code("cos" + strings.Repeat("x", 5000)), "do not end within 200 bytes"},
		{"INST", code("(X\x02\x00\x00\x00idios\nsystem\n"), "instruction INST is refused"},
		{"OBJ", code("(ccollections\nOrderedDict\no"), "instruction OBJ is refused"},
		{"NEWOBJ", code("ccollections\nOrderedDict\n)\x81"), "instruction NEWOBJ is refused"},
		{"STACK_GLOBAL", code("X\x02\x00\x00\x00osX\x06\x00\x00\x00system\x93"),
			"instruction STACK_GLOBAL is refused"},
		{"extension", code("\x82\x01"), "instruction EXT1 is refused"},
		{"protocol 4", code("\x80\x04\x95"), "pickle protocol 4, want 2"},
		{"unknown instruction", code("\xff"), "instruction 0xff is refused"},
		{"BUILD of a plain dictionary", code("}}b"), "instruction BUILD for a dictionary is refused"},
		{"an ordered dictionary of something", code("ccollections\nOrderedDict\n]\x85R"), "want an empty one"},
		{"a call of a type", code("ctorch\nFloatStorage\n)R"), "a call of torch FloatStorage"},
		{"a call with a list", code("ccollections\nOrderedDict\n]R"), "a call with a list, want a tuple"},
		{"no pickle at all", saved(t, ""), "ends at byte 0, want 1 more"},
		{"no value", code(""), "with 0 values"},
		{"something after the end", code("N.N"), "ends at byte 4 of 6"},
		{"a mark left over", code("(N"), "with 1 values"},
		{"value never kept", code("h\x07"), "value 7 was never kept"},
		{"beyond the mark", code("N(\x85"), "0 values, want 1"},
		{"long text", code("X\xff\xff\xff\xffa"), "ends at byte 9, want 2147483647 more"},
		{"broken text", code("X\x01\x00\x00\x00\xff"), "text is not UTF-8"},
		{"long number", code("\x8a\x0900000000000"), "number of 9 bytes, want at most 8"},
		{"key twice", code("}(X\x01\x00\x00\x00aNX\x01\x00\x00\x00aNu"), "each once"},
		{"number as a key", code("}K\x01Ns"), "key 1 of a dictionary"},
		{"keys for a list", code("]K\x01Ns"), "for a list, want pairs for a dictionary"},
	})
}

// TestRefusesTensors: tensors that are not where or what they say.
func TestRefusesTensors(t *testing.T) {
	weight := func(tensor string) []byte {
		return saved(t, dictionary("}X\x18\x00\x00\x00logits_projection.weight"+tensor+"s"))
	}
	// made is a tensor of the storage with offset, size and stride.
	made := func(rest string) []byte { return weight(rebuild + "(" + storage0 + rest + hooks + "tR") }
	other := func(from, to string) []byte { return weight(strings.Replace(storage0, from, to, 1)) }
	const huge = "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40" // 2^62
	const most = "J\xff\xff\xff\x7f"                        // 2^31 - 1
	checkRefused(t, []refusal{
		{"no storage of that key", other("0X\x03", "9X\x03"), "has no a/data/9"},
		{"a path for a key", other("\x01\x00\x00\x000X", "\x03\x00\x00\x00../X"), `storage "../", want a number`},
		{"storage of another size", other("K\x04", "K\x05"), "has 16 bytes, want 5 elements of F32"},
		{"2^62 + 4 elements", other("K\x04", "\x8a\x08\x04\x00\x00\x00\x00\x00\x00\x40"), "has 16 bytes"},
		{"no storage", weight(rebuild + "(NK\x00K\x02\x85K\x01\x85" + hooks + "tR"), "a tensor of None"},
		{"few values", weight(rebuild + "(" + storage0 + "tR"), "a tensor of 1 values, want 6"},
		{"beyond its storage", made("K\x01K\x02K\x02\x86K\x02K\x01\x86"), "4 elements from 1, its storage has 4"},
		{"negative offset", made("J\xff\xff\xff\xffK\x02K\x02\x86K\x02K\x01\x86"), "elements from -1"},
		{"negative size", made("K\x00J\xff\xff\xff\xffK\x02\x86K\x02K\x01\x86"), "a tensor of shape [-1 2]"},
		{"huge shape", made("K\x00" + most + most + most + "\x87K\x00K\x00K\x01\x87"), "want it contiguous"},
		{"overflowing shape", made("K\x00" + huge + huge + "\x86" + huge + "K\x01\x86"), "a tensor of shape"},
		{"strides of 0", made("K\x00M\xff\xffM\xff\xff\x86K\x00K\x00\x86"), "want it contiguous"},
		{"one tensor only", made("K\x00K\x02K\x02\x86K\x02K\x01\x86"), "makes no router"},
	})
}

// TestRefusesOthers: dictionaries that are no R2R router.
func TestRefusesOthers(t *testing.T) {
	code := func(s string) []byte { return saved(t, "\x80\x02"+s+".") }
	normal := "}X\x0f\x00\x00\x00normalize_input\x88s"
	checkRefused(t, []refusal{
		{"no dictionary", code("K\x01"), "is 1, want the dictionary"},
		{"list of itself", code("]q\x00h\x00a"), "is a list, want the dictionary"},
		{"other class", code("}X\x0a\x00\x00\x00model_typeX\x01\x00\x00\x00as"), `model_type is "a"`},
		{"inputs normalised", saved(t, strings.Replace(dictionary("N"), "init_args}", "init_args"+normal, 1)),
			"init_args.normalize_input is true, want False"},
		{"no state_dict", saved(t, dictionary("N")), "state_dict is None"},
		{"no tensor in it", saved(t, dictionary("}X\x01\x00\x00\x00aNs")), `state_dict["a"] is None`},
		{"no projection", saved(t, dictionary("}")), "no matrix logits_projection.weight"},
	})
	if _, err := os.Stat("/tmp/ran-by-a-checkpoint"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a checkpoint's command was run")
	}
}

// TestMemoBomb: a list of lists of lists, each ten times the one before, is 10^9 values to those who unfold
// it, and a hundred references here.
func TestMemoBomb(t *testing.T) {
	code := "\x80\x02]q\x00"
	for i := range 9 {
		one := "h" + string(rune(i))
		code += "](" + strings.Repeat(one, 10) + "eq" + string(rune(i+1))
	}
	_, err := (&machine{code: []byte(code + ".")}).run()
	if err == nil || !strings.Contains(err.Error(), "with 10 values") {
		t.Errorf("error %v, want one about the values left", err)
	}
}

// TestSharedStorage: tensors of one storage under many names do not make a folder larger than the file.
func TestSharedStorage(t *testing.T) {
	tensors := "X\x18\x00\x00\x00logits_projection.weight" + square + "q\x00"
	for i := range 200 {
		tensors += "X\x02\x00\x00\x00" + string(rune('A'+i%26)) + string(rune('A'+i/26)) + "h\x00"
	}
	shared := saved(t, dictionary("}("+tensors+"u"))
	f, err := read(bytes.NewReader(shared), int64(len(shared)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.checkpoint(); err == nil || !strings.Contains(err.Error(), "take more bytes than") {
		t.Errorf("error %v, want one about the bytes of tensors", err)
	}
}

// FuzzRead: no bytes make the reader panic, and what it takes is within the file.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"r2r.pt", "code.pt"} {
		f.Add(content(f, name))
	}
	f.Fuzz(func(t *testing.T, content []byte) { checkRead(t, content) })
}

// FuzzPickle is FuzzRead for the pickle alone, which the sums of a zip file would protect.
func FuzzPickle(f *testing.F) {
	published := content(f, "r2r.pt")
	read, err := openContainer(bytes.NewReader(published), int64(len(published)))
	if err != nil {
		f.Fatal(err)
	}
	code, err := read.content("data.pkl", pickleBytesMax)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(code))
	f.Add(dictionary("}X\x18\x00\x00\x00logits_projection.weight" + square + "s"))
	f.Fuzz(func(t *testing.T, code string) { checkRead(t, saved(t, code)) })
}

func checkRead(t *testing.T, content []byte) {
	f, err := read(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return
	}
	c, err := f.checkpoint()
	if err != nil {
		return
	}
	sum := int64(0)
	for name, tensor := range c.tensors {
		if tensor.offset+tensor.elements > tensor.from.elements {
			t.Errorf("tensor %q ends behind its storage", name)
		}
		sum += tensor.elements * tensor.from.dtype.Bytes()
	}
	if sum > int64(len(content)) {
		t.Errorf("tensors of %d bytes in a file of %d", sum, len(content))
	}
}
