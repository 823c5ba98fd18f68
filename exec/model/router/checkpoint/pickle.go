package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"tokenrouter/exec/model"
)

// Instructions of pickle (Python's Lib/pickletools.py): those of protocol 2 that torch.save uses.
const (
	proto, stop, mark, put, longPut, get, longGet          = 0x80, '.', '(', 'q', 'r', 'h', 'j'
	none, yes, no, int4, int1, int2, long1, float          = 'N', 0x88, 0x89, 'J', 'K', 'M', 0x8a, 'G'
	text, emptyTuple, tuple1, tuple2, tuple3, tupleOf      = 'X', ')', 0x85, 0x86, 0x87, 't'
	emptyList, appendOne, appends, emptyDict, set, sets    = ']', 'a', 'e', '}', 's', 'u'
	global, reduce, build, persistent                      = 'c', 'R', 'b', 'Q'
	inst, object, newObject, newObjectEx, stackGlobal      = 'i', 'o', 0x81, 0x92, 0x93
	extension1, extension2, extension4, persistentText, up = 0x82, 0x83, 0x84, 'P', '2'
)

// refused are the names of instructions that a checkpoint has no use for, the dangerous ones first.
var refused = map[byte]string{
	inst: "INST", object: "OBJ", newObject: "NEWOBJ", newObjectEx: "NEWOBJ_EX", stackGlobal: "STACK_GLOBAL",
	extension1: "EXT1", extension2: "EXT2", extension4: "EXT4", persistentText: "PERSID", up: "DUP",
}

// What a pickle is made of, beside string, int64, float64, bool and nil.
type (
	// dict has texts for keys.
	dict struct {
		keys    []string
		values  map[string]any
		ordered bool // collections.OrderedDict, as state_dict is
	}
	list  struct{ items []any }
	tuple []any
	// name is what GLOBAL looks up.
	name string
	// tensor is a contiguous one.
	tensor struct {
		from             *storage
		shape            []int64
		offset, elements int64 // in elements of the storage
	}
)

// The names that a checkpoint may look up.
const (
	orderedDict   name = "collections OrderedDict"
	rebuildTensor name = "torch._utils _rebuild_tensor_v2"
)

var storageTypes = map[name]model.DType{
	"torch FloatStorage": model.F32, "torch HalfStorage": model.F16, "torch BFloat16Storage": model.BF16,
}

// machine runs pickle's instructions as far as they only make values.
type machine struct {
	code     []byte
	at       int
	stack    []any
	marks    []int // lengths of the stack
	memo     map[uint32]any
	storages func(key string, dtype model.DType, elements int64) (*storage, error)
}

// run returns what the program leaves.
func (m *machine) run() (any, error) {
	m.memo = map[uint32]any{}
	for {
		began := m.at
		operation, err := m.bytes(1)
		if err != nil {
			return nil, err
		}
		if operation[0] == stop {
			if len(m.stack) != 1 || len(m.marks) != 0 || m.at != len(m.code) {
				return nil, fmt.Errorf("ends at byte %d of %d with %d values, want all read and one", m.at,
					len(m.code), len(m.stack))
			}
			return m.stack[0], nil
		}
		if err := m.step(operation[0]); err != nil {
			return nil, fmt.Errorf("byte %d: %w", began, err)
		}
	}
}

func (m *machine) step(operation byte) error {
	switch operation {
	case proto:
		version, err := m.bytes(1)
		if err == nil && version[0] != 2 {
			err = fmt.Errorf("pickle protocol %d, want 2", version[0])
		}
		return err
	case mark:
		m.marks = append(m.marks, len(m.stack))
		return nil
	case put, longPut, get, longGet:
		return m.remember(operation)
	case none, yes, no, int4, int1, int2, long1, float, text:
		return m.scalar(operation)
	case emptyTuple, tuple1, tuple2, tuple3, tupleOf:
		return m.tuple(operation)
	case emptyList:
		m.push(&list{})
		return nil
	case emptyDict:
		m.push(&dict{values: map[string]any{}})
		return nil
	case appendOne, appends, set, sets:
		return m.fill(operation)
	case global:
		return m.global()
	case reduce, build, persistent:
		return m.call(operation)
	}
	if known := refused[operation]; known != "" {
		return fmt.Errorf("instruction %s is refused: a checkpoint has no use for it", known)
	}
	return fmt.Errorf("instruction %#02x is refused: a checkpoint has no use for it", operation)
}

// bytes takes the next n bytes of the program.
func (m *machine) bytes(n int) ([]byte, error) {
	if n < 0 || n > len(m.code)-m.at {
		return nil, fmt.Errorf("ends at byte %d, want %d more from byte %d", len(m.code), n, m.at)
	}
	m.at += n
	return m.code[m.at-n : m.at], nil
}

func (m *machine) push(v any) { m.stack = append(m.stack, v) }

// pop takes n values, the last one pushed at the end, not beyond the last mark.
func (m *machine) pop(n int) ([]any, error) {
	floor := 0
	if len(m.marks) > 0 {
		floor = m.marks[len(m.marks)-1]
	}
	if n > len(m.stack)-floor {
		return nil, fmt.Errorf("%d values, want %d", len(m.stack)-floor, n)
	}
	values := m.stack[len(m.stack)-n:]
	m.stack = m.stack[:len(m.stack)-n]
	return values, nil
}

// popMarked takes all values since the last mark.
func (m *machine) popMarked() ([]any, error) {
	if len(m.marks) == 0 {
		return nil, errors.New("no mark")
	}
	from := m.marks[len(m.marks)-1]
	values, err := m.pop(len(m.stack) - from)
	m.marks = m.marks[:len(m.marks)-1]
	return values, err
}

func (m *machine) top() (any, error) {
	values, err := m.pop(1)
	if err != nil {
		return nil, err
	}
	m.push(values[0])
	return values[0], nil
}

func (m *machine) remember(operation byte) error {
	width := 1
	if operation == longPut || operation == longGet {
		width = 4
	}
	raw, err := m.bytes(width)
	if err != nil {
		return err
	}
	place := binary.LittleEndian.Uint32(append(append([]byte{}, raw...), 0, 0, 0))
	if operation == put || operation == longPut {
		m.memo[place], err = m.top()
		return err
	}
	value, known := m.memo[place]
	if !known {
		return fmt.Errorf("value %d was never kept", place)
	}
	m.push(value)
	return nil
}

func (m *machine) scalar(operation byte) error {
	widths := map[byte]int{int4: 4, int1: 1, int2: 2, long1: 1, float: 8, text: 4}
	raw, err := m.bytes(widths[operation])
	if err != nil {
		return err
	}
	switch operation {
	case none:
		m.push(nil)
	case yes, no:
		m.push(operation == yes)
	case int1:
		m.push(int64(raw[0]))
	case int2:
		m.push(int64(binary.LittleEndian.Uint16(raw)))
	case int4:
		m.push(int64(int32(binary.LittleEndian.Uint32(raw))))
	case float:
		m.push(math.Float64frombits(binary.BigEndian.Uint64(raw)))
	case long1:
		return m.long(int(raw[0]))
	case text:
		size := binary.LittleEndian.Uint32(raw)
		letters, err := m.bytes(int(min(size, math.MaxInt32)))
		if err != nil {
			return err
		}
		if !utf8.Valid(letters) {
			return errors.New("text is not UTF-8")
		}
		m.push(string(letters))
	}
	return nil
}

// long reads a two's complement number of size bytes, the lowest first.
func (m *machine) long(size int) error {
	raw, err := m.bytes(size)
	if err != nil {
		return err
	}
	if size > 8 {
		return fmt.Errorf("number of %d bytes, want at most 8", size)
	}
	value := int64(0)
	for i, b := range raw {
		value |= int64(b) << (8 * i)
	}
	if size > 0 && size < 8 && raw[size-1] >= 0x80 {
		value -= 1 << (8 * size)
	}
	m.push(value)
	return nil
}

func (m *machine) tuple(operation byte) error {
	var values []any
	var err error
	switch operation {
	case tupleOf:
		values, err = m.popMarked()
	case tuple1, tuple2, tuple3:
		values, err = m.pop(int(operation-tuple1) + 1)
	}
	if err == nil {
		m.push(tuple(append([]any(nil), values...)))
	}
	return err
}

// fill adds to the list or dictionary below.
func (m *machine) fill(operation byte) error {
	var values []any
	var err error
	switch operation {
	case appendOne:
		values, err = m.pop(1)
	case set:
		values, err = m.pop(2)
	default:
		values, err = m.popMarked()
	}
	if err != nil {
		return err
	}
	values = append([]any(nil), values...)
	below, err := m.top()
	if err != nil {
		return err
	}
	if operation == appendOne || operation == appends {
		l, ok := below.(*list)
		if !ok {
			return fmt.Errorf("values for %s, want a list", shown(below))
		}
		l.items = append(l.items, values...)
		return nil
	}
	d, ok := below.(*dict)
	if !ok || len(values)%2 != 0 {
		return fmt.Errorf("%d keys and values for %s, want pairs for a dictionary", len(values), shown(below))
	}
	for i := 0; i < len(values); i += 2 {
		key, ok := values[i].(string)
		if _, twice := d.values[key]; !ok || twice {
			return fmt.Errorf("key %s of a dictionary, want texts, each once", shown(values[i]))
		}
		d.keys, d.values[key] = append(d.keys, key), values[i+1]
	}
	return nil
}

// global looks up a name, as far as it is one of those that tensors need.
func (m *machine) global() error {
	const namesMax = 200 // bytes
	lines := strings.SplitN(string(m.code[m.at:min(len(m.code), m.at+namesMax)]), "\n", 3)
	if len(lines) < 3 {
		return fmt.Errorf("a global's names do not end within %d bytes", namesMax)
	}
	m.at += len(lines[0]) + len(lines[1]) + 2
	n := name(lines[0] + " " + lines[1])
	if _, ok := storageTypes[n]; !ok && n != orderedDict && n != rebuildTensor {
		return fmt.Errorf("global %q is refused, want only tensors of F32, F16 and BF16, and plain values",
			strings.ReplaceAll(string(n), " ", "."))
	}
	m.push(n)
	return nil
}

// shown is a value for an error.
func shown(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case string:
		if len(v) > 60 {
			v = strings.ToValidUTF8(v[:60], "") + "..."
		}
		return strconv.Quote(v)
	case *dict:
		return "a dictionary"
	case *list:
		return "a list"
	case tuple:
		return "a tuple"
	case *tensor:
		return "a tensor"
	case *storage:
		return "a storage"
	case name:
		return string(v)
	}
	return fmt.Sprint(v)
}
