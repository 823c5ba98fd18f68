package latency

import "testing"

// TestFalls: a table may fall by as much as a measurement is off, on any axis.
func TestFalls(t *testing.T) {
	const ms = 1_000_000
	for _, c := range []struct {
		name string
		grid Grid
		want string
	}{
		{"rising", Grid{Rows: []int{1, 2, 4}, Ns: []int64{5 * ms, 6 * ms, 6 * ms}}, ""},
		{"off by 10 %", Grid{Rows: []int{1, 2}, Ns: []int64{10 * ms, 9 * ms}}, ""},
		{"falling", Grid{Rows: []int{1, 2, 4}, Ns: []int64{5 * ms, 6 * ms, 5 * ms}}, "6ms at 2 rows, 5ms at 4"},
		{"one point", Grid{Rows: []int{3}, Ns: []int64{5 * ms}}, ""},
		{"rows fall where tokens rise", Grid{Rows: []int{1, 2}, Fresh: []int{1, 8},
			Ns: []int64{5 * ms, 9 * ms, 5 * ms, 8 * ms}}, "9ms at 1 rows, 8ms at 2"},
		{"fresh tokens", Grid{Rows: []int{1, 2}, Fresh: []int{1, 8},
			Ns: []int64{5 * ms, 6 * ms, 8 * ms, 7 * ms}}, "8ms at 1 fresh tokens, 7ms at 8"},
		{"context", Grid{Rows: []int{1}, Context: []int{0, 100, 200}, Ns: []int64{5 * ms, 6 * ms, 3 * ms}},
			"6ms at 100 tokens in KV, 3ms at 200"},
	} {
		table, err := NewTable(c.grid, Refuse)
		if err != nil {
			t.Fatal(err)
		}
		if got := table.Falls(0.1); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
