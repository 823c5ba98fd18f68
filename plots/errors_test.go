package plots

import (
	"strings"
	"testing"
)

// TestRefused: errors name what was given and what was wanted.
func TestRefused(t *testing.T) {
	short := Series{Name: "s", X: counting(2), Y: counting(3)}
	half := Series{Name: "s", X: counting(2), Y: counting(2), Low: counting(2)}
	few := Series{Name: "s", X: counting(2), Y: counting(2), Low: counting(1), High: counting(1)}
	schedule := func(s Schedule) error {
		d := SchedulesData{Models: []string{"m"}, Requests: []string{"r"}, Schedules: []Schedule{s}}
		_, err := Schedules(d)
		return err
	}
	sweep := func(s Series) error { _, err := Sweep(SweepData{Series: []Series{s}}); return err }
	threshold := func(p ThresholdPanel) error {
		_, err := Threshold(ThresholdData{Panels: []ThresholdPanel{p}})
		return err
	}
	speed := func(c SpeedCurve) error {
		_, err := ThroughputSpeed(ThroughputSpeedData{Curves: []SpeedCurve{c}})
		return err
	}
	pareto := func(l ParetoLine) error {
		_, err := Pareto(ParetoData{Panels: []ParetoPanel{{4, []ParetoLine{l}}}})
		return err
	}
	timeline := func(l Launch) error {
		_, err := Timeline(TimelineData{Models: []string{"m"}, Launches: []Launch{l}})
		return err
	}
	for _, test := range []struct {
		name, want string
		err        error
	}{
		{"sweep X", `sweep: series "s" has 2 X and 3 Y`, sweep(short)},
		{"sweep interval", `series "s" has 2 Low and 0 High`, sweep(half)},
		{"sweep intervals", `series "s" has 1 intervals for 2 points`, sweep(few)},
		{"threshold", `threshold: N = 4: series "s" has 2 X and 3 Y`,
			threshold(ThresholdPanel{4, short, Series{}, Series{}})},
		{"measured", `N = 4: series "s" has 2 X`, threshold(ThresholdPanel{4, Series{}, Series{}, short})},
		{"speed", `curve "eager" has 1 concurrencies for 2 points`,
			speed(SpeedCurve{Policy: "eager", Concurrency: []int{1},
				Speed: counting(2), Throughput: counting(2)})},
		{"speed Y", `series "eager" has 0 X and 2 Y`,
			speed(SpeedCurve{Policy: "eager", Throughput: counting(2)})},
		{"pareto", `pareto: N = 4: series "r2r" has 2 X and 1 Y`,
			pareto(ParetoLine{Routing: "r2r", Throughput: counting(2), Accuracy: counting(1)})},
		{"pareto interval", `series "r2r" has 2 Low and 0 High`, pareto(ParetoLine{Routing: "r2r",
			Throughput: counting(2), Accuracy: counting(2), Low: counting(2)})},
		{"launch of no model", "launch 0: model 1, want 0 to 0",
			schedule(Schedule{Launches: []Launch{{Model: 1}}})},
		{"launch of no request", "launch 0: request -1, want 0 to 0",
			schedule(Schedule{Launches: []Launch{{Requests: []int{-1}}}})},
		{"launch backwards", "launch 0: ends at 1 before it begins at 2",
			schedule(Schedule{Launches: []Launch{{Start: 2, End: 1}}})},
		{"wait of no request", "wait 0: request 1, want 0 to 0",
			schedule(Schedule{Waits: []Wait{{Request: 1}}})},
		{"end of no model", "end 0: model -1, want 0 to 0",
			schedule(Schedule{Finishes: []Finish{{Model: -1}}})},
		{"trace of no model", "timeline: launch 0: model 1, want 0 to 0", timeline(Launch{Model: 1})},
		{"trace backwards", "launch 0: ends at 1 before it begins at 2", timeline(Launch{Start: 2, End: 1})},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", test.name, test.err, test.want)
		}
	}
}
