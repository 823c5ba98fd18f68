package turnlog_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/route"
	"tokenrouter/core/turnlog"
)

// traceEvent is an event of a Chrome trace; TS keeps its digits.
type traceEvent struct {
	Ph, Name, Cat, S, BP string
	TS                   json.Number
	Pid, Tid, ID         int
	Args                 map[string]any
}

func (e *traceEvent) ns(t *testing.T) int64 {
	t.Helper()
	whole, decimals, _ := strings.Cut(e.TS.String(), ".")
	ns, err := strconv.ParseInt(whole+decimals, 10, 64)
	if err != nil || len(decimals) != 3 {
		t.Fatalf("ts %q, want microseconds with three decimals", e.TS)
	}
	return ns
}

func draw(t *testing.T, log []byte) (events []traceEvent, text []byte) {
	t.Helper()
	var out bytes.Buffer
	if err := turnlog.Perfetto(&out, open(t, log)); err != nil {
		t.Fatal(err)
	}
	var file struct{ TraceEvents []traceEvent }
	d := json.NewDecoder(bytes.NewReader(out.Bytes()))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	return file.TraceEvents, out.Bytes()
}

type track struct{ pid, tid int }

type slice struct {
	name     string
	from, to int64
}

// tracks checks that times rise and that slices close, one open at a time, and returns them.
func tracks(t *testing.T, events []traceEvent) map[track][]slice {
	t.Helper()
	done := make(map[track][]slice)
	open := make(map[track]*slice)
	last := int64(0)
	for i := range events {
		e := &events[i]
		if e.Ph == "M" {
			continue
		}
		ns, at := e.ns(t), track{e.Pid, e.Tid}
		if ns < last {
			t.Fatalf("event %d at %d ns after one at %d ns", i, ns, last)
		}
		last = ns
		switch e.Ph {
		case "B":
			if open[at] != nil {
				t.Fatalf("%+v begins inside %+v", e, open[at])
			}
			open[at] = &slice{name: e.Name, from: ns}
		case "E":
			s := open[at]
			if s == nil {
				t.Fatalf("%+v ends nothing", e)
			}
			s.to = ns
			done[at] = append(done[at], *s)
			open[at] = nil
		}
	}
	for at, s := range open {
		if s != nil {
			t.Errorf("%v on %v never ends", s, at)
		}
	}
	return done
}

func TestPerfettoIsSound(t *testing.T) {
	for name, configs := range systems(t) {
		t.Run(name, func(t *testing.T) {
			log := record(t, configs, 40)
			events, _ := draw(t, log)
			slices := tracks(t, events)
			checkFlows(t, events, slices)
			checkNames(t, events)
			checkCounts(t, log, events, slices)
		})
	}
}

// checkFlows holds that every arrow has two ends, each inside a launch, forward in time.
func checkFlows(t *testing.T, events []traceEvent, slices map[track][]slice) {
	t.Helper()
	inside := func(e *traceEvent) bool {
		ns := e.ns(t)
		for _, s := range slices[track{e.Pid, e.Tid}] {
			if s.from == ns || s.from < ns && ns < s.to {
				return true
			}
		}
		return false
	}
	starts := make(map[int]*traceEvent)
	ends := 0
	for i := range events {
		e := &events[i]
		switch e.Ph {
		case "s":
			if starts[e.ID] != nil || e.ID == 0 || !inside(e) {
				t.Errorf("arrow %+v starts twice or outside a slice", e)
			}
			starts[e.ID] = e
		case "f":
			s := starts[e.ID]
			if s == nil || s.Name != e.Name || s.Cat != e.Cat || s.Tid == e.Tid || e.BP != "e" || !inside(e) {
				t.Errorf("arrow ends at %+v, begun at %+v", e, s)
			}
			ends++
		}
	}
	if len(starts) != ends {
		t.Errorf("%d arrows start, %d end", len(starts), ends)
	}
}

// checkNames holds that every track has one name, no number is used in two processes, and none
// is a process's (Perfetto knows threads by number alone).
func checkNames(t *testing.T, events []traceEvent) {
	t.Helper()
	named := make(map[int]track)
	for i := range events {
		e := &events[i]
		if e.Ph == "M" && e.Name == "thread_name" {
			if _, twice := named[e.Tid]; twice || e.Tid <= 2 {
				t.Errorf("thread %d has two names, or the number of a process", e.Tid)
			}
			named[e.Tid] = track{e.Pid, e.Tid}
		}
	}
	for i := range events {
		if e := &events[i]; e.Ph != "M" && named[e.Tid] != (track{e.Pid, e.Tid}) {
			t.Errorf("%+v is on a track without a name", e)
		}
	}
}

// checkCounts compares the drawing with sums over the log: launches, rows, commits, ends.
func checkCounts(t *testing.T, log []byte, events []traceEvent, slices map[track][]slice) {
	t.Helper()
	type counts struct{ launches, running, commits, ends int }
	var want, got counts
	for r := open(t, log); ; {
		turn, err := r.Next()
		if err != nil {
			break
		}
		for _, l := range turn.Out.Launches {
			want.launches++
			want.running += len(l.Rows)
		}
		want.commits += len(turn.Out.Tokens)
		for _, l := range turn.Out.Leaves {
			if turn.Node == 0 && l.Slot >= 0 {
				want.ends++
			}
		}
	}
	for at, list := range slices {
		for _, s := range list {
			if at.pid == 1 {
				got.launches++
			} else if strings.HasPrefix(s.name, "running ") {
				got.running++
			}
		}
	}
	for i := range events {
		switch e := &events[i]; {
		case e.Ph == "i" && e.Name == "commit":
			got.commits++
		case e.Ph == "i" && strings.Contains(e.Name, ": "):
			got.ends++
		}
	}
	if got != want {
		t.Errorf("drawn %+v, logged %+v", got, want)
	}
}

// TestPerfettoOfTheSchedules draws the delayed schedule of TokenRouter's mechanism figure
// (arXiv 2610.12242): three requests, steps of 1 and 3.5, thresholds 1 and 2. Request 2 reaches
// the large model at time 2 and starts there at 4.5 only when eager; with the threshold both
// requests share a launch from 2 to 5.5.
func TestPerfettoOfTheSchedules(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy core.Policy
		want   slice // of request 2
		shared int   // launches of the large model with two rows
	}{
		{"eager", core.Eager{}, slice{"queued m1", 2000, 4500}, 0},
		{"delayed", delayed(t, 0, 1, 2), slice{"running m1", 2000, 5500}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			events, text := draw(t, schedule(t, c.policy))
			slices := tracks(t, events)
			found, shared := false, 0
			for at, list := range slices {
				for _, s := range list {
					found = found || at == track{2, 100 + 2*3} && s == c.want
					if at == (track{1, 11}) && s.name == "2 rows" {
						shared++
					}
				}
			}
			if !found || shared != c.shared {
				t.Errorf("request 2 has no slice %v, or %d launches of two rows, want %d, in\n%v",
					c.want, shared, c.shared, slices)
			}
			golden(t, "perfetto_"+c.name+".json", text)
		})
	}
}

// schedule is the log of the figure's requests SSS, SLSLSS and SSLSLS at time 0.
func schedule(t testing.TB, policy core.Policy) []byte {
	t.Helper()
	c := config(2, policy, route.Recorded{})
	var log bytes.Buffer
	w := must(turnlog.NewWriter(&log, c))
	world := newWorld(t, []core.Config{c}, 1000, 3500)
	world.observe = w.Turn
	paths := []string{"000", "010100", "001010"}
	world.fill = func(row core.Row, _ int, position int32) core.Result {
		path := paths[row.ID]
		next := min(int(position)+1, len(path)-1)
		return core.Result{Token: 10*int32(row.ID) + position, Next: path[next] - '0'}
	}
	var rs []request
	for i, path := range paths {
		rs = append(rs, request{Submission: core.Submission{
			ID: uint64(i), PromptTokens: 1, TokensMax: int32(len(path)),
		}})
	}
	world.run(t, rs)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return log.Bytes()
}

func TestScheduleLog(t *testing.T) {
	golden(t, "delayed.jsonl", schedule(t, delayed(t, 0, 1, 2)))
}

func TestPerfettoOfALogThatIsCut(t *testing.T) {
	log := record(t, systems(t)["two nodes"], 40)
	lines := bytes.SplitAfter(log, []byte("\n"))
	for _, n := range []int{4, 10, 33, 90} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			events, _ := draw(t, bytes.Join(lines[:n], nil))
			checkFlows(t, events, tracks(t, events))
		})
	}
}
