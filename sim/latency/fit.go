package latency

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Point is one measured step.
type Point struct {
	Shape Shape
	Ns    int64 // 1 to MaxStepNs
}

// Guard says what FitAffine does when least squares asks for a negative term.
type Guard uint8

const (
	// RefuseNegative returns an error that names the term. A negative base or slope predicts negative
	// times somewhere, and a slope below 0 says that more work takes less time.
	RefuseNegative Guard = iota + 1
	// NonNegative takes the best fit among those without negative terms.
	NonNegative
)

// Fit is an affine model of samples and how well it describes them.
type Fit struct {
	Coefficients
	Valid Range // the box of the samples
	Count int   // samples

	// Dropped names the quantities that got no term: those that do not vary, or that follow from the ones
	// before them, as fresh tokens do in pure decoding (one a row).
	Dropped []string

	MeanErrorNs  float64 // mean of |fitted - measured|
	MeanRelative float64 // mean of |fitted - measured| / measured
	MaxRelative  float64 // the largest of those
	Worst        Point   // the sample that has it
}

// Model returns the fit as a model that is valid within the box of its samples. It returns an error
// when a term is negative.
func (f Fit) Model(outside Outside) (*Affine, error) {
	return NewAffineWithin(f.Coefficients, f.Valid, outside)
}

var termNames = [...]string{"base", "rows", "fresh tokens", "blocks", "context tokens"}

// regression is samples to be fitted.
type regression struct {
	points []Point
	weight weight
	block  int // tokens of a block
}

// weight is what a sample's equation is multiplied by.
type weight func(Point) float64

// terms lists what the terms multiply in a shape.
func (r *regression) terms(s Shape) [len(termNames)]float64 {
	return [...]float64{1, float64(s.Rows), float64(s.FreshTokens), s.blocks(r.block), float64(s.ContextTokens)}
}

// FitAffine fits the terms of Coefficients to samples by least squares.
// Quantities that cannot be told apart in the samples get no term (see Fit.Dropped). It returns an error
// when there are fewer than two samples, when all have the same shape, when a time is out of bounds, or
// when a term is negative under RefuseNegative; then the Fit holds the terms as least squares gave them.
func FitAffine(points []Point, guard Guard) (Fit, error) {
	return fitAffine(points, guard, func(Point) float64 { return 1 }, BlockTokens)
}

// FitRelative is FitAffine with each sample weighted by 1 / its time: it makes relative errors small, so that
// steps of a prefill do not outweigh those of decoding, which take a hundredth of their time. Blocks have 32
// tokens, or 16 if that fits better.
func FitRelative(points []Point, guard Guard) (Fit, error) {
	weight := func(p Point) float64 { return 1 / float64(p.Ns) }
	return fitAffine(points, guard, weight, BlockTokens, BlockTokens/2)
}

// fitAffine takes the size of blocks that fits best, the first of equals.
func fitAffine(points []Point, guard Guard, w weight, blocks ...int) (Fit, error) {
	if guard != RefuseNegative && guard != NonNegative {
		return Fit{}, fmt.Errorf("latency: fit with guard %d, want RefuseNegative or NonNegative", guard)
	}
	if len(points) < 2 {
		return Fit{}, fmt.Errorf("latency: fit of %d samples, want at least 2 of different shapes", len(points))
	}
	if err := checkPoints(points); err != nil {
		return Fit{}, err
	}
	var best Fit
	var failure error
	least := math.Inf(1)
	for i, block := range blocks {
		r := regression{points, w, block}
		fit, squares, err := r.fit(guard)
		if i == 0 || failure != nil && err == nil || err == nil && squares < least*(1-1e-9) {
			best, failure, least = fit, err, squares
		}
	}
	return best, failure
}

// fit finds the terms, and the sum of the squares that they leave.
func (r *regression) fit(guard Guard) (fit Fit, squares float64, err error) {
	kept, dropped := r.independentTerms()
	if len(kept) == 1 {
		return Fit{}, math.Inf(1), fmt.Errorf("latency: fit of %d samples of one shape, %+v, which tells no"+
			" slope: want at least 2 shapes, or a constant", len(r.points), r.points[0].Shape)
	}
	solution, err := r.leastSquares(kept)
	if err == nil && guard == NonNegative {
		solution, err = r.leastSquaresNonNegative(kept)
	}
	if err != nil {
		return Fit{}, math.Inf(1), err
	}
	fit, squares = r.describe(solution), r.squaredError(solution)
	for _, term := range dropped {
		fit.Dropped = append(fit.Dropped, termNames[term])
	}
	for term, ns := range solution {
		if ns < 0 {
			return fit, squares, fmt.Errorf("latency: fit: the %s term is %.6g ns over %v, want at least 0: "+
				"the samples are not affine; use a table", termNames[term], ns, fit.Valid)
		}
	}
	return fit, squares, nil
}

func checkPoints(points []Point) error {
	for i, point := range points {
		if point.Ns < 1 || point.Ns > MaxStepNs {
			return fmt.Errorf("latency: sample %d takes %d ns, want 1 to %d", i, point.Ns, MaxStepNs)
		}
		if min(point.Shape.Rows, point.Shape.FreshTokens, point.Shape.ContextTokens) < 0 {
			return fmt.Errorf("latency: sample %d has shape %+v, want counts of at least 0", i, point.Shape)
		}
	}
	return nil
}

// independentTerms splits the terms into those that the samples tell apart and the rest, by
// orthogonalising the columns in order.
func (r *regression) independentTerms() (kept, dropped []int) {
	var basis [][]float64
	for term := range termNames {
		column := make([]float64, len(r.points))
		for i, point := range r.points {
			column[i] = r.terms(point.Shape)[term]
		}
		before := norm(column)
		for range 2 { // the second pass removes what rounding left of the first
			for _, direction := range basis {
				projection := 0.0
				for i, x := range column {
					projection += x * direction[i]
				}
				for i := range column {
					column[i] -= projection * direction[i]
				}
			}
		}
		after := norm(column)
		if after <= 1e-9*before || before == 0 {
			dropped = append(dropped, term)
			continue
		}
		for i := range column {
			column[i] /= after
		}
		basis = append(basis, column)
		kept = append(kept, term)
	}
	return kept, dropped
}

func norm(column []float64) float64 {
	sum := 0.0
	for _, x := range column {
		sum += x * x
	}
	return math.Sqrt(sum)
}

// leastSquares fits the given terms; the others are 0. Columns are scaled to a largest value of 1, so
// that tokens of context do not drown the base.
func (r *regression) leastSquares(kept []int) (solution [len(termNames)]float64, err error) {
	scale := make([]float64, len(kept))
	design := mat.NewDense(len(r.points), len(kept), nil)
	times := mat.NewVecDense(len(r.points), nil)
	for i, point := range r.points {
		times.SetVec(i, r.weight(point)*float64(point.Ns))
		for j, term := range kept {
			scale[j] = max(scale[j], r.weight(point)*r.terms(point.Shape)[term])
		}
	}
	for i, point := range r.points {
		for j, term := range kept {
			design.Set(i, j, r.weight(point)*r.terms(point.Shape)[term]/scale[j])
		}
	}
	var x mat.VecDense
	if err := x.SolveVec(design, times); err != nil {
		return solution, fmt.Errorf("latency: fit of %d samples: %w", len(r.points), err)
	}
	for j, term := range kept {
		if math.Abs(x.AtVec(j)) > 1e-10*mat.Max(times) { // less is the rounding of a term that is 0
			solution[term] = x.AtVec(j) / scale[j]
		}
	}
	return solution, nil
}

// leastSquaresNonNegative tries every subset of the terms and keeps the best that has no negative
// term. With five terms that is exact and at most 31 small problems.
func (r *regression) leastSquaresNonNegative(kept []int) (best [len(termNames)]float64, err error) {
	bestError := math.Inf(1)
	for subset := 1; subset < 1<<len(kept); subset++ {
		var chosen []int
		for j, term := range kept {
			if subset>>j&1 == 1 {
				chosen = append(chosen, term)
			}
		}
		solution, err := r.leastSquares(chosen)
		if err != nil {
			return best, err
		}
		if slices.Min(solution[:]) < 0 {
			continue
		}
		if squares := r.squaredError(solution); squares < bestError {
			best, bestError = solution, squares
		}
	}
	return best, nil
}

func (r *regression) squaredError(solution [len(termNames)]float64) float64 {
	c, sum := r.coefficients(solution), 0.0
	for _, point := range r.points {
		miss := r.weight(point) * (c.at(point.Shape) - float64(point.Ns))
		sum += miss * miss
	}
	return sum
}

func (r *regression) coefficients(solution [len(termNames)]float64) Coefficients {
	c := Coefficients{
		BaseNs: solution[0], PerRowNs: solution[1], PerFreshNs: solution[2], PerBlockNs: solution[3],
		PerContextNs: solution[4],
	}
	if c.PerBlockNs > 0 {
		c.BlockTokens = r.block
	}
	return c
}

// describe measures how far a fit is from its samples.
func (r *regression) describe(solution [len(termNames)]float64) Fit {
	fit := Fit{Coefficients: r.coefficients(solution), Count: len(r.points), Valid: boxOf(r.points)}
	for i, point := range r.points {
		miss := math.Abs(fit.at(point.Shape) - float64(point.Ns))
		relative := miss / float64(point.Ns)
		fit.MeanErrorNs += miss / float64(len(r.points))
		fit.MeanRelative += relative / float64(len(r.points))
		if relative > fit.MaxRelative || i == 0 {
			fit.MaxRelative, fit.Worst = relative, point
		}
	}
	return fit
}
