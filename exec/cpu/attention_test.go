package cpu

import (
	"errors"
	"math"
	"syscall"
	"testing"
)

// shape is what an attention test varies.
type shape struct {
	name                                string
	heads, kvHeads, headDim, pageTokens int
	window                              int
	rows, kvLengths                     []int64
}

// newAttention makes a batch with random tokens in scattered pages. Everything that is no token of the batch
// is NaN, so that reading it shows.
func newAttention(t testing.TB, s shape, seed uint64) *attention {
	t.Helper()
	longest, rows := int64(0), int64(0)
	for i, n := range s.kvLengths {
		longest, rows = max(longest, n), rows+s.rows[i]
	}
	tablePages := (int(longest) + s.pageTokens - 1) / s.pageTokens
	kv := newKVPages(len(s.rows)*tablePages+3, s.kvHeads, s.headDim, s.pageTokens)
	for i := range kv.keys {
		kv.keys[i], kv.values[i] = 0x7fc0, 0x7fc0
	}
	r := source(seed)
	a := &attention{kv: kv, heads: s.heads, window: s.window, scale: float32(1 / math.Sqrt(float64(s.headDim))),
		rows: s.rows, kvLengths: s.kvLengths, tablePages: tablePages}
	for _, page := range r.Perm(kv.pages)[:len(s.rows)*tablePages] {
		a.pageTables = append(a.pageTables, int32(page))
	}
	width := s.kvHeads * s.headDim
	for i, n := range s.kvLengths {
		k, v := normals(r, int(n)*width, 2), normals(r, int(n)*width, 1)
		if err := kv.store(a.pageTables[i*tablePages:][:tablePages], 0, k, v); err != nil {
			t.Fatal(err)
		}
	}
	a.q = normals(r, int(rows)*s.heads*s.headDim, 1)
	roundToBF16(a.q)
	return a
}

// roundToBF16 makes numbers bf16, as which every path takes queries without an error.
func roundToBF16(s []float32) {
	for i, f := range s {
		s[i] = fromBF16(toBF16(f))
	}
}

func (a *attention) run(t testing.TB, w *workers, p Path) []float32 {
	t.Helper()
	out := make([]float32, len(a.q))
	if err := a.attend(w, p, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// largestValue bounds what a row can see, for draws of a normal law with deviation 1.
const largestValue = 5.5

func TestAttentionAgainstDouble(t *testing.T) {
	shapes := []shape{
		{"one token", 1, 1, 16, 16, 0, []int64{1}, []int64{1}},
		{"decode", 4, 2, 64, 32, 0, []int64{1, 1, 1}, []int64{1, 33, 100}},
		{"Qwen3 heads", 16, 8, 128, 32, 0, []int64{1, 2}, []int64{250, 64}},
		{"28 heads of 4", 28, 4, 32, 16, 0, []int64{1, 3}, []int64{40, 17}},
		{"14 heads of 2, head of 80", 14, 2, 80, 48, 0, []int64{1, 37}, []int64{200, 139}},
		{"as many KV heads", 3, 3, 48, 64, 0, []int64{5}, []int64{70}},
		{"group of 64", 64, 1, 256, 16, 0, []int64{2}, []int64{20}},
		{"ragged extend", 6, 2, 32, 16, 0, []int64{1, 40, 7, 16}, []int64{90, 40, 100, 16}},
		{"window", 4, 2, 32, 16, 20, []int64{1, 30, 2}, []int64{90, 30, 19}},
		{"window over several pages", 4, 2, 32, 32, 150, []int64{40, 1, 2}, []int64{290, 400, 150}},
		{"window of one", 2, 1, 16, 16, 1, []int64{3}, []int64{35}},
	}
	w := threads(t, 2)
	onEachPath(t, func(t *testing.T, p Path) {
		for i, s := range shapes {
			t.Run(s.name, func(t *testing.T) {
				a := newAttention(t, s, uint64(i))
				want, err := a.reference()
				if err != nil {
					t.Fatal(err)
				}
				for j, v := range a.run(t, w, p) {
					if miss := math.Abs(float64(v) - want[j]); !(miss <= attentionTolerance(p)*largestValue) {
						t.Fatalf("out[%d] = %v, want %v", j, v, want[j])
					}
				}
			})
		}
	})
}

// TestAttentionByHand: two positions, weights 3/4 and 1/4, values 4 and 8: 5.
func TestAttentionByHand(t *testing.T) {
	kv := newKVPages(1, 1, 16, 16)
	k, v, q := make([]float32, 32), make([]float32, 32), make([]float32, 16)
	k[0], k[16] = 1, 0
	q[0] = float32(math.Log(3) * 2)
	for d := range 16 {
		v[d], v[16+d] = 4, 8
	}
	if err := kv.store([]int32{0}, 0, k, v); err != nil {
		t.Fatal(err)
	}
	a := &attention{kv: kv, heads: 1, scale: 0.5, rows: []int64{1}, kvLengths: []int64{2},
		pageTables: []int32{0}, tablePages: 1, q: q}
	onEachPath(t, func(t *testing.T, p Path) {
		for d, got := range a.run(t, threads(t, 1), p) {
			if math.Abs(float64(got)-5) > 8*attentionTolerance(p) {
				t.Errorf("out[%d] = %v, want 5", d, got)
			}
		}
	})
}

// TestAttentionHeads: query heads 0 to 2 of 6 read KV head 0 of 2, heads 3 to 5 KV head 1.
func TestAttentionHeads(t *testing.T) {
	kv := newKVPages(1, 2, 16, 16)
	k, v := make([]float32, 32), make([]float32, 32)
	for d := range 16 {
		v[d], v[16+d] = 1, 2
	}
	if err := kv.store([]int32{0}, 0, k, v); err != nil {
		t.Fatal(err)
	}
	a := &attention{kv: kv, heads: 6, scale: 1, rows: []int64{1}, kvLengths: []int64{1}, pageTables: []int32{0},
		tablePages: 1, q: make([]float32, 6*16)}
	onEachPath(t, func(t *testing.T, p Path) {
		for i, got := range a.run(t, threads(t, 1), p) {
			if want := float32(1 + i/16/3); got != want {
				t.Errorf("head %d has %v, want %v", i/16, got, want)
			}
		}
	})
}

// TestAttentionSameAnswer: a row has the same bits in a prompt taken whole, in chunks and token by token,
// with others and alone, for any size of page and any number of threads.
func TestAttentionSameAnswer(t *testing.T) {
	const heads, kvHeads, headDim, length = 6, 2, 48, 203
	r := source(5)
	k, v := normals(r, length*kvHeads*headDim, 2), normals(r, length*kvHeads*headDim, 1)
	q := normals(r, length*heads*headDim, 1)
	run := func(t *testing.T, p Path, n, pageTokens, first, rows int) []float32 {
		kv := newKVPages(16, kvHeads, headDim, pageTokens)
		var table []int32
		for i := range (length + pageTokens - 1) / pageTokens {
			table = append(table, int32(15-i))
		}
		if err := kv.store(table, 0, k, v); err != nil {
			t.Fatal(err)
		}
		// The last token alone comes along as a second request.
		a := &attention{kv: kv, heads: heads, scale: 0.2, rows: []int64{int64(rows), 1},
			kvLengths: []int64{int64(first + rows), length}, pageTables: append(table, table...),
			tablePages: len(table)}
		last := q[(length-1)*heads*headDim:]
		a.q = append(append(a.q, q[first*heads*headDim:(first+rows)*heads*headDim]...), last...)
		return a.run(t, threads(t, n), p)
	}
	onEachPath(t, func(t *testing.T, p Path) {
		whole := run(t, p, 1, 16, 0, length)
		for _, c := range []struct{ threads, pageTokens, first, rows int }{
			{2, 16, 0, length}, {3, 32, 0, length}, {1, 80, 0, length}, {2, 16, 0, 1}, {1, 32, 10, 30},
			{2, 16, 40, 35}, {1, 16, 15, 2}, {1, 16, 16, 1}, {2, 64, 63, 12}, {1, 16, 64, 1}, {2, 48, 127, 3},
			{2, 32, 100, 90}, {1, 16, length - 1, 1},
		} {
			got := run(t, p, c.threads, c.pageTokens, c.first, c.rows)
			want := whole[c.first*heads*headDim : (c.first+c.rows)*heads*headDim]
			if at := sameBits(want, got); at >= 0 {
				t.Errorf("%+v: out[%d] = %v, whole %v", c, at, got[at], want[at])
			}
			lastAt := c.rows * heads * headDim
			if at := sameBits(got[lastAt:], whole[len(whole)-heads*headDim:]); at >= 0 {
				t.Errorf("%+v: the other request differs at %d", c, at)
			}
		}
	})
}

// TestAttentionNaN: a query or value that is not a number reaches only rows that see it, and changes no bit
// of any other, those of earlier tokens in the same chunk of a prompt included.
func TestAttentionNaN(t *testing.T) {
	s := shape{"", 4, 2, 32, 16, 0, []int64{10, 2}, []int64{30, 50}}
	width := s.heads * s.headDim
	onEachPath(t, func(t *testing.T, p Path) {
		clean := newAttention(t, s, 6).run(t, threads(t, 1), p)
		check := func(t *testing.T, a *attention, bad func(row, head int) bool) {
			for i, v := range a.run(t, threads(t, 1), p) {
				row, head := i/width, i%width/s.headDim
				if b := bad(row, head); isNaN(v) != b || !b && v != clean[i] {
					t.Fatalf("out[%d] of row %d, head %d is %v, without NaN %v", i, row, head, v, clean[i])
				}
			}
		}
		t.Run("query", func(t *testing.T) {
			a := newAttention(t, s, 6)
			a.q[3*width+1] = float32(math.NaN()) // row 3, head 0
			check(t, a, func(row, head int) bool { return row == 3 && head == 0 })
		})
		t.Run("token", func(t *testing.T) {
			// Token 25 of the first request, which is row 5, at both KV heads.
			a := newAttention(t, s, 6)
			k, v := make([]float32, 2*s.headDim), make([]float32, 2*s.headDim)
			for d := range k {
				k[d], v[d] = float32(math.NaN()), float32(math.NaN())
			}
			if err := a.kv.store(a.pageTables[:a.tablePages], 25, k, v); err != nil {
				t.Fatal(err)
			}
			check(t, a, func(row, _ int) bool { return row >= 5 && row < 10 })
		})
	})
}

// TestAttentionRoundsQueries: AMX takes queries as bf16, rounded to the nearest.
func TestAttentionRoundsQueries(t *testing.T) {
	if !AMX.Available() {
		t.Log("AMX: unavailable on this machine")
		return
	}
	a := newAttention(t, shape{"", 4, 2, 32, 16, 0, []int64{3}, []int64{30}}, 7)
	a.q = normals(source(8), len(a.q), 1)
	given := a.run(t, threads(t, 1), AMX)
	roundToBF16(a.q)
	if at := sameBits(given, a.run(t, threads(t, 1), AMX)); at >= 0 {
		t.Errorf("out[%d] differs from that of rounded queries", at)
	}
}

func TestAttentionMisuse(t *testing.T) {
	good := shape{"", 4, 2, 32, 16, 0, []int64{1}, []int64{20}}
	w := threads(t, 1)
	for _, c := range []struct {
		name  string
		spoil func(*attention)
	}{
		{"page beyond the pool", func(a *attention) { a.pageTables[1] = int32(a.kv.pages) }},
		{"negative page", func(a *attention) { a.pageTables[0] = -1 }},
		{"longer than its table", func(a *attention) { a.kvLengths = []int64{33} }},
		{"more rows than tokens", func(a *attention) { a.rows = []int64{21} }},
		{"no rows", func(a *attention) { a.rows = []int64{0} }},
		{"heads not shared evenly", func(a *attention) { a.heads = 3 }},
		{"fewer heads than KV heads", func(a *attention) { a.heads = 1 }},
		{"head of 24", func(a *attention) { a.kv.headDim = 24 }},
		{"page of 8", func(a *attention) { a.kv.pageTokens = 8 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAttention(t, good, 1)
			c.spoil(a)
			if err := a.attend(w, Plain, make([]float32, len(a.q))); !errors.Is(err, syscall.EINVAL) {
				t.Errorf("%v, want EINVAL", err)
			}
		})
	}
	kv := newKVPages(2, 1, 16, 16)
	err := kv.store([]int32{0}, 16, make([]float32, 16), make([]float32, 16))
	if !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a token beyond the page table: %v, want EINVAL", err)
	}
}
