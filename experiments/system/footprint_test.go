package system

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"tokenrouter/exec/cpu"
	"tokenrouter/experiments/spec"
)

// resident counts the bytes of this process that lie in memory: of its own, and of mapped files of a folder
// (proc(5), /proc/pid/smaps).
func resident(t *testing.T, dir string) (own, mapped int64) {
	t.Helper()
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	of := "" // what is mapped
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if !strings.HasSuffix(fields[0], ":") {
			of = strings.Join(fields[min(5, len(fields)):], " ")
			continue
		}
		var kib int64
		if _, err := fmt.Sscan(fields[1], &kib); err != nil {
			continue // flags
		}
		switch {
		case fields[0] == "Anonymous:":
			own += kib << 10
		case fields[0] == "Rss:" && strings.HasPrefix(of, dir):
			mapped += kib << 10
		}
	}
	return own, mapped
}

// TestMemoryOnce: what is loaded lies in memory once. While a model is loaded, of its file no more than the
// tensor that is being copied does, and afterwards there is what the plan said and nothing else, whatever the
// weights are kept as.
func TestMemoryOnce(t *testing.T) {
	// Weights of 52 MB, two thirds of them in embedding and head. The slack is for a huge page at each of two
	// blocks of memory, and for a heap that has grown.
	const shape = "tiny,layers=8,hidden=512,heads=8,head_dim=64,intermediate=1024,vocab=8192,tied=false"
	const slack, aroundFaults = 10 << 20, 1 << 20
	for _, int8 := range []bool{false, true} {
		m := spec.Folder(folder(t, "model", shape, 1))
		m.Int8 = int8
		s := spec.NewSystem(m)
		s.Router.Algorithm, s.Concurrency, s.ContextMax = "small", 2, 1024
		p, err := Prepare(s, Choice{Backend: cpu.Backend()})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		debug.FreeOSMemory()
		before, _ := resident(t, m.Dir)
		tensors := 0
		y, err := p.Open(t.Context(), Run{Progress: func(int64, int64) {
			tensors++
			if _, mapped := resident(t, m.Dir); mapped > aroundFaults {
				t.Errorf("int8 %v: %d bytes of the file are in memory after %d tensors, want none", int8, mapped,
					tensors)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		after, mapped := resident(t, m.Dir)
		needs := p.models[0].needs
		if grown := after - before; mapped != 0 || grown < needs.WeightBytes+needs.KVBytes ||
			grown > needs.Total()+slack {
			t.Errorf("int8 %v: memory has grown by %d bytes, %d of the file are in it, want %+v, together %d", int8,
				grown, mapped, needs, needs.Total())
		}
		if want := 2 * p.models[0].config.Parameters(); !int8 && needs.WeightBytes < want {
			t.Errorf("%d bytes of weights, want at least %d", needs.WeightBytes, want)
		}
		y.Close()
	}
}

// TestNarrow: requests that are shorter than the context get pages for what they can have.
func TestNarrow(t *testing.T) {
	for _, c := range []struct {
		name           string
		tokens         int
		context, pages int
	}{
		{"short requests", 40, 40, 4 * 3}, // 4 requests of 3 pages of 16 tokens
		{"no longer than a context", 64, 64, 16},
		{"more than a context", 100, 64, 16},
	} {
		p := prepare(t, pair(t, "rstitch"))
		if err := p.Narrow(c.tokens); err != nil {
			t.Fatal(err)
		}
		if p.Core.ContextMax != c.context || p.Core.Models[0].Pages != c.pages ||
			p.Core.Models[1].Pages != c.pages {
			t.Errorf("%s: context %d, %d and %d pages, want %d and %d each", c.name, p.Core.ContextMax,
				p.Core.Models[0].Pages, p.Core.Models[1].Pages, c.context, c.pages)
		}
		y, err := p.Open(t.Context(), Run{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := y.Answers(t.Context(), promptsOf(4, 20, 0), 4, nil)
		y.Close()
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range got {
			if a.Finish() != "length" || len(a.Tokens) != 20 {
				t.Errorf("%s: answer %d has %d tokens, %s", c.name, i, len(a.Tokens), a.Finish())
			}
		}
	}
}
