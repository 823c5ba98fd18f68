package plots

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A tick is a labelled place on an axis; without a label it is a grid line only.
type tick struct {
	value float64
	label string
}

// ticks chooses at most most labelled places, and gives the power of ten by which their labels are divided
// (0 for none), which then belongs into the axis label. An empty axis has no ticks.
func (s scale) ticks(most int) (marks []tick, power int) {
	if s.empty {
		return nil, 0
	}
	if s.Log {
		if marks := logTicks(s.min, s.max, most, s.Integer); len(marks) >= 2 {
			return marks, 0
		}
	}
	return linearTicks(s.min, s.max, most, s.Integer, s.whole)
}

// linearTicks uses the smallest step of 1, 2, 2.5 or 5 times a power of ten that gives at most most ticks.
func linearTicks(low, high float64, most int, integer, whole bool) (marks []tick, power int) {
	most = max(most, 2)
	step := niceStep((high/2-low/2)/float64(most)*2, integer)
	first := math.Ceil(low/step - 1e-9)
	var values []float64
	for i := 0; i <= most+1; i++ {
		v := (first + float64(i)) * step
		if math.IsInf(v, 0) || v > high+step*1e-9 {
			break
		}
		values = append(values, v)
	}
	largest := max(math.Abs(low), math.Abs(high))
	if largest >= 1e6 || largest < 1e-3 {
		power = int(math.Floor(math.Log10(largest)))
		if power > 0 && integer && largest < 1e9 {
			power = 0
		}
	}
	digits := max(0, -exponent(step)+power)
	if mantissa := step / math.Pow(10, float64(exponent(step))); mantissa > 2.2 && mantissa < 2.8 {
		digits++
	}
	if power == 0 && step >= 10 {
		digits = 0
	}
	for _, v := range values {
		marks = append(marks, tick{v, fixed(shifted(v, power), min(digits, 12))})
	}
	if !whole || power == 0 {
		return marks, power
	}
	for i, m := range marks {
		if m.value != 0 {
			marks[i].label += fmt.Sprintf("×10^{%s}", signed(power))
		}
	}
	return marks, 0
}

// shifted divides v by a power of ten without leaving the range of floats on the way.
func shifted(v float64, power int) float64 {
	if power < -300 {
		return v * 1e300 * math.Pow(10, float64(-power-300))
	}
	return v / math.Pow(10, float64(power))
}

// exponent is the power of ten at or below v.
func exponent(v float64) int { return int(math.Floor(math.Log10(v) + 1e-9)) }

// niceStep is the smallest nice number that is at least width.
func niceStep(width float64, integer bool) float64 {
	if integer {
		width = max(width, 1)
	}
	base := math.Pow(10, math.Floor(math.Log10(width)))
	if base == 0 {
		return math.SmallestNonzeroFloat64 * 1e3
	}
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if integer && m == 2.5 && base < 10 {
			m = 4
		}
		if m*base >= width*(1-1e-9) {
			return m * base
		}
	}
	return 10 * base
}

// logTicks labels powers of two on an integer axis, else as many of 1..9 times each power of ten as there is
// room for, else every second, third, ... power.
func logTicks(low, high float64, most int, integer bool) []tick {
	within := func(v float64) bool { return v >= low*(1-1e-9) && v <= finite(high*(1+1e-9)) }
	exponents := low < 0.99e-3 || high > 1.01e5
	if integer && !exponents {
		var marks []tick
		for v := 1.0; v <= high; v *= 2 {
			if within(v) {
				marks = append(marks, tick{v, logLabel(v, false)})
			}
		}
		if len(marks) <= most {
			return marks
		}
	}
	from, to := int(math.Floor(math.Log10(low))), int(math.Ceil(math.Log10(high)))
	var marks []tick
	digitSets := [][]float64{{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 5}, {1, 3}, {1}}
	if integer || exponents {
		digitSets = [][]float64{{1, 2, 5}, {1}}
	}
	for _, digits := range digitSets {
		marks = marks[:0]
		for e := from; e <= to && len(marks) <= most; e++ {
			for _, d := range digits {
				if v := d * math.Pow(10, float64(e)); within(v) && (!integer || v >= 1) {
					marks = append(marks, tick{v, logLabel(v, exponents)})
				}
			}
		}
		if len(marks) <= most {
			return marks
		}
	}
	stride := (to - from + most) / max(most-1, 1)
	marks = marks[:0]
	for e := from; e <= to; e += stride {
		if v := math.Pow(10, float64(e)); within(v) {
			marks = append(marks, tick{v, logLabel(v, exponents)})
		}
	}
	return marks
}

// logLabel writes 0.01, 50 or 2000 in full and, if asked, 10^{-6} or 2×10^{7}.
func logLabel(v float64, exponents bool) string {
	if !exponents {
		return strconv.FormatFloat(v, 'f', max(0, -exponent(v)), 64)
	}
	e := exponent(v)
	digit := math.Round(shifted(v, e))
	if digit == 1 {
		return fmt.Sprintf("10^{%s}", signed(e))
	}
	return fmt.Sprintf("%.0f×10^{%s}", digit, signed(e))
}

// fixed writes v with that many decimals and a real minus sign.
func fixed(v float64, decimals int) string {
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if digits := strings.Trim(text, "-0."); digits == "" {
		return strings.TrimPrefix(text, "-")
	}
	return strings.Replace(text, "-", "−", 1)
}

func signed(e int) string { return strings.Replace(strconv.Itoa(e), "-", "−", 1) }

// withPower moves a power of ten that was taken out of the tick labels to the unit: "share (10^{6} tok)".
func withPower(label string, power int) string {
	if power == 0 {
		return label
	}
	factor := fmt.Sprintf("10^{%s}", signed(power))
	open := strings.LastIndexByte(label, '(')
	if open < 0 || !strings.HasSuffix(label, ")") {
		return fmt.Sprintf("%s (%s)", label, factor)
	}
	return fmt.Sprintf("%s%s %s", label[:open+1], factor, label[open+1:])
}
