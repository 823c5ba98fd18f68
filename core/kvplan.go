package core

import "fmt"

// Footprint is what a model needs of the memory of the device that it is on.
type Footprint struct {
	Name          string
	WeightBytes   int64
	KVBytesPerTok int64 // 2 * layers * KV heads * head size * bytes an element
}

// PlanPages shares the memory of one device among the models on it: the largest common
// capacity T with sum W_i + T * sum c_i <= budget (TokenRouter, section 3.2), in whole pages
// of pageTokens. Planning is joint, the pools stay private. It refuses a budget that leaves
// no page.
func PlanPages(budgetBytes int64, models []Footprint, pageTokens int) (pages int, err error) {
	var weights, perToken int64
	for _, m := range models {
		if m.WeightBytes < 0 || m.KVBytesPerTok <= 0 {
			return 0, fmt.Errorf("model %q: %d weight bytes and %d KV bytes a token, want >= 0 and > 0",
				m.Name, m.WeightBytes, m.KVBytesPerTok)
		}
		weights += m.WeightBytes
		perToken += m.KVBytesPerTok
	}
	if perToken == 0 || pageTokens < 1 {
		return 0, fmt.Errorf("%d models and pages of %d tokens, want at least 1 of each",
			len(models), pageTokens)
	}
	pages = int((budgetBytes - weights) / (perToken * int64(pageTokens)))
	if budgetBytes < weights || pages < 1 {
		return 0, fmt.Errorf("memory for models %v: %d bytes, want at least %d (weights) + %d"+
			" (a KV page of %d tokens each)", names(models), budgetBytes, weights,
			perToken*int64(pageTokens), pageTokens)
	}
	return pages, nil
}

func names(models []Footprint) []string {
	out := make([]string, len(models))
	for i, m := range models {
		out[i] = m.Name
	}
	return out
}
