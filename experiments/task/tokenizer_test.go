package task

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"tokenrouter/exec/model/chat"
	"tokenrouter/exec/model/tokenizer"
)

const tokenizerFolder = "../train/tokenizer"

// TestTokenizer: the tokenizer of the models gives the ids of the Hugging Face tokenizers library, and text
// back.
func TestTokenizer(t *testing.T) {
	tokens, err := tokenizer.Load(tokenizerFolder + "/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(tokenizerFolder + "/ids.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Text string
		IDs  []int32
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) < 200 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		ids := tokens.Encode(c.Text, tokenizer.Options{ParseSpecial: true})
		if !slices.Equal(ids, c.IDs) {
			t.Errorf("%q: got %v, want %v", c.Text, ids, c.IDs)
		}
		if text := tokens.Decode(ids, false); text != c.Text {
			t.Errorf("%q comes back as %q", c.Text, text)
		}
	}
}

// TestPrompt: a problem's prompt through the chat template begins and ends as in training: <|im_start|> is 1,
// <|im_end|> is 2; each digit is a token, and signs are tokens with their blanks.
func TestPrompt(t *testing.T) {
	tokens, err := tokenizer.Load(tokenizerFolder + "/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	template, err := chat.Load(tokenizerFolder)
	if err != nil {
		t.Fatal(err)
	}
	messages := []chat.Message{{Role: "user", Content: "Compute 12 + 3 * 4."}}
	ids, err := template.Encode(tokens, messages, chat.Options{Reply: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, id := range ids {
		token, _ := tokens.Token(id)
		got = append(got, token)
	}
	want := []string{"<|im_start|>", "user", "Ċ", "Compute", "Ġ", "1", "2", "Ġ+Ġ", "3", "Ġ*Ġ", "4", ".",
		"<|im_end|>", "Ċ", "<|im_start|>", "assistant", "Ċ"}
	if !slices.Equal(got, want) || ids[0] != 1 || ids[12] != 2 {
		t.Errorf("got %q, %v", got, ids)
	}
}

// TestLengths: answers have about 40 to 300 tokens, and 512 hold every prompt with its answer.
func TestLengths(t *testing.T) {
	tokens, err := tokenizer.Load(tokenizerFolder + "/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		for _, p := range task.Fixed() {
			prompt := len(tokens.Encode(p.Prompt, tokenizer.Options{}))
			answer := len(tokens.Encode(p.Answer, tokenizer.Options{}))
			if answer < 35 || answer > 330 || prompt+answer+16 > 512 {
				t.Errorf("%s: %d tokens of prompt, %d of answer", p.ID, prompt, answer)
			}
		}
	}
}
