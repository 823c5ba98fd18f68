package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"tokenrouter/exec/answer"
	"tokenrouter/exec/native/nativetest"
)

// answersJSON is what generate --json prints of a file of prompts.
type answersJSON struct {
	Answers []answerJSON `json:"answers"`
	totalsJSON
}

// output keeps what is written and tells what has come so far.
type output struct {
	mu   sync.Mutex
	all  bytes.Buffer
	told func(written string)
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all.Write(b)
	if o.told != nil {
		o.told(o.all.String())
	}
	return len(b), nil
}

// manyOn is a session with prompts of a letter each on the fake, one after another.
func manyOn(t *testing.T, stdout *output, letters ...string) *session {
	t.Helper()
	small, _ := tinyPair(t)
	f := newGenerateFlags(nativetest.Fake())
	f.system.small = small
	f.tokensMax.of = 40
	plan, err := f.prepare(nil, pflag.NewFlagSet("", pflag.ContinueOnError), len(letters))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { plan.Close() })
	var asked []prompt
	for _, letter := range letters {
		asked = append(asked, prompt{text: letter})
	}
	prompts, err := f.encode(plan, asked)
	if err != nil {
		t.Fatal(err)
	}
	for i := range prompts {
		prompts[i].Sampling.IgnoreEOS = true
	}
	return &session{plan: plan, prompts: prompts, ids: make([]string, len(prompts)), inFlight: 1, many: true,
		stdout: stdout, stderr: &output{}}
}

// TestGenerateStreams: an answer to a file of prompts is written when it is whole, while others are made.
func TestGenerateStreams(t *testing.T) {
	first := make(chan struct{})
	once := sync.OnceFunc(func() { close(first) })
	stdout := &output{told: func(written string) {
		if strings.Contains(written, "finish_reason") {
			once()
		}
	}}
	s := manyOn(t, stdout, "a", "b", "c")
	s.json = true
	s.prompts[1].Piece = func(answer.Piece) { // the second answer goes on when the first has been written
		select {
		case <-first:
		case <-time.After(time.Minute):
			t.Error("the first answer was not written while the second was made")
		}
	}
	if err := s.run(t.Context(), outputFiles{}, 0); err != nil {
		t.Fatal(err)
	}
	var all answersJSON
	text := stdout.all.String()
	decode(t, text, &all)
	if len(all.Answers) != 3 || all.CompletionTokens != 120 || strings.Count(text, "\n") != 5 {
		t.Errorf("%d answers, %d tokens, want 3 and 120, in lines of their own:\n%s", len(all.Answers),
			all.CompletionTokens, text)
	}

	printed := &output{}
	s = manyOn(t, printed, "a", "b", "c")
	if err := s.run(t.Context(), outputFiles{}, 0); err != nil {
		t.Fatal(err)
	}
	want := ""
	for i, a := range all.Answers {
		want += fmt.Sprintf("--- %d of 3\n%s\n", i+1, strings.TrimSuffix(a.Text, "\n"))
	}
	if printed.all.String() != want {
		t.Errorf("text %q, want %q", printed.all.String(), want)
	}
}

// TestGenerateManyInterrupted: an interrupt keeps whole answers, what there is of those begun, and says of
// the others that they were not begun; what is printed is a whole JSON document.
func TestGenerateManyInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stdout := &output{told: func(written string) {
		if strings.Count(written, "finish_reason") == 2 {
			stop()
		}
	}}
	letters := strings.Split(strings.Repeat("a", 200), "")
	s := manyOn(t, stdout, letters...)
	s.json = true
	err := s.run(ctx, outputFiles{}, 0)
	var all answersJSON
	decode(t, stdout.all.String(), &all)
	whole, tokens := 0, 0
	for i, a := range all.Answers {
		switch {
		case a.FinishReason == "length" && len(a.Tokens) == 40 && i == whole:
			whole++
		case a.FinishReason != "cancelled":
			t.Errorf("answer %d: %+v", i, a)
		}
		tokens += len(a.Tokens)
	}
	want := fmt.Sprintf("interrupted; %d of 200 answers whole", whole)
	if err == nil || errors.Is(err, context.Canceled) || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if len(all.Answers) != 200 || whole < 2 || whole == 200 || all.CompletionTokens != tokens {
		t.Errorf("%d answers, %d of them whole, %d tokens of %d", len(all.Answers), whole, all.CompletionTokens,
			tokens)
	}
}
