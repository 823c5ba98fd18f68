package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"tokenrouter/core"
	"tokenrouter/core/route"
	"tokenrouter/core/turnlog"
	"tokenrouter/sim/outcome/trace"
)

func newTraceRecord() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "record LOG",
		Short: "Turn a log into a recorded trace that specs can play",
		Long: `Write the requests of a log that finished, each with its arrival, its path from model to model and
the signals that the routing algorithm decided on, as a recorded trace. A spec plays it with
router.trace: the paths as they were (algorithm "recorded"), or the same algorithm under another
policy or threshold (outcome "trace").`,
		Example: `  tokenrouter trace record turns.jsonl --out recorded.jsonl
  tokenrouter trace record turns.jsonl.gz | gzip > recorded.jsonl.gz`,
		Args: exactly(1, "a turn log"),
		RunE: func(c *cobra.Command, args []string) error {
			log, err := openLog(args[0])
			if err != nil {
				return err
			}
			defer log.Close()
			var skipped uint64
			err = writeWhole(out, c.OutOrStdout(), func(w io.Writer) error {
				var err error
				skipped, err = record(log, w)
				return err
			})
			if err == nil && skipped > 0 {
				fmt.Fprintf(c.ErrOrStderr(), "note: %d requests did not finish and are left out\n", skipped)
			}
			return err
		},
	}
	c.Flags().StringVar(&out, "out", "", "file to write (default: standard output)")
	return c
}

// record writes the trace of a log and returns how many requests it left out.
func record(log *turnlog.Reader, w io.Writer) (skipped uint64, err error) {
	config := log.Configs()[0]
	var header trace.Header
	for m, model := range config.Models {
		header.Models = append(header.Models, model.Name)
		header.Signals = append(header.Signals, signalsOf(config.Algorithm, m))
	}
	writer, err := trace.NewWriter(w, header)
	if err != nil {
		return 0, badInput(err)
	}
	recorder := trace.NewRecorder(writer)
	for {
		turn, err := log.Next()
		if errors.Is(err, io.EOF) {
			err = recorder.Close()
			return recorder.Skipped(), err
		}
		if err != nil {
			return 0, badInput(err)
		}
		recorder.Turn(turn.Node, turn.Now, turn.In, &turn.Out)
	}
}

// signalsOf is what an algorithm looks at after a pass of model m, and whether the answer ended there.
func signalsOf(algorithm core.Algorithm, m int) trace.Signals {
	switch algorithm.(type) {
	case route.R2R, route.CITER, route.CoLLM:
		if m == 0 {
			return trace.Score | trace.EOS
		}
		return trace.EOS
	case route.RStitch:
		return trace.Entropy | trace.EOS
	default:
		return 0 // paths say it all
	}
}
