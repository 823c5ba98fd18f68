package cpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/router"
)

// routers are of sizes that fill blocks, tiles and lanes, and of sizes that do not.
var routers = []router.Shape{
	{Algorithm: router.R2R, Hidden: 64, Top: 32, Width: 128, Blocks: 2, Expanded: 512},
	{Algorithm: router.R2R, Hidden: 60, Top: 10, Width: 40, Blocks: 3, Expanded: 100},
	{Algorithm: router.R2R, Hidden: 17, Top: 100, Width: 33, Blocks: 1, Expanded: 65},
	{Algorithm: router.R2R, Hidden: 256, Top: 100, Width: 256, Blocks: 6, Expanded: 1024},
	{Algorithm: router.CITER, Hidden: 64, Width: 128},
	{Algorithm: router.CITER, Hidden: 37, Width: 75},
	router.PublishedShape(router.CITER, 256),
	{Algorithm: router.CoLLM, Hidden: 64},
	{Algorithm: router.CoLLM, Hidden: 1001},
}

// openRouter opens a folder and gives its network to a device.
func openRouter(t testing.TB, dir string) (*router.Router, *scorer) {
	t.Helper()
	r, err := router.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newScorer(shapeOf(r.Shape))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	for _, part := range r.Tensors {
		if err := s.put(int(part.Part), part.Block, part.Rows, part.Columns, part.Data); err != nil {
			t.Fatal(err)
		}
	}
	return r, s
}

func shapeOf(s router.Shape) routerShape {
	return routerShape{int(s.Algorithm), s.Hidden, s.Top, s.Width, s.Blocks, s.Expanded}
}

func madeRouter(t testing.TB, s router.Shape, seed uint64) (*router.Router, *scorer) {
	t.Helper()
	dir := t.TempDir()
	if err := router.Make(dir, s, seed); err != nil {
		t.Fatal(err)
	}
	return openRouter(t, dir)
}

// judged is what routers look at, for some rows.
type judged struct {
	shape                      router.Shape
	hidden, embeddings, logits []float32
}

func randomJudged(s router.Shape, rows int, seed uint64) judged {
	r := source(seed)
	j := judged{s, normals(r, rows*s.Hidden, 1), normals(r, rows*s.Hidden, 0.5), normals(r, rows*s.Top, 4)}
	for row := range rows {
		logits := j.logits[row*s.Top : (row+1)*s.Top]
		for i := range logits {
			logits[i] += 15
		}
		slices.Sort(logits)
		slices.Reverse(logits)
	}
	return j
}

// part has rows from to to - 1.
func (j judged) part(from, to int) judged {
	h, z := j.shape.Hidden, j.shape.Top
	return judged{j.shape, j.hidden[from*h : to*h], j.embeddings[from*h : to*h], j.logits[from*z : to*z]}
}

func (j judged) rows() int { return len(j.hidden) / j.shape.Hidden }

func (s *scorer) scores(t testing.TB, w *workers, p Path, j judged) []float64 {
	t.Helper()
	scores := make([]float64, j.rows())
	if err := s.evaluate(w, p, j.hidden, j.embeddings, j.logits, scores); err != nil {
		t.Fatal(err)
	}
	return scores
}

// exactScores has the scores in double, from matrices rounded to bf16.
func exactScores(r *router.Router, j judged) []float64 {
	for _, part := range r.Tensors {
		if part.Part.Matrix() {
			for i, x := range part.Data {
				part.Data[i] = model.FromBF16(model.ToBF16(x))
			}
		}
	}
	scores := make([]float64, j.rows())
	for i := range scores {
		row := j.part(i, i+1)
		scores[i] = r.Score(row.hidden, row.embeddings, row.logits)
	}
	return scores
}

func TestRouterAgainstDouble(t *testing.T) {
	w := threads(t, 2)
	for i, shape := range routers {
		r, s := madeRouter(t, shape, uint64(i))
		j := randomJudged(shape, 35, uint64(i))
		want := exactScores(r, j)
		t.Run(shape.String(), func(t *testing.T) {
			onEachPath(t, func(t *testing.T, p Path) { checkScores(t, shape, s.scores(t, w, p, j), want) })
		})
	}
}

func checkScores(t *testing.T, s router.Shape, got, want []float64) {
	t.Helper()
	tolerance := routerTolerance()
	if s.Algorithm == router.CoLLM {
		tolerance = deferralTolerance()
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tolerance) {
			t.Fatalf("score of row %d is %v, want %v within %v", i, got[i], want[i], tolerance)
		}
	}
}

// TestRouterAsPyTorch: a folder written from a state_dict scores as the PyTorch module does;
// exec/model/router/testdata/make.py has the modules.
func TestRouterAsPyTorch(t *testing.T) {
	w := threads(t, 2)
	folder := filepath.Join("..", "model", "router", "testdata")
	text, err := os.ReadFile(filepath.Join(folder, "scores.json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Hidden, Embeddings, Logits [][]float32
		R2R, CITER, CoLLM          []float64
	}
	if err := json.Unmarshal(text, &golden); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		algorithm router.Algorithm
		want      []float64
	}{{router.R2R, golden.R2R}, {router.CITER, golden.CITER}, {router.CoLLM, golden.CoLLM}} {
		r, s := openRouter(t, filepath.Join(folder, c.algorithm.String()))
		j := judged{shape: r.Shape, hidden: slices.Concat(golden.Hidden...)}
		if r.Shape.Algorithm == router.R2R {
			j.embeddings, j.logits = slices.Concat(golden.Embeddings...), slices.Concat(golden.Logits...)
		}
		t.Run(c.algorithm.String(), func(t *testing.T) {
			onEachPath(t, func(t *testing.T, p Path) { checkScores(t, r.Shape, s.scores(t, w, p, j), c.want) })
		})
	}
}

// TestRouterSameAnswerInAnyBatch: a row has the same score alone, in every batch, on any number of threads.
func TestRouterSameAnswerInAnyBatch(t *testing.T) {
	const rowsMax = 40
	pools := []*workers{threads(t, 1), threads(t, 2), threads(t, 3)}
	for i, shape := range routers {
		_, s := madeRouter(t, shape, uint64(i))
		j := randomJudged(shape, rowsMax, uint64(i))
		t.Run(shape.String(), func(t *testing.T) {
			onEachPath(t, func(t *testing.T, p Path) {
				var alone []float64
				for row := range rowsMax {
					alone = append(alone, s.scores(t, pools[0], p, j.part(row, row+1))...)
				}
				for _, rows := range []int{2, 16, 17, 33, rowsMax} {
					for _, w := range pools {
						if got := s.scores(t, w, p, j.part(0, rows)); !slices.Equal(got, alone[:rows]) {
							t.Fatalf("%d rows: %v, alone %v", rows, got, alone[:rows])
						}
					}
				}
			})
		})
	}
}

// TestRouterNaNStaysInItsRow: a row with NaN in anything that is read scores NaN, the others as before.
func TestRouterNaNStaysInItsRow(t *testing.T) {
	const rows, bad = 20, 7
	nan := float32(math.NaN())
	for i, shape := range routers {
		_, s := madeRouter(t, shape, uint64(i))
		inputs := []func(j judged) *float32{func(j judged) *float32 { return &j.hidden[bad*shape.Hidden+3] }}
		if shape.Algorithm == router.R2R {
			inputs = append(inputs, func(j judged) *float32 { return &j.embeddings[(bad+1)*shape.Hidden-1] },
				func(j judged) *float32 { return &j.logits[bad*shape.Top] })
		}
		t.Run(shape.String(), func(t *testing.T) {
			onEachPath(t, func(t *testing.T, p Path) {
				want := s.scores(t, threads(t, 2), p, randomJudged(shape, rows, 1))
				for _, at := range inputs {
					j := randomJudged(shape, rows, 1)
					*at(j) = nan
					for row, score := range s.scores(t, threads(t, 2), p, j) {
						if row == bad && score == score || row != bad && score != want[row] {
							t.Fatalf("score of row %d is %v, without NaN in row %d %v", row, score, bad, want[row])
						}
					}
				}
			})
		})
	}
}

// TestRouterR2RInputs: hidden state and embedding have their places, and logits are raw: any order of the
// vocabulary gives the same score, one constant more another.
func TestRouterR2RInputs(t *testing.T) {
	shape := routers[0]
	_, s := madeRouter(t, shape, 5)
	w := threads(t, 2)
	best := func(p Path, z []float32) []float32 {
		_, logits, err := top(p, z, shape.Top)
		if err != nil {
			t.Fatal(err)
		}
		return logits
	}
	onEachPath(t, func(t *testing.T, p Path) {
		j := randomJudged(shape, 1, 2)
		z := normals(source(3), 1000, 5)
		score := func(hidden, embeddings, logits []float32) float64 {
			return s.scores(t, w, p, judged{shape, hidden, embeddings, logits})[0]
		}
		base := score(j.hidden, j.embeddings, best(p, z))
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(z), func(i, j int) { z[i], z[j] = z[j], z[i] })
		if got := score(j.hidden, j.embeddings, best(p, z)); got != base {
			t.Errorf("vocabulary in another order: %v, want %v", got, base)
		}
		for i := range z {
			z[i] += 20
		}
		if got := score(j.hidden, j.embeddings, best(p, z)); math.Abs(got-base) < routerTolerance() {
			t.Errorf("all logits 20 higher: %v, as before", got)
		}
		if got := score(j.embeddings, j.hidden, best(p, z)); math.Abs(got-base) < routerTolerance() {
			t.Errorf("hidden state and embedding exchanged: %v, as before", got)
		}
	})
}

func TestRouterMisuse(t *testing.T) {
	for _, s := range []routerShape{
		{}, {kind: 4, hidden: 8}, {kind: 3}, {kind: 3, hidden: 8, width: 8}, {kind: 2, hidden: 8},
		{kind: 2, hidden: 8, width: 8, top: 1}, {1, 8, 4, 8, 0, 8}, {1, 8, 4, 8, 1025, 8}, {1, 8, 4, 8, 1, -8},
		{1, 8, 0, 8, 1, 8}, {1, 1 << 21, 4, 8, 1, 8},
	} {
		if _, err := newScorer(s); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%+v: %v, want EINVAL", s, err)
		}
	}
	s, err := newScorer(routerShape{2, 8, 0, 16, 0, 0})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	first, bias := int(router.First), int(router.FirstBias)
	for _, c := range []struct{ tensor, block, rows, columns int }{
		{first, 0, 8, 16}, {first, 1, 16, 8}, {first, -1, 16, 8}, {bias, 0, 16, 1}, {int(router.Second), 0, 8, 16},
		{0, 0, 1, 1}, {17, 0, 1, 1},
	} {
		data := make([]float32, c.rows*c.columns)
		if err := s.put(c.tensor, c.block, c.rows, c.columns, data); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("tensor %+v: %v, want EINVAL", c, err)
		}
	}
	w := threads(t, 1)
	scores := make([]float64, 1)
	for range 2 { // twice: a tensor put again counts once
		if err := s.put(first, 0, 16, 8, make([]float32, 128)); err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range []struct{ tensor, columns int }{{bias, 16}, {int(router.Output), 16}} {
		if err := s.put(part.tensor, 0, 1, part.columns, make([]float32, part.columns)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.evaluate(w, Plain, make([]float32, 8), nil, nil, scores); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("without the last bias: %v, want EINVAL", err)
	}
	if err := s.put(int(router.OutputBias), 0, 1, 1, []float32{1}); err != nil {
		t.Fatal(err)
	}
	err = s.evaluate(w, Plain, make([]float32, 8), nil, nil, scores)
	if err != nil || math.Abs(scores[0]-0.731058579) > 1e-9 { // sigmoid(1)
		t.Errorf("all zero but the last bias of 1: %v, %v, want 0.731058579", scores[0], err)
	}
}

// TestRouterBytes: published sizes, two bytes a weight of a matrix, four of a vector.
func TestRouterBytes(t *testing.T) {
	matrices := 1024*128 + 1024*3*1024 + 1024*1024 + 6*2*1024*4096 // the 100 logits are filled up to 128
	vectors := 3*1024 + 6*(2*1024+4096+1024) + 3*1024 + 64
	for _, c := range []struct {
		shape router.Shape
		want  int
	}{
		{router.PublishedShape(router.R2R, 1024), 2*matrices + 4*vectors},
		{router.PublishedShape(router.CITER, 1024), 2*2048*1024 + 4*(2*2048+64)},
		{router.PublishedShape(router.CoLLM, 1024), 4 * 1024},
	} {
		if got := shapeOf(c.shape).weightBytes(); got != c.want {
			t.Errorf("%v takes %d bytes, want %d", c.shape, got, c.want)
		}
	}
}

// TestGELU: x times the normal law's mass below x, to bf16's rounding, far into both tails.
func TestGELU(t *testing.T) {
	var x, bias []float32
	for i := range 4096 {
		x = append(x, float32(i-2048)/170)
		bias = append(bias, float32(i%7)/50)
	}
	want := make([]float64, len(x))
	for i := range x {
		v := float64(x[i] + bias[i])
		want[i] = v * math.Erfc(-v/math.Sqrt2) / 2
	}
	onEachPath(t, func(t *testing.T, p Path) {
		got, err := gelu(p, x, bias)
		if err != nil {
			t.Fatal(err)
		}
		near(t, got, want)
		inf := float32(math.Inf(1))
		ends := []float32{inf, float32(math.NaN()), 0, 40, -40, 1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		if got, err = gelu(p, ends, make([]float32, len(ends))); err != nil {
			t.Fatal(err)
		}
		if fromBF16(got[0]) != inf || !isNaN(fromBF16(got[1])) {
			t.Errorf("of infinity and NaN: %v, %v", fromBF16(got[0]), fromBF16(got[1]))
		}
		// gelu(1) = 0.841344746, gelu(-1) = -0.158655254.
		near(t, got[2:7], []float64{0, 40, 0, 0.841344746, -0.158655254})
	})
}

// TestLayerNormByHand: (1, 2, 3, 6) has mean 3 and variance 3.5.
func TestLayerNormByHand(t *testing.T) {
	root := math.Sqrt(3.5 + 1e-5)
	want := []float64{-2/root + 1, -1/root*2 + 1, 0, 3 / root * 3}
	onEachPath(t, func(t *testing.T, p Path) {
		got, err := layerNorm(p, []float32{1, 2, 3, 6}, []float32{1, 2, 5, 3}, []float32{1, 1, 0, 0})
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range want {
			if math.Abs(float64(got[i])-v) > 1e-6 {
				t.Errorf("out[%d] = %v, want %v", i, got[i], v)
			}
		}
	})
}

// TestRouterSanitized runs routers with buffers of exactly the size that they ask for.
func TestRouterSanitized(t *testing.T) {
	sources := []string{filepath.Join("testdata", "check_router.cpp")}
	for _, pattern := range []string{"router*.cpp", "gemm.cpp", "gemm_a*.cpp", "packed.cpp", "paths.cpp",
		"workers.cpp", "zeroed_memory.cpp"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, files...)
	}
	watchTestdata(t)
	for _, kind := range []string{"address,undefined", "thread"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if why := cannot(t, kind); why != "" {
				t.Logf("-fsanitize=%s is unavailable on this machine: %s", kind, why)
				return
			}
			output, err := build(t, kind, sources)
			if err != nil || output != "ok\n" {
				t.Errorf("%v: %s", err, output)
			}
		})
	}
}

// BenchmarkRouter compares R2R's published network, d = 1024, with a pure read of as many bytes. Report:
// read-ratio is time over the time of the read.
func BenchmarkRouter(b *testing.B) {
	shape := router.PublishedShape(router.R2R, 1024)
	_, s := madeRouter(b, shape, 1)
	bytes := shapeOf(shape).weightBytes()
	read, err := newWeights(bytes/2/1024, 1024, make([]uint16, bytes/2/1024*1024))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(read.close)
	counts := []int{1, 8, 16}
	for _, n := range []int{1, 2} {
		w := threads(b, n)
		b.Run(fmt.Sprintf("threads=%d/%v", n, Best()), func(b *testing.B) {
			calls := []func(int) error{func(int) error { _, err := stream(w, read); return err }}
			for _, rows := range counts {
				j, scores := randomJudged(shape, rows, 1), make([]float64, rows)
				calls = append(calls, func(int) error {
					return s.evaluate(w, Best(), j.hidden, j.embeddings, j.logits, scores)
				})
			}
			shortest := best(b, 2, calls...)
			for b.Loop() {
				shortest = best(b, 30, calls...)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(bytes)/float64(shortest[0]), "read-GB/s")
			for i, rows := range counts {
				b.ReportMetric(float64(shortest[i+1])/float64(shortest[0]), fmt.Sprintf("read-ratio-M%d", rows))
			}
		})
	}
}
