package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestReadme: the README's table is that of the kept results.
func TestReadme(t *testing.T) {
	var kept struct{ Results []measurement }
	raw, err := os.ReadFile("../../docs/standard-serving.json")
	if err == nil {
		err = json.Unmarshal(raw, &kept)
	}
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, ours := map[string]*strings.Builder{}, 0.0
	for _, m := range kept.Results {
		place := fmt.Sprintf("| %d | %d |", m.Requests, m.Tokens)
		row := rows[place]
		if row == nil {
			row = &strings.Builder{}
			rows[place] = row
		}
		if strings.HasSuffix(m.System, "ours") {
			ours = m.ThroughputTok
			fmt.Fprintf(row, " %.0f |", ours)
			continue
		}
		fmt.Fprintf(row, " %.0f (%.1f) |", m.ThroughputTok, ours/m.ThroughputTok)
	}
	if len(rows) != 6 {
		t.Errorf("%d points, want 6", len(rows))
	}
	for place, row := range rows {
		if want := place + row.String() + "\n"; !strings.Contains(string(readme), want) {
			t.Errorf("README has no line %q", want)
		}
	}
}
