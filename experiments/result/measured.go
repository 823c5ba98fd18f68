package result

import (
	"strings"

	"tokenrouter/core/meter"
)

// Measured are the metrics of a summary that belong to no model, by their names in the dictionary. A metric
// that is absent was not there to be measured.
func Measured(s *meter.Summary) map[string]float64 {
	v := map[string]float64{
		"window_s": float64(s.ClosedNs-s.OpenedNs) / 1e9,
		"tokens":   float64(s.Committed), "tokens_total": float64(s.Total),
		"requests_finished": float64(s.Finished), "requests_rejected": float64(s.Rejected),
		"requests_cancelled": float64(s.Cancelled), "requests_failed": float64(s.Failed),
		"requests_warmup": float64(s.Warmups),
	}
	if s.ClosedNs > s.OpenedNs {
		v["throughput_tok_s"], v["goodput_tok_s"] = s.ThroughputTokS, s.GoodputTokS
	}
	for _, d := range distributions(s) {
		MeasuredTimes(v, d.name, d.stats)
	}
	return v
}

// MeasuredTimes adds the metrics of one distribution of times to v; stats is nil where there were none.
func MeasuredTimes(v map[string]float64, name string, stats *meter.Stats) {
	v[name+"_n"] = 0
	if stats == nil {
		return
	}
	v[name+"_mean_ms"], v[name+"_n"] = stats.Mean/1e6, float64(stats.Count)
	for p, ns := range map[string]int64{"p50": stats.P50, "p90": stats.P90, "p95": stats.P95, "p99": stats.P99} {
		v[name+"_"+p+"_ms"] = float64(ns) / 1e6
	}
}

type distribution struct {
	name  string
	stats *meter.Stats
}

func distributions(s *meter.Summary) []distribution {
	return []distribution{{"latency", s.Latency}, {"ttft", s.TTFT}, {"gap", s.Gap}, {"tpot", s.TPOT},
		{"admission", s.Admission}}
}

// ThinTails warns of the percentiles that too few values are behind; empty: of none.
func ThinTails(s *meter.Summary) string {
	var thin []string
	for _, d := range distributions(s) {
		switch stats := d.stats; {
		case stats == nil || d.name == "admission":
		case !stats.P90Reliable:
			thin = append(thin, d.name+" p90, p95 and p99")
		case !stats.P95Reliable:
			thin = append(thin, d.name+" p95 and p99")
		case !stats.P99Reliable:
			thin = append(thin, d.name+" p99")
		}
	}
	if len(thin) == 0 {
		return ""
	}
	return "tails that rest on fewer than 10 values beyond them: " + strings.Join(thin, ", ")
}
