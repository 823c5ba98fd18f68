package serve

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core"
)

// TestPage: the page and its files come without a key, with a policy that lets them call nobody else, and
// name nothing of other hosts.
func TestPage(t *testing.T) {
	serving(t, []string{"a"}, func(s *setting) { s.config.APIKey = "secret" }, func(r *rig) {
		names := 0
		err := fs.WalkDir(pageFiles, "page", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			names++
			p := r.do("GET", "/"+path, "")
			data, err := pageFiles.ReadFile(path)
			if p.status != 200 || string(p.body) != string(data) ||
				p.header.Get("X-Content-Type-Options") != "nosniff" ||
				!strings.HasPrefix(p.header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self';") {
				t.Errorf("%s: %d, %v", path, p.status, p.header)
			}
			if found := regexp.MustCompile(`https?://`).FindString(string(data)); found != "" {
				t.Errorf("%s names %s", path, found)
			}
			return err
		})
		if err != nil || names < 5 {
			t.Errorf("%d files, %v", names, err)
		}
		for _, c := range []struct {
			method, path string
			status       int
			kind         string
		}{
			{"GET", "/", 200, "text/html; charset=utf-8"}, {"HEAD", "/", 200, "text/html; charset=utf-8"},
			{"GET", "/page/main.js", 200, "text/javascript; charset=utf-8"},
			{"GET", "/page/style.css", 200, "text/css; charset=utf-8"},
			{"GET", "/page/none.js", 404, "application/json"}, {"GET", "/page/", 404, "application/json"},
			{"POST", "/", 405, "application/json"}, {"GET", "/live", 401, "application/json"},
		} {
			p := r.do(c.method, c.path, "")
			if kind := p.header.Get("Content-Type"); p.status != c.status || kind != c.kind {
				t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, p.status, kind, c.status, c.kind)
			}
		}
	})
}

// news reads /live.
func (r *rig) news(query string) *liveDocument {
	r.t.Helper()
	p := r.do("GET", "/live"+query, "")
	if p.status != http.StatusOK {
		r.t.Fatalf("%d %s", p.status, p.body)
	}
	var d liveDocument
	if err := json.Unmarshal(p.body, &d); err != nil {
		r.t.Fatal(err)
	}
	return &d
}

// TestLive: the passes of two requests under thresholds 1 and 2, a pass of 1 ms of the small model and 4 ms
// of the large one. Every draft is routed away: both meet at the large model.
func TestLive(t *testing.T) {
	change := func(s *setting) {
		s.now[0].score = func(int) float64 { return 1 }
		table, err := core.TableThresholds([][]int{{1, 1}, {1, 2}})
		if err != nil {
			t.Fatal(err)
		}
		s.core.Policy, s.config.Thresholds = core.Delayed{Thresholds: table}, &table
	}
	serving(t, []string{"a"}, change, func(r *rig) {
		var group sync.WaitGroup
		begin := r.news("").NowMs
		group.Go(func() { r.completion("").read(t) })
		time.Sleep(500 * time.Microsecond) // it will wait at the large model for this one
		group.Go(func() { r.completion("").read(t) })
		time.Sleep(3 * time.Millisecond)
		d := r.news("")
		ms := func(of float64) float64 { return begin + of }
		want := []passDocument{{0, 1, ms(0), ms(1)}, {0, 1, ms(1), ms(2)}}
		if diff := cmp.Diff(want, d.Passes); diff != "" {
			t.Errorf("passes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]passDocument{{1, 2, ms(2), 0}}, d.Running); diff != "" {
			t.Errorf("running (-want +got):\n%s", diff)
		}
		states := d.States[len(d.States)-3:]
		wantStates := []stateDocument{
			{ms(0.5), 2, 0, []int{1, 0}, []int{1, 2}}, {ms(1), 2, 0, []int{0, 1}, []int{1, 2}},
			{ms(2), 2, 0, []int{0, 0}, []int{1, 2}},
		}
		if diff := cmp.Diff(wantStates, states); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
		group.Wait()
		later := r.news("?after_ms=3")
		if len(later.Passes) == 0 || later.Passes[0].EndMs <= 3 || later.Live != 0 || later.Share <= 0 {
			t.Errorf("later %+v", later)
		}
		if p := r.do("GET", "/live?after_ms=soon", ""); p.status != 400 {
			t.Errorf("%d %s", p.status, p.body)
		}
	})
}

// TestLiveIsBounded: more passes than are kept leave the newest.
func TestLiveIsBounded(t *testing.T) {
	var r ring[int]
	for i := range 3*liveKept + 5 {
		r.put(i)
	}
	all := r.after(func(*int) bool { return true })
	last := 3*liveKept + 4
	if len(all) != liveKept || all[0] != 2*liveKept+5 || all[liveKept-1] != last || *r.last() != last {
		t.Errorf("%d kept, %d to %d", len(all), all[0], all[len(all)-1])
	}
	if got := r.after(func(x *int) bool { return *x > 3*liveKept+2 }); len(got) != 2 {
		t.Errorf("%v, want the last two", got)
	}
}
