package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// ran is what a command line gave.
type ran struct {
	stdout, stderr string
	code           int
}

// runCLI runs a command line in this process, as on a pipe.
func runCLI(t *testing.T, args ...string) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := Main(context.Background(), args, &stdout, &stderr)
	return ran{stdout.String(), stderr.String(), code}
}

// mustRun runs a command line that must succeed and returns its standard output.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	o := runCLI(t, args...)
	if o.code != ExitDone {
		t.Fatalf("%q: exit %d, stderr %q", args, o.code, o.stderr)
	}
	return o.stdout
}

// refusal is a command line that must be refused.
type refusal struct {
	name string
	args []string
	want []string // parts of the message
}

// refuse checks that each is refused with exit 2: nothing on standard output, the message once on standard
// error.
func refuse(t *testing.T, refusals []refusal) {
	t.Helper()
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			o := runCLI(t, r.args...)
			if o.code != ExitMisuse {
				t.Errorf("exit %d, want %d", o.code, ExitMisuse)
			}
			if o.stdout != "" {
				t.Errorf("stdout %q, want nothing", o.stdout)
			}
			message, _, _ := strings.Cut(o.stderr, "\nRun '")
			if strings.Contains(message, "Usage:") || strings.Count(o.stderr, "tokenrouter ")+
				strings.Count(o.stderr, "tokenrouter:") > 2 {
				t.Errorf("stderr %q, want the message once and no usage", o.stderr)
			}
			for _, part := range r.want {
				if !strings.Contains(message, part) {
					t.Errorf("stderr %q, want %q in it", o.stderr, part)
				}
			}
		})
	}
}

// decode reads exactly one JSON document into v; fields that v lacks are errors.
func decode(t *testing.T, document string, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(document))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	if d.More() {
		t.Fatalf("more than one JSON document in %s", document)
	}
}

func TestNoSuchCommand(t *testing.T) {
	refuse(t, []refusal{
		{"no command", nil, []string{"no command given", "predict", "run"}},
		{"misspelt", []string{"predcit"}, []string{`no command "predcit", did you mean predict?`}},
		{"unknown", []string{"xyzzy"}, []string{`no command "xyzzy", want one of`, "predict"}},
		{"help of nothing", []string{"help", "xyzzy"}, []string{`no command "xyzzy"`}},
		{"unknown flag", []string{"version", "--jsno"}, []string{"no flag --jsno, did you mean --json?"}},
		{"unknown short flag", []string{"version", "-z"}, []string{"no flag -z"}},
		{"argument of none", []string{"version", "now"}, []string{`argument "now", want none`}},
		{"bad boolean", []string{"version", "--json=maybe"}, []string{"--json", `"maybe"`}},
		{"shell missing", []string{"completion"}, []string{"want a shell: bash, zsh, fish, powershell"}},
		{"shell unknown", []string{"completion", "tcsh"}, []string{`shell "tcsh", want bash`}},
	})
}

// TestHelp looks at the help of every command, those below others too: each says what it is for and has an
// example that begins with its own name.
func TestHelp(t *testing.T) {
	paths := [][]string{{}}
	for _, c := range newRoot().Commands() {
		paths = append(paths, []string{c.Name()})
		for _, below := range c.Commands() {
			paths = append(paths, []string{c.Name(), below.Name()})
		}
	}
	if len(paths) < 4 {
		t.Fatalf("%d commands, want more", len(paths))
	}
	for _, path := range paths {
		full := strings.Join(append([]string{"tokenrouter"}, path...), " ")
		for _, args := range [][]string{append(path, "--help"), append([]string{"help"}, path...)} {
			out := mustRun(t, args...)
			if !strings.Contains(out, "Examples:") || !strings.Contains(out, full) {
				t.Errorf("%q: no example of %q in\n%s", args, full, out)
			}
			for i, line := range strings.Split(out, "\n") {
				if len(line) > 132 {
					t.Errorf("%q: line %d has %d columns, want at most 132: %s", args, i+1, len(line), line)
				}
			}
		}
	}
}

func TestVersion(t *testing.T) {
	if out := mustRun(t, "version"); !strings.HasPrefix(out, "tokenrouter "+Version+" (commit ") {
		t.Errorf("got %q", out)
	}
	var b build
	decode(t, mustRun(t, "version", "--json"), &b)
	if b.Version != Version || !strings.HasPrefix(b.Go, "go1.") {
		t.Errorf("got %+v", b)
	}
}

func TestCompletion(t *testing.T) {
	marks := map[string]string{
		"bash": "complete -o default -F __start_tokenrouter tokenrouter", "zsh": "#compdef tokenrouter",
		"fish": "complete -c tokenrouter", "powershell": "Register-ArgumentCompleter",
	}
	for _, shell := range shells {
		if out := mustRun(t, "completion", shell); !strings.Contains(out, marks[shell]) {
			t.Errorf("%s: no %q in the script", shell, marks[shell])
		}
	}
}

// TestComplete: what a shell offers, and behind the colon what it may add: 4 no files, 8 files by ending,
// 16 folders, 0 any file.
func TestComplete(t *testing.T) {
	for words, want := range map[string]string{
		"run ":                      "toml\n:8\n",
		"run --backend ":            "sim\ncpu\n:4\n",
		"run --out ":                ":16\n",
		"run --merge ":              ":16\n",
		"run --shard ":              ":4\n",
		"run --workers ":            ":4\n",
		"predict --latency ":        ":4\n",
		"predict -n ":               ":4\n",
		"plot ":                     ":16\n",
		"trace replay ":             ":0\n",
		"trace perfetto log --out ": ":0\n",
		"version ":                  ":4\n",
		"help pre":                  "run\npredict\n",
		"completion z":              "zsh\n:4\n",
		"pre":                       "predict\t",
	} {
		args := append([]string{"__complete"}, strings.Split(words, " ")...)
		if out := mustRun(t, args...); !strings.HasPrefix(out, want) {
			t.Errorf("completing %q gives %q, want %q", words, out, want)
		}
	}
}
