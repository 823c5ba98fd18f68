package native

// #include <stdlib.h>
// #include "trampolines.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// Backend is an implementation of the C ABI, such as exec/cpu's. The zero Backend is none.
type Backend struct{ table *C.tr_backend }

// Wrap makes a Backend of a const tr_backend *, which must stay as it is. It panics for one that was built
// with another native.h.
func Wrap(table unsafe.Pointer) Backend {
	b := (*C.tr_backend)(table)
	if b.size != C.sizeof_tr_backend || b.abi_version != C.TR_ABI_VERSION {
		panic(fmt.Sprintf("native: a backend of ABI %d and %d bytes, want ABI %d and %d bytes",
			b.abi_version, b.size, C.TR_ABI_VERSION, C.sizeof_tr_backend))
	}
	return Backend{b}
}

// Kind is the name of the implementation: "cpu", "cuda".
func (b Backend) Kind() string { return C.GoString(b.table.kind) }

// Info describes a device.
type Info struct {
	Ordinal     int
	Name        string // of the hardware
	Kernels     string // what a model would run with: the instructions, such as "amx", or the libraries
	PageTokens  int    // of a KV page, as the device likes it best
	Processors  int    // that may be given to it
	MemoryBytes int64
	FreeBytes   int64 // now, for anybody
}

// Devices lists what there is, by ordinal. Where there is no driver the list is empty.
func (b Backend) Devices() ([]Info, error) {
	var count C.int32_t
	var text C.tr_error
	if err := b.failure(C.tr_device_count(b.table, &count, &text), &text); err != nil {
		return nil, err
	}
	infos := make([]Info, count)
	for i := range infos {
		info, err := b.info(i)
		if err != nil {
			return nil, err
		}
		infos[i] = info
	}
	return infos, nil
}

func (b Backend) info(ordinal int) (Info, error) {
	info := C.tr_device_info{size: C.sizeof_tr_device_info}
	var text C.tr_error
	if err := b.failure(C.tr_device_get_info(b.table, C.int32_t(ordinal), &info, &text), &text); err != nil {
		return Info{}, err
	}
	return Info{
		Ordinal: ordinal, Name: goText(info.name[:]), Kernels: goText(info.kernels[:]),
		PageTokens: int(info.page_tokens), Processors: int(info.processors),
		MemoryBytes: int64(info.memory_bytes), FreeBytes: int64(info.free_bytes),
	}, nil
}

// ProcessorsMax is how many processors a device of the CPU takes.
const ProcessorsMax = C.TR_PROCESSORS_MAX

// Options say how to open a device.
type Options struct {
	Ordinal     int
	BudgetBytes int64  // for all its models together; 0: what is free
	Threads     int    // CPU: 0: one a processor. CUDA: multiprocessors of its own, 0: all, with others
	Processors  []int  // CPU: none, or one a thread; at most ProcessorsMax
	Kernels     string // "": the best there are. CUDA: words of graphs, eager, own (no cuBLASLt)
	// CUDA: tokens and requests with a head of a step, to which batches are padded, ascending: a graph for each
	// pair that comes up, and none beyond. Empty: the device's own choice.
	GraphTokens, GraphBatches []int
}

// Device is an open device. Its models run on the same processors. Calls come one at a time.
type Device struct {
	backend Backend
	handle  *C.tr_device
	budget  int64 // bytes
	models  []*Model
}

// Open opens a device. It fails with ErrNoDevice where there is none.
func (b Backend) Open(o Options) (*Device, error) {
	info, err := b.info(o.Ordinal)
	if err != nil {
		return nil, err
	}
	options := C.tr_device_options{
		size: C.sizeof_tr_device_options, ordinal: C.int32_t(o.Ordinal), budget_bytes: C.int64_t(o.BudgetBytes),
		threads: C.int32_t(o.Threads), pinned: C.int32_t(len(o.Processors)),
	}
	if len(o.Processors) > len(options.processors) || len(o.Kernels) >= len(options.kernels) {
		return nil, fmt.Errorf("%s: %w: %d processors and kernels %q, want at most %d and a short name",
			b.Kind(), ErrInvalid, len(o.Processors), o.Kernels, len(options.processors))
	}
	for i, processor := range o.Processors {
		options.processors[i] = C.int32_t(processor)
	}
	for i := range len(o.Kernels) {
		options.kernels[i] = C.char(o.Kernels[i])
	}
	sizes := options.graph_rows[:]
	if len(o.GraphTokens) > len(sizes) || len(o.GraphBatches) > len(sizes) {
		return nil, fmt.Errorf("%s: %w: %d and %d sizes of graphs, want at most %d", b.Kind(), ErrInvalid,
			len(o.GraphTokens), len(o.GraphBatches), len(sizes))
	}
	options.graph_row_sizes = copySizes(sizes, o.GraphTokens)
	options.graph_head_sizes = copySizes(options.graph_heads[:], o.GraphBatches)
	d := &Device{backend: b, budget: o.BudgetBytes}
	if d.budget == 0 {
		d.budget = info.FreeBytes
	}
	var text C.tr_error
	if err := b.failure(C.tr_device_open(b.table, &options, &d.handle, &text), &text); err != nil {
		return nil, err
	}
	return d, nil
}

func copySizes(to []C.int32_t, from []int) C.int32_t {
	for i, size := range from {
		to[i] = C.int32_t(size)
	}
	return C.int32_t(len(from))
}

// BudgetBytes is what all models of the device may take together.
func (d *Device) BudgetBytes() int64 { return d.budget }

// LeftBytes is what its models have left of the budget.
func (d *Device) LeftBytes() int64 {
	left := d.budget
	for _, m := range d.models {
		left -= m.took.Total()
	}
	return left
}

// Close closes the device and all its models.
func (d *Device) Close() {
	for len(d.models) > 0 {
		d.models[0].Close()
	}
	C.tr_device_close(d.backend.table, d.handle)
	d.handle = nil
}

// Probe says what a model would take, on any device of this kind. It allocates nothing.
func (b Backend) Probe(c Config, l Limits) (Needs, error) { return b.probe(nil, c, l) }

// Probe says what a model would take on this device. It allocates nothing.
func (d *Device) Probe(c Config, l Limits) (Needs, error) { return d.backend.probe(d.handle, c, l) }

func (b Backend) probe(device *C.tr_device, c Config, l Limits) (Needs, error) {
	config, err := c.native()
	if err != nil {
		return Needs{}, err
	}
	limits, err := l.native()
	if err != nil {
		return Needs{}, err
	}
	needs := C.tr_needs{size: C.sizeof_tr_needs}
	var text C.tr_error
	status := C.tr_probe(b.table, device, &config, &limits, &needs, &text)
	return needsOf(&needs), b.failure(status, &text)
}

// goText reads a C string that may fill its array.
func goText(text []C.char) string {
	n := 0
	for n < len(text) && text[n] != 0 {
		n++
	}
	return C.GoStringN(&text[0], C.int(n))
}
