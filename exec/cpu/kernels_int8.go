package cpu

// #include "kernels_int8.h"
import "C"

import "fmt"

// int8Weights are a packed matrix of 8 bit weights.
type int8Weights struct {
	handle                 *C.cpu_int8_weights
	columns, depth, groups int
}

// newInt8Weights quantises and packs bf16 source[columns][depth], with one scale for groupInputs inputs of a
// column, a multiple of 64, or for all of them if it is 0.
func newInt8Weights(columns, depth, groupInputs int, source []uint16) (*int8Weights, error) {
	if columns < 1 || depth < 1 || len(source) != columns*depth {
		return nil, fmt.Errorf("cpu: %d weights, want %d columns x depth %d", len(source), columns, depth)
	}
	w := &int8Weights{columns: columns, depth: depth}
	code := C.cpu_int8_weights_open(C.int64_t(columns), C.int64_t(depth), C.int64_t(groupInputs),
		base[C.uint16_t](source), &w.handle)
	if err := status("int8 weights", code); err != nil {
		return nil, fmt.Errorf("%w (%d columns x depth %d in groups of %d)", err, columns, depth, groupInputs)
	}
	w.groups = int(C.cpu_int8_groups(w.handle))
	return w, nil
}

func (w *int8Weights) close() {
	C.cpu_int8_weights_close(w.handle)
	w.handle = nil
}

// paddedDepth and paddedColumns are the least strides of what goes in and comes out.
func (w *int8Weights) paddedDepth() int   { return (w.depth + 63) / 64 * 64 }
func (w *int8Weights) paddedColumns() int { return (w.columns + 63) / 64 * 64 }

// activationStride is a good stride for what goes in: as that of weights.
func (w *int8Weights) activationStride() int { return w.paddedDepth() + 64 }

// bytes is the size of the packed matrix.
func (w *int8Weights) bytes() int { return int(C.cpu_int8_bytes(w.handle)) }

// pack packs columns from first on anew from bf16 or float32 rows, and reports an error of the call.
func (w *int8Weights) pack(first int, source []uint16) error {
	return status("int8 pack", C.cpu_int8_pack(w.handle, C.int64_t(first), C.int64_t(len(source)/w.depth),
		base[C.uint16_t](source)))
}

func (w *int8Weights) packFloats(first int, source []float32) error {
	return status("int8 pack", C.cpu_int8_pack_floats(w.handle, C.int64_t(first),
		C.int64_t(len(source)/w.depth), base[C.float](source)))
}

// equal reports whether two packed matrices have the same bytes.
func (w *int8Weights) equal(other *int8Weights) bool {
	return C.cpu_int8_equal(w.handle, other.handle) == 1
}

// rowGroup is what the inputs of one row share in one group.
type rowGroup struct {
	scale  float32
	offset int32
}

// quantised are activations of 8 bits: values[rows][len/rows] and groups[rows][groups of the weights].
type quantised struct {
	rows   int
	values []int8
	groups []rowGroup
}

// newQuantised makes room for rows with the given stride.
func newQuantised(rows, stride int, w *int8Weights) quantised {
	return quantised{rows, make([]int8, rows*stride), make([]rowGroup, rows*w.groups)}
}

// alone is row m without the others.
func (q quantised) alone(m int) quantised {
	stride, groups := len(q.values)/q.rows, len(q.groups)/q.rows
	return quantised{1, q.values[m*stride:][:stride], q.groups[m*groups:][:groups]}
}

// first is the first rows of q.
func (q quantised) first(rows int) quantised {
	return quantised{rows, q.values[:len(q.values)/q.rows*rows], q.groups[:len(q.groups)/q.rows*rows]}
}

// quantise fills out from bf16 x[rows][len/rows], for products with w.
func quantise(t *workers, p Path, w *int8Weights, x []uint16, out quantised) error {
	rows := out.rows
	return status("int8 quantise", C.cpu_int8_quantise(t.handle, C.int32_t(p), w.handle, C.int64_t(rows),
		base[C.uint16_t](x), C.int64_t(len(x)/rows), base[C.int8_t](out.values),
		C.int64_t(len(out.values)/rows), base[C.cpu_row_group](out.groups)))
}

// quantiseFloats is quantise from float32.
func quantiseFloats(t *workers, p Path, w *int8Weights, x []float32, out quantised) error {
	rows := out.rows
	return status("int8 quantise", C.cpu_int8_quantise_floats(t.handle, C.int32_t(p), w.handle,
		C.int64_t(rows), base[C.float](x), C.int64_t(len(x)/rows), base[C.int8_t](out.values),
		C.int64_t(len(out.values)/rows), base[C.cpu_row_group](out.groups)))
}

// gemmInt8 computes y = x * w; the stride of y is len / rows.
func gemmInt8(t *workers, p Path, x quantised, w *int8Weights, y []float32) error {
	return status("int8 gemm", C.cpu_int8_gemm(t.handle, C.int32_t(p), C.int64_t(x.rows),
		base[C.int8_t](x.values), C.int64_t(len(x.values)/x.rows), base[C.cpu_row_group](x.groups),
		w.handle, base[C.float](y), C.int64_t(len(y)/x.rows)))
}

// gemmInt8Reference returns the product in double, [rows][columns], and the sums of the magnitudes of the
// groups' terms.
func gemmInt8Reference(x quantised, w *int8Weights) (y, magnitude []float64, err error) {
	y, magnitude = make([]float64, x.rows*w.columns), make([]float64, x.rows*w.columns)
	code := C.cpu_int8_gemm_reference(C.int64_t(x.rows), base[C.int8_t](x.values),
		C.int64_t(len(x.values)/x.rows), base[C.cpu_row_group](x.groups), w.handle, base[C.double](y),
		base[C.double](magnitude))
	return y, magnitude, status("int8 gemm reference", code)
}

// gemmInt8Tolerance times (groups + 2) bounds |gemmInt8 - exact| over the sum of the terms' magnitudes.
func gemmInt8Tolerance() float64 { return float64(C.cpu_int8_gemm_tolerance()) }

// streamInt8 reads the bytes of w and returns the sum of its 64 bit words.
func streamInt8(t *workers, w *int8Weights) (uint64, error) {
	var sum C.uint64_t
	code := C.cpu_int8_stream(t.handle, w.handle, &sum)
	return uint64(sum), status("int8 stream", code)
}

// gatherInt8 returns the weights of output columns, [len(columns)][depth].
func gatherInt8(w *int8Weights, columns []int32) ([]float32, error) {
	out := make([]float32, len(columns)*w.depth)
	code := C.cpu_int8_gather(w.handle, base[C.int32_t](columns), C.int64_t(len(columns)),
		base[C.float](out))
	return out, status("int8 gather", code)
}
