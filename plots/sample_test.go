package plots

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// load reads figure data of testdata.
func load[T any](t testing.TB, name string) T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var data T
	if err := json.Unmarshal(text, &data); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return data
}
func TestTmp(t *testing.T) {
	w := func(f *Figure, err error) func(string) {
		return func(name string) {
			if err != nil {
				t.Fatal(err)
			}
			f.Write("/tmp/gen", name)
		}
	}
	w(Threshold(load[ThresholdData](t, "threshold.json")))("threshold")
	w(ThroughputSpeed(load[ThroughputSpeedData](t, "speed.json")))("speed")
	w(Schedules(load[SchedulesData](t, "schedules.json")))("schedules")
	w(Timeline(load[TimelineData](t, "timeline.json")))("timeline")
}
