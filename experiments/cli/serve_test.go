package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"tokenrouter/exec/native/nativetest"
)

// served is a server that runs.
type served struct {
	t    *testing.T
	url  string
	end  context.CancelFunc
	done chan error
	log  *bytes.Buffer // once it has ended
}

// serving starts serve on the fake backend, on a free port.
func serving(t *testing.T, args ...string) *served {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	s := &served{t: t, end: end, done: make(chan error, 1), log: &bytes.Buffer{}}
	out, in := io.Pipe()
	root := &cobra.Command{Use: "tokenrouter", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(newServeOn(nativetest.Fake()))
	root.SetArgs(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...))
	root.SetOut(in)
	root.SetErr(s.log)
	go func() {
		err := root.ExecuteContext(ctx)
		in.Close()
		s.done <- err
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("no address: %v, %v: %s", err, <-s.done, s.log)
	}
	address, _, _ := strings.Cut(strings.TrimPrefix(line, "listening on "), "/v1, model ")
	if !strings.HasPrefix(address, "http://127.0.0.1:") {
		t.Fatalf("first line %q, want the address", line)
	}
	s.url = address
	return s
}

// ask posts a document, or gets where there is none, and decodes the answer.
func (s *served) ask(path, body string, into any) {
	s.t.Helper()
	var response *http.Response
	var err error
	if body == "" {
		response, err = http.Get(s.url + path)
	} else {
		response, err = http.Post(s.url+path, "application/json", strings.NewReader(body))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %d, %v: %s", path, response.StatusCode, err, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		s.t.Fatalf("%s: %v: %s", path, err, text)
	}
}

// stop interrupts the server, which ends in order.
func (s *served) stop() {
	s.t.Helper()
	s.end()
	if err := <-s.done; err != nil {
		s.t.Errorf("serve: %v: %s", err, s.log)
	}
}

// TestServe: a pair answers as generate does with the same seed, under its name and by its members; what the
// policy is shows in /health.
func TestServe(t *testing.T) {
	small, large := tinyPair(t)
	file := filepath.Join(t.TempDir(), "both.toml")
	text := `models = [{ dir = "` + small + `" }, { dir = "` + large + `" }]
router = { algorithm = "rstitch", threshold = 0.5 }
policy = { kind = "delayed", thresholds = [1, 3] }
scheduler = { concurrency = 4, queue = 2, context_max = 128 }
`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		args      []string
		model     string
		members   []string
		threshold []int // at N = 4, or of no plan yet
		planned   bool
		places    int
	}{
		{"file", []string{file}, "both", []string{"slm", "llm"}, []int{1, 1}, false, 6},
		{"flags", []string{"--small", small, "--large", large, "--algorithm", "me", "-n", "3", "--queue", "1",
			"--context-max", "128", "--name", "duo"}, "duo", []string{"slm", "llm"}, []int{1, 1}, true, 4},
		{"one", []string{"--small", small, "--context-max", "128"}, "tokenrouter", []string{"slm"}, []int{1},
			false, 72},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serving(t, c.args...)
			defer s.stop()
			var models struct{ Data []struct{ ID string } }
			s.ask("/v1/models", "", &models)
			if len(models.Data) != 1+len(c.members) || models.Data[0].ID != c.model {
				t.Errorf("models %+v, want %s and %v", models.Data, c.model, c.members)
			}
			var health struct {
				Status string
				Places int
				Models []struct{ Threshold int }
				Plan   *struct{ Planned bool }
			}
			s.ask("/health", "", &health)
			if health.Status != "ok" || health.Places != c.places || (health.Plan != nil) != c.planned ||
				len(health.Models) != len(c.threshold) {
				t.Errorf("health %+v, want %d places, planned %v", health, c.places, c.planned)
			}
			var one, again struct {
				Choices []struct{ Message struct{ Content string } }
				Usage   struct {
					Prompt int `json:"prompt_tokens"`
				}
			}
			body := `{"model":"` + c.model + `","messages":[{"role":"user","content":"Hi"}],"seed":5,"max_tokens":12}`
			s.ask("/v1/chat/completions", body, &one)
			s.ask("/v1/chat/completions", body, &again)
			if one.Usage.Prompt != 21 || one.Choices[0] != again.Choices[0] {
				t.Errorf("%+v, then %+v, want the same of 21 prompt tokens", one, again)
			}
		})
	}
}

// TestServeRefused: what does not go together is refused before anything is loaded.
func TestServeRefused(t *testing.T) {
	small, large := tinyPair(t)
	empty := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		args       []string
	}{
		{"planned for one", "want several models among which tokens are routed",
			[]string{"--small", small, "--thresholds", "planned"}},
		{"no such way", "--thresholds", []string{"--small", small, "--thresholds", "mine"}},
		{"no address", "--listen = \"nowhere\"", []string{"--small", small, "--large", large, "--algorithm", "me",
			"--listen", "nowhere"}},
		{"no key", "is empty, want a key", []string{"--small", small, "--api-key-file", empty}},
		{"no time", "--time-max", []string{"--small", small, "--time-max", "5"}},
	} {
		r := runCLI(t, append([]string{"serve"}, c.args...)...)
		if r.code != ExitMisuse || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: exit %d, %s, want %d and %q", c.name, r.code, r.stderr, ExitMisuse, c.want)
		}
	}
}
