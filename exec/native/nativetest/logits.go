package nativetest

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/native"
)

// WriteLogits writes what models say after some tokens to JSON files in the folder to, named after the
// models' folders, which commas separate: for a comparison with other programs. The prompt comes at once and
// each further token alone, so that prefill and decode are among them.
func (s Suite) WriteLogits(t *testing.T, folders, to string) {
	for dir := range strings.SplitSeq(folders, ",") {
		folder, err := model.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		r := s.rig(t, native.Config{Model: folder.Config}, native.Files{Folder: folder}, limits())
		const prompt, all = 40, 60
		type said struct {
			Tokens []int32   `json:"tokens"`
			Logits []float64 `json:"logits"`
		}
		var written []said
		ids := tokens(31, all, folder.Config.Vocab)
		for end := prompt; end <= all; end++ {
			start := end - 1
			if end == prompt {
				start = 0
			}
			got := r.step(part{slot: 0, start: start, tokens: ids[start:end]})[0]
			for _, z := range got.logits {
				if math.IsNaN(z) || math.IsInf(z, 0) {
					t.Fatalf("%s: a logit is %v", dir, z)
				}
			}
			written = append(written, said{ids[:end], got.logits})
		}
		text, err := json.Marshal(written)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(dir)+".json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
