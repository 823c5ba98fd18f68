package result

import "slices"

// ReplayedMetricsOf is the dictionary of a simulated run that plays a trace: that of MetricsOf, with what was
// known of the recorded answers. The simulator makes none of it.
func ReplayedMetricsOf(models []string) []Metric {
	own := []Metric{
		{Name: "inherited_accuracy", Unit: "1",
			Definition: "accuracy of the measured run that the trace is of, over all its requests; absent where some" +
				" answers here are others than the recorded ones, or were never judged"},
		Count("inherited_right", "requests whose answer is the recorded one, which was right"),
		Count("inherited_wrong", "requests whose answer is the recorded one, which was wrong"),
		Count("inherited_unknown", "requests whose answer is another than the recorded one, or was never judged"),
	}
	return slices.Concat(own, MetricsOf(models))
}
