package workload

import (
	"errors"
	"strings"
	"testing"
)

const (
	header = "arrival_ms,prompt_tokens,output_tokens,max_tokens,prefix_group,prefix_tokens\n"
	times  = "arrival_s,prompt_tokens,output_tokens\n"
	first  = `{"arrival_ms":1,"prompt_tokens":1,"output_tokens":1}` + "\n"

	wantTime   = ", want a decimal number, at least 0 and at most 4611686018427387904 ns"
	wantPrompt = ", want a whole number 1 to 2147483647"
	wantOutput = ", want a whole number 0 to 2147483647"
	wantObject = ", want one JSON object of numbers on the line"
)

type badTrace struct {
	name, text string
	want       string // the whole error
}

var badCSV = []badTrace{
	{"empty CSV", "",
		`trace t:1: an empty file, want a header with arrival_ms, prompt_tokens and output_tokens`},
	{"header only", times, `trace t:1: no requests, want at least one`},
	{"unknown column", "arrival_ms,prompt_tokens,output_token\n1,1,1\n",
		`trace t:1: header = "output_token", want ` + wantColumns()},
	{"column in the wrong case", "Arrival_ms,prompt_tokens,output_tokens\n1,1,1\n",
		`trace t:1: header = "Arrival_ms", want ` + wantColumns()},
	{"column twice", "arrival_ms,prompt_tokens,output_tokens,prompt_tokens\n1,1,1,1\n",
		`trace t:1: header = "prompt_tokens", want each column once`},
	{"no prompt column", "arrival_ms,output_tokens\n1,1\n",
		`trace t:1: no prompt_tokens, want every request to have it`},
	{"no time column", "prompt_tokens,output_tokens\n1,1\n",
		`trace t:1: 0 arrival columns, want one of arrival_ns, arrival_ms, arrival_s`},
	{"two time columns", "arrival_s,arrival_ms,prompt_tokens,output_tokens\n1,1,1,1\n",
		`trace t:1: 2 arrival columns, want one of arrival_ns, arrival_ms, arrival_s`},
	{"half a prefix", "arrival_ms,prompt_tokens,output_tokens,prefix_group\n1,1,1,1\n",
		`trace t:1: only one of prefix_group and prefix_tokens, want both or neither`},
	{"too few fields", times + "1,1,1\n2,1\n", `trace t:3: 2 fields, want 3 as in the header`},
	{"too many fields", times + "1,1,1,1\n", `trace t:2: 4 fields, want 3 as in the header`},
	{"open quote", times + "1,\"1,1\n", `trace t:2: "1,\"1,1", want a CSV line with balanced quotes`},
	{"negative time", times + "-1,1,1\n",
		`trace t:2: arrival_s = "-1"` + wantTime},
	{"NaN time", times + "NaN,1,1\n",
		`trace t:2: arrival_s = "NaN"` + wantTime},
	{"time beyond the clock", times + "1e12,1,1\n",
		`trace t:2: arrival_s = "1e12"` + wantTime},
	{"time falls", times + "1,1,1\n0.5,1,1\n",
		`trace t:3: arrival_s = "0.5", want at least 1000000000 ns, the arrival before: ` +
			`a trace is in order of arrival`},
	{"missing value", times + "1,,1\n", `trace t:2: prompt_tokens = ""` + wantPrompt},
	{"prompt 0", times + "1,0,1\n", `trace t:2: prompt_tokens = "0"` + wantPrompt},
	{"negative output", times + "1,1,-1\n", `trace t:2: output_tokens = "-1"` + wantOutput},
	{"output beyond 32 bits", times + "1,1,2147483648\n",
		`trace t:2: output_tokens = "2147483648"` + wantOutput},
	{"output beyond 64 bits", times + "1,1,99999999999999999999\n",
		`trace t:2: output_tokens = "99999999999999999999"` + wantOutput},
	{"fraction of a token", times + "1,1.5,1\n", `trace t:2: prompt_tokens = "1.5"` + wantPrompt},
	{"space in a field", times + "1, 1,1\n", `trace t:2: prompt_tokens = " 1"` + wantPrompt},
	{"never ends", times + "1,1,0\n",
		`trace t:2: output_tokens = "0", want at least 1, since no max_tokens would end the output`},
	{"prefix without group", header + "1,9,1,0,0,5\n",
		`trace t:2: prefix_tokens = "5", want 0, since prefix_group is 0`},
	{"group without prefix", header + "1,9,1,0,3,0\n",
		`trace t:2: prefix_tokens = "0", want at least 1, since prefix_group is not 0`},
	{"prefix longer than prompt", header + "1,9,1,0,3,10\n",
		`trace t:2: prefix_tokens = "10", want at most prompt_tokens, 9`},
	{"long value is cut", times + strings.Repeat("9", 100) + ",1,1\n", `trace t:2: arrival_s = "` +
		strings.Repeat("9", 60) + `..."` + wantTime},
	{"long line", times + strings.Repeat("1", 1<<17), `trace t:2: a line too long, want at most 65536 bytes`},
}

var badJSONL = []badTrace{
	{"empty JSONL", "\n\n", `trace t:2: no requests, want at least one`},
	{"unknown key", first + `{"arrival_ms":1,"prompt":1}`, `trace t:2: key = "prompt", want ` + wantColumns()},
	{"key in the wrong case", `{"ARRIVAL_MS":1}`, `trace t:1: key = "ARRIVAL_MS", want ` + wantColumns()},
	{"key twice", `{"arrival_ms":1,"arrival_ms":2}`, `trace t:1: key = "arrival_ms", want each key once`},
	{"missing key", first + `{"arrival_ms":1,"prompt_tokens":1}`,
		`trace t:2: no output_tokens, want every request to have it`},
	{"text for a number", `{"arrival_ms":"1"}`, `trace t:1: arrival_ms = "1", want a number`},
	{"null", `{"arrival_ms":null}`, `trace t:1: arrival_ms = "<nil>", want a number`},
	{"list", `{"arrival_ms":[1]}`, `trace t:1: arrival_ms = "[", want a number`},
	{"float for tokens", `{"arrival_ms":1,"prompt_tokens":1.0,"output_tokens":1}`,
		`trace t:1: prompt_tokens = "1.0"` + wantPrompt},
	{"not an object", `[1,2,3]`, `trace t:1: "[1,2,3]"` + wantObject},
	{"NaN literal", `{"arrival_ms":NaN}`, `trace t:1: "{\"arrival_ms\":NaN}"` + wantObject},
	{"two objects", `{"arrival_ms":1,"prompt_tokens":1} {}`,
		`trace t:1: "{\"arrival_ms\":1,\"prompt_tokens\":1} {}"` + wantObject},
	{"cut short", `{"arrival_ms":1,`, `trace t:1: "{\"arrival_ms\":1,"` + wantObject},
}

// TestBadTraces: every error names file, line, column, value and what was wanted.
func TestBadTraces(t *testing.T) {
	for format, tests := range map[Format][]badTrace{CSV: badCSV, JSONL: badJSONL} {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				_, err := readAll(test.text, format, TraceOptions{})
				if err == nil || err.Error() != test.want {
					t.Fatalf("error\n%v\nwant\n%s", err, test.want)
				}
				var traceError *TraceError
				if !errors.As(err, &traceError) || traceError.File != "t" || traceError.Line < 1 {
					t.Errorf("%#v is not a TraceError with file and line", err)
				}
			})
		}
	}
}
