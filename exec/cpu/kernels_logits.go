package cpu

// #include "kernels.h"
import "C"

// statistics say what a row of logits z of a vocabulary of V tokens comes to, p being their softmax.
//
// Logits of -Inf are tokens of probability 0. With NaN or +Inf in the row, or nothing but -Inf, finite is
// false, token -1 and the rest NaN.
type statistics struct {
	token          int // of the largest logit, the first of equals
	finite         bool
	maxLogit       float64
	logSumExp      float64
	entropy        float64 // -sum of p ln p over ln V, 0 to 1; 0 for V = 1
	topProbability float64
	margin         float64 // the largest p less the second largest
}

func statisticsOf(s C.cpu_statistics) statistics {
	return statistics{int(s.token), s.finite != 0, float64(s.max_logit), float64(s.log_sum_exp),
		float64(s.entropy), float64(s.top_probability), float64(s.margin)}
}

// reduce returns the statistics of z[rows][vocabulary].
func reduce(t *workers, p Path, rows int, z []float32) ([]statistics, error) {
	found := make([]C.cpu_statistics, rows)
	vocabulary := C.int64_t(len(z) / rows)
	code := C.cpu_logits(t.handle, C.int32_t(p), C.int64_t(rows), base[C.float](z), vocabulary, vocabulary,
		&found[0])
	all := make([]statistics, rows)
	for i, s := range found {
		all[i] = statisticsOf(s)
	}
	return all, status("logits", code)
}

// reduceReference is reduce of one row in double.
func reduceReference(z []float32) (statistics, error) {
	var found C.cpu_statistics
	code := C.cpu_logits_reference(base[C.float](z), C.int64_t(len(z)), &found)
	return statisticsOf(found), status("logits reference", code)
}

// statisticsTolerance bounds the absolute error of statistics; that of logSumExp times max(1, |logSumExp|).
func statisticsTolerance() float64 { return float64(C.cpu_statistics_tolerance()) }

// top returns the k tokens with the largest logits, largest first, equals by token. Tokens of logit -Inf or
// NaN are left out.
func top(p Path, z []float32, k int) (tokens []int32, logits []float32, err error) {
	tokens, logits = make([]int32, k), make([]float32, k)
	var count C.int64_t
	code := C.cpu_top(C.int32_t(p), base[C.float](z), C.int64_t(len(z)), C.int64_t(k), base[C.int32_t](tokens),
		base[C.float](logits), &count)
	return tokens[:count], logits[:count], status("top", code)
}

// sampling says how to draw: temperature (0: the best token; else 1e-6 to 1e6), the topK best (0: all), of
// those the best with a mass of topP (above 0 to 1), of those all with minP (0 to 1) times the best
// probability.
type sampling struct {
	temperature float32
	topK        int32
	topP, minP  float32
}

// sample draws a token of the row z, whose largest logit is maxLogit, with the bits of random.
func sample(p Path, z []float32, maxLogit float32, s sampling, random uint64) (int, error) {
	var token C.int32_t
	code := C.cpu_sample(C.int32_t(p), base[C.float](z), C.int64_t(len(z)), C.float(maxLogit),
		C.float(s.temperature), C.int32_t(s.topK), C.float(s.topP), C.float(s.minP), C.uint64_t(random), &token)
	return int(token), status("sample", code)
}
