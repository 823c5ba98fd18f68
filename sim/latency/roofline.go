package latency

import "fmt"

// Efficiencies that RooflineSpec takes when it names none. They are assumptions, not measurements: large
// matrix products reach 60 to 75 % of the tensor peak and streaming kernels 75 to 90 % of the memory
// peak on these devices. Calibrate with FitAffine where the answer matters.
const (
	DefaultFlopsEfficiency  = 0.7
	DefaultMemoryEfficiency = 0.8
)

// RooflineSpec says what a Roofline is made of. Zero fields take the stated default.
type RooflineSpec struct {
	Shape            Dimensions
	Device           Device
	Parallel         int     // tensor-parallel devices that share every layer; default 1
	WeightBytes      float64 // bytes a weight: 2 for bf16 (default), 1 for 8 bit, 0.5 for 4 bit
	KVBytes          int     // bytes a KV element; default 2
	FlopsEfficiency  float64 // share of the tensor peak that is reached; DefaultFlopsEfficiency
	MemoryEfficiency float64 // share of the memory peak that is reached; DefaultMemoryEfficiency
	LaunchNs         int64   // time a step takes beyond its arithmetic: kernel or graph launches; default 0
	ExchangeNs       int64   // latency of one all-reduce of a parallel layer, two a layer; default 0
}

// Roofline derives a step time from dimensions and peaks. A step is two phases, each as long as the
// slower of its arithmetic and its memory traffic:
//
//   - matrices: weights read once a step, 2 flops a weight and fresh token; the output head works on one
//     token a row;
//   - attention: keys and values of context and fresh tokens read once, 4 flops a head, head element and
//     pair of fresh and attended token. Only sums over rows are known, so rows are taken as equal.
//
// To this come LaunchNs and, with more than one device, two all-reduces of the hidden states a layer.
// Norms, rotations, sampling and the router are not in the model; put them in LaunchNs or Overhead.
type Roofline struct {
	matrixFlopsPerToken float64 // without the head
	headFlopsPerRow     float64
	attendFlopsPerPair  float64
	weightNs            float64 // memory time of the matrix phase
	kvBytesPerToken     float64
	nsPerFlop           float64
	nsPerByte           float64
	nsPerKVByte         float64
	exchangeNsPerToken  float64
	fixedNs             float64
	weightBytesTotal    int64
}

// NewRoofline checks a spec and prepares its model.
func NewRoofline(spec RooflineSpec) (*Roofline, error) {
	spec = spec.withDefaults()
	if err := spec.check(); err != nil {
		return nil, err
	}
	d, parallel := spec.Shape, float64(spec.Parallel)
	r := &Roofline{
		matrixFlopsPerToken: 2 * float64(int64(d.Layers)*d.layerMatrices()),
		headFlopsPerRow:     2 * float64(d.embedding()),
		attendFlopsPerPair:  4 * float64(d.Heads) * float64(d.HeadDim) * float64(d.Layers),
		kvBytesPerToken:     float64(d.KVBytesPerToken(spec.KVBytes)),
		nsPerFlop:           1e9 / (spec.Device.FlopsPerSecond * spec.FlopsEfficiency * parallel),
		nsPerByte:           1e9 / (spec.Device.BytesPerSecond * spec.MemoryEfficiency * parallel),
		fixedNs:             float64(spec.LaunchNs),
		weightBytesTotal:    int64(float64(d.Parameters()) * spec.WeightBytes),
	}
	// Beyond one device a KV head, the heads are copied and more devices read no less each.
	r.nsPerKVByte = r.nsPerByte * parallel / float64(min(spec.Parallel, d.KVHeads))
	r.weightNs = float64(d.StepWeights()) * spec.WeightBytes * r.nsPerByte
	if spec.Parallel > 1 {
		// A ring all-reduce sends 2 (n-1)/n of the data; activations are 2 bytes an element.
		reduces := 2 * float64(d.Layers)
		bytes := 2 * float64(d.Hidden) * 2 * (parallel - 1) / parallel
		r.exchangeNsPerToken = reduces * bytes * 1e9 / (spec.Device.LinkBytesPerSecond * spec.MemoryEfficiency)
		r.fixedNs += reduces * float64(spec.ExchangeNs)
	}
	return r, nil
}

func (s RooflineSpec) withDefaults() RooflineSpec {
	if s.Parallel == 0 {
		s.Parallel = 1
	}
	if s.WeightBytes == 0 {
		s.WeightBytes = 2
	}
	if s.KVBytes == 0 {
		s.KVBytes = 2
	}
	if s.FlopsEfficiency == 0 {
		s.FlopsEfficiency = DefaultFlopsEfficiency
	}
	if s.MemoryEfficiency == 0 {
		s.MemoryEfficiency = DefaultMemoryEfficiency
	}
	return s
}

func (s RooflineSpec) check() error {
	if err := s.Shape.check(); err != nil {
		return err
	}
	if err := s.Device.check(s.Parallel > 1); err != nil {
		return err
	}
	switch {
	case s.Parallel < 1 || s.Parallel > 1024:
		return fmt.Errorf("latency: roofline with tensor parallel %d, want 1 to 1024", s.Parallel)
	case s.Shape.Heads%s.Parallel != 0:
		return fmt.Errorf("latency: roofline with tensor parallel %d, want a divisor of the %d heads of %s",
			s.Parallel, s.Shape.Heads, s.Shape.Name)
	case !(s.WeightBytes > 0 && s.WeightBytes <= 8):
		return fmt.Errorf("latency: roofline with %v bytes a weight, want above 0 and at most 8", s.WeightBytes)
	case s.KVBytes < 1 || s.KVBytes > 8:
		return fmt.Errorf("latency: roofline with %d bytes a KV element, want 1 to 8", s.KVBytes)
	case !(s.FlopsEfficiency > 0 && s.FlopsEfficiency <= 1):
		return fmt.Errorf("latency: roofline with flops efficiency %v, want above 0 and at most 1",
			s.FlopsEfficiency)
	case !(s.MemoryEfficiency > 0 && s.MemoryEfficiency <= 1):
		return fmt.Errorf("latency: roofline with memory efficiency %v, want above 0 and at most 1",
			s.MemoryEfficiency)
	case s.LaunchNs < 0 || s.LaunchNs > MaxStepNs || s.ExchangeNs < 0 || s.ExchangeNs > MaxStepNs:
		return fmt.Errorf("latency: roofline with launch %d ns and exchange %d ns, want 0 to %d",
			s.LaunchNs, s.ExchangeNs, MaxStepNs)
	}
	needs := int64(float64(s.Shape.Parameters()) * s.WeightBytes / float64(s.Parallel))
	if needs > s.Device.MemoryBytes {
		return fmt.Errorf("latency: roofline: %s needs %d bytes of weights on each of %d devices, but %s has %d",
			s.Shape.Name, needs, s.Parallel, s.Device.Name, s.Device.MemoryBytes)
	}
	return nil
}

// WeightBytes returns the bytes of all weights, over all parallel devices.
func (r *Roofline) WeightBytes() int64 { return r.weightBytesTotal }

// KVBytesPerToken returns the KV bytes of a token, over all parallel devices.
func (r *Roofline) KVBytesPerToken() int64 { return int64(r.kvBytesPerToken) }

// StepNs implements Model; every shape is in range. A time above MaxStepNs is Refused.
func (r *Roofline) StepNs(s Shape) (ns int64, inRange bool) {
	rows, fresh, context := float64(s.Rows), float64(s.FreshTokens), float64(s.ContextTokens)
	// Conversions keep compilers from fusing multiply and add, so that every architecture rounds alike.
	matrixFlops := float64(r.matrixFlopsPerToken*fresh) + float64(r.headFlopsPerRow*rows)
	matrixNs := max(r.weightNs, matrixFlops*r.nsPerFlop)

	perRow := max(rows, 1)
	attended := context/perRow + float64((fresh/perRow+1)*0.5) // tokens that a fresh token sees, in the mean
	attendNs := max((context+fresh)*r.kvBytesPerToken*r.nsPerKVByte,
		r.attendFlopsPerPair*fresh*attended*r.nsPerFlop)

	exchangeNs := r.exchangeNsPerToken * fresh
	return wholeNs(matrixNs+attendNs+exchangeNs+r.fixedNs, true)
}
