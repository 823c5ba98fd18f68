package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/router"
	"tokenrouter/exec/model/router/checkpoint"
)

func newRouter() *cobra.Command {
	c := &cobra.Command{
		Use:   "router",
		Short: "Show and convert routers of R2R, CITER and Co-LLM",
		Long: `A router folder has the network that judges each token of the small model: router.json and
router.safetensors. It belongs to one pair of models.`,
		Example: `  tokenrouter router info experiments/models/arith-r2r
  tokenrouter router convert default_router.pt r2r`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return misuse("no command %q, want info or convert", args[0])
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			return misuse("no command given, want info or convert")
		},
	}
	c.AddCommand(newRouterInfo(), newRouterConvert())
	return c
}

func newRouterInfo() *cobra.Command {
	return &cobra.Command{
		Use:   "info DIR",
		Short: "Show what a router is: algorithm, sizes, threshold, models",
		Long: `Read a router folder in full and show its algorithm and sizes, the threshold that counts unless a
run says otherwise, and the models that it was trained on.`,
		Example:           "  tokenrouter router info experiments/models/arith-r2r",
		Args:              exactly(1, "a router folder"),
		ValidArgsFunction: folders,
		RunE: func(c *cobra.Command, args []string) error {
			r, err := router.Open(args[0])
			if err != nil {
				return badInput(err)
			}
			return printRouter(c.OutOrStdout(), c.ErrOrStderr(), r)
		},
	}
}

func newRouterConvert() *cobra.Command {
	return &cobra.Command{
		Use:   "convert FILE.pt DIR",
		Short: "Make a router folder of a checkpoint that R2R publishes",
		Long: `Read a checkpoint that R2R's save_model wrote (a zip file of torch.save, such as default_router.pt)
and write a router folder of it. The file's pickle is a program; it is not run: what is not a tensor
or a plain value is refused by its name. The embedding that some files have is left out, the small
model's own is used. The threshold is the file's; R2R's server does not look at that and takes 0.5.
DIR must be empty or not exist.`,
		Example: "  tokenrouter router convert default_router.pt r2r",
		Args:    exactly(2, "a checkpoint and a folder to make"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return []string{"pt"}, cobra.ShellCompDirectiveFilterFileExt
			case 1:
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			return convertRouter(args[0], args[1], c.OutOrStdout(), c.ErrOrStderr())
		},
	}
}

func convertRouter(path, dir string, stdout, stderr io.Writer) error {
	if err := regularFile("checkpoint", path); err != nil {
		return err
	}
	r, err := checkpoint.Convert(path, dir)
	var broken *checkpoint.FileError
	switch {
	case errors.As(err, &broken) || errors.Is(err, model.ErrNotRegular) || errors.Is(err, model.ErrNotEmpty):
		return badInput(err)
	case err != nil:
		return err
	}
	return printRouter(stdout, stderr, r)
}

// printRouter writes one fact a line.
func printRouter(stdout, stderr io.Writer, r *router.Router) error {
	for _, warning := range r.Warnings {
		fmt.Fprintln(stderr, "warning:", warning)
	}
	parameters, threshold := 0, "none"
	for _, t := range r.Tensors {
		parameters += len(t.Data)
	}
	if r.HasThreshold {
		threshold = fmt.Sprint(r.Threshold)
	}
	line := func(name, text string) error {
		if text == "" {
			return nil
		}
		_, err := fmt.Fprintf(stdout, "%-14s%s\n", name, text)
		return err
	}
	return errors.Join(line("router", r.Shape.String()), line("parameters", fmt.Sprint(parameters)),
		line("threshold", threshold), line("small model", r.Text["small_model"]),
		line("large model", r.Text["large_model"]), line("note", r.Text["note"]))
}
