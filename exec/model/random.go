package model

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"math"
	"strings"
)

// Random numbers of a made model are a function of seed, tensor and place alone, in integers up to the last
// step, so that any device can make the same bits: number i of a tensor is
//
//	mean + spread/unit * (a + b + c + d - 131070), rounded to bf16
//
// where a, b, c and d are the four 16-bit parts of splitmix64's output i (from 0) for the state
// mix(seed XOR FNV-1a-64 of the name). The sum of four uniform numbers is near to a normal one and never more
// than 3.5 spreads off; unit is its standard deviation.

// splitmix is the increment of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
// generators", OOPSLA 2014).
const splitmix = 0x9e3779b97f4a7c15

// mix is the output function of splitmix64.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// bell says how the numbers of a tensor are spread.
type bell struct{ mean, spread float64 }

// bellOf keeps activations finite at any depth: matrices keep the size of what they are given (1/sqrt(in)),
// and those that write to the residual stream are smaller by sqrt(2 layers), as in GPT-2. Norms are near 1.
func bellOf(e Expected, layers int) bell {
	if len(e.Shape) == 1 {
		if strings.HasSuffix(e.Name, ".bias") {
			return bell{0, 0.1}
		}
		return bell{1, 0.1}
	}
	spread := 1 / math.Sqrt(float64(e.Shape[1]))
	if strings.HasSuffix(e.Name, "o_proj.weight") || strings.HasSuffix(e.Name, "down_proj.weight") {
		spread /= math.Sqrt(2 * float64(layers))
	}
	return bell{0, spread}
}

// Law is how the numbers of a tensor come about: number i (from 0) is Mean + Scale * (a + b + c + d -
// 131070), in float64, rounded to float32 and that to bf16; a to d are the 16-bit parts of output i of
// splitmix64 for State.
type Law struct {
	State       uint64
	Mean, Scale float64
}

// LawOf is that of the tensor e that Make writes for c and seed.
func (c *Config) LawOf(e Expected, seed uint64) Law {
	name := fnv.New64a()
	name.Write([]byte(e.Name)) // never fails
	b := bellOf(e, c.Layers)
	// The variance of one part is (65536^2 - 1) / 12.
	unit := math.Sqrt(4 * (65536*65536 - 1) / 12.0)
	return Law{State: mix(seed ^ name.Sum64()), Mean: b.mean, Scale: b.spread / unit}
}

// FillRandom fills dst with the bf16 numbers of the tensor e that Make writes for c and seed, from number
// first on; len(dst) is even.
func (c *Config) FillRandom(dst []byte, e Expected, seed uint64, first int64) {
	law := c.LawOf(e, seed)
	state := law.State + splitmix*uint64(first)
	for i := 0; i < len(dst); i += 2 {
		state += splitmix
		z := mix(state)
		sum := int64(z&0xffff+z>>16&0xffff+z>>32&0xffff+z>>48) - 131070
		// The conversion keeps the product from being fused with the sum, which not every machine does.
		x := law.Mean + float64(law.Scale*float64(sum))
		binary.LittleEndian.PutUint16(dst[i:], ToBF16(float32(x)))
	}
}

// chunkBytes is how much of a tensor is made before it is written.
const chunkBytes = 1 << 18

// fill writes the bf16 numbers of a tensor. It calls made with the bytes of each chunk that it has written,
// and ends with made's error.
func fill(w io.Writer, c *Config, e Expected, seed uint64, made func(bytes int) error) error {
	size, _ := shapeBytes(e.Shape, BF16)
	chunk := make([]byte, min(size, chunkBytes))
	for done := int64(0); done < size; {
		chunk = chunk[:min(size-done, chunkBytes)]
		c.FillRandom(chunk, e, seed, done/2)
		if _, err := w.Write(chunk); err != nil {
			return err
		}
		if err := made(len(chunk)); err != nil {
			return err
		}
		done += int64(len(chunk))
	}
	return nil
}
