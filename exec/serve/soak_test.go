package serve

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/exec"
)

// soakRequests is 10,000 in make soak, under the race detector.
var soakRequests = flag.Int("soak", 600, "requests of TestSoak")

// TestSoak: many short requests at once, of which some leave, some are wrong, some meet a device that fails,
// some are refused for want of a place. Those that are answered have the tokens of their run alone; counts
// add up; nothing is left in the loop, and no goroutine (the virtual clock sees to that).
func TestSoak(t *testing.T) {
	failing := errors.New("an injected error")
	change := func(s *setting) {
		endless(s)
		for m, d := range s.now {
			d.fail = func(pass int) error {
				if pass%(97+m) == 0 {
					return failing
				}
				return nil
			}
		}
		s.now[0].score = nil
		s.now[0].judge = func(c *exec.Context, at int) float64 {
			return float64((*c.Sampling.Seed + uint64(at)) % 3)
		}
		s.core.Models[0].Pages, s.core.Models[1].Pages = 10, 10 // not all fit: admission waits for pages
		s.core.Requests, s.config.Slots, s.plan = 16, 12, true
	}
	serving(t, nil, change, func(r *rig) {
		alone := soakAlone(r)
		s := &soak{r: r, alone: alone, counts: make(map[string]int)}
		var group sync.WaitGroup
		const clients = 16
		for c := range clients {
			group.Go(func() {
				random := rand.New(rand.NewPCG(7, uint64(c)))
				for range *soakRequests / clients {
					s.request(random)
				}
			})
		}
		group.Wait()
		synctest.Wait()
		r.idle()
		total := 0
		for _, n := range s.counts {
			total += n
		}
		t.Logf("%d requests: %v", total, s.counts)
		s.addUp(total + soakSeeds)
		if want := *soakRequests / clients * clients; total != want || s.counts["whole"] < want/8 ||
			s.counts["left"] == 0 || s.counts["refused"] == 0 || s.counts["failed"] == 0 || s.counts["full"] == 0 {
			t.Errorf("%d requests, %v, want all kinds of %d", total, s.counts, want)
		}
	})
}

// addUp checks that the server has counted what its clients saw: an answer to each request but for some of
// those who left, who may never have come as far, and an end in the loop of each that was let in.
func (s *soak) addUp(asked int) {
	answers, ends := make(map[string]int), make(map[string]int) // by status, by outcome; and all
	line := regexp.MustCompile(`(?m)^tokenrouter_(?:http_requests|requests_ended)_total` +
		`\{(code|outcome)="(\w+)",(?:path|reason)="[^"]*"\} (\d+)$`)
	for _, found := range line.FindAllStringSubmatch(string(s.r.do("GET", "/metrics", "").body), -1) {
		n, _ := strconv.Atoi(found[3])
		into := answers
		if found[1] == "outcome" {
			into = ends
		}
		into[found[2]] += n
		into["all"] += n
	}
	left, in := s.counts["left"], answers["all"]-answers["400"]-answers["429"]
	if answers["all"] > asked || answers["all"] < asked-left || answers["400"] != s.counts["refused"] ||
		answers["429"] < s.counts["full"] || answers["429"] > s.counts["full"]+left ||
		ends["all"] > in || ends["all"] < in-left || ends["finished"] < s.counts["whole"]+soakSeeds {
		s.r.t.Errorf("answers %v, ends %v, and clients saw %v", answers, ends, s.counts)
	}
	s.r.t.Logf("answers %v, ends %v", answers, ends)
}

// soak is what the clients share.
type soak struct {
	r      *rig
	alone  []string // the answer of each seed
	mu     sync.Mutex
	counts map[string]int
}

const soakSeeds, soakTokens = 16, 24

// soakAlone is the answer of each seed in a loop where nothing else runs and nothing fails.
func soakAlone(r *rig) []string {
	r.t.Helper()
	var held [2]func(int) error
	for m, d := range r.machines {
		held[m], d.fail = d.fail, nil
	}
	var alone []string
	for seed := range soakSeeds {
		alone = append(alone, r.completion(soakFields(seed)).read(r.t).Choices[0].Text)
	}
	for m, d := range r.machines {
		d.fail = held[m]
	}
	return alone
}

func soakFields(seed int) string { return fmt.Sprintf(`,"seed":%d,"max_tokens":%d`, seed, soakTokens) }

// request is one of a client, of a random kind.
func (s *soak) request(random *rand.Rand) {
	seed := random.IntN(soakSeeds)
	body := `{"model":"pair","prompt":"` + strings.Repeat("x", 1+random.IntN(30)) + `"` + soakFields(seed)
	ctx, leave := context.WithCancel(s.r.t.Context())
	defer leave()
	stream := random.IntN(2) == 0
	if stream {
		body += `,"stream":true`
	}
	broken := false
	switch random.IntN(6) {
	case 0:
		body += `,"n":"two"`
	case 1:
		body = body[:random.IntN(len(body))] // never whole: the brace is missing
		broken = true
	case 2:
		timer := time.AfterFunc(time.Duration(random.IntN(60_000))*time.Microsecond, leave)
		defer timer.Stop()
	}
	if !broken {
		body += "}"
	}
	kind := s.ask(ctx, body, seed, stream)
	s.mu.Lock()
	s.counts[kind]++
	s.mu.Unlock()
	if kind == "full" {
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
	}
}

// ask sends a request and says what has become of it.
func (s *soak) ask(ctx context.Context, body string, seed int, stream bool) string {
	t := s.r.t
	response, err := s.r.client.Do(s.r.request(ctx, "POST", "/v1/completions", body))
	var data []byte
	if err == nil {
		data, err = io.ReadAll(response.Body)
		response.Body.Close()
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "left"
	case err != nil:
		t.Errorf("%s: %v", body, err)
		return "error"
	}
	p := read(response.StatusCode, response.Header, data)
	switch {
	case p.status == 400:
		return "refused"
	case p.status == 429:
		return "full"
	case p.status == 500 && strings.Contains(string(data), `"device_failed"`):
		return "failed"
	case p.status != 200:
		t.Errorf("%s: %d %s", body, p.status, data)
		return "error"
	}
	text := ""
	if stream {
		if last := p.frames[len(p.frames)-1]; last != "[DONE]" {
			if !strings.Contains(last, `"device_failed"`) {
				t.Errorf("%s: last frame %s", body, last)
			}
			return "failed"
		}
		text, _ = p.text(t, 0)
	} else {
		text = p.read(t).Choices[0].Text
	}
	if text != s.alone[seed] {
		t.Errorf("seed %d: %q, alone %q", seed, text, s.alone[seed])
	}
	return "whole"
}
