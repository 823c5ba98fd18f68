package spec

import (
	"strings"
	"testing"

	"tokenrouter/core/route"
)

// TestQuery: requests as a whole go to the large model at a given share.
func TestQuery(t *testing.T) {
	text := strings.NewReplacer(`algorithm = "r2r"`, `algorithm = "query"`, "p = 0.35",
		"share = 0.25").Replace(good)
	s, err := Parse("s.toml", text)
	if err != nil {
		t.Fatal(err)
	}
	born, ok := s.Points[0].Algorithm.(route.Born)
	if w := born.Weights(); !ok || len(w) != 2 || w[0] != 0.75 || w[1] != 0.25 {
		t.Errorf("algorithm %T of weights %v, want Born of 0.75 and 0.25", s.Points[0].Algorithm, w)
	}
	for _, c := range []struct{ share, want string }{
		{"share = 1.5", "router.share = 1.5, want "},
		{"", "router.share: missing, want the share of requests for the large model"},
	} {
		problems := strings.Join(problemsOf(t, strings.Replace(text, "share = 0.25", c.share, 1)), "\n")
		if !strings.Contains(problems, c.want) {
			t.Errorf("%q: %s\nwant %q in it", c.share, problems, c.want)
		}
	}
}
