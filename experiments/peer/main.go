// Command peer measures the CPU device side by side with llama.cpp: the same random weights, the same steps,
// two threads each. It prints tables of times, and of ratios against the project's targets.
//
//	go run ./experiments/peer [flags] PYTHON FOLDER
//
// PYTHON is an interpreter that has llama-cpp-python, and FOLDER takes the weights as GGUF files; `make
// bench-peer` brings both. Steps are timed in short bursts, in turn a plain read of memory, ours and
// llama.cpp's, in several rounds: whatever else the machine does then falls on all of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"tokenrouter/exec/cpu"
	"tokenrouter/exec/model"
	"tokenrouter/exec/model/gguf"
	"tokenrouter/exec/native"
)

const (
	threads     = 2
	requestsMax = 16
	seed        = 1
)

// options are the command line's.
type options struct {
	python, folder string
	shape          string
	rounds         int
	burst          time.Duration
	urgent         bool
}

func main() {
	var o options
	flag.StringVar(&o.shape, "shape", "qwen3-0.6b", "shape of the model")
	flag.IntVar(&o.rounds, "rounds", 8, "bursts of each kind")
	flag.DurationVar(&o.burst, "burst", 400*time.Millisecond, "length of a burst; a step or two more are made")
	flag.BoolVar(&o.urgent, "urgent", false, "raise both sides above everything ordinary during bursts (root)")
	flag.Parse()
	if flag.NArg() != 2 || o.rounds < 1 {
		fmt.Fprintln(os.Stderr, "usage: peer [flags] PYTHON FOLDER")
		flag.PrintDefaults()
		os.Exit(2)
	}
	o.python, o.folder = flag.Arg(0), flag.Arg(1)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

// format is a way in which both sides keep weights.
type format struct {
	ours    string
	theirs  string // and the name of the file
	weights native.Weights
}

var formats = []format{{"bf16", "bf16", native.WeightsBF16}, {"int8", "q8_0", native.WeightsInt8}}

// run measures all formats and prints the report.
func (o *options) run(ctx context.Context) (err error) {
	c, err := model.ParseShape(o.shape)
	if err != nil {
		return err
	}
	devices, err := cpu.Backend().Devices()
	if err != nil {
		return err
	}
	device, err := cpu.Backend().Open(native.Options{Threads: threads})
	if err != nil {
		return err
	}
	defer device.Close()
	peer, err := start(o.python, threads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, peer.stop()) }()
	about, err := peer.ask(request{Do: "about"})
	if err != nil {
		return err
	}
	printHead(os.Stdout, o.shape, devices[0], about)
	for _, f := range formats {
		file, err := o.file(c, f, peer)
		if err != nil {
			return err
		}
		if _, err := peer.ask(request{Do: "model", File: file}); err != nil {
			return err
		}
		p := pair{options: o, peer: peer, processes: []int{os.Getpid(), peer.process.Process.Pid}}
		c := native.Config{Model: c, Weights: f.weights}
		if p.ours, err = load(device, c, devices[0].PageTokens); err != nil {
			return err
		}
		m, err := p.measure(ctx)
		if err != nil {
			return err
		}
		printResults(os.Stdout, f, m)
		p.ours.model.Close()
	}
	return nil
}

// file returns the GGUF file of the weights, and makes it unless it is there.
func (o *options) file(c model.Config, f format, peer *theirs) (string, error) {
	path := filepath.Join(o.folder, o.shape+"-"+f.theirs+".gguf")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	fmt.Fprintln(os.Stderr, "writing", path)
	part := path + ".part"
	if f.weights == native.WeightsBF16 {
		if err := gguf.Write(part, c, &native.Random{Config: c, Seed: seed}, nil); err != nil {
			return "", err
		}
	} else {
		from, err := o.file(c, formats[0], peer)
		if err != nil {
			return "", err
		}
		if _, err := peer.ask(request{Do: "quantise", From: from, To: part}); err != nil {
			return "", err
		}
	}
	return path, os.Rename(part, path)
}
