package cpu

// #include "kernels.h"
import "C"

// kvPages are the keys and values of one layer, [pages][kvHeads][pageTokens * headDim] bf16 each. headDim and
// pageTokens are multiples of 16.
type kvPages struct {
	pages, kvHeads, headDim, pageTokens int
	keys, values                        []uint16
}

// newKVPages has room for pages pages.
func newKVPages(pages, kvHeads, headDim, pageTokens int) *kvPages {
	n := pages * kvHeads * headDim * pageTokens
	return &kvPages{pages, kvHeads, headDim, pageTokens, make([]uint16, n), make([]uint16, n)}
}

func (kv *kvPages) shape() C.cpu_kv_shape {
	return C.cpu_kv_shape{C.int64_t(kv.pages), C.int64_t(kv.kvHeads), C.int64_t(kv.headDim),
		C.int64_t(kv.pageTokens)}
}

// store writes a request's tokens from first on; k and v are [tokens][kvHeads][headDim].
func (kv *kvPages) store(pageTable []int32, first int, k, v []float32) error {
	return status("store KV", C.cpu_store_kv(kv.shape(), base[C.uint16_t](kv.keys), base[C.uint16_t](kv.values),
		base[C.int32_t](pageTable), C.int64_t(len(pageTable)), C.int64_t(first),
		C.int64_t(len(k)/(kv.kvHeads*kv.headDim)), base[C.float](k), base[C.float](v)))
}

// attention is a ragged batch at one layer: request i has rows[i] rows, the last of its kvLengths[i] tokens,
// whose pages are pageTables[i * tablePages] and on. Row by row, q is [heads][headDim].
type attention struct {
	kv         *kvPages
	heads      int
	window     int // positions that a row sees, 0: all
	scale      float32
	rows       []int64
	kvLengths  []int64
	pageTables []int32
	tablePages int
	q          []float32
}

// attend writes the rows' attention to out, which has the form of q.
func (a *attention) attend(t *workers, p Path, out []float32) error {
	return status("attention", C.cpu_attend(t.handle, C.int32_t(p), a.kv.shape(), base[C.uint16_t](a.kv.keys),
		base[C.uint16_t](a.kv.values), C.int64_t(a.heads), C.int64_t(a.window), C.float(a.scale),
		C.int64_t(len(a.rows)), base[C.int64_t](a.rows), base[C.int64_t](a.kvLengths),
		base[C.int32_t](a.pageTables), C.int64_t(a.tablePages), base[C.float](a.q), base[C.float](out)))
}

// reference is attend in double.
func (a *attention) reference() ([]float64, error) {
	out := make([]float64, len(a.q))
	code := C.cpu_attend_reference(a.kv.shape(), base[C.uint16_t](a.kv.keys), base[C.uint16_t](a.kv.values),
		C.int64_t(a.heads), C.int64_t(a.window), C.float(a.scale), C.int64_t(len(a.rows)),
		base[C.int64_t](a.rows), base[C.int64_t](a.kvLengths), base[C.int32_t](a.pageTables),
		C.int64_t(a.tablePages), base[C.float](a.q), base[C.double](out))
	return out, status("attention reference", code)
}

// attentionTolerance bounds the error of attend on path p over the largest |value| that a row sees. With AMX
// that is for queries that are bf16.
func attentionTolerance(p Path) float64 { return float64(C.cpu_attention_tolerance(C.int32_t(p))) }
