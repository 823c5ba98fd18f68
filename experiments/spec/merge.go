package spec

import (
	"maps"
	"slices"
	"strings"
)

// merger lays one document over another: tables are merged key by key, arrays are replaced as a whole, and an
// empty array takes the key out. Over an array whose elements have names a table changes those that it names.
type merger struct {
	problems Problems
	// variant makes a policy or router of another kind replace the whole table: the keys of one kind mean
	// nothing to another.
	variant bool
}

// namedArrays may be changed by a table whose keys are the names of elements.
var namedArrays = []string{"models", "devices", "variant", "check"}

func (m *merger) merge(base, over *node, path string) *node {
	above, ok := over.value.(table)
	if !ok {
		return over
	}
	switch below := base.value.(type) {
	case table:
		return &node{value: m.tables(below, above, path), file: over.file, line: over.line}
	case list:
		if slices.Contains(namedArrays, path) {
			return &node{value: m.byName(below, above, path), file: over.file, line: over.line}
		}
	}
	return over
}

func (m *merger) tables(below, above table, path string) table {
	both, whole := maps.Clone(below), m.anotherKind(path, below, above)
	if whole {
		both = make(table)
	}
	for key, n := range above {
		old, ok := both[key]
		switch {
		case (ok || whole) && isEmpty(n):
			delete(both, key)
		case ok:
			both[key] = m.merge(old, n, strings.TrimPrefix(path+"."+key, "."))
		default:
			both[key] = n
		}
	}
	return both
}

// anotherKind reports whether a table replaces the one below as a whole: a latency that is changed by the
// name of its model and, in a variant, a policy or router.
func (m *merger) anotherKind(path string, below, above table) bool {
	key := "kind"
	switch {
	case strings.HasPrefix(path, "models.") && strings.HasSuffix(path, ".latency"):
	case m.variant && path == "policy":
	case m.variant && path == "router":
		key = "algorithm"
	default:
		return false
	}
	old, own := below[key], above[key]
	return old != nil && own != nil && old.text() != own.text()
}

// byName changes elements of an array; an empty array in place of a table takes the element out.
func (m *merger) byName(below list, above table, path string) list {
	all := slices.Clone(below)
	for _, name := range above.keys() {
		n := above[name]
		at := slices.IndexFunc(all, func(e *node) bool { return e.name() == name })
		switch {
		case at < 0:
			m.problems = append(m.problems, n.problem(path+"."+quoteKey(name),
				"want the name of one that is there to be changed: "+quoteAll(namesOf(below))))
		case isEmpty(n):
			all = slices.Delete(all, at, at+1)
		default:
			all[at] = m.merge(all[at], n, path+"."+name)
		}
	}
	return all
}

// name is the value of the key of that name, "" if there is none.
func (n *node) name() string {
	t, ok := n.value.(table)
	if !ok || t["name"] == nil {
		return ""
	}
	name, _ := t["name"].value.(string)
	return name
}

func namesOf(elements list) []string {
	var names []string
	for _, e := range elements {
		if name := e.name(); name != "" {
			names = append(names, name)
		}
	}
	return names
}
