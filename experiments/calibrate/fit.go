package calibrate

import (
	"fmt"
	"slices"

	"tokenrouter/sim/latency"
)

// ModelFit is the step-time law of one model.
type ModelFit struct {
	Model string
	Alone latency.Fit
	// Beside is how much longer steps take while the others run: the median, over shapes, of the ratio of
	// times; 1 if that was not measured.
	Beside float64
	// Both says that the median was below 1: the model runs on its own weights meanwhile and finds more of them
	// in a cache than in turn with others. There is no law for that; so Beside is 1, and Alone is the law of the
	// mean of both times.
	Both bool
	// BesideMin and BesideMax are the least and the largest of those ratios.
	BesideMin, BesideMax float64
}

// FitModels fits each model's mean times over its shapes, models in the order in which they come.
func FitModels(samples []Sample) ([]ModelFit, error) {
	var fits []ModelFit
	for _, s := range samples {
		known := func(f ModelFit) bool { return f.Model == s.Model }
		if slices.ContainsFunc(fits, known) {
			continue
		}
		fit, err := fitModel(samples, s.Model)
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", s.Model, err)
		}
		fits = append(fits, fit)
	}
	return fits, nil
}

func fitModel(samples []Sample, name string) (ModelFit, error) {
	alone, beside := map[Shape][]int64{}, map[Shape][]int64{}
	var shapes []Shape
	for _, s := range samples {
		if s.Model != name {
			continue
		}
		of := alone
		if s.Beside {
			of = beside
		}
		of[s.Shape] = append(of[s.Shape], s.StepNs)
		if !slices.Contains(shapes, s.Shape) {
			shapes = append(shapes, s.Shape)
		}
	}
	fit := ModelFit{Model: name, Beside: 1, BesideMin: 1, BesideMax: 1}
	var ratios []float64
	for _, shape := range shapes {
		if len(alone[shape]) > 0 && len(beside[shape]) > 0 {
			ratios = append(ratios, float64(typical(beside[shape]))/float64(typical(alone[shape])))
		}
	}
	if len(ratios) > 0 {
		slices.Sort(ratios)
		fit.Beside, fit.BesideMin, fit.BesideMax = ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1]
		if fit.Both = fit.Beside < 1; fit.Both {
			fit.Beside = 1
		}
	}
	var points []latency.Point
	for _, shape := range shapes {
		if len(alone[shape]) == 0 {
			continue
		}
		ns := typical(alone[shape])
		if fit.Both && len(beside[shape]) > 0 {
			ns = (ns + typical(beside[shape])) / 2
		}
		points = append(points, latency.Point{Shape: shape.Total(), Ns: ns})
	}
	var err error
	fit.Alone, err = latency.FitRelative(points, latency.NonNegative)
	return fit, err
}

// typical is the mean of the times that are at most interrupted times the median: a step that took longer was
// not alone on its processors. It is not the median, for throughput follows the mean, and the times of a
// machine with a fast and a slow state lie around two values.
func typical(ns []int64) int64 {
	const interrupted = 3
	sorted := slices.Sorted(slices.Values(ns))
	most := interrupted * sorted[(len(sorted)-1)/2]
	sum, n := int64(0), int64(0)
	for _, x := range sorted {
		if x <= most {
			sum, n = sum+x, n+1
		}
	}
	return sum / n
}
