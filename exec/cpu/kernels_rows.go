package cpu

// #include "kernels.h"
import "C"

// norm adds delta (nil: nothing) to x[rows][width] and writes the rows' RMS norm times weight to
// out[rows][...].
func norm(t *workers, p Path, rows int, x, delta, weight []float32, epsilon float32, out []uint16) error {
	return status("norm", C.cpu_norm(t.handle, C.int32_t(p), C.int64_t(rows), base[C.float](x),
		base[C.float](delta), base[C.float](weight), C.float(epsilon), C.int64_t(len(x)/rows),
		base[C.uint16_t](out), C.int64_t(len(out)/rows)))
}

// swiglu writes silu(gate) * up of gateUp[rows][2][width] to out[rows][...].
func swiglu(t *workers, p Path, rows int, gateUp []float32, out []uint16) error {
	return status("swiglu", C.cpu_swiglu(t.handle, C.int32_t(p), C.int64_t(rows), base[C.float](gateUp),
		C.int64_t(len(gateUp)/rows/2), base[C.uint16_t](out), C.int64_t(len(out)/rows)))
}

// round writes x[rows][width] to out[rows][...] as bf16.
func round(t *workers, p Path, rows int, x []float32, out []uint16) error {
	return status("round", C.cpu_round(t.handle, C.int32_t(p), C.int64_t(rows), base[C.float](x),
		C.int64_t(len(x)/rows), base[C.uint16_t](out), C.int64_t(len(out)/rows)))
}

// add adds bias to each row of x.
func add(t *workers, p Path, rows int, x, bias []float32) error {
	return status("add", C.cpu_add(t.handle, C.int32_t(p), C.int64_t(rows), base[C.float](x),
		base[C.float](bias), C.int64_t(len(x)/rows)))
}

// ropeTable has the cosines and sines of [positions][dim/2] angles.
type ropeTable struct {
	dim            int
	cosines, sines []float32
}

// rotate norms the heads of x[len(positions)][heads][dim] (weight nil: it does not) and rotates them in
// place.
func rotate(t *workers, p Path, heads int, x, weight []float32, epsilon float32, positions []int32,
	r ropeTable) error {
	return status("rotate", C.cpu_rotate(t.handle, C.int32_t(p), C.int64_t(len(positions)), C.int64_t(heads),
		C.int64_t(r.dim), base[C.float](x), base[C.float](weight), C.float(epsilon),
		base[C.int32_t](positions), C.int64_t(len(r.cosines)/(r.dim/2)), base[C.float](r.cosines),
		base[C.float](r.sines)))
}

// gather returns the weights of output columns, [len(columns)][depth].
func gather(w *weights, columns []int32) ([]float32, error) {
	out := make([]float32, len(columns)*w.depth)
	code := C.cpu_gather(w.handle, base[C.int32_t](columns), C.int64_t(len(columns)), base[C.float](out))
	return out, status("gather", code)
}

// The references, of one row or head, in double.

func normReference(x []float64, delta, weight []float32, epsilon float64) []float64 {
	out := make([]float64, len(x))
	C.cpu_norm_reference(base[C.double](x), base[C.float](delta), base[C.float](weight), C.double(epsilon),
		C.int64_t(len(x)), base[C.double](out))
	return out
}

func swigluReference(gateUp []float32) []float64 {
	out := make([]float64, len(gateUp)/2)
	C.cpu_swiglu_reference(base[C.float](gateUp), C.int64_t(len(out)), base[C.double](out))
	return out
}

func rotateReference(x, weight []float32, epsilon float64, cosines, sines []float32) []float64 {
	out := make([]float64, len(x))
	C.cpu_rotate_reference(base[C.float](x), base[C.float](weight), C.double(epsilon), base[C.float](cosines),
		base[C.float](sines), C.int64_t(len(x)), base[C.double](out))
	return out
}

// narrow is the portable rounding to bf16.
func narrow(f float32) uint16 { return uint16(C.cpu_narrow(C.float(f))) }

// roundedTolerance bounds the relative error of results in bf16, rotateTolerance the error of rotate over the
// largest number of the head.
func roundedTolerance() float64 { return float64(C.cpu_rounded_tolerance()) }
func rotateTolerance() float64  { return float64(C.cpu_rotate_tolerance()) }
