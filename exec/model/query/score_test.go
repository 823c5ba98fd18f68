package query

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/reference"
)

// scoreTolerance is how far a score in float32 may be from the one in float64.
const scoreTolerance = 2e-6

var kinds = []Kind{MF, SW, BERT, Causal}

// golden is testdata/scores.json: scores that PyTorch computes in float64; testdata/make.py has the networks.
type golden struct {
	Prompts [][]int32
	scores  map[Kind][]float64
}

func readGolden(t *testing.T) golden {
	t.Helper()
	text, err := os.ReadFile("testdata/scores.json")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]json.RawMessage
	g := golden{scores: map[Kind][]float64{}}
	if err := json.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(values["prompts"], &g.Prompts); err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		var scores []float64
		if err := json.Unmarshal(values[k.String()], &scores); err != nil {
			t.Fatal(err)
		}
		if len(scores) != 8 || len(g.Prompts) != 8 {
			t.Fatalf("%d scores of %v for %d prompts, want 8", len(scores), k, len(g.Prompts))
		}
		g.scores[k] = scores
	}
	return g
}

func folderOf(k Kind) string { return filepath.Join("testdata", k.String()) }

func open(t testing.TB, dir string) *Router {
	t.Helper()
	r, err := Open(dir, "testdata/small")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestScoreAsPyTorch: folders that the training scripts write score as the networks that they come from, over
// prompts of 1 to 34 tokens.
func TestScoreAsPyTorch(t *testing.T) {
	g := readGolden(t)
	for _, k := range kinds {
		t.Run(k.String(), func(t *testing.T) {
			r := open(t, folderOf(k))
			for i, want := range g.scores[k] {
				got, err := r.Score(g.Prompts[i])
				if err != nil || !(math.Abs(got-want) <= scoreTolerance) {
					t.Errorf("prompt %d scores %v (%v), want %v", i, got, err, want)
				}
			}
		})
	}
}

// TestScoreTogether: a score has the same bits whatever else is scored at the same time.
func TestScoreTogether(t *testing.T) {
	g := readGolden(t)
	for _, k := range kinds {
		r := open(t, folderOf(k))
		alone := make([]float64, len(g.Prompts))
		for i, ids := range g.Prompts {
			alone[i], _ = r.Score(ids)
		}
		var all sync.WaitGroup
		for range 4 {
			for i, ids := range g.Prompts {
				all.Go(func() {
					if got, err := r.Score(ids); got != alone[i] || err != nil {
						t.Errorf("%v: prompt %d scores %v (%v) among others, want %v", k, i, got, err, alone[i])
					}
				})
			}
		}
		all.Wait()
	}
}

// TestEncoder: hidden states are those of package reference, which has its own test against Hugging Face
// transformers; the last alone too.
func TestEncoder(t *testing.T) {
	small, err := model.Open("testdata/small")
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	e := newEncoder(small.Config, true, weightsOf(small))
	for _, ids := range readGolden(t).Prompts {
		_, want := reference.Of(small).Logits(ids)
		got := e.states(ids, 0)
		if got.count() != len(ids) {
			t.Fatalf("%d states of %d tokens", got.count(), len(ids))
		}
		last := e.states(ids, len(ids)-1)
		for i, row := range want {
			for k, w := range row {
				if g := float64(got.row(i)[k]); !(math.Abs(g-w) <= 1e-5) {
					t.Fatalf("%d tokens: number %d of state %d is %v, want %v", len(ids), k, i, g, w)
				}
				if g := float64(last.row(0)[k]); i == len(ids)-1 && !(math.Abs(g-w) <= 1e-5) {
					t.Fatalf("%d tokens: number %d of the last state alone is %v, want %v", len(ids), k, g, w)
				}
			}
		}
	}
}

// TestEncoderBothWays: in bert the first token sees the last, in a causal model it does not.
func TestEncoderBothWays(t *testing.T) {
	small, err := model.Open("testdata/small")
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	for _, causal := range []bool{true, false} {
		e := newEncoder(small.Config, causal, weightsOf(small))
		a, b := e.states([]int32{1, 2, 3}, 0).row(0), e.states([]int32{1, 2, 4}, 0).row(0)
		differ := 0.0
		for i := range a {
			differ += math.Abs(float64(a[i] - b[i]))
		}
		if (differ == 0) != causal {
			t.Errorf("causal %v: another last token changes the first one's state by %v", causal, differ)
		}
	}
}

// TestWinRate, by hand: similarities 1, 0.5, 0 of at most 1 weigh 100, 10^1.5 = 31.62 and 10; with a win, a
// tie and a loss, (100 + 15.811) / 141.623 = 0.8177455.
func TestWinRate(t *testing.T) {
	outcomes := []float32{1, 0.5, 0}
	for _, c := range []struct {
		name    string
		similar []float64
		want    float64
	}{
		{"falling", []float64{1, 0.5, 0}, 0.8177455},
		{"of other lengths", []float64{4, 2, 0}, 0.8177455},
		// 100, 10 and 1.
		{"against", []float64{0.5, 0, -0.5}, 105.0 / 111},
		{"none above 0", []float64{-1, -2, 0}, 0.5},
	} {
		got := winRate(c.similar, max(c.similar[0], c.similar[1], c.similar[2]), outcomes)
		if math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestWinRateIsBradleyTerry: the win rate is where the gradient of all weighted battles' likelihood is 0
// for ratings of two models, features of ln 10 and ties as two halves, as RouteLLM's regression has them.
func TestWinRateIsBradleyTerry(t *testing.T) {
	similar, outcomes := []float64{0.9, 0.1, -0.3, 0.7, 0.2}, []float32{1, 0.5, 0, 0.5, 1}
	weights := make([]float64, len(similar))
	for i, s := range similar {
		weights[i] = 10 * math.Pow(10, s/0.9)
	}
	difference := 0.0 // of the coefficients; found by Newton's method
	for range 50 {
		p := 1 / (1 + math.Exp(-difference*math.Ln10))
		gradient, curvature := 0.0, 0.0
		for i, w := range weights {
			gradient += w * (float64(outcomes[i]) - p) * math.Ln10
			curvature += w * p * (1 - p) * math.Ln10 * math.Ln10
		}
		difference += gradient / curvature
	}
	large, small := 400*difference+1000, 1000.0
	want := 1 - 1/(1+math.Pow(10, (large-small)/400))
	if got := winRate(similar, 0.9, outcomes); math.Abs(got-want) > 1e-12 {
		t.Errorf("win rate %v, want %v from ratings %v and %v", got, want, large, small)
	}
}

// TestMirroredFactorisation: if the models change places, so do their chances: the sum is 1.
func TestMirroredFactorisation(t *testing.T) {
	f := contentOf(t, MF)
	rate, err := open(t, folderOf(MF)).Score([]int32{3, 1, 4})
	if err != nil {
		t.Fatal(err)
	}
	models := f.data["P.weight"]
	f.data["P.weight"] = append(append([]float32(nil), models[len(models)/2:]...), models[:len(models)/2]...)
	mirrored, err := open(t, f.folder(t)).Score([]int32{3, 1, 4})
	if err != nil || math.Abs(rate+mirrored-1) > 1e-12 {
		t.Errorf("%v and %v (%v), want a sum of 1", rate, mirrored, err)
	}
}

// TestScoreRefuses: prompts that no model is given.
func TestScoreRefuses(t *testing.T) {
	for _, k := range kinds {
		r := open(t, folderOf(k))
		for _, c := range []struct {
			name string
			ids  []int32
			want string
		}{
			{"empty", nil, "0 tokens, want 1 to 1024"},
			{"too long", make([]int32, 1025), "1025 tokens, want 1 to 1024"},
			{"above the vocabulary", []int32{1, 48}, "token 48 at position 1, want 0 to 47"},
			{"negative", []int32{-1}, "token -1 at position 0, want 0 to 47"},
		} {
			if score, err := r.Score(c.ids); err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), r.Dir) {
				t.Errorf("%v, %s: %v (%v), want an error with %q and the folder", k, c.name, score, err, c.want)
			}
		}
	}
}

// TestScoreOverflows: weights that are numbers can still give none.
func TestScoreOverflows(t *testing.T) {
	f := contentOf(t, BERT)
	for i := range f.data["classifier.weight"] {
		f.data["classifier.weight"][i] = math.MaxFloat32
	}
	for i := range f.data["model.norm.weight"] {
		f.data["model.norm.weight"][i] = math.MaxFloat32
	}
	r := open(t, f.folder(t))
	if score, err := r.Score([]int32{1, 2}); err == nil || !strings.Contains(err.Error(), "overflow") {
		t.Errorf("score %v (%v), want an error", score, err)
	}
}

// TestThreshold: quantiles as numpy gives them for 0, 0.25, 0.5 ... of the way between stored ones.
func TestThreshold(t *testing.T) {
	quantiles := make([]float64, quantileCount)
	for i := range quantiles {
		quantiles[i] = float64(i*i) / 1e4
	}
	r := &Router{Dir: "r", quantiles: map[string][]float64{"arith": quantiles, "symbols": quantiles}}
	for _, c := range []struct{ share, want float64 }{
		{0, ThresholdMax}, {1, 0}, {0.5, 0.25}, {0.01, 0.9801}, {0.99, 0.0001}, {0.25, 0.5625},
		{0.005, (0.9801 + 1) / 2}, {0.9975, 0.000025}, {1e-12, 1},
	} {
		if got, err := r.Threshold("arith", c.share); err != nil || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("share %v: %v (%v), want %v", c.share, got, err, c.want)
		}
	}
	for _, share := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		if got, err := r.Threshold("arith", share); err == nil || !strings.Contains(err.Error(), "want 0 to 1") {
			t.Errorf("share %v: %v (%v), want an error", share, got, err)
		}
	}
	if _, err := r.Threshold("chess", 0.5); err == nil || !strings.Contains(err.Error(), `"chess"`) ||
		!strings.Contains(err.Error(), "arith, symbols") {
		t.Errorf("unknown task: %v, want an error with both names", err)
	}
}

// BenchmarkEncoder has what takes the time of a score: the passes of models as large as arith-small, for the
// embedding of mf and sw and for causal, and as the bert router for it, over a prompt of 42 tokens.
func BenchmarkEncoder(b *testing.B) {
	small := model.Config{Architecture: model.Qwen3, Layers: 3, Hidden: 192, Heads: 3, KVHeads: 1, HeadDim: 64,
		Intermediate: 576, Vocab: 384, NormEpsilon: 1e-6, Tied: true, QKNorm: true,
		Rope: model.Rope{Theta: 10000, Scaling: model.RopeUnscaled, AttentionFactor: 1}}
	first, bert := small, small
	first.Layers = 1
	bert.Layers, bert.Hidden, bert.Heads, bert.KVHeads, bert.Intermediate = 2, 128, 2, 2, 256
	ids := make([]int32, 42)
	for i := range ids {
		ids[i] = int32(i * 7 % 374)
	}
	for _, c := range []struct {
		name   string
		config model.Config
		causal bool
		first  int
	}{{"embedding", first, true, 0}, {"causal", small, true, len(ids) - 1}, {"bert", bert, false, 0}} {
		shapes := map[string][]int64{}
		for _, e := range c.config.Expected() {
			shapes[e.Name] = e.Shape
		}
		random := rand.New(rand.NewPCG(1, 2))
		e := newEncoder(c.config, c.causal, func(name string) []float32 {
			size := int64(1)
			for _, n := range shapes[name] {
				size *= n
			}
			data := make([]float32, size)
			for i := range data {
				data[i] = random.Float32() - 0.5
			}
			return data
		})
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				e.states(ids, c.first)
			}
		})
	}
}
