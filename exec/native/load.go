package native

// #include "trampolines.h"
import "C"

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/router"
)

// Source has the weights of a model.
type Source interface {
	// Tensor returns the elements of one of Config.Expected, rows first, and their type. They must stay
	// until Release.
	Tensor(e model.Expected) (raw []byte, kind model.DType, err error)
	// Release says that the elements of e are not looked at any more: the device has its own. Their memory
	// need not be held while others are loaded.
	Release(e model.Expected) error
}

// Load is what it takes to load a model.
type Load struct {
	Name     string // for errors
	Config   Config
	Limits   Limits
	Source   Source
	Router   *router.Router          // or nil; its shape takes the place of Config.Router
	Progress func(done, total int64) // of weights; may be nil
}

// Load makes a model with all the memory that its steps need. It fails with ErrNoMemory, before anything is
// read, if what the device says of such a model is more than the budget has left. It ends early with the
// error of ctx. Where it fails it leaves nothing behind.
func (d *Device) Load(ctx context.Context, l Load) (*Model, error) {
	m, err := d.load(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", l.Name, err)
	}
	return m, nil
}

func (d *Device) load(ctx context.Context, l Load) (*Model, error) {
	if l.Router != nil {
		l.Config.Router = l.Router.Shape
	}
	needs, err := d.Probe(l.Config, l.Limits)
	if err != nil {
		return nil, err
	}
	if needs.Total() > d.LeftBytes() {
		return nil, fmt.Errorf("%w: weights of %d bytes, KV of %d and %d for work are %d, and %d of the budget"+
			" of %d are left", ErrNoMemory, needs.WeightBytes, needs.KVBytes, needs.WorkBytes, needs.Total(),
			d.LeftBytes(), d.budget)
	}
	config, err := l.Config.native()
	if err != nil {
		return nil, err
	}
	m := &Model{name: l.Name, device: d, config: l.Config, limits: l.Limits}
	status := C.tr_model_new(d.backend.table, d.handle, &config, &m.handle, &m.text)
	if err := d.backend.failure(status, &m.text); err != nil {
		return nil, err
	}
	d.models = append(d.models, m)
	if err := m.fill(ctx, l); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// fill puts the weights there, and then all that steps need.
func (m *Model) fill(ctx context.Context, l Load) error {
	if err := m.putAll(ctx, l); err != nil {
		return err
	}
	limits, err := l.Limits.native()
	if err != nil {
		return err
	}
	took := C.tr_needs{size: C.sizeof_tr_needs}
	b := m.device.backend
	err = b.failure(C.tr_model_plan(b.table, m.handle, &limits, &took, &m.text), &m.text)
	m.took = needsOf(&took)
	return err
}

// putAll gives the device every tensor of the model.
func (m *Model) putAll(ctx context.Context, l Load) error {
	c := &l.Config.Model
	done, total := int64(0), 2*c.Parameters()
	for _, e := range c.Expected() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rows, columns := int64(1), e.Shape[len(e.Shape)-1]
		if len(e.Shape) == 2 {
			rows = e.Shape[0]
		}
		if own, err := m.putRandom(l.Source, e, rows, columns); err != nil {
			return err
		} else if own {
			if done += 2 * rows * columns; l.Progress != nil {
				l.Progress(done, total)
			}
			continue
		}
		raw, kind, err := l.Source.Tensor(e)
		if err != nil {
			return err
		}
		if int64(len(raw)) != rows*columns*kind.Bytes() {
			return fmt.Errorf("tensor %s has %d bytes of %s, want %d x %d elements", e.Name, len(raw), kind, rows,
				columns)
		}
		tensor, layer := place(e.Name)
		if err := put(m, tensor, layer, elements[kind], rows, columns, raw); err != nil {
			return fmt.Errorf("tensor %s: %w", e.Name, err)
		}
		if err := l.Source.Release(e); err != nil {
			return err
		}
		done += 2 * rows * columns
		if l.Progress != nil {
			l.Progress(done, total)
		}
	}
	return errors.Join(m.putFrequencies(c), m.putWindows(c), m.putRouter(l.Router))
}

// putRandom has the device make a tensor of random numbers, if that is what the source has and the device
// can.
func (m *Model) putRandom(s Source, e model.Expected, rows, columns int64) (bool, error) {
	r, ok := s.(*Random)
	b := m.device.backend
	if !ok || C.tr_has_random(b.table) == 0 {
		return false, nil
	}
	law := r.Config.LawOf(e, r.Seed)
	tensor, layer := place(e.Name)
	status := C.tr_model_random(b.table, m.handle, tensor, C.int32_t(layer), C.int64_t(rows), C.int64_t(columns),
		C.uint64_t(law.State), C.double(law.Mean), C.double(law.Scale), &m.text)
	return true, b.failure(status, &m.text)
}

// The parts of a router are numbered as the tensors of the C ABI.
var (
	_ = [1]struct{}{}[C.TR_ROUTER_R2R-router.R2R]
	_ = [1]struct{}{}[C.TR_ROUTER_CITER-router.CITER]
	_ = [1]struct{}{}[C.TR_ROUTER_COLLM-router.CoLLM]
	_ = [1]struct{}{}[C.TR_ROUTER_NORM-C.TR_ROUTER_TOP-(router.Norm-router.Top)]
	_ = [1]struct{}{}[C.TR_ROUTER_OUT_BIAS-C.TR_ROUTER_TOP-(router.OutputBias-router.Top)]
)

func (m *Model) putRouter(r *router.Router) error {
	if r == nil {
		return nil
	}
	for _, t := range r.Tensors {
		tensor := C.int32_t(C.TR_ROUTER_TOP) + C.int32_t(t.Part-router.Top)
		err := put(m, tensor, t.Block, C.TR_F32, int64(t.Rows), int64(t.Columns), t.Data)
		if err != nil {
			return fmt.Errorf("router: part %d of block %d: %w", t.Part, t.Block, err)
		}
	}
	return nil
}

func (m *Model) putFrequencies(c *model.Config) error {
	var raw []byte
	frequencies := c.Rope.InverseFrequencies(c.HeadDim)
	for _, f := range frequencies {
		raw = binary.NativeEndian.AppendUint64(raw, math.Float64bits(f))
	}
	return put(m, C.TR_ROPE_FREQUENCIES, 0, C.TR_F64, 1, int64(len(frequencies)), raw)
}

func (m *Model) putWindows(c *model.Config) error {
	var raw []byte
	for layer := range c.Layers {
		raw = binary.NativeEndian.AppendUint32(raw, uint32(c.WindowOf(layer)))
	}
	return put(m, C.TR_WINDOWS, 0, C.TR_I32, 1, int64(c.Layers), raw)
}

func put[T byte | float32](m *Model, tensor C.int32_t, layer int, kind C.int32_t, rows, columns int64,
	data []T) error {
	status := C.tr_model_put(m.device.backend.table, m.handle, tensor, C.int32_t(layer), kind,
		C.int64_t(rows), C.int64_t(columns), unsafe.Pointer(unsafe.SliceData(data)), &m.text)
	runtime.KeepAlive(data)
	return m.device.backend.failure(status, &m.text)
}

// elements are the types that weights come in.
var elements = map[model.DType]C.int32_t{model.BF16: C.TR_BF16, model.F16: C.TR_F16, model.F32: C.TR_F32}

// tensors has the number of each tensor, by its name, or by what stands behind the layer in it.
var tensors = map[string]C.int32_t{
	"model.embed_tokens.weight": C.TR_EMBEDDING, "lm_head.weight": C.TR_HEAD,
	"model.norm.weight": C.TR_FINAL_NORM, "input_layernorm.weight": C.TR_INPUT_NORM,
	"self_attn.q_proj.weight": C.TR_Q, "self_attn.q_proj.bias": C.TR_Q_BIAS,
	"self_attn.k_proj.weight": C.TR_K, "self_attn.k_proj.bias": C.TR_K_BIAS,
	"self_attn.v_proj.weight": C.TR_V, "self_attn.v_proj.bias": C.TR_V_BIAS,
	"self_attn.q_norm.weight": C.TR_Q_NORM, "self_attn.k_norm.weight": C.TR_K_NORM,
	"self_attn.o_proj.weight": C.TR_O, "self_attn.o_proj.bias": C.TR_O_BIAS,
	"post_attention_layernorm.weight": C.TR_POST_NORM,
	"mlp.gate_proj.weight":            C.TR_GATE, "mlp.gate_proj.bias": C.TR_GATE_BIAS,
	"mlp.up_proj.weight": C.TR_UP, "mlp.up_proj.bias": C.TR_UP_BIAS,
	"mlp.down_proj.weight": C.TR_DOWN, "mlp.down_proj.bias": C.TR_DOWN_BIAS,
}

// place says which tensor a name of Config.Expected is, and of which layer.
func place(name string) (tensor C.int32_t, layer int) {
	part := name
	if rest, ok := strings.CutPrefix(name, "model.layers."); ok {
		number, behind, _ := strings.Cut(rest, ".")
		layer, _ = strconv.Atoi(number)
		part = behind
	}
	tensor, ok := tensors[part]
	if !ok {
		panic(fmt.Sprintf("native: no tensor %q", name))
	}
	return tensor, layer
}
