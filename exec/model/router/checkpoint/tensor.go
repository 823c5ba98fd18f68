package checkpoint

import (
	"errors"
	"fmt"
	"math"
)

// call does what the few functions that a checkpoint may name would do.
func (m *machine) call(operation byte) error {
	count := 2
	if operation == persistent {
		count = 1
	}
	values, err := m.pop(count)
	if err != nil {
		return err
	}
	switch operation {
	case persistent:
		s, err := m.storage(values[0])
		m.push(s)
		return err
	case build:
		// state_dict carries the versions of its modules.
		if d, ok := values[0].(*dict); !ok || !d.ordered {
			return fmt.Errorf("instruction BUILD for %s is refused, want it for an OrderedDict only",
				shown(values[0]))
		}
		m.push(values[0])
		return nil
	}
	arguments, ok := values[1].(tuple)
	if !ok {
		return fmt.Errorf("a call with %s, want a tuple", shown(values[1]))
	}
	switch values[0] {
	case orderedDict:
		if len(arguments) != 0 {
			return errors.New("an OrderedDict of something, want an empty one")
		}
		m.push(&dict{values: map[string]any{}, ordered: true})
		return nil
	case rebuildTensor:
		t, err := rebuilt(arguments)
		m.push(t)
		return err
	}
	return fmt.Errorf("a call of %s is refused", shown(values[0]))
}

// storage finds what a persistent id names: ("storage", type, key, device, elements).
func (m *machine) storage(id any) (*storage, error) {
	parts, _ := id.(tuple)
	if len(parts) != 5 || parts[0] != "storage" {
		return nil, fmt.Errorf("persistent id %s, want a storage", shown(id))
	}
	kind, _ := parts[1].(name)
	dtype, ok := storageTypes[kind]
	key, isText := parts[2].(string)
	elements, isNumber := parts[4].(int64)
	if !ok || !isText || !isNumber {
		return nil, fmt.Errorf("storage of %s, key %s, %s elements", shown(parts[1]), shown(parts[2]),
			shown(parts[4]))
	}
	return m.storages(key, dtype, elements)
}

// rebuilt is torch._utils._rebuild_tensor_v2: storage, offset, size, stride, requires_grad, hooks.
func rebuilt(arguments tuple) (*tensor, error) {
	if len(arguments) != 6 {
		return nil, fmt.Errorf("a tensor of %d values, want 6", len(arguments))
	}
	from, isStorage := arguments[0].(*storage)
	offset, isNumber := arguments[1].(int64)
	shape, hasShape := numbers(arguments[2])
	strides, hasStrides := numbers(arguments[3])
	if !isStorage || !isNumber || !hasShape || !hasStrides || len(shape) != len(strides) {
		return nil, fmt.Errorf("a tensor of %s, offset %s, size %s, stride %s", shown(arguments[0]),
			shown(arguments[1]), shown(arguments[2]), shown(arguments[3]))
	}
	elements := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] < 0 || shape[i] > 0 && elements > math.MaxInt64/shape[i] {
			return nil, fmt.Errorf("a tensor of shape %d", shape)
		}
		if shape[i] != 1 && strides[i] != elements {
			return nil, fmt.Errorf("a tensor of shape %d has strides %d, want it contiguous", shape, strides)
		}
		elements *= shape[i]
	}
	if offset < 0 || offset > from.elements || elements > from.elements-offset {
		return nil, fmt.Errorf("a tensor of %d elements from %d, its storage has %d", elements, offset,
			from.elements)
	}
	return &tensor{from, shape, offset, elements}, nil
}

// numbers are those of a tuple.
func numbers(v any) ([]int64, bool) {
	values, ok := v.(tuple)
	all := make([]int64, len(values))
	for i, value := range values {
		n, is := value.(int64)
		all[i], ok = n, ok && is
	}
	return all, ok
}
