package perfetto

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"tokenrouter/core"
)

// Processes of the trace: model m is firstModel + m.
const (
	requestsProcess = 1
	firstModel      = 2
)

// Writer writes a trace, turn by turn. Its memory grows with the requests in flight, not with the length of
// the run.
type Writer struct {
	out     *bufio.Writer
	models  []core.Model
	first   bool
	running []*running       // of each model; nil: idle
	last    map[uint64]visit // of live requests
	live    int
	arrows  uint64
	end     core.Time
}

// running is a launch in flight. Its rows are copied: the scheduler writes over its own.
type running struct {
	start core.Time
	seq   uint64
	fresh int64
	rows  []core.Row
}

// visit is the last launch of a request.
type visit struct {
	model      int // -1: none yet
	start, end core.Time
}

// New begins a trace of the models, in the order of the core's configuration.
func New(w io.Writer, models []core.Model) *Writer {
	t := &Writer{
		out:     bufio.NewWriter(w),
		models:  append([]core.Model(nil), models...),
		first:   true,
		running: make([]*running, len(models)),
		last:    make(map[uint64]visit),
	}
	fmt.Fprint(t.out, `{"displayTimeUnit":"ns","traceEvents":[`)
	t.process(requestsProcess, "requests", 0)
	for m, model := range models {
		t.process(firstModel+m, fmt.Sprintf("model %d %s (node %d)", m, model.Name, model.Node), m+1)
		t.event(`"ph":"M","name":"thread_name","pid":%d,"tid":1,"args":{"name":"launches"}`, firstModel+m)
	}
	return t
}

// Turn adds a turn of a node: what went into it at time now, and what came out. Turns of one node come in
// order.
func (t *Writer) Turn(now core.Time, in []core.Event, out *core.Actions) {
	t.end = max(t.end, now)
	for i := range in {
		if in[i].Kind == core.BatchDone {
			t.done(in[i].Model, now, in[i].Failed)
		}
	}
	live := t.live
	for i := range out.Admits {
		if !out.Admits[i].Guest {
			live++
			t.last[out.Admits[i].ID] = visit{model: -1}
			t.event(`"ph":"M","name":"thread_name","pid":%d,"tid":%d,"args":{"name":"request %d"}`,
				requestsProcess, track(out.Admits[i].ID), out.Admits[i].ID)
		}
	}
	for i := range out.Leaves {
		leave := &out.Leaves[i]
		if leave.Guest {
			continue
		}
		if _, admitted := t.last[leave.ID]; admitted {
			live--
		}
		t.leave(leave, now)
	}
	if live != t.live {
		t.live = live
		t.event(`"ph":"C","name":"live requests","pid":%d,"ts":%s,"args":{"live":%d}`,
			requestsProcess, micros(now), live)
	}
	for i := range out.Launches {
		t.launch(&out.Launches[i], now)
	}
}

// Close ends the trace. Launches still in flight end with the last turn. It does not close the writer below.
func (t *Writer) Close() error {
	for m := range t.running {
		t.done(m, t.end, false)
	}
	fmt.Fprintln(t.out, "]}")
	return t.out.Flush()
}

// launch begins a batch, and with it ends the wait of its rows.
func (t *Writer) launch(l *core.Launch, now core.Time) {
	t.running[l.Model] = &running{now, l.Seq, l.Fresh, append([]core.Row(nil), l.Rows...)}
	for i := range l.Rows {
		row := &l.Rows[i]
		before, admitted := t.last[row.ID]
		if admitted && before.model >= 0 && before.model != l.Model && row.Returned {
			t.arrow(before, l.Model, now)
			if row.Since > before.end {
				t.slice(track(row.ID), before.end, row.Since, "link to "+t.models[l.Model].Name, "link", "")
			}
		}
		if now > row.Since {
			t.slice(track(row.ID), row.Since, now, "wait "+t.models[l.Model].Name, "wait", "")
		}
	}
}

// done ends the batch of a model, if there is one.
func (t *Writer) done(model int, now core.Time, failed bool) {
	r := t.running[model]
	if r == nil {
		return
	}
	t.running[model] = nil
	outcome := ""
	if failed {
		outcome = `,"failed":true`
	}
	t.event(`"ph":"X","name":"batch of %d","cat":"launch","pid":%d,"tid":1,"ts":%s,"dur":%s,`+
		`"args":{"launch":%d,"rows":%d,"fresh_tokens":%d%s}`,
		len(r.rows), firstModel+model, micros(r.start), micros(now-r.start), r.seq, len(r.rows), r.fresh, outcome)
	for i := range r.rows {
		row := &r.rows[i]
		t.slice(track(row.ID), r.start, now, t.models[model].Name, "run",
			fmt.Sprintf(`"launch":%d,"fresh_tokens":%d,"kv_tokens":%d`, r.seq, row.Fresh, row.Start))
		if _, admitted := t.last[row.ID]; admitted { // it may have left while the batch ran
			t.last[row.ID] = visit{model, r.start, now}
		}
	}
}

// arrow leads from the launch that a request was last in to the one that now takes it.
func (t *Writer) arrow(from visit, to int, now core.Time) {
	t.arrows++
	t.event(`"ph":"s","name":"hand-off","cat":"hand-off","id":%d,"pid":%d,"tid":1,"ts":%s`,
		t.arrows, firstModel+from.model, micros(from.start))
	t.event(`"ph":"f","bp":"e","name":"hand-off","cat":"hand-off","id":%d,"pid":%d,"tid":1,"ts":%s`,
		t.arrows, firstModel+to, micros(now))
}

// leave marks the end of a request.
func (t *Writer) leave(l *core.Leave, now core.Time) {
	delete(t.last, l.ID)
	t.event(`"ph":"i","s":"t","name":"%s: %s","cat":"leave","pid":%d,"tid":%d,"ts":%s,"args":{"tokens":%d}`,
		l.Outcome, l.Reason, requestsProcess, track(l.ID), micros(now), l.Tokens)
}

// slice is a span of one request. args is the inside of a JSON object.
func (t *Writer) slice(tid uint64, from, to core.Time, name, category, args string) {
	t.event(`"ph":"X","name":%s,"cat":"%s","pid":%d,"tid":%d,"ts":%s,"dur":%s,"args":{%s}`,
		quote(name), category, requestsProcess, tid, micros(from), micros(to-from), args)
}

func (t *Writer) process(pid int, name string, order int) {
	t.event(`"ph":"M","name":"process_name","pid":%d,"args":{"name":%s}`, pid, quote(name))
	t.event(`"ph":"M","name":"process_sort_index","pid":%d,"args":{"sort_index":%d}`, pid, order)
}

// event writes one event. An error of the writer below is kept by the buffer and comes out of Close.
func (t *Writer) event(format string, args ...any) {
	separator := ",\n{"
	if t.first {
		separator = "\n{"
	}
	t.first = false
	fmt.Fprint(t.out, separator)
	fmt.Fprintf(t.out, format, args...)
	fmt.Fprint(t.out, "}")
}

// quote writes a JSON string; names of models come from files.
func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic("perfetto: " + err.Error()) // no string fails
	}
	return string(text)
}

// track is the thread of a request: 0 is taken by the viewers.
func track(id uint64) uint64 { return id + 1 }

// micros writes nanoseconds as microseconds.
func micros(ns core.Time) string { return fmt.Sprintf("%d.%03d", ns/1000, ns%1000) }
