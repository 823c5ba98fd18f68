package turnlog

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"tokenrouter/core"
	"tokenrouter/core/turnlog/jsonline"
)

// heldMin is how many trace events are held before any is written.
const heldMin = 1 << 14

// traceJSON writes trace events in order of time. It does not name a display unit: Perfetto
// would take "ns" to mean that timestamps are nanoseconds.
type traceJSON struct {
	w     *bufio.Writer
	held  []traceEvent
	limit int
	any   bool // an event has been written
}

// traceEvent is an event that waits for earlier ones.
type traceEvent struct {
	at   core.Time
	text []byte
}

func newTraceJSON(w io.Writer) traceJSON {
	t := traceJSON{w: bufio.NewWriterSize(w, 1<<16), limit: heldMin}
	t.w.WriteString(`{"traceEvents":[`) // bufio keeps the error for close
	return t
}

func (t *traceJSON) full() bool { return len(t.held) > t.limit }

// writeBefore writes the events of times before at.
func (t *traceJSON) writeBefore(at core.Time) {
	slices.SortStableFunc(t.held, func(a, b traceEvent) int { return cmp.Compare(a.at, b.at) })
	n := 0
	for n < len(t.held) && t.held[n].at < at {
		t.write(t.held[n].text)
		n++
	}
	t.held = slices.Delete(t.held, 0, n)
	t.limit = max(heldMin, 2*len(t.held))
}

func (t *traceJSON) write(text []byte) {
	if t.any {
		t.w.WriteByte(',')
	}
	t.any = true
	t.w.WriteByte('\n')
	t.w.Write(text)
}

func (t *traceJSON) close() error {
	t.writeBefore(math.MaxInt64)
	t.w.WriteString("\n]}\n")
	return t.w.Flush()
}

// process names a process; a lower number stands higher.
func (t *traceJSON) process(pid int, name string) {
	t.write(fmt.Appendf(nil, `{"ph":"M","name":"process_name","pid":%d,"args":{"name":%s}}`,
		pid, quoted(name)))
	t.write(fmt.Appendf(nil, `{"ph":"M","name":"process_sort_index","pid":%d,"args":{"sort_index":%d}}`,
		pid, pid))
}

// thread names a track.
func (t *traceJSON) thread(pid, tid int, name string) {
	t.write(fmt.Appendf(nil, `{"ph":"M","name":"thread_name","pid":%d,"tid":%d,"args":{"name":%s}}`,
		pid, tid, quoted(name)))
	t.write(fmt.Appendf(nil, `{"ph":"M","name":"thread_sort_index","pid":%d,"tid":%d,`+
		`"args":{"sort_index":%d}}`, pid, tid, tid))
}

func (t *traceJSON) hold(at core.Time, text []byte) {
	t.held = append(t.held, traceEvent{at, text})
}

// head begins an event: phase, time and track.
func head(phase byte, at core.Time, pid, tid int) []byte {
	text := append(make([]byte, 0, 128), `{"ph":"`...)
	text = append(text, phase)
	text = microseconds(append(text, `","ts":`...), at)
	text = strconv.AppendInt(append(text, `,"pid":`...), int64(pid), 10)
	return strconv.AppendInt(append(text, `,"tid":`...), int64(tid), 10)
}

// microseconds writes whole nanoseconds as microseconds.
func microseconds(to []byte, ns core.Time) []byte {
	if ns < 0 {
		to, ns = append(to, '-'), -ns
	}
	return fmt.Appendf(to, "%d.%03d", ns/1000, ns%1000)
}

// begin opens a slice; args is a JSON object or "".
func (t *traceJSON) begin(at core.Time, pid, tid int, name, args string) {
	t.hold(at, named(head('B', at, pid, tid), name, args))
}

// finish closes the slice that is open on the track.
func (t *traceJSON) finish(at core.Time, pid, tid int) {
	t.hold(at, append(head('E', at, pid, tid), '}'))
}

// slice is begin and finish.
func (t *traceJSON) slice(from, to core.Time, pid, tid int, name string) {
	t.begin(from, pid, tid, name, "")
	t.finish(to, pid, tid)
}

// instant marks a moment of a track.
func (t *traceJSON) instant(at core.Time, pid, tid int, name, args string) {
	t.hold(at, named(append(head('i', at, pid, tid), `,"s":"t"`...), name, args))
}

// flow begins ('s') or ends ('f') an arrow at the slice that is open on the track. Both ends
// have the same id, name and category.
func (t *traceJSON) flow(phase byte, at core.Time, pid, tid, id int) {
	text := strconv.AppendInt(append(head(phase, at, pid, tid), `,"id":`...), int64(id), 10)
	text = append(text, `,"cat":"handoff","name":"hand-off"`...)
	if phase == 'f' {
		text = append(text, `,"bp":"e"`...) // the enclosing slice, not the next one
	}
	t.hold(at, append(text, '}'))
}

func named(text []byte, name, args string) []byte {
	text = jsonline.AppendString(append(text, `,"name":`...), name)
	if args != "" {
		text = append(append(text, `,"args":`...), args...)
	}
	return append(text, '}')
}

func quoted(text string) []byte { return jsonline.AppendString(nil, text) }

func launchArgs(l *core.Launch) string {
	text := fmt.Appendf(nil, `{"launch":%d,"rows":%d,"fresh_tokens":%d,"wait_ns":%d,"requests":"`,
		l.Seq, len(l.Rows), l.Fresh, l.WaitNs)
	for i := range l.Rows {
		if i > 0 {
			text = append(text, ' ')
		}
		text = strconv.AppendUint(text, l.Rows[i].ID, 10)
	}
	return string(append(text, `"}`...))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// byTrack lists journeys in order of their tracks.
func byTrack(live map[uint64]*journey) []*journey {
	return slices.SortedFunc(maps.Values(live), func(a, b *journey) int { return a.track - b.track })
}
