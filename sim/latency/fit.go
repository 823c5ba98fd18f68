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

// terms lists what the terms multiply in a shape.
func terms(s Shape) [len(termNames)]float64 {
	return [...]float64{1, float64(s.Rows), float64(s.FreshTokens), s.blocks(), float64(s.ContextTokens)}
}

// FitAffine fits the terms of Coefficients to samples by least squares.
// Quantities that cannot be told apart in the samples get no term (see Fit.Dropped). It returns an error
// when there are fewer than two samples, when all have the same shape, when a time is out of bounds, or
// when a term is negative under RefuseNegative; then the Fit holds the terms as least squares gave them.
func FitAffine(points []Point, guard Guard) (Fit, error) {
	return fitAffine(points, guard, func(Point) float64 { return 1 })
}

// FitRelative is FitAffine with each sample weighted by 1 / its time: it makes relative errors small, so that
// steps of a prefill do not outweigh those of decoding, which take a hundredth of their time.
func FitRelative(points []Point, guard Guard) (Fit, error) {
	return fitAffine(points, guard, func(p Point) float64 { return 1 / float64(p.Ns) })
}

// weight is what a sample's equation is multiplied by.
type weight func(Point) float64

func fitAffine(points []Point, guard Guard, w weight) (Fit, error) {
	if guard != RefuseNegative && guard != NonNegative {
		return Fit{}, fmt.Errorf("latency: fit with guard %d, want RefuseNegative or NonNegative", guard)
	}
	if len(points) < 2 {
		return Fit{}, fmt.Errorf("latency: fit of %d samples, want at least 2 of different shapes", len(points))
	}
	if err := checkPoints(points); err != nil {
		return Fit{}, err
	}
	kept, dropped := independentTerms(points)
	if len(kept) == 1 {
		return Fit{}, fmt.Errorf("latency: fit of %d samples of one shape, %+v, which tells no slope: "+
			"want at least 2 shapes, or a constant", len(points), points[0].Shape)
	}
	solution, err := leastSquares(points, kept, w)
	if err != nil {
		return Fit{}, err
	}
	if guard == NonNegative {
		if solution, err = leastSquaresNonNegative(points, kept, w); err != nil {
			return Fit{}, err
		}
	}
	fit := describe(points, solution)
	for _, term := range dropped {
		fit.Dropped = append(fit.Dropped, termNames[term])
	}
	for term, ns := range solution {
		if ns < 0 {
			return fit, fmt.Errorf("latency: fit: the %s term is %.6g ns over %v, want at least 0: "+
				"the samples are not affine; use a table", termNames[term], ns, fit.Valid)
		}
	}
	return fit, nil
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
func independentTerms(points []Point) (kept, dropped []int) {
	var basis [][]float64
	for term := range termNames {
		column := make([]float64, len(points))
		for i, point := range points {
			column[i] = terms(point.Shape)[term]
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
func leastSquares(points []Point, kept []int, w weight,
) (solution [len(termNames)]float64, err error) {
	scale := make([]float64, len(kept))
	design := mat.NewDense(len(points), len(kept), nil)
	times := mat.NewVecDense(len(points), nil)
	for i, point := range points {
		times.SetVec(i, w(point)*float64(point.Ns))
		for j, term := range kept {
			scale[j] = max(scale[j], w(point)*terms(point.Shape)[term])
		}
	}
	for i, point := range points {
		for j, term := range kept {
			design.Set(i, j, w(point)*terms(point.Shape)[term]/scale[j])
		}
	}
	var x mat.VecDense
	if err := x.SolveVec(design, times); err != nil {
		return solution, fmt.Errorf("latency: fit of %d samples: %w", len(points), err)
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
func leastSquaresNonNegative(points []Point, kept []int, w weight,
) (best [len(termNames)]float64, err error) {
	bestError := math.Inf(1)
	for subset := 1; subset < 1<<len(kept); subset++ {
		var chosen []int
		for j, term := range kept {
			if subset>>j&1 == 1 {
				chosen = append(chosen, term)
			}
		}
		solution, err := leastSquares(points, chosen, w)
		if err != nil {
			return best, err
		}
		if slices.Min(solution[:]) < 0 {
			continue
		}
		if squares := squaredError(points, solution, w); squares < bestError {
			best, bestError = solution, squares
		}
	}
	return best, nil
}

func squaredError(points []Point, solution [len(termNames)]float64, w weight) float64 {
	c, sum := coefficientsOf(solution), 0.0
	for _, point := range points {
		miss := w(point) * (c.at(point.Shape) - float64(point.Ns))
		sum += miss * miss
	}
	return sum
}

func coefficientsOf(solution [len(termNames)]float64) Coefficients {
	return Coefficients{
		BaseNs: solution[0], PerRowNs: solution[1], PerFreshNs: solution[2], PerBlockNs: solution[3],
		PerContextNs: solution[4],
	}
}

// describe measures how far a fit is from its samples.
func describe(points []Point, solution [len(termNames)]float64) Fit {
	fit := Fit{Coefficients: coefficientsOf(solution), Count: len(points), Valid: boxOf(points)}
	for i, point := range points {
		miss := math.Abs(fit.at(point.Shape) - float64(point.Ns))
		relative := miss / float64(point.Ns)
		fit.MeanErrorNs += miss / float64(len(points))
		fit.MeanRelative += relative / float64(len(points))
		if relative > fit.MaxRelative || i == 0 {
			fit.MaxRelative, fit.Worst = relative, point
		}
	}
	return fit
}
