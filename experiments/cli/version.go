package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"tokenrouter/experiments/result"
)

// Version is that of the next or present release; CHANGELOG.md says what is in it.
const Version = "0.1.0"

// build says what this binary was made of.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // "" if the build does not know it
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version and what the binary was built from",
		Example: "  tokenrouter version\n  tokenrouter version --json",
		Args:    exactly(0, ""),

		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			b := builtFrom()
			if asJSON {
				return printJSON(c.OutOrStdout(), b)
			}
			commit := b.Commit
			if commit == "" {
				commit = "unknown"
			}
			if b.Modified {
				commit += ", modified"
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "tokenrouter %s (commit %s, %s, %s)\n",
				b.Version, commit, b.Go, b.Platform)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

func builtFrom() build {
	b := build{Version: Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	b.Commit, b.Modified = result.Source()
	return b
}

// printJSON writes v as one document on one line.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
