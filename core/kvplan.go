package core

import "fmt"

// Footprint is what a model needs of the memory of the device that it is on.
type Footprint struct {
	Name          string
	WeightBytes   int64
	KVBytesPerTok int64 // 2 * layers * KV heads * head size * bytes an element
}

// What keeps the sums of PlanPages within an int64: 4 TB a model, 16384 tokens a page.
const (
	bytesMax      = 1 << 42
	pageTokensMax = 1 << 14
)

// PlanPages shares the memory of one device among the models on it: the largest common
// capacity T with sum W_i + T * sum c_i <= budget (TokenRouter, section 3.2), in whole pages
// of pageTokens. Planning is joint, the pools stay private. It refuses a budget that leaves
// no page.
func PlanPages(budgetBytes int64, models []Footprint, pageTokens int) (pages int, err error) {
	var weights, perToken int64
	for _, m := range models {
		if m.WeightBytes < 0 || m.WeightBytes > bytesMax || m.KVBytesPerTok <= 0 || m.KVBytesPerTok > bytesMax {
			return 0, fmt.Errorf("model %q: %d weight bytes and %d KV bytes a token, want 0 and 1 to %d",
				m.Name, m.WeightBytes, m.KVBytesPerTok, int64(bytesMax))
		}
		weights += m.WeightBytes
		perToken += m.KVBytesPerTok
	}
	if n := len(models); n < 1 || n > ModelsMax || pageTokens < 1 || pageTokens > pageTokensMax {
		return 0, fmt.Errorf("%d models and pages of %d tokens, want 1 to %d and 1 to %d",
			n, pageTokens, ModelsMax, pageTokensMax)
	}
	page := perToken * int64(pageTokens)
	if budgetBytes < weights || (budgetBytes-weights)/page < 1 {
		return 0, fmt.Errorf("memory for models %v: %d bytes, want at least %d (weights) + %d"+
			" (a KV page of %d tokens each)", names(models), budgetBytes, weights, page, pageTokens)
	}
	return int(min((budgetBytes-weights)/page, sizeMax)), nil
}

func names(models []Footprint) []string {
	out := make([]string, len(models))
	for i, m := range models {
		out[i] = m.Name
	}
	return out
}
