package spec

// certain reports whether every seed gives the same run of the point: its verdicts are recorded or have
// probability 0 or 1, and its requests are recorded too, or come in a closed loop with lengths of one value.
// It errs towards false.
func (p *Point) certain() bool {
	switch {
	case p.Trace != "":
		return true // requests and verdicts
	case p.Paths == nil && !zerosAndOnes(p.Routing):
		return false
	}
	w := &p.Workload
	switch w.Kind {
	case "trace":
		return true
	case "closed":
		least, greatest := w.Lengths.Prompt.Bounds()
		if least != greatest || w.Lengths.PrefixGroups > 1 {
			return false
		}
		least, greatest = w.Lengths.Output.Bounds()
		return p.Paths != nil || least == greatest
	default:
		return false
	}
}

// zerosAndOnes reports whether a matrix, which is not empty, leaves nothing to chance.
func zerosAndOnes(matrix [][]float64) bool {
	for _, row := range matrix {
		for _, probability := range row {
			if probability != 0 && probability != 1 {
				return false
			}
		}
	}
	return len(matrix) > 0
}

// checkReplicates takes several seeds where a spec says none, for one gives no interval, and refuses those
// that would repeat one run: their confidence intervals would say 0. On hardware no run repeats another.
func (l *loader) checkReplicates(top *section) {
	if len(l.problems) > 0 || l.spec.Hardware != nil || l.spec.Answered {
		return
	}
	certain := true
	for i := range l.spec.Points {
		certain = certain && l.spec.Points[i].certain()
	}
	const replicates = 3
	switch {
	case certain && l.spec.Replicates > 1:
		top.wrong("replicates", "want 1: nothing in this spec is random")
	case !certain && !top.has("replicates"):
		l.spec.Replicates = replicates
	}
}
