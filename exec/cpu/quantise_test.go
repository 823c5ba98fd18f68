package cpu

import (
	"errors"
	"math"
	"slices"
	"syscall"
	"testing"
)

// TestQuantise: values, scales and offsets by their definition, in fp32 in Go, on every path.
func TestQuantise(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	tests := []struct {
		name   string
		x      []float32
		scale  float32
		values []int8
	}{
		{"zeros", []float32{0, 0, float32(math.Copysign(0, -1))}, 0, []int8{0, 0, 0}},
		{"scale one", []float32{127, -127, 1, -1, 0.5, 1.5, -2.5}, 1, []int8{127, -127, 1, -1, 0, 2, -2}},
		{"negative largest", []float32{-254, 1, 3}, 2, []int8{-127, 0, 2}}, // 0.5 and 1.5 to even
		{"powers", []float32{1, 0.5, 0.25}, 1.0 / 127, []int8{127, 64, 32}},
		{"NaN", []float32{1, nan, 2}, nan, []int8{0, 0, 0}},
		{"infinity", []float32{1, inf, 2}, nan, []int8{0, 0, 0}},
		{"minus infinity", []float32{1, 2, -inf}, nan, []int8{0, 0, 0}},
		{"largest number", []float32{math.MaxFloat32, 1}, math.MaxFloat32 / 127, []int8{127, 0}},
		{"least magnitude", []float32{0x1p-119, 0}, 0x1p-119 / 127, []int8{127, 0}},
		{"less than that", []float32{0x1.fffffep-120, 0}, 0, []int8{0, 0}},
		{"smallest number", []float32{math.SmallestNonzeroFloat32}, 0, []int8{0}},
	}
	w := threads(t, 1)
	onEachPath(t, func(t *testing.T, p Path) {
		for _, c := range tests {
			// The last inputs of 3 lanes' worth, where a full row of lanes ends in a part of one.
			for _, before := range []int{0, 40} {
				depth := before + len(c.x)
				m := packInt8(t, 1, depth, 0, make([]uint16, depth))
				q := newQuantised(1, m.paddedDepth(), m)
				for i := range q.values {
					q.values[i] = 99 // what was there before
				}
				x := append(make([]float32, before), c.x...)
				if err := quantiseFloats(w, p, m, x, q); err != nil {
					t.Fatal(err)
				}
				want := make([]int8, m.paddedDepth())
				copy(want[before:], c.values)
				sum := 0
				for _, v := range c.values {
					sum += int(v)
				}
				got := q.groups[0]
				sameScale := got.scale == c.scale || isNaN(got.scale) && isNaN(c.scale)
				if !slices.Equal(q.values, want) || !sameScale || got.offset != int32(128*sum) {
					t.Errorf("%s: %v, %+v, want %v of scale %v, offset %d", c.name, q.values, got, want, c.scale,
						128*sum)
				}
			}
		}
	})
}

// TestQuantiseSameBits: bf16 and float32 rows give the same on every path, group by group.
func TestQuantiseSameBits(t *testing.T) {
	const rows, depth = 5, 333
	w := threads(t, 2)
	for _, groupInputs := range []int{0, 128} {
		m := packInt8(t, 1, depth, groupInputs, make([]uint16, depth))
		x := activations(source(1), rows, depth, depth+7)
		floats := make([]float32, len(x))
		for i, b := range x {
			floats[i] = fromBF16(b)
		}
		plain := quantiseOn(t, w, Plain, rows, x, m)
		onEachPath(t, func(t *testing.T, p Path) {
			fromHalves := quantiseOn(t, w, p, rows, x, m)
			fromFloats := newQuantised(rows, m.activationStride(), m)
			if err := quantiseFloats(w, p, m, floats, fromFloats); err != nil {
				t.Fatal(err)
			}
			for _, got := range []quantised{fromHalves, fromFloats} {
				if !slices.Equal(got.values, plain.values) || !slices.Equal(got.groups, plain.groups) {
					t.Error("differs from the plain path")
				}
			}
		})
		// A group is what it would be as a row of its own.
		for group, got := range plain.groups[:m.groups] {
			inputs := max(groupInputs, depth*(1-min(groupInputs, 1)))
			part := x[group*inputs : min((group+1)*inputs, depth)]
			alone := packInt8(t, 1, len(part), 0, make([]uint16, len(part)))
			q := quantiseOn(t, w, Plain, 1, part, alone)
			if q.groups[0] != got || !slices.Equal(q.values[:len(part)], plain.values[group*inputs:][:len(part)]) {
				t.Errorf("group %d is %+v, alone %+v", group, got, q.groups[0])
			}
		}
	}
}

// TestInt8Misuse: what is out of range is refused, and paths that the machine lacks.
func TestInt8Misuse(t *testing.T) {
	w := threads(t, 1)
	m := packInt8(t, 65, 65, 0, make([]uint16, 65*65)) // padded to 128 and 128
	room := func(stride int) quantised { return newQuantised(1, stride, m) }
	for _, c := range []struct {
		name string
		err  error
	}{
		{"narrow activations", quantise(w, Plain, m, make([]uint16, 64), room(128))},
		{"narrow values", quantise(w, Plain, m, make([]uint16, 65), room(127))},
		{"narrow values of a product", gemmInt8(w, Plain, room(127), m, make([]float32, 128))},
		{"narrow results", gemmInt8(w, Plain, room(128), m, make([]float32, 127))},
		{"path 0", gemmInt8(w, 0, room(128), m, make([]float32, 128))},
		{"path 6", quantise(w, AMX+1, m, make([]uint16, 65), room(128))},
		{"columns beyond the last", m.pack(64, make([]uint16, 2*65))},
		{"column -1", m.pack(-1, make([]uint16, 65))},
		{"no columns", m.pack(0, nil)},
	} {
		if !errors.Is(c.err, syscall.EINVAL) {
			t.Errorf("%s: %v, want EINVAL", c.name, c.err)
		}
	}
	if _, err := gatherInt8(m, []int32{65}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a column beyond the last: %v, want EINVAL", err)
	}
	for _, p := range paths {
		if err := gemmInt8(w, p, room(128), m, make([]float32, 128)); !p.Available() !=
			errors.Is(err, syscall.ENOTSUP) {
			t.Errorf("%v: %v", p, err)
		}
	}
	for _, c := range []struct{ columns, depth, groupInputs, given int }{
		{0, 1, 0, 0}, {1, 0, 0, 0}, {2, 3, 0, 5}, {1, 64, 32, 64}, {1, 64, -64, 64}, {1, 64, 100, 64},
		{1, 1<<17 + 1, 0, 1<<17 + 1}, {1, 64, 1<<17 + 64, 64},
	} {
		if _, err := newInt8Weights(c.columns, c.depth, c.groupInputs, make([]uint16, c.given)); err == nil {
			t.Errorf("%d weights for %d x %d in groups of %d were taken", c.given, c.columns, c.depth,
				c.groupInputs)
		}
	}
}

// TestInt8Stream: the measure of pure reading covers all bytes: weights of zero are bytes of 128, and scales
// are 0.
func TestInt8Stream(t *testing.T) {
	const columns, depth = 320, 128
	m := packInt8(t, columns, depth, 64, make([]uint16, columns*depth))
	if want := columns*depth + columns*2*4; m.bytes() != want {
		t.Errorf("%d bytes, want %d", m.bytes(), want)
	}
	var want uint64
	for range columns * depth / 8 {
		want += 0x8080808080808080
	}
	if sum, err := streamInt8(threads(t, 2), m); err != nil || sum != want {
		t.Errorf("sum %#x, %v, want %#x", sum, err, want)
	}
}
