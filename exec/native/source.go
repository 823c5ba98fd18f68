package native

import (
	"runtime"
	"runtime/debug"
	"sync"

	"tokenrouter/exec/model"
)

// Files is the Source that an open model folder is. It must not be closed before the model is loaded.
type Files struct{ Folder *model.Folder }

// Tensor implements Source.
func (f Files) Tensor(e model.Expected) ([]byte, model.DType, error) {
	t := f.tensor(e)
	return f.Folder.Bytes(t), t.DType, nil
}

// Release implements Source.
func (f Files) Release(e model.Expected) error { return f.Folder.Release(f.tensor(e)) }

func (f Files) tensor(e model.Expected) model.Tensor {
	t, ok := f.Folder.Lookup(e.Name)
	if !ok {
		panic("native: tensor " + e.Name + " of another configuration than the folder's")
	}
	return t
}

// Random is a Source without files: the bf16 weights that model.Make would write.
type Random struct {
	Config model.Config
	Seed   uint64
	buffer []byte
}

// Tensor implements Source.
func (r *Random) Tensor(e model.Expected) ([]byte, model.DType, error) {
	elements := int64(1)
	for _, n := range e.Shape {
		elements *= n
	}
	if int64(cap(r.buffer)) < 2*elements {
		r.buffer = make([]byte, 2*elements)
	}
	raw := r.buffer[:2*elements]
	const part = 1 << 20 // elements
	var workers sync.WaitGroup
	parts := make(chan int64)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for first := range parts {
				r.Config.FillRandom(raw[2*first:2*min(first+part, elements)], e, r.Seed, first)
			}
		})
	}
	for first := int64(0); first < elements; first += part {
		parts <- first
	}
	close(parts)
	workers.Wait()
	return raw, model.BF16, nil
}

// keptBytesMax is the largest buffer that is kept for the next tensor.
const keptBytesMax = 64 << 20

// Release implements Source.
func (r *Random) Release(model.Expected) error {
	if cap(r.buffer) > keptBytesMax {
		r.buffer = nil
		debug.FreeOSMemory() // the embedding's would stay for as long as the heap does not double
	}
	return nil
}
