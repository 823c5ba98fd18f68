package query

import (
	"fmt"
	"math"
	"strings"

	"tokenrouter/exec/model"
)

// labelCount is how many labels classifiers have: a win of the large model, a tie, a loss. win is the place
// of the first.
const labelCount, win = 3, 0

// The rows of P.weight.
const smallRow, largeRow = 0, 1

// scorer reads the tensors of the kind and returns what scores a prompt.
func (m *metadata) scorer(t *tensors, small *model.Folder) (func(ids []int32) float64, error) {
	switch m.kind {
	case MF:
		return m.factorisation(t, small)
	case SW:
		return m.ranking(t, small)
	case BERT:
		return m.bidirectional(t)
	case Causal:
		return m.labeller(t, small)
	}
	panic(fmt.Sprintf("query: no scores of %v", m.kind))
}

// embedding returns what makes the embedding of a prompt.
func (m *metadata) embedding(t *tensors, small *model.Folder) (func(ids []int32) []float64, error) {
	centre := t.take("embedding.mean", int64(m.hidden))
	deviation := t.take("embedding.deviation", int64(m.hidden))
	for i, d := range deviation {
		if d <= 0 {
			return nil, fmt.Errorf("tensor embedding.deviation has %v at place %d, want numbers above 0", d, i)
		}
	}
	c := small.Config
	c.Layers = m.embeddingLayers
	e := newEncoder(c, true, weightsOf(small))
	return func(ids []int32) []float64 {
		q := mean(e.stream(ids, 0))
		for i := range q {
			q[i] = (q[i] - float64(centre[i])) / float64(deviation[i])
		}
		return append(q, 1)
	}, t.err
}

// weightsOf are the weights of an open folder in float32.
func weightsOf(folder *model.Folder) func(name string) []float32 {
	return func(name string) []float32 {
		tensor, ok := folder.Lookup(name)
		if !ok {
			panic(fmt.Sprintf("query: %s has no tensor %s", folder.Dir, name)) // model.Open has seen it
		}
		data := make([]float32, tensor.Elements())
		model.ToFloat32(data, folder.Bytes(tensor), tensor.DType)
		return data
	}
}

// factorisation is mf. With two models its score is the logistic of one row times the embedding.
func (m *metadata) factorisation(t *tensors, small *model.Folder) (func(ids []int32) float64, error) {
	embed, err := m.embedding(t, small)
	if err != nil {
		return nil, err
	}
	width, size := int64(m.width), int64(m.hidden+1)
	models, project := t.take("P.weight", 2, width), t.take("text_proj.0.weight", width, size)
	classify := t.take("classifier.0.weight", 1, width)
	if t.err != nil {
		return nil, t.err
	}
	row := make([]float64, size)
	points := [2][]float64{smallRow: unit(models[:width]), largeRow: unit(models[width:])}
	for k, c := range classify {
		weight := float64(c) * (points[largeRow][k] - points[smallRow][k])
		for i := range row {
			row[i] += weight * float64(project[k*len(row)+i])
		}
	}
	return func(ids []int32) float64 { return 1 / (1 + math.Exp(-dot(row, embed(ids)))) }, nil
}

// ranking is sw.
func (m *metadata) ranking(t *tensors, small *model.Folder) (func(ids []int32) float64, error) {
	embed, err := m.embedding(t, small)
	if err != nil {
		return nil, err
	}
	size := m.hidden + 1
	points := t.take("battles.embedding", int64(m.battles), int64(size))
	outcomes := t.take("battles.outcome", int64(m.battles))
	for i, y := range outcomes {
		if y != 0 && y != 0.5 && y != 1 {
			return nil, fmt.Errorf("tensor battles.outcome has %v at place %d, want 0, 0.5 or 1", y, i)
		}
	}
	if t.err != nil {
		return nil, t.err
	}
	stored := make([][]float64, m.battles)
	for i := range stored {
		stored[i] = unit(points[i*size : (i+1)*size])
	}
	return func(ids []int32) float64 {
		similar := make([]float64, len(stored))
		q, most := embed(ids), math.Inf(-1)
		for i, point := range stored {
			similar[i] = dot(point, q) // the length of q cancels
			most = math.Max(most, similar[i])
		}
		return winRate(similar, most, outcomes)
	}, nil
}

// winRate weights battles by their similarity to a prompt.
func winRate(similar []float64, most float64, outcomes []float32) float64 {
	won, all := 0.0, 0.0
	for i, s := range similar {
		weight := 10.0
		if most > 0 {
			weight *= math.Pow(10, s/most)
		}
		won += weight * float64(outcomes[i])
		all += weight
	}
	return won / all
}

// The constants of bert's encoder that its folder does not name.
const bertEpsilon, bertTheta = 1e-6, 10000

// bidirectional is bert.
func (m *metadata) bidirectional(t *tensors) (func(ids []int32) float64, error) {
	c := model.Config{Architecture: model.Qwen3, Layers: m.layers, Hidden: m.width, Heads: m.heads,
		KVHeads: m.heads, HeadDim: m.width / m.heads, Intermediate: m.intermediate, Vocab: m.vocab,
		NormEpsilon: bertEpsilon, Tied: true, QKNorm: true,
		Rope: model.Rope{Theta: bertTheta, Scaling: model.RopeUnscaled, AttentionFactor: 1}}
	shapes := map[string][]int64{}
	for _, e := range c.Expected() {
		shapes[e.Name] = e.Shape
	}
	e := newEncoder(c, false, func(name string) []float32 { return t.take(name, shapes[name]...) })
	weight := t.take("classifier.weight", labelCount, int64(m.width))
	bias := t.take("classifier.bias", labelCount)
	return func(ids []int32) float64 {
		x, logits := mean(e.states(ids, 0)), [labelCount]float64{}
		for i := range logits {
			logits[i] = float64(bias[i]) + dot(widened(weight[i*m.width:(i+1)*m.width]), x)
		}
		softmax(logits[:])
		return logits[win]
	}, t.err
}

// labeller is causal.
func (m *metadata) labeller(t *tensors, small *model.Folder) (func(ids []int32) float64, error) {
	own := weightsOf(small)
	e := newEncoder(small.Config, true, func(name string) []float32 {
		data := own(name)
		if stem := strings.TrimSuffix(name, ".weight"); strings.HasSuffix(stem, "_proj") {
			tensor, _ := small.Lookup(name)
			m.change(t, stem, data, tensor.Shape)
		}
		return data
	})
	labels := t.take("labels.weight", labelCount, int64(m.hidden))
	return func(ids []int32) float64 {
		x, logits := widened(e.states(ids, len(ids)-1).data), [labelCount]float64{}
		for i := range logits {
			logits[i] = dot(widened(labels[i*m.hidden:(i+1)*m.hidden]), x)
		}
		softmax(logits[:])
		return logits[win]
	}, t.err
}

// change adds a matrix's change of low rank to it.
func (m *metadata) change(t *tensors, stem string, matrix []float32, shape []int64) {
	out, in := int(shape[0]), int(shape[1])
	a := t.take(stem+".lora_A", int64(m.rank), int64(in))
	b := t.take(stem+".lora_B", int64(out), int64(m.rank))
	if t.err != nil {
		return
	}
	for o := range out {
		row := matrix[o*in : (o+1)*in]
		for k := range m.rank {
			scale := b[o*m.rank+k]
			for i, x := range a[k*in : (k+1)*in] {
				row[i] += scale * x
			}
		}
	}
}

// unit is a row of length 1; a row of zeros stays.
func unit(x []float32) []float64 {
	y := widened(x)
	if length := math.Sqrt(dot(y, y)); length > 0 {
		for i := range y {
			y[i] /= length
		}
	}
	return y
}

func dot(x, y []float64) float64 {
	sum := 0.0
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

func widened(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}
