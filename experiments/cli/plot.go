package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"tokenrouter/experiments/result"
)

func newPlot() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "plot DIR",
		Short:   "Draw the figures of a results folder again",
		Long:    `Draw the figures of a results folder again, as PNG and SVG, from its summary.json.`,
		Example: "  tokenrouter plot experiments/results/threshold/0123456789ab",
		Args:    exactly(1, "a results folder"),

		ValidArgsFunction: folders,
		RunE: func(c *cobra.Command, args []string) error {
			return plot(args[0], asJSON, c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

func plot(dir string, asJSON bool, stdout io.Writer) error {
	summary, err := readResults(dir)
	if err != nil {
		return err
	}
	files, err := result.Draw(dir, summary)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(stdout, figuresJSON{summary.Experiment, append([]string{}, files...)})
	}
	if len(files) == 0 {
		_, err = fmt.Fprintf(stdout, "%s: the spec has no figures\n", summary.Experiment)
	}
	for _, file := range files {
		fmt.Fprintln(stdout, file)
	}
	return err
}

// figuresJSON is what plot --json prints.
type figuresJSON struct {
	Experiment string   `json:"experiment"`
	Figures    []string `json:"figures"`
}

// readResults reads a results folder; whatever is wrong with it is misuse.
func readResults(dir string) (*result.Summary, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, badInput(fmt.Errorf("results folder %q does not exist", dir))
	case err != nil:
		return nil, badInput(err)
	case !info.IsDir():
		return nil, badInput(fmt.Errorf("%q is a file, want a results folder", dir))
	}
	summary, err := result.Read(dir)
	return summary, badInput(err)
}
