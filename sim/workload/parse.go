package workload

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// wholeColumns are the columns of whole numbers and what they may hold.
var wholeColumns = [...]struct {
	column      column
	least, most int64
}{
	{promptTokens, 1, math.MaxInt32},
	{outputTokens, 0, math.MaxInt32},
	{maxTokens, 0, math.MaxInt32},
	{prefixGroup, 0, math.MaxUint32},
	{prefixTokens, 0, math.MaxInt32},
}

// unitDigits gives, for each arrival column, how many decimal digits its unit lies above a nanosecond.
var unitDigits = [...]int{arrivalNs: 0, arrivalMs: 6, arrivalS: 9}

// request turns the texts of a row into a request.
func (t *Trace) request(row fields) (Request, error) {
	fileNs, err := t.arrival(&row)
	if err != nil {
		return Request{}, err
	}
	var number [columnCount]int64
	for _, limit := range wholeColumns {
		cell := row[limit.column]
		if !cell.present {
			continue
		}
		n, ok := parseWhole(cell.text, limit.least, limit.most)
		if !ok {
			return Request{}, t.wrong(columnNames[limit.column], cell.text,
				fmt.Sprintf("a whole number %d to %d", limit.least, limit.most))
		}
		number[limit.column] = n
	}
	r := Request{
		ID:           t.id,
		PromptTokens: int32(number[promptTokens]),
		OutputTokens: int32(number[outputTokens]),
		MaxTokens:    int32(number[maxTokens]),
		PrefixGroup:  uint32(number[prefixGroup]),
		PrefixTokens: int32(number[prefixTokens]),
	}
	if r.MaxTokens == 0 {
		r.MaxTokens = t.options.MaxTokens
	}
	if c, want := r.inconsistent(); want != "" {
		return Request{}, t.wrong(columnNames[c], row[c].text, want)
	}
	if t.options.FromZero && t.id == 0 {
		t.zeroNs = fileNs
	}
	t.lastNs = fileNs
	r.ArrivalNs = fileNs - t.zeroNs
	return r, nil
}

// inconsistent returns a column that does not fit the others, and what would.
func (r Request) inconsistent() (c column, want string) {
	switch {
	case r.OutputTokens == 0 && r.MaxTokens == 0:
		return outputTokens, "at least 1, since no max_tokens would end the output"
	case r.PrefixGroup == 0 && r.PrefixTokens > 0:
		return prefixTokens, "0, since prefix_group is 0"
	case r.PrefixGroup > 0 && r.PrefixTokens == 0:
		return prefixTokens, "at least 1, since prefix_group is not 0"
	case r.PrefixTokens > r.PromptTokens:
		return prefixTokens, fmt.Sprintf("at most prompt_tokens, %d", r.PromptTokens)
	default:
		return 0, ""
	}
}

// arrival reads whichever arrival column the row has, in the file's own time.
func (t *Trace) arrival(row *fields) (int64, error) {
	for c, digits := range unitDigits {
		if !row[c].present {
			continue
		}
		ns, ok := parseNs(row[c].text, digits)
		if !ok {
			return 0, t.wrong(columnNames[c], row[c].text,
				fmt.Sprintf("a decimal number, at least 0 and at most %d ns", MaxArrivalNs))
		}
		if ns < t.lastNs {
			return 0, t.wrong(columnNames[c], row[c].text,
				fmt.Sprintf("at least %d ns, the arrival before: a trace is in order of arrival", t.lastNs))
		}
		return ns, nil
	}
	panic("workload: a row without arrival passed the check for it")
}

// parseWhole reads a whole number of decimal digits only.
func parseWhole(text string, least, most int64) (int64, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= least && n <= most
}

// parseNs reads a decimal number in a unit of 10^above ns without a detour over floats, which hold
// a time since 1970 to 128 ns only. It rounds to the nearest nanosecond, halves up.
func parseNs(text string, above int) (ns int64, ok bool) {
	mantissa, exponentText, hasExponent := strings.Cut(strings.ToLower(text), "e")
	exponent := 0
	if hasExponent {
		n, err := strconv.Atoi(exponentText)
		if err != nil || n < -999 || n > 999 {
			return 0, false
		}
		exponent = n
	}
	whole, fraction, hasPoint := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if whole == "" || hasPoint && fraction == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	point := len(whole) + exponent + above // how many of the digits count whole nanoseconds
	trimmed := strings.TrimLeft(digits, "0")
	point -= len(digits) - len(trimmed)
	if trimmed == "" || point < 0 {
		return 0, true
	}
	if point > len("4611686018427387904") {
		return 0, false
	}
	if point > len(trimmed) {
		trimmed += strings.Repeat("0", point-len(trimmed))
	}
	if point > 0 {
		n, err := strconv.ParseInt(trimmed[:point], 10, 64)
		if err != nil || n > MaxArrivalNs {
			return 0, false
		}
		ns = n
	}
	if point < len(trimmed) && trimmed[point] >= '5' {
		ns++
	}
	return ns, ns <= MaxArrivalNs
}
