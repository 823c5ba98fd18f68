package spec

import (
	"slices"
	"strings"
)

// unknown words the problem of a key that does not belong here.
func (s *section) unknown(key string) string {
	path := schemaPath(s.name(key))
	for _, k := range s.r.manual {
		if k.Path == path || strings.HasPrefix(k.Path, path+".") || strings.HasPrefix(k.Path, path+"[]") {
			return "does not apply here: it is for " + k.When
		}
	}
	var here []string
	for _, k := range s.r.manual {
		if rest, ok := strings.CutPrefix(k.Path, schemaPath(s.name(""))); ok {
			first, _, _ := strings.Cut(rest, ".")
			here = append(here, strings.TrimSuffix(first, "[]"))
		}
	}
	if path := s.r.namesake(key); path != "" && !slices.Contains(here, strings.ToLower(key)) {
		return "unknown key, the nearest known is " + path
	}
	if best := Nearest(key, here); best != "" {
		return "unknown key, the nearest known is " + s.name(best)
	}
	if best := s.r.elsewhere(key); best != "" {
		return "unknown key, the nearest known is " + best
	}
	slices.Sort(here)
	return "unknown key, known here: " + strings.Join(slices.Compact(here), ", ")
}

// aliases are what other systems call some keys.
var aliases = map[string]string{
	"n": "workload.concurrency", "concurrency_max": "workload.concurrency",
	"max_concurrency": "workload.concurrency",
	"num_requests":    "workload.requests", "qps": "workload.rate", "lambda": "workload.rate",
	"block_size": "scheduler.page_tokens", "batch_size": "models[].rows_max", "seeds": "replicates",
	"kv_blocks": "models[].kv.pages", "min_batch": "policy.thresholds",
}

// namesake is the key of another section with the same name, or what other systems call it.
func (r *reader) namesake(key string) string {
	key = strings.ToLower(key)
	for _, k := range r.manual {
		if strings.HasSuffix(k.Path, "."+key) && !strings.HasPrefix(k.Path, "sweep.") {
			return k.Path
		}
		if before, _, ok := strings.Cut(k.Path, "."+key+"."); ok {
			return before + "." + key
		}
	}
	if alias := aliases[key]; slices.ContainsFunc(r.manual, func(k Key) bool { return k.Path == alias }) {
		return alias
	}
	return ""
}

// elsewhere is the known key of any section that is nearest to key: by its last part or last two, or else by
// a part of key itself, as in treshold_large.
func (r *reader) elsewhere(key string) string {
	var names []string
	byName := make(map[string]string)
	note := func(name, path string) {
		if _, ok := byName[name]; !ok {
			names, byName[name] = append(names, name), path
		}
	}
	for _, k := range r.manual {
		parts := strings.Split(strings.ReplaceAll(k.Path, "[]", ""), ".")
		for i := len(parts) - 1; i >= 0; i-- {
			path := strings.Join(strings.Split(k.Path, ".")[:i+1], ".")
			note(parts[i], path)
		}
		if n := len(parts); n > 1 {
			note(parts[n-2]+"_"+parts[n-1], k.Path)
		}
	}
	if best := Nearest(key, names); best != "" {
		return byName[best]
	}
	const lettersMin = 4
	path, least := "", lettersMin
	for part := range strings.SplitSeq(key, "_") {
		best := Nearest(part, names)
		if d := distance(part, best); best != "" && len(part) >= lettersMin && d < least {
			path, least = byName[best], d
		}
	}
	return path
}

// giveUp makes all keys known that the section may ever have: what applies depends on a key that is itself
// at fault.
func (s *section) giveUp() {
	for _, k := range s.r.manual {
		if rest, ok := strings.CutPrefix(k.Path, schemaPath(s.name(""))); ok {
			first, _, _ := strings.Cut(rest, ".")
			s.known[strings.TrimSuffix(first, "[]")] = true
		}
	}
}
