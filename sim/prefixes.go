package sim

import "tokenrouter/core/keyed"

// prefixes names the pages of shared prompt prefixes: a key for each group and page.
type prefixes struct {
	pageTokens int
	groups     map[uint32][]uint64
}

func newPrefixes(pageTokens int) prefixes {
	return prefixes{pageTokens, make(map[uint32][]uint64)}
}

// keys returns the keys of the whole pages of the first tokens of a prompt of the group.
func (p *prefixes) keys(group uint32, tokens int32) []uint64 {
	pages := int(tokens) / p.pageTokens
	if group == 0 || pages == 0 {
		return nil
	}
	keys := p.groups[group]
	for len(keys) < pages {
		keys = append(keys, keyed.Hash(uint64(group), uint64(len(keys)), 0, 0, keyed.Prompt))
	}
	p.groups[group] = keys
	return keys[:pages]
}
