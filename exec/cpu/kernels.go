package cpu

// #include <stdlib.h>
// #include "kernels.h"
import "C"

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"
)

// status turns what a kernel returned into an error that names the call.
func status(call string, code C.int32_t) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("cpu: %s: %w", call, syscall.Errno(code))
}

// base is the address of the first element, nil for an empty slice. C functions read it during one call only.
func base[To, From any](s []From) *To { return (*To)(unsafe.Pointer(unsafe.SliceData(s))) }

// memoryFreeBytes is what is left of a machine's memory: of a file as /proc/meminfo and a folder as
// /sys/fs/cgroup.
func memoryFreeBytes(meminfo, group string) int64 {
	m, g := C.CString(meminfo), C.CString(group)
	defer C.free(unsafe.Pointer(m))
	defer C.free(unsafe.Pointer(g))
	return int64(C.cpu_memory_free_bytes(m, g))
}

// workers are threads that share one piece of work at a time.
type workers struct{ handle *C.cpu_workers }

// newWorkers makes threads workers, 1 to 256, the caller counted. Given processors, one number a worker,
// helpers stay there, and the caller is there while a call runs.
func newWorkers(threads int, processors []int32) (*workers, error) {
	if processors != nil && len(processors) != threads {
		return nil, fmt.Errorf("cpu: %d processors for %d threads, want one each", len(processors), threads)
	}
	w := new(workers)
	code := C.cpu_workers_open(C.int32_t(threads), base[C.int32_t](processors), &w.handle)
	if err := status("workers", code); err != nil {
		return nil, fmt.Errorf("%w (%d threads on processors %v)", err, threads, processors)
	}
	return w, nil
}

// close ends the helpers. No call may be running.
func (w *workers) close() {
	C.cpu_workers_close(w.handle)
	w.handle = nil
}

// weights are a packed matrix.
type weights struct {
	handle         *C.cpu_weights
	columns, depth int
}

// newWeights packs bf16 source[columns][depth].
func newWeights(columns, depth int, source []uint16) (*weights, error) {
	if columns < 1 || depth < 1 || len(source) != columns*depth {
		return nil, fmt.Errorf("cpu: %d weights, want %d columns x depth %d", len(source), columns, depth)
	}
	w := &weights{columns: columns, depth: depth}
	code := C.cpu_weights_open(C.int64_t(columns), C.int64_t(depth), base[C.uint16_t](source), &w.handle)
	return w, status("weights", code)
}

func (w *weights) close() {
	C.cpu_weights_close(w.handle)
	w.handle = nil
}

// paddedDepth and paddedColumns are the least strides of what goes in and comes out.
func (w *weights) paddedDepth() int   { return (w.depth + 31) / 32 * 32 }
func (w *weights) paddedColumns() int { return (w.columns + 63) / 64 * 64 }

// activationStride is a good stride for what goes in: rows that begin at different sets of the nearest
// cache. At paddedDepth, often a multiple of 2 KiB, rows drive one another out.
func (w *weights) activationStride() int { return w.paddedDepth() + 32 }

// bytes is the size of the packed matrix.
func (w *weights) bytes() int { return 2 * w.paddedDepth() * w.paddedColumns() }

// gemm computes y = x * w for rows rows; the strides are len / rows.
func gemm(t *workers, p Path, rows int, x []uint16, w *weights, y []float32) error {
	code := C.cpu_gemm(t.handle, C.int32_t(p), C.int64_t(rows), base[C.uint16_t](x), C.int64_t(len(x)/rows),
		w.handle, base[C.float](y), C.int64_t(len(y)/rows))
	runtime.KeepAlive(x)
	return status("gemm", code)
}

// gemmReference returns the product in double, [rows][columns], and the sums of the terms' magnitudes.
func gemmReference(rows int, x []uint16, w *weights) (y, magnitude []float64, err error) {
	y, magnitude = make([]float64, rows*w.columns), make([]float64, rows*w.columns)
	code := C.cpu_gemm_reference(C.int64_t(rows), base[C.uint16_t](x), C.int64_t(len(x)/rows), w.handle,
		base[C.double](y), base[C.double](magnitude))
	return y, magnitude, status("gemm reference", code)
}

// gemmTolerance bounds |gemm - exact| over the sum of the terms' magnitudes.
func gemmTolerance() float64 { return float64(C.cpu_gemm_tolerance()) }

// stream reads the bytes of w and returns the sum of its 64 bit words.
func stream(t *workers, w *weights) (uint64, error) {
	var sum C.uint64_t
	code := C.cpu_stream(t.handle, w.handle, &sum)
	return uint64(sum), status("stream", code)
}
