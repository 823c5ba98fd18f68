package result

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// AnswerRow is an answer in answers.jsonl: a line of JSON each, in order of points, replicates and problems.
type AnswerRow struct {
	Point     string `json:"point"`
	Replicate int    `json:"replicate"`
	Request   uint64 `json:"request"` // as in requests.parquet
	ID        string `json:"id"`      // of the problem
	Text      string `json:"text"`
	Final     string `json:"final"` // what the answer gives at its end; empty: nothing
	Right     bool   `json:"right"`
	// Tokens are the ids of the answer, without its end token. Origin has a digit each: the model that made it,
	// by its place in Summary.Models.
	Tokens  []int32 `json:"tokens"`
	Origin  string  `json:"origin"`
	Dropped int32   `json:"dropped"`         // drafts
	Finish  string  `json:"finish"`          // stop, length, or error
	Score   float64 `json:"score,omitempty"` // of the prompt, with routing by request
}

// WriteAnswers writes answers to a file, whole or not at all.
func WriteAnswers(path string, rows []AnswerRow) error {
	var text []byte
	for i := range rows {
		line, err := json.Marshal(&rows[i])
		if err != nil {
			return fmt.Errorf("answers: %w", err)
		}
		text = append(append(text, line...), '\n')
	}
	return WriteFile(path, text)
}

// EachAnswer calls f for every answer of a file, in order.
func EachAnswer(path string, f func(*AnswerRow) error) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("answers: %w", err)
	}
	defer file.Close()
	d := json.NewDecoder(bufio.NewReader(file))
	d.DisallowUnknownFields()
	for number := 1; ; number++ {
		var row AnswerRow
		err := d.Decode(&row)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = f(&row)
		}
		if err != nil {
			return fmt.Errorf("answers %s: entry %d: %w", path, number, err)
		}
	}
}
