package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// entry is what a header says of one tensor; begin and end are bytes from the end of the header.
type entry struct {
	name       string
	dtype      DType
	shape      []int64
	begin, end int64
}

// parseHeader reads the JSON of a header. The order of the entries is that of the header.
func parseHeader(header []byte) ([]entry, map[string]string, error) {
	if len(header) == 0 || header[0] != '{' {
		return nil, nil, errors.New("header does not begin with {")
	}
	if err := CheckJSON(header); err != nil {
		return nil, nil, fmt.Errorf("header %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(header))
	if _, err := decoder.Token(); err != nil { // the brace
		return nil, nil, err
	}
	var entries []entry
	var metadata map[string]string
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, nil, err
		}
		name := token.(string) // CheckJSON has seen that this is an object
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, nil, err
		}
		if name == "__metadata__" {
			if err := json.Unmarshal(value, &metadata); err != nil {
				return nil, nil, fmt.Errorf("__metadata__ = %s, want an object of strings", kindOf(value))
			}
			continue
		}
		e, err := parseEntry(name, value)
		if err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		entries = append(entries, e)
	}
	return entries, metadata, nil
}

func parseEntry(name string, value json.RawMessage) (entry, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(value, &fields); err != nil || fields == nil {
		return entry{}, fmt.Errorf("%s, want an object with dtype, shape and data_offsets", kindOf(value))
	}
	e := entry{name: name}
	for _, key := range []string{"dtype", "shape", "data_offsets"} {
		if _, ok := fields[key]; !ok {
			return e, fmt.Errorf("no %s", key)
		}
	}
	if len(fields) > 3 {
		for key := range fields {
			if key != "dtype" && key != "shape" && key != "data_offsets" {
				return e, errors.New("has keys other than dtype, shape and data_offsets")
			}
		}
	}
	if err := json.Unmarshal(fields["dtype"], &e.dtype); err != nil {
		return e, fmt.Errorf("dtype = %s, want a string", kindOf(fields["dtype"]))
	}
	if _, ok := elementBytes[e.dtype]; !ok {
		return e, fmt.Errorf("dtype %q is unknown", string(e.dtype))
	}
	var err error
	if e.shape, err = wholeNumbers(fields["shape"]); err != nil {
		return e, fmt.Errorf("shape %w", err)
	}
	offsets, err := wholeNumbers(fields["data_offsets"])
	if err != nil {
		return e, fmt.Errorf("data_offsets %w", err)
	}
	if len(offsets) != 2 {
		return e, fmt.Errorf("data_offsets has %d numbers, want 2", len(offsets))
	}
	e.begin, e.end = offsets[0], offsets[1]
	return e, nil
}

// wholeNumbers parses a list of whole numbers from 0 to the largest int64.
func wholeNumbers(raw json.RawMessage) ([]int64, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || list == nil {
		return nil, fmt.Errorf("= %s, want a list of whole numbers", kindOf(raw))
	}
	numbers := make([]int64, len(list))
	for i, text := range list {
		n, err := strconv.ParseUint(string(text), 10, 63)
		if err != nil {
			return nil, fmt.Errorf("has %s, want a whole number from 0 to %d", kindOf(text), int64(math.MaxInt64))
		}
		numbers[i] = int64(n)
	}
	return numbers, nil
}

// shapeBytes returns the size of a tensor, and false if it does not fit an int64.
func shapeBytes(shape []int64, d DType) (int64, bool) {
	size := uint64(d.Bytes())
	for _, n := range shape {
		high, low := bits.Mul64(size, uint64(n))
		if high != 0 || low > math.MaxInt64 {
			return 0, false
		}
		size = low
	}
	return int64(size), true
}

// checkLayout sorts entries by place and checks that they fill the dataBytes after the header without hole or
// overlap, each as long as its shape says.
func checkLayout(entries []entry, dataBytes int64) error {
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.name, b.name))
	})
	at, last := int64(0), "the header"
	for _, e := range entries {
		size, fits := shapeBytes(e.shape, e.dtype)
		switch {
		case e.end < e.begin:
			return fmt.Errorf("tensor %q: data_offsets [%d, %d] end before they begin", e.name, e.begin, e.end)
		case e.end > dataBytes:
			return fmt.Errorf("tensor %q: data_offsets [%d, %d] in a file with %d bytes of data",
				e.name, e.begin, e.end, dataBytes)
		case !fits:
			return fmt.Errorf("tensor %q: shape %d of %s overflows", e.name, e.shape, e.dtype)
		case size != e.end-e.begin:
			return fmt.Errorf("tensor %q: shape %d of %s has %d bytes, data_offsets [%d, %d] have %d",
				e.name, e.shape, e.dtype, size, e.begin, e.end, e.end-e.begin)
		case e.begin < at:
			return fmt.Errorf("tensor %q begins at %d and overlaps %q, which ends at %d", e.name, e.begin, last, at)
		case e.begin > at:
			return fmt.Errorf("tensor %q begins at %d, %s ends at %d: want no hole", e.name, e.begin, last, at)
		}
		at, last = e.end, e.name
	}
	if at != dataBytes {
		return fmt.Errorf("%d bytes after the last tensor, want none", dataBytes-at)
	}
	return nil
}
