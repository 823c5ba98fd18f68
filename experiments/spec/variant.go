package spec

import (
	"maps"
	"slices"
)

// VariantAxis is the axis that [[variant]] makes, outside of those of a sweep.
const VariantAxis = "variant"

// variantParts are the tables and arrays that a variant may change.
var variantParts = []string{"models", "devices", "links", "router", "workload", "policy", "scheduler"}

// variant is one of the systems that a spec compares: the whole document with what the variant changes.
type variant struct {
	name string
	root *node
}

// fragments puts in place of the key extends of each variant what the file of that name has; keys of the
// variant itself replace those of the file.
func (l *loader) fragments() {
	top, _ := l.root.value.(table)
	if top["variant"] == nil {
		return
	}
	variants, ok := top["variant"].value.(list)
	if !ok {
		return // reported when it is read
	}
	variants = slices.Clone(variants)
	for i, v := range variants {
		variants[i] = l.withFragment(v, element("variant", i))
	}
	l.root = l.root.with([]string{"variant"}, &node{value: variants, file: top["variant"].file,
		line: top["variant"].line})
}

func (l *loader) withFragment(v *node, path string) *node {
	own, ok := v.value.(table)
	if !ok || own["extends"] == nil {
		return v
	}
	own = maps.Clone(own)
	extends := own["extends"]
	delete(own, "extends")
	bare := &node{value: own, file: v.file, line: v.line}
	name, ok := extends.value.(string)
	if !ok || name == "" {
		l.add(extends, path+".extends", "want the name of a file with parts of a spec, as a string")
		return bare
	}
	file := beside(extends.file, name)
	fragment, problems := readTree(file, l.read, nil)
	if len(problems) == 1 && problems[0].Line == 0 && problems[0].File == file {
		l.add(extends, path+".extends", "want a file that can be read: "+problems[0].Text)
		return bare
	}
	if problems != nil {
		l.problems = append(l.problems, problems...)
		return bare
	}
	m := merger{variant: true}
	merged := m.merge(fragment, bare, "")
	l.problems = append(l.problems, m.problems...)
	return merged
}

// readVariants lists the systems to compare; without [[variant]] the document itself, which has no name.
func (l *loader) readVariants(top *section) []variant {
	sections := top.subs("variant")
	if len(sections) == 0 {
		return []variant{{root: l.root}}
	}
	if l.spec.Answered || l.spec.Hardware != nil {
		top.wrong("variant", "want none beside [system] or [[routing]]: variants are simulated")
	}
	below := maps.Clone(l.root.value.(table))
	delete(below, "variant")
	base := &node{value: below, file: l.root.file, line: l.root.line}
	var all []variant
	for _, s := range sections {
		v := variant{name: s.text("name", "")}
		if !s.has("name") {
			s.missing("name", "want a name, as in results, figures and references")
		} else if slices.ContainsFunc(all, func(o variant) bool { return o.name == v.name }) {
			s.wrong("name", "want a name that no other variant has")
		}
		s.get("extends") // taken in by now
		parts := make(table)
		for _, key := range append([]string{"calibration"}, variantParts...) {
			if n := s.get(key); n != nil {
				parts[key] = n
			}
		}
		s.done()
		m := merger{variant: true}
		own := l.calibrated(&node{value: parts, file: s.at.file, line: s.at.line}, true)
		v.root = m.merge(base, own, "")
		l.problems = append(l.problems, m.problems...)
		all = append(all, v)
	}
	return all
}
