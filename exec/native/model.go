package native

// #include "trampolines.h"
import "C"

import (
	"slices"
	"unsafe"
)

// Model is a model on a device, its weights and all memory in place. Steps of one model come one at a time;
// different models may step at the same time.
type Model struct {
	name   string
	device *Device
	handle *C.tr_model
	config Config
	limits Limits
	took   Needs
	counts C.tr_step_counts // of the step that runs, as are info and text
	info   C.tr_step_info
	text   C.tr_error
}

// Name is the one it was loaded with.
func (m *Model) Name() string { return m.name }

// Config is the one it was loaded with.
func (m *Model) Config() Config { return m.config }

// Limits are those it was loaded with.
func (m *Model) Limits() Limits { return m.limits }

// Took is the memory that it has.
func (m *Model) Took() Needs { return m.took }

// Graphs are those that a model has captured so far; the zero value where the device has none.
type Graphs struct {
	Count     int
	CaptureNs int64 // of all of them
	Bytes     int64 // by which the free memory of the device fell meanwhile, on top of Needs
}

// Graphs is what the model has captured. No step may be running.
func (m *Model) Graphs() Graphs {
	g := C.tr_graphs{size: C.sizeof_tr_graphs}
	C.tr_model_graphs(m.device.backend.table, m.handle, &g)
	return Graphs{Count: int(g.count), CaptureNs: int64(g.capture_ns), Bytes: int64(g.bytes)}
}

// Close frees the model. No step may be running.
func (m *Model) Close() {
	C.tr_model_close(m.device.backend.table, m.handle)
	m.handle = nil
	m.device.models = slices.DeleteFunc(m.device.models, func(other *Model) bool { return other == m })
}

// Forward runs one forward pass, and fills Results, Top, Hidden, Logits and Info. After ErrInvalid the cache
// is as it was, but for freed and granted pages; after ErrFailed only Close may follow. It allocates nothing.
// It panics for a batch whose arrays do not go together.
func (m *Model) Forward(b *Batch) error {
	b.check(m)
	m.counts = C.tr_step_counts{
		size: C.sizeof_tr_step_counts, requests: C.int32_t(len(b.Requests)), grants: C.int32_t(len(b.Grants)),
		freed: C.int32_t(len(b.Freed)),
	}
	m.info.size = C.sizeof_tr_step_info
	status := C.tr_model_step(m.device.backend.table, m.handle, &m.counts, first[C.int32_t](b.Tokens),
		first[C.tr_request](b.Requests), first[C.tr_bias](b.Biases), first[C.tr_grant](b.Grants),
		first[C.int32_t](b.Freed), first[C.tr_result](b.Results), first[C.tr_candidate](b.Top),
		first[C.float](b.Hidden), first[C.float](b.Logits), &m.info, &m.text)
	if status != C.TR_OK {
		return m.device.backend.failure(status, &m.text)
	}
	b.Info = StepInfo{
		RowsComputed: int(m.info.rows_computed), Graph: m.info.graph != 0,
		StartNs: int64(m.info.start_ns), EndNs: int64(m.info.end_ns),
	}
	return nil
}

// first is the address of the first element, nil for an empty slice. C looks there during one call only.
func first[To, From any](s []From) *To {
	if len(s) == 0 {
		return nil
	}
	return (*To)(unsafe.Pointer(unsafe.SliceData(s)))
}
