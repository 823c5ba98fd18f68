package transformers

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"tokenrouter/exec/model"
)

// How far logits may be from those of transformers in float32, in spreads: see Distance.
const (
	// Float32Tolerance is for float64 and float32. Package reference was up to 8e-6 off.
	Float32Tolerance = 2e-5

	// BF16Tolerance is for devices that keep weights, keys and values in bf16, round to it what goes into a
	// matrix product, and keep sums and the residual stream in float32. Package reference with the same
	// rounding was at most 0.050 off in 8 random prompts for each case, 5,000 rows of logits, and 0.020 in
	// the mean of all rows; transformers itself in bf16, which rounds the residual stream too, 0.107 and
	// 0.039. Greedy continuations lead by twice this at each token: a device within it gives the same tokens.
	BF16Tolerance = 0.06
)

//go:embed cases.json
var casesJSON []byte

//go:embed answers.json
var answersJSON []byte

// Case is a tiny model with random weights and what transformers answers for it.
type Case struct {
	Name    string
	Why     string          // what it is there for
	Seed    uint64          // of model.Make
	Lengths []int           // of the prompts, in tokens
	Config  json.RawMessage // its config.json
	Answers []Answer        `json:"-"` // to a prompt of each length
}

// Answer is what transformers makes of one prompt.
type Answer struct {
	Prompt  []int32
	Greedy  []int32 // what follows if the most likely token is taken each time, in float32
	Lead    float64 // smallest lead of the best logit over the second along Greedy, in spreads
	Float32 Last
	BF16    Last
	// In float32, of each position of the prompt.
	Best      []int32   // the most likely token
	BestLogit []float64 `json:"best_logit"`
	LogSumExp []float64 `json:"log_sum_exp"`
}

// Last is what belongs to the last position of a prompt.
type Last struct {
	Logits []float64
	Hidden []float64 // after the last norm
}

// Cases returns all of them.
func Cases() []Case {
	var cases []Case
	var answers map[string][]Answer
	if err := json.Unmarshal(casesJSON, &cases); err != nil {
		panic(fmt.Sprintf("transformers: cases.json: %v", err))
	}
	if err := json.Unmarshal(answersJSON, &answers); err != nil {
		panic(fmt.Sprintf("transformers: answers.json: %v", err))
	}
	for i := range cases {
		cases[i].Answers = answers[cases[i].Name]
	}
	return cases
}

// Make writes the model to dir, which must be empty or not exist. Its config.json is that of the case, word
// for word.
func (c Case) Make(ctx context.Context, dir string) error {
	config, err := model.ParseConfig(c.Config, nil)
	if err != nil {
		return fmt.Errorf("case %s: %w", c.Name, err)
	}
	if err := model.Make(ctx, dir, config, c.Seed, nil); err != nil {
		return fmt.Errorf("case %s: %w", c.Name, err)
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), c.Config, 0o644)
}

// Spread is the standard deviation of a row of logits.
func Spread(logits []float64) float64 {
	sum, square := 0.0, 0.0
	for _, z := range logits {
		sum += z
	}
	mean := sum / float64(len(logits))
	for _, z := range logits {
		square += (z - mean) * (z - mean)
	}
	return math.Sqrt(square / float64(len(logits)))
}

// Distance is the largest |got - want| in spreads of want: 0.1 is far too little to be seen in text, and 1 is
// another model. It is +infinity for rows of different lengths and where a number is NaN.
func Distance(got, want []float64) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	worst := 0.0
	for i, w := range want {
		difference := math.Abs(got[i] - w)
		if math.IsNaN(difference) {
			return math.Inf(1)
		}
		worst = max(worst, difference)
	}
	return worst / Spread(want)
}
