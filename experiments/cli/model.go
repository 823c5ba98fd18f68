package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/chat"
	"tokenrouter/exec/model/tokenizer"
)

func newModel() *cobra.Command {
	c := &cobra.Command{
		Use:   "model",
		Short: "Show, check, make and convert model folders",
		Long: `A model folder is in the form that Hugging Face publishes: config.json, generation_config.json,
tokenizer.json, and weights in model.safetensors or in shards with an index. Qwen3, Qwen2 and
Llama are supported; what a folder asks for beyond that is refused by name.`,
		Example: `  tokenrouter model info Qwen3-0.6B
  tokenrouter model check Qwen3-0.6B
  tokenrouter model make --shape qwen3-0.6b --seed 1 random-0.6b
  tokenrouter model convert SmolLM2-135M-Instruct.Q4_1.gguf smollm2`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return misuse("no command %q, want info, check, make or convert", args[0])
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			return misuse("no command given, want info, check, make or convert")
		},
	}
	c.AddCommand(newModelInfo(), newModelCheck(), newModelMake(), newModelConvert())
	return c
}

func newModelInfo() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "info DIR",
		Short: "Show what a model is: sizes, weights, positions, end tokens",
		Long: `Read a model folder's configuration and the headers of its weights, and show what the model is.
Weights are found and their shapes checked, but not read. With --json every tensor is listed
with its type, shape, file and place.`,
		Example:           "  tokenrouter model info Qwen3-0.6B\n  tokenrouter model info Qwen3-0.6B --json",
		Args:              exactly(1, "a model folder"),
		ValidArgsFunction: folders,
		RunE: func(c *cobra.Command, args []string) error {
			folder, err := model.Open(args[0])
			if err != nil {
				return badInput(err)
			}
			defer folder.Close()
			warnOf(folder, c.ErrOrStderr())
			if asJSON {
				return printJSON(c.OutOrStdout(), infoOf(folder))
			}
			return printInfo(c.OutOrStdout(), infoOf(folder))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

// warnOf says what a folder has and the model leaves out.
func warnOf(folder *model.Folder, stderr io.Writer) {
	for _, warning := range folder.Warnings {
		fmt.Fprintln(stderr, "warning:", warning)
	}
}

// infoJSON is what model info --json prints. Sizes are counts of numbers unless their name says bytes.
type infoJSON struct {
	Folder          string       `json:"folder"`
	Architecture    string       `json:"architecture"`
	Parameters      int64        `json:"parameters"`
	WeightBytes     int64        `json:"weight_bytes"`
	KVBytesPerToken int64        `json:"kv_bytes_per_token"` // of bf16
	Layers          int          `json:"layers"`
	Hidden          int          `json:"hidden"`
	Heads           int          `json:"heads"`
	KVHeads         int          `json:"kv_heads"`
	HeadDim         int          `json:"head_dim"`
	Intermediate    int          `json:"intermediate"`
	Vocab           int          `json:"vocab"`
	Positions       int          `json:"positions"`
	Tied            bool         `json:"tied"`
	QKVBias         bool         `json:"qkv_bias"`
	OutputBias      bool         `json:"output_bias"`
	MLPBias         bool         `json:"mlp_bias"`
	QKNorm          bool         `json:"qk_norm"`
	NormEpsilon     float64      `json:"norm_epsilon"`
	Theta           float64      `json:"rope_theta"`
	Scaling         string       `json:"rope_scaling"` // default, llama3 or yarn
	Factor          float64      `json:"rope_factor,omitempty"`
	Window          int          `json:"window,omitempty"`        // tokens
	WindowLayers    int          `json:"window_layers,omitempty"` // how many have it
	EndTokens       []int        `json:"end_tokens"`              // ids
	Warnings        []string     `json:"warnings"`                // what is left out and why
	Tensors         []tensorJSON `json:"tensors"`
}

type tensorJSON struct {
	Name   string      `json:"name"`
	DType  model.DType `json:"dtype"`
	Shape  []int64     `json:"shape"`
	File   string      `json:"file"`
	Offset int64       `json:"offset_bytes"`
	Size   int64       `json:"size_bytes"`
}

func infoOf(folder *model.Folder) infoJSON {
	c := &folder.Config
	info := infoJSON{Folder: folder.Dir, Architecture: c.Architecture.String(), Parameters: c.Parameters(),
		WeightBytes: folder.WeightBytes(), KVBytesPerToken: c.KVBytesPerToken(2), Layers: c.Layers,
		Hidden: c.Hidden, Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim, Intermediate: c.Intermediate,
		Vocab: c.Vocab, Positions: c.Positions, Tied: c.Tied, QKVBias: c.QKVBias, OutputBias: c.OutputBias,
		MLPBias: c.MLPBias, QKNorm: c.QKNorm, NormEpsilon: c.NormEpsilon, Theta: c.Rope.Theta,
		Scaling: c.Rope.Scaling.String(), Factor: c.Rope.Factor, Window: c.Window,
		EndTokens: append([]int{}, c.EOS...), Warnings: append([]string{}, folder.Warnings...)}
	for layer := range c.Layers {
		if c.WindowOf(layer) > 0 {
			info.WindowLayers++
		}
	}
	for _, t := range folder.Tensors {
		info.Tensors = append(info.Tensors, tensorJSON{t.Name, t.DType, t.Shape, t.File, t.Offset, t.Size})
	}
	return info
}

// printInfo writes one fact a line.
func printInfo(w io.Writer, info infoJSON) error {
	var text strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&text, "%-14s%s\n", name, fmt.Sprintf(format, args...))
	}
	line("architecture", "%s", info.Architecture)
	line("parameters", "%d", info.Parameters)
	line("weights", "%s in %s, %s", mebibytes(info.WeightBytes), count(len(info.Tensors), "tensor"), types(info))
	line("KV a token", "%.4g KiB in bf16", float64(info.KVBytesPerToken)/1024)
	line("layers", "%d", info.Layers)
	line("hidden", "%d", info.Hidden)
	line("heads", "%d of %d, %d for keys and values", info.Heads, info.HeadDim, info.KVHeads)
	line("intermediate", "%d", info.Intermediate)
	head := "a head of its own"
	if info.Tied {
		head = "the head is the embedding"
	}
	line("vocabulary", "%d, %s", info.Vocab, head)
	var parts []string
	for _, part := range []struct {
		has  bool
		name string
	}{{info.QKVBias, "biases of q, k, v"}, {info.OutputBias, "of o"}, {info.MLPBias, "of the MLP"},
		{info.QKNorm, "norms of q and k"}} {
		if part.has {
			parts = append(parts, part.name)
		}
	}
	if len(parts) > 0 {
		line("has", "%s", strings.Join(parts, ", "))
	}
	line("context", "%d", info.Positions)
	scaling := ""
	if info.Factor > 0 {
		scaling = fmt.Sprintf(", %s by %g", info.Scaling, info.Factor)
	}
	line("RoPE", "theta %g%s", info.Theta, scaling)
	if info.WindowLayers > 0 {
		line("window", "%d tokens in %s", info.Window, count(info.WindowLayers, "layer"))
	}
	ends := make([]string, len(info.EndTokens))
	for i, id := range info.EndTokens {
		ends[i] = strconv.Itoa(id)
	}
	if len(ends) == 0 {
		ends = []string{"none"}
	}
	line("end tokens", "%s", strings.Join(ends, ", "))
	_, err := io.WriteString(w, text.String())
	return err
}

// types lists the types of the weights, the first used first.
func types(info infoJSON) string {
	var names []string
	seen := map[model.DType]bool{}
	for _, t := range info.Tensors {
		if !seen[t.DType] {
			seen[t.DType] = true
			names = append(names, string(t.DType))
		}
	}
	return strings.Join(names, " and ")
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

func newModelCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check DIR",
		Short: "Read all of a model and say what is wrong with it",
		Long: `Check a model folder's configuration, its shard index, the header of every file of weights and the
shape of every tensor, its tokenizer and chat template where there are any, and read all weights for
NaN and infinite numbers. Exit 1 if anything is wrong; file and tensor are named.`,
		Example:           "  tokenrouter model check Qwen3-0.6B",
		Args:              exactly(1, "a model folder"),
		ValidArgsFunction: folders,
		RunE: func(c *cobra.Command, args []string) error {
			return checkModel(c.Context(), args[0], c.OutOrStdout(), c.ErrOrStderr())
		},
	}
}

func checkModel(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return badInput(fmt.Errorf("model %q, want a folder", dir))
	}
	folder, err := model.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	warnOf(folder, stderr)
	bar := newProgress(stderr, "MiB")
	defer bar.end()
	faults, err := folder.Check(ctx, megabar(bar))
	bar.end()
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case err != nil:
		return fmt.Errorf("%s: %w", dir, err)
	}
	text, err := checkText(dir, folder.Config.Vocab)
	if len(faults) == 0 && err == nil {
		_, err := fmt.Fprintf(stdout, "%s: %s, %s, all numbers are finite; %s\n", dir,
			count(len(folder.Tensors), "tensor"), mebibytes(folder.WeightBytes()), text)
		return err
	}
	bad := []error{err}
	for _, fault := range faults {
		t := fault.Tensor
		bad = append(bad, fmt.Errorf("%s: tensor %s has %s NaN or infinite, the first %v at %d of %d",
			t.File, t.Name, count(int(fault.Count), "number"), fault.Value, fault.First, t.Elements()))
	}
	return errors.Join(bad...)
}

// checkText reads what makes tokens of text, and says what there is of it. It refuses a tokenizer with ids
// that the model lacks.
func checkText(dir string, vocab int) (found string, err error) {
	path := filepath.Join(dir, "tokenizer.json")
	t, err := tokenizer.Load(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "no tokenizer", nil
	case err != nil:
		return "", err
	case t.End() > vocab:
		return "", fmt.Errorf("%s has ids up to %d, want at most %d: the model knows %d tokens", path, t.End()-1,
			vocab-1, vocab)
	}
	found = count(t.VocabSize(), "token")
	if _, err := chat.Load(dir); errors.Is(err, chat.ErrNone) {
		return found + ", no chat template", nil
	} else if err != nil {
		return "", err
	}
	return found + ", a chat template", nil
}

// megabar shows bytes as whole MiB.
func megabar(bar *progress) func(done, total int64) {
	return func(done, total int64) { bar.show(int(done>>20), int(total>>20)) }
}

func newModelMake() *cobra.Command {
	var shape string
	seed := value[uint64]{of: 1, text: "1", kind: "number", parse: seedNumber}
	c := &cobra.Command{
		Use:   "make --shape SHAPE DIR",
		Short: "Make a model of a real shape with random weights",
		Long: `Write a model folder with random bf16 weights, for work on speed, where what a model answers does
not matter. The same shape and seed give the same bytes on every machine.

SHAPE is one of ` + strings.Join(model.ShapeNames(), ", ") + `;
or sizes: layers, hidden, heads, kv_heads, head_dim, intermediate, vocab, positions, tied and
architecture (qwen3, qwen2, llama); or a name and the sizes that differ from it. The tiny one also
has a tokenizer, of bytes. DIR must be empty or not exist.`,
		Example: `  tokenrouter model make --shape qwen3-0.6b small
  tokenrouter model make --shape qwen3-8b,layers=4 --seed 7 large
  tokenrouter model make --shape layers=4,hidden=512,heads=8,intermediate=1536,vocab=1000 mine`,
		Args:              exactly(1, "a folder to make"),
		ValidArgsFunction: folders,
		RunE: func(c *cobra.Command, args []string) error {
			if shape == "" {
				return misuse("no --shape, want one of %s", strings.Join(model.ShapeNames(), ", "))
			}
			config, err := model.ParseShape(shape)
			if err != nil {
				return misuse("%w", err)
			}
			return makeModel(c.Context(), args[0], config, seed.of, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&shape, "shape", "", "a name, sizes, or both")
	c.Flags().Var(&seed, "seed", "of the random numbers, a whole number from 0")
	completeNumbers(c)
	completeFlag(c, "shape", cobra.FixedCompletions(model.ShapeNames(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func seedNumber(s string) (uint64, error) {
	seed, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, errors.New("want a whole number from 0")
	}
	return seed, nil
}

func makeModel(ctx context.Context, dir string, config model.Config, seed uint64, stdout, stderr io.Writer,
) error {
	bar := newProgress(stderr, "MiB")
	defer bar.end()
	err := model.Make(ctx, dir, config, seed, megabar(bar))
	bar.end()
	switch {
	case ctx.Err() != nil && err != nil:
		return fmt.Errorf("interrupted; nothing is left in %s", dir)
	case errors.Is(err, model.ErrNotEmpty):
		return badInput(err)
	case err != nil:
		return fmt.Errorf("%s: %w", dir, err)
	}
	_, err = fmt.Fprintf(stdout, "%s: %d parameters, %s of BF16, seed %d\n", dir, config.Parameters(),
		mebibytes(2*config.Parameters()), seed)
	return err
}
