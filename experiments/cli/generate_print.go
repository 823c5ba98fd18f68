package cli

import (
	"fmt"
	"math"
	"strings"

	"tokenrouter/exec"
)

// answerJSON is what generate --json prints of one answer.
type answerJSON struct {
	ID               string    `json:"id,omitempty"` // that the file of prompts gives
	Text             string    `json:"text"`
	Tokens           []int32   `json:"tokens"`
	Origin           []int     `json:"origin"` // index of the model that made the token
	LogProbs         []float32 `json:"logprobs"`
	PromptTokens     int       `json:"prompt_tokens"`
	CompletionTokens int       `json:"completion_tokens"`
	DroppedDrafts    int32     `json:"dropped_drafts"`
	FinishReason     string    `json:"finish_reason"`
	Throughput       float64   `json:"throughput_tok_s"`
	Error            string    `json:"error,omitempty"`
}

// totalsJSON is what it prints of a file of prompts after their answers, which come under "answers", a line
// each, in the order of the prompts.
type totalsJSON struct {
	PromptTokens     int       `json:"prompt_tokens"`
	CompletionTokens int       `json:"completion_tokens"`
	DroppedDrafts    int32     `json:"dropped_drafts"`
	Shares           []float64 `json:"shares"`            // of the tokens, by model
	BookkeepingShare float64   `json:"bookkeeping_share"` // as bookkeeping says
	Throughput       float64   `json:"throughput_tok_s"`  // of all together
}

// logProbMin stands for what is less likely than any number says (OpenAI's API).
const logProbMin = -9999

// document is one answer.
func (s *session) document(i int) answerJSON {
	a := s.answers[i]
	d := answerJSON{
		ID:     s.ids[i],
		Tokens: []int32{}, Origin: []int{}, LogProbs: []float32{}, PromptTokens: len(s.prompts[i].IDs),
		FinishReason: finishOf(a),
	}
	if a.Answer == nil {
		return d
	}
	d.Text, d.CompletionTokens, d.DroppedDrafts = a.Text(), len(a.Tokens), a.Leave.Dropped
	for _, t := range a.Tokens {
		d.Tokens = append(d.Tokens, t.Token)
		d.Origin = append(d.Origin, s.plan.Origin(t.Model))
		d.LogProbs = append(d.LogProbs, max(t.LogProb, logProbMin))
	}
	d.Throughput = rate(len(a.Tokens), float64(a.ElapsedNs))
	if d.FinishReason == "error" {
		d.Error = s.failure(i)
	}
	return d
}

// rate is tokens a second, to a millionth.
func rate(tokens int, ns float64) float64 {
	if ns <= 0 {
		return 0
	}
	return math.Round(float64(tokens)/ns*1e15) / 1e6
}

// totals adds up all answers.
func (s *session) totals() totalsJSON {
	all := totalsJSON{
		Shares: make([]float64, len(s.plan.Spec.Models)), BookkeepingShare: bookkeeping(s.timings),
	}
	for i := range s.answers {
		d := s.document(i)
		all.PromptTokens += d.PromptTokens
		all.CompletionTokens += d.CompletionTokens
		all.DroppedDrafts += d.DroppedDrafts
		for _, m := range d.Origin {
			all.Shares[m]++
		}
	}
	for m := range all.Shares {
		all.Shares[m] /= float64(max(all.CompletionTokens, 1))
	}
	all.Throughput = rate(all.CompletionTokens, float64(s.wallNs))
	return all
}

// bookkeeping is the share of its time that was not inside its device, of the model of which that is most: as
// a rule the one with the shortest steps.
func bookkeeping(timings []exec.Timing) float64 {
	most := 0.0
	for _, t := range timings {
		most = max(most, t.Bookkeeping())
	}
	return most
}

// print writes what is not written yet, and without JSON a line about all answers.
func (s *session) print() error {
	all := s.totals()
	switch {
	case s.many:
		if err := s.stream.finish(all); err != nil || s.json {
			return err
		}
	case s.json:
		return printJSON(s.stdout, s.document(0))
	}
	_, err := fmt.Fprintln(s.stderr, s.summary(&all))
	return err
}

// summary is the line at the end.
func (s *session) summary(all *totalsJSON) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %.1f tok/s", count(all.CompletionTokens, "token"), all.Throughput)
	for m, share := range all.Shares {
		if len(all.Shares) == 2 && m == 0 {
			continue // the rest
		}
		if len(all.Shares) > 1 {
			fmt.Fprintf(&b, ", %.1f %% by %s", 100*share, s.plan.Spec.Models[m].Name)
		}
	}
	if len(s.plan.Core.Models) > 1 {
		fmt.Fprintf(&b, ", %s dropped", count(int(all.DroppedDrafts), "draft"))
	}
	fmt.Fprintf(&b, ", bookkeeping %.1f %%", 100*all.BookkeepingShare)
	return b.String()
}
