package turnlog

import (
	"fmt"
	"math"
	"strconv"
	"unsafe"

	"tokenrouter/core/turnlog/jsonline"
)

// mode says what a fields does with the fields that it is shown.
type mode uint8

const (
	writeObject mode = iota + 1 // as keys and values; zero values are left out
	writeArray                  // as values alone
	readObject                  // the value of one key
	readArray                   // values in order
)

// fields writes or reads the fields of a struct, which are shown to it one after another by
// the same function for both: so that what is written is what is read.
type fields struct {
	mode  mode
	to    []byte // what is written
	first bool   // nothing yet in the object or array that is being written or read

	c     *jsonline.Cursor
	key   string // that was read
	found bool   // some field had that key
	names []string
	err   error
}

// next reports whether the field is to be written or read now. In an object that is written a
// zero field is not.
func (f *fields) next(name string, zero bool) bool {
	switch f.mode {
	case writeObject:
		if zero {
			return false
		}
		f.comma()
		f.to = append(f.to, '"')
		f.to = append(f.to, name...)
		f.to = append(f.to, '"', ':')
		return true
	case writeArray:
		f.comma()
		return true
	case readObject:
		f.names = append(f.names, name)
		if f.err != nil || f.key != name {
			return false
		}
		f.found = true
		return true
	case readArray:
		if f.err == nil && !f.first && !f.c.Take(',') {
			f.err = jsonline.At(name, f.c.Wrong("a comma"))
		}
		f.first = false
		return f.err == nil
	default:
		panic(fmt.Sprintf("turnlog: mode %d", f.mode))
	}
}

func (f *fields) comma() {
	if !f.first {
		f.to = append(f.to, ',')
	}
	f.first = false
}

func (f *fields) writes() bool { return f.mode == writeObject || f.mode == writeArray }

// fail keeps the first error. The value of an array has no key of its own yet.
func (f *fields) fail(name string, err error) {
	if err != nil && f.err == nil {
		if f.mode == readArray {
			err = jsonline.At(name, err)
		}
		f.err = err
	}
}

// signed shows a signed number.
func signed[T ~int | ~int8 | ~int16 | ~int32 | ~int64](f *fields, name string, p *T) {
	if !f.next(name, *p == 0) {
		return
	}
	if f.writes() {
		f.to = strconv.AppendInt(f.to, int64(*p), 10)
		return
	}
	least, most := bounds[T]()
	var err error
	*p, err = jsonline.Integer(f.c, least, most)
	f.fail(name, err)
}

func bounds[T ~int | ~int8 | ~int16 | ~int32 | ~int64]() (least, most T) {
	most = T(1)
	for more := most<<1 | 1; more > most; more = most<<1 | 1 {
		most = more
	}
	return -most - 1, most
}

// unsigned shows a number that is not below zero.
func unsigned[T ~uint8 | ~uint16 | ~uint32 | ~uint64](f *fields, name string, p *T) {
	if !f.next(name, *p == 0) {
		return
	}
	if f.writes() {
		f.to = strconv.AppendUint(f.to, uint64(*p), 10)
		return
	}
	var err error
	*p, err = jsonline.Unsigned(f.c, ^T(0))
	f.fail(name, err)
}

// float shows a number of 32 or 64 bits.
func float[T ~float32 | ~float64](f *fields, name string, p *T) {
	value := float64(*p)
	if !f.next(name, math.Float64bits(value) == 0) {
		return
	}
	bits := 8 * int(unsafe.Sizeof(*p))
	if f.writes() {
		f.to = jsonline.AppendFloat(f.to, value, bits)
		return
	}
	value, err := f.c.AnyFloat(bits)
	*p = T(value)
	f.fail(name, err)
}

// flag shows a bool: true in an object, 0 or 1 in an array.
func flag(f *fields, name string, p *bool) {
	if !f.next(name, !*p) {
		return
	}
	var err error
	switch f.mode {
	case writeObject:
		f.to = append(f.to, "true"...)
	case writeArray:
		f.to = append(f.to, '0'+bit(*p))
	case readObject:
		*p, err = f.c.Bool()
	default:
		var n uint8
		n, err = jsonline.Unsigned[uint8](f.c, 1)
		*p = n == 1
	}
	f.fail(name, err)
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// text shows a string.
func text(f *fields, name string, p *string) {
	if !f.next(name, *p == "") {
		return
	}
	if f.writes() {
		f.to = jsonline.AppendString(f.to, *p)
		return
	}
	var err error
	*p, err = f.c.String()
	f.fail(name, err)
}

// word shows a small enumeration by its names; a value that has none is a number.
func word[T ~uint8](f *fields, name string, p *T, names []string) {
	if !f.next(name, *p == 0) {
		return
	}
	if f.writes() {
		if int(*p) < len(names) {
			f.to = append(f.to, '"')
			f.to = append(f.to, names[*p]...)
			f.to = append(f.to, '"')
		} else {
			f.to = strconv.AppendUint(f.to, uint64(*p), 10)
		}
		return
	}
	if !f.c.Is('"') {
		var err error
		*p, err = jsonline.Unsigned[T](f.c, ^T(0))
		f.fail(name, err)
		return
	}
	before := *f.c
	value, err := f.c.String()
	for i, known := range names {
		if err == nil && known == value && i > 0 {
			*p = T(i)
			return
		}
	}
	if err == nil {
		err = before.Wrong(fmt.Sprintf("one of %q", names[1:]))
	}
	f.fail(name, err)
}

// layout says how the elements of a list are written.
type layout uint8

const (
	asObjects layout = iota + 1
	asArrays
	asValues
)

// list shows a slice, each element by the function. An empty one is left out of an object.
func list[T any](f *fields, name string, p *[]T, how layout, each func(*fields, *T)) {
	if !f.next(name, len(*p) == 0) {
		return
	}
	if !f.writes() {
		err := f.c.Array(func(i int) error {
			*p = append(*p, *new(T))
			return f.readElement(how, func() { each(f, &(*p)[i]) })
		})
		f.fail(name, err)
		return
	}
	f.to = append(f.to, '[')
	for i := range *p {
		if i > 0 {
			f.to = append(f.to, ',')
		}
		writeElement(f, how, &(*p)[i], each)
	}
	f.to = append(f.to, ']')
}

func writeElement[T any](f *fields, how layout, p *T, each func(*fields, *T)) {
	mode, first := f.mode, f.first
	f.first = true
	switch how {
	case asObjects:
		f.mode = writeObject
		f.to = append(f.to, '{')
		each(f, p)
		f.to = append(f.to, '}')
	case asArrays:
		f.mode = writeArray
		f.to = append(f.to, '[')
		each(f, p)
		f.to = append(f.to, ']')
	default:
		f.mode = writeArray
		each(f, p)
	}
	f.mode, f.first = mode, first
}

// readElement reads one value whose fields show displays.
func (f *fields) readElement(how layout, show func()) error {
	outer := *f
	f.err = nil
	switch how {
	case asObjects:
		f.readObject(show)
	case asArrays:
		f.mode, f.first = readArray, true
		if !f.c.Take('[') {
			f.err = f.c.Wrong("an array")
			break
		}
		show()
		if f.err == nil && !f.c.Take(']') {
			f.err = f.c.Wrong("the end of the array")
		}
	default:
		f.mode, f.first = readArray, true
		show()
		if e, ok := f.err.(*jsonline.Error); ok {
			e.Path = "" // a bare value has no name
		}
	}
	err := f.err
	outer.names = f.names[:len(outer.names)]
	*f = outer
	return err
}

func (f *fields) readObject(show func()) {
	start := len(f.names)
	f.mode = readObject
	f.err = f.c.Object(func(key string) error {
		f.key, f.found, f.err, f.names = key, false, nil, f.names[:start]
		show()
		if f.err == nil && !f.found {
			f.err = jsonline.Unknown(f.names[start:]...)
		}
		return f.err
	})
}

// fixed shows an array of a fixed number of values; one of zeros alone is left out of an
// object.
func fixed[T comparable](f *fields, name string, p []T, each func(*fields, *T)) {
	zero := true
	for i := range p {
		zero = zero && p[i] == *new(T)
	}
	if !f.next(name, zero) {
		return
	}
	if f.writes() {
		f.to = append(f.to, '[')
		for i := range p {
			if i > 0 {
				f.to = append(f.to, ',')
			}
			writeElement(f, asValues, &p[i], each)
		}
		f.to = append(f.to, ']')
		return
	}
	before, count := *f.c, 0
	err := f.c.Array(func(i int) error {
		if count = i + 1; i >= len(p) {
			return f.c.Wrong(fmt.Sprintf("an array of %d values", len(p)))
		}
		return f.readElement(asValues, func() { each(f, &p[i]) })
	})
	if err == nil && count != len(p) {
		err = before.Wrong(fmt.Sprintf("an array of %d values", len(p)))
	}
	f.fail(name, err)
}

// group shows a struct inside an object, as an object; it is never left out.
func group(f *fields, name string, show func()) {
	if !f.next(name, false) {
		return
	}
	if !f.writes() {
		f.fail(name, f.readElement(asObjects, show))
		return
	}
	mode := f.mode
	f.mode, f.first = writeObject, true
	f.to = append(f.to, '{')
	show()
	f.to = append(f.to, '}')
	f.mode, f.first = mode, false
}
