package cli

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// value is a flag that is checked where it is given. It implements pflag.Value.
type value[T any] struct {
	of    T
	set   bool
	text  string
	kind  string // shown in help and for a missing value
	parse func(string) (T, error)
}

// String is the text that was given, or that of the default.
func (v *value[T]) String() string { return v.text }

// Type names what the flag takes.
func (v *value[T]) Type() string { return v.kind }

// Set parses s. Its errors say what was wanted.
func (v *value[T]) Set(s string) error {
	of, err := v.parse(s)
	if err != nil {
		return err
	}
	v.of, v.set, v.text = of, true, s
	return nil
}

func integer(least, most int) func(string) (int, error) {
	return func(s string) (int, error) {
		i, err := strconv.Atoi(s)
		if err != nil || i < least || i > most {
			return 0, fmt.Errorf("want a whole number from %d to %d", least, most)
		}
		return i, nil
	}
}

func word(words ...string) func(string) (string, error) {
	return func(s string) (string, error) {
		for _, w := range words {
			if s == w {
				return s, nil
			}
		}
		return "", fmt.Errorf("want %s", strings.Join(words, ", "))
	}
}

func probability(s string) (float64, error) {
	p, err := strconv.ParseFloat(s, 64)
	if err != nil || !(p >= 0 && p <= 1) {
		return 0, errors.New("want a probability from 0 to 1")
	}
	return p, nil
}

// durationsMax bounds a step time, so that sums of them stay far from the end of int64 nanoseconds.
const durationMax = 24 * time.Hour

// duration parses a time above 0 with a unit, to whole nanoseconds.
func duration(s string) (int64, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		if _, bare := strconv.ParseFloat(s, 64); bare == nil {
			return 0, errors.New("has no unit, want a time such as 6.0ms or 300us")
		}
		return 0, errors.New("want a time with a unit, such as 6.0ms or 300us")
	}
	if d <= 0 || d > durationMax {
		return 0, fmt.Errorf("want a time from 1ns to %v", durationMax)
	}
	if !wholeNanoseconds(s) {
		return 0, errors.New("is finer than a nanosecond, want whole nanoseconds")
	}
	return int64(d), nil
}

var durationParts = regexp.MustCompile(`([0-9.]+)(ns|us|µs|μs|ms|s|m|h)`)

// wholeNanoseconds reports whether s, which time.ParseDuration takes, loses nothing there: that cuts off
// what is finer than a nanosecond.
func wholeNanoseconds(s string) bool {
	sum := new(big.Rat)
	for _, part := range durationParts.FindAllStringSubmatch(s, -1) {
		unit, err := time.ParseDuration("1" + part[2])
		number, ok := new(big.Rat).SetString(part[1])
		if err != nil || !ok {
			return false
		}
		sum.Add(sum, number.Mul(number, new(big.Rat).SetInt64(int64(unit))))
	}
	return sum.IsInt()
}

func durations(s string) ([]int64, error) {
	var all []int64
	for i, part := range strings.Split(s, ",") {
		ns, err := duration(part)
		if err != nil {
			return nil, fmt.Errorf("entry %d (%q): %w", i+1, part, err)
		}
		all = append(all, ns)
	}
	return all, nil
}

// matrix parses rows separated by ";" of numbers separated by ",".
func matrix(check func(float64) error) func(string) ([][]float64, error) {
	return func(s string) ([][]float64, error) {
		var rows [][]float64
		for i, text := range strings.Split(s, ";") {
			var row []float64
			for j, part := range strings.Split(text, ",") {
				x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
				if err != nil {
					return nil, fmt.Errorf("row %d, entry %d is %q, want a number", i+1, j+1, part)
				}
				if err := check(x); err != nil {
					return nil, fmt.Errorf("row %d, entry %d is %q, %w", i+1, j+1, part, err)
				}
				row = append(row, x)
			}
			rows = append(rows, row)
		}
		for i, row := range rows {
			if len(row) != len(rows) {
				return nil, fmt.Errorf("row %d has length %d, want %d as there are rows", i+1, len(row), len(rows))
			}
		}
		return rows, nil
	}
}

func routingMatrix(s string) ([][]float64, error) {
	rows, err := matrix(func(p float64) error {
		if !(p >= 0 && p <= 1) {
			return errors.New("want a probability from 0 to 1")
		}
		return nil
	})(s)
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		sum := 0.0
		for _, p := range row {
			sum += p
		}
		if math.Abs(sum-1) > rowTolerance {
			return nil, fmt.Errorf("row %d sums to %.12g, want 1", i+1, sum)
		}
	}
	return rows, nil
}

// rowTolerance is the most that a row of --routing may differ from 1, as in package chain.
const rowTolerance = 1e-12

func commitMatrix(s string) ([][]float64, error) {
	return matrix(func(tokens float64) error {
		if !(tokens >= 0 && tokens <= 1e12) {
			return errors.New("want a number of tokens from 0 to 1e12")
		}
		return nil
	})(s)
}

// thresholds parses whole numbers from 1 separated by ","; with free, "_" leaves one free and stands for 0.
func thresholds(free bool) func(string) ([]int, error) {
	want := "a whole number from 1"
	if free {
		want += ", or _ for a free one"
	}
	return func(s string) ([]int, error) {
		var set []int
		for i, part := range strings.Split(s, ",") {
			if free && part == "_" {
				set = append(set, 0)
				continue
			}
			b, err := strconv.Atoi(part)
			if err != nil || b < 1 || b > thresholdMax {
				return nil, fmt.Errorf("entry %d is %q, want %s", i+1, part, want)
			}
			set = append(set, b)
		}
		return set, nil
	}
}

// thresholdMax only keeps sums of thresholds from overflowing; whether a set is feasible is checked against
// N.
const thresholdMax = 1 << 30

// shard is one of several equal parts of a sweep.
type shard struct{ index, count int } // index from 1

func parseShard(s string) (shard, error) {
	wrong := errors.New("want PART/PARTS with 1 <= PART <= PARTS, such as 1/3")
	index, count, found := strings.Cut(s, "/")
	if !found {
		return shard{}, wrong
	}
	i, err := strconv.Atoi(index)
	if err != nil {
		return shard{}, wrong
	}
	n, err := strconv.Atoi(count)
	if err != nil || i < 1 || i > n {
		return shard{}, wrong
	}
	return shard{i, n}, nil
}
