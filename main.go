// Command tokenrouter is a what-if simulator and exact throughput model of token-level routing between
// models.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"tokenrouter/experiments/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first interrupt lets work end in order; from then on a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
