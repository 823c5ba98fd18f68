package transformers

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// SmolLMTolerance is BF16Tolerance for SmolLM2-135M-Instruct, whose 30 layers and few large activations make
// more of the rounding: transformers itself in bf16 was 0.15 off in the mean of all rows and up to 0.9.
// Continuations lead by twice this at each token.
const SmolLMTolerance = 0.15

//go:embed smollm.json
var smollmJSON []byte

// SmolLMAnswer is what transformers, in float32, makes of a text with SmolLM2-135M-Instruct.
type SmolLMAnswer struct {
	Text      string
	Prompt    []int32   // its tokens
	Greedy    []int32   // what follows as long as the lead is large enough, at most 16 tokens
	Lead      float64   // as in Answer
	Tokens    []int32   // those whose logits after the text are in Logits: the best ones, and some others
	Logits    []float64 // of Tokens
	Spread    float64   // of all logits of the row
	LogSumExp float64   `json:"log_sum_exp"` // of all logits of the row
}

// SmolLM returns the answers to all texts.
func SmolLM() []SmolLMAnswer {
	var answers []SmolLMAnswer
	if err := json.Unmarshal(smollmJSON, &answers); err != nil {
		panic(fmt.Sprintf("transformers: smollm.json: %v", err))
	}
	return answers
}

// SmolLMFolder is where `make smollm` puts the model, seen from anywhere within the project; "" if it has not
// been run.
func SmolLMFolder() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
		dir = filepath.Dir(dir)
	}
	folder := filepath.Join(dir, ".models", "smollm2-135m-instruct")
	if _, err := os.Stat(filepath.Join(folder, "config.json")); err != nil {
		return ""
	}
	return folder
}

// Distance is the largest difference of a row of all logits from the answer's, in spreads.
func (a SmolLMAnswer) Distance(logits []float64) float64 {
	got := make([]float64, len(a.Tokens))
	for i, token := range a.Tokens {
		got[i] = logits[token]
	}
	// Distance is in spreads of the few tokens here.
	return Distance(got, a.Logits) * Spread(a.Logits) / a.Spread
}
