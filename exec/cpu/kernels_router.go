package cpu

// #include "kernels_router.h"
import "C"

import "fmt"

// routerShape has the sizes of a router; kind is 1 for R2R, 2 for CITER, 3 for Co-LLM.
type routerShape struct{ kind, hidden, top, width, blocks, expanded int }

func (s routerShape) c() C.cpu_router_shape {
	return C.cpu_router_shape{kind: C.int64_t(s.kind), hidden: C.int64_t(s.hidden), top: C.int64_t(s.top),
		width: C.int64_t(s.width), blocks: C.int64_t(s.blocks), expanded: C.int64_t(s.expanded)}
}

// scorer is a router network.
type scorer struct {
	handle *C.cpu_router
	shape  routerShape
}

// newScorer makes a router without weights.
func newScorer(s routerShape) (*scorer, error) {
	r := &scorer{shape: s}
	if err := status("router", C.cpu_router_open(s.c(), &r.handle)); err != nil {
		return nil, fmt.Errorf("%w (%+v)", err, s)
	}
	return r, nil
}

func (r *scorer) close() {
	C.cpu_router_close(r.handle)
	r.handle = nil
}

// weightBytes is what the weights take, scratchBytes what an evaluation of rows takes.
func (s routerShape) weightBytes() int { return int(C.cpu_router_weight_bytes(s.c())) }
func (r *scorer) scratchBytes(rows int) int {
	return int(C.cpu_router_scratch_bytes(r.handle, C.int64_t(rows)))
}

// put copies a tensor: a RouterTensor of router.h, of a block.
func (r *scorer) put(tensor, block, rows, columns int, data []float32) error {
	if len(data) != rows*columns {
		return fmt.Errorf("cpu: %d numbers, want %d rows x %d columns", len(data), rows, columns)
	}
	return status("router tensor", C.cpu_router_put(r.handle, C.int32_t(tensor), C.int64_t(block),
		C.int64_t(rows), C.int64_t(columns), base[C.float](data)))
}

// evaluate scores len(scores) rows of hidden, embeddings and logits.
func (r *scorer) evaluate(t *workers, p Path, hidden, embeddings, logits []float32, scores []float64) error {
	if rows := len(scores); len(hidden) != rows*r.shape.hidden || len(logits) != rows*r.shape.top {
		return fmt.Errorf("cpu: %d hidden numbers and %d logits for %d rows", len(hidden), len(logits), rows)
	}
	return status("router", C.cpu_router_evaluate(t.handle, C.int32_t(p), r.handle, C.int64_t(len(scores)),
		base[C.float](hidden), base[C.float](embeddings), base[C.float](logits), base[C.double](scores)))
}

// routerTolerance bounds |score - exact|, deferralTolerance that of Co-LLM: see router.h.
func routerTolerance() float64   { return float64(C.cpu_router_tolerance()) }
func deferralTolerance() float64 { return float64(C.cpu_deferral_tolerance()) }

// gelu returns gelu(x + bias) as bf16.
func gelu(p Path, x, bias []float32) ([]uint16, error) {
	out := make([]uint16, len(x))
	return out, status("gelu", C.cpu_gelu(C.int32_t(p), base[C.float](x), base[C.float](bias),
		C.int64_t(len(x)), base[C.uint16_t](out)))
}

// layerNorm returns the LayerNorm of x.
func layerNorm(p Path, x, weight, bias []float32) ([]float32, error) {
	out := make([]float32, len(x))
	return out, status("layer norm", C.cpu_layer_norm(C.int32_t(p), base[C.float](x), base[C.float](weight),
		base[C.float](bias), C.int64_t(len(x)), base[C.float](out)))
}
