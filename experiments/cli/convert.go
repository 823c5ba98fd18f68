package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/gguf"
)

func newModelConvert() *cobra.Command {
	dtype := value[string]{of: "bf16", text: "bf16", kind: "type", parse: word("bf16", "f32")}
	c := &cobra.Command{
		Use:   "convert FILE.gguf DIR",
		Short: "Make a model folder of a GGUF file",
		Long: `Read a GGUF file and write the model folder that Hugging Face would publish: configuration, tokenizer
with chat template, and weights as bf16 or f32. The architectures are llama, qwen2 and qwen3, the
types of weights F32, F16, BF16, Q8_0, Q4_0 and Q4_1; anything else is refused by name. DIR must be
empty or not exist.`,
		Example: `  tokenrouter model convert SmolLM2-135M-Instruct.Q4_1.gguf smollm2
  tokenrouter model convert --dtype f32 Qwen3-0.6B-Q8_0.gguf qwen3`,
		Args: exactly(2, "a GGUF file and a folder to make"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return []string{"gguf"}, cobra.ShellCompDirectiveFilterFileExt
			case 1:
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			d := map[string]model.DType{"bf16": model.BF16, "f32": model.F32}[dtype.of]
			return convertModel(c.Context(), args[0], args[1], d, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().Var(&dtype, "dtype", "type of the weights: bf16 or f32")
	completeFlag(c, "dtype", cobra.FixedCompletions([]string{"bf16", "f32"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func convertModel(ctx context.Context, path, dir string, d model.DType, stdout, stderr io.Writer) error {
	if err := regularFile("GGUF file", path); err != nil {
		return err
	}
	file, err := gguf.Open(path)
	if err != nil {
		return badInput(err)
	}
	defer file.Close()
	bar := newProgress(stderr, "tensors")
	defer bar.end()
	err = gguf.Convert(ctx, file, dir, gguf.Options{DType: d, Show: bar.show})
	bar.end()
	var broken *gguf.FileError
	switch {
	case ctx.Err() != nil && err != nil:
		return fmt.Errorf("interrupted; nothing is left in %s", dir)
	case errors.As(err, &broken) || errors.Is(err, model.ErrNotEmpty):
		return badInput(err)
	case err != nil:
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: %s of %s\n", dir, count(len(file.Tensors()), "tensor"), d)
	return err
}
