package outcome

import "fmt"

// Bursts describes a chain of two states, easy (0) and hard (1), by what one can measure.
type Bursts struct {
	RouteShare float64 // mean probability of routing, strictly between Easy and Hard
	Easy       float64 // probability of routing at an easy position, 0 to 1
	Hard       float64 // probability of routing at a hard position, 0 to 1, above Easy
	HardTokens float64 // mean length of a stretch of hard positions, at least 1 token
}

// EasyTokens is the mean length of a stretch of easy positions that gives the share wanted.
func (b Bursts) EasyTokens() float64 {
	hardShare := (b.RouteShare - b.Easy) / (b.Hard - b.Easy)
	return b.HardTokens * (1 - hardShare) / hardShare
}

// NewBursts makes a Modulated of two states with geometric stretches. It refuses a share that
// no stretch of easy positions of at least one token can give, and says which would.
func NewBursts(b Bursts) (*Modulated, error) {
	if !(b.Easy >= 0 && b.Hard <= 1 && b.Easy < b.Hard) {
		return nil, fmt.Errorf("outcome: bursts: easy = %v, hard = %v, want 0 <= easy < hard <= 1", b.Easy, b.Hard)
	}
	if !(b.RouteShare > b.Easy && b.RouteShare < b.Hard) {
		return nil, fmt.Errorf("outcome: bursts: route share = %v, want above easy = %v and below hard = %v",
			b.RouteShare, b.Easy, b.Hard)
	}
	if !(b.HardTokens >= 1 && b.HardTokens <= 1e9) {
		return nil, fmt.Errorf("outcome: bursts: hard tokens = %v, want 1 to 1e9", b.HardTokens)
	}
	easyTokens := b.EasyTokens()
	if !(easyTokens >= 1) {
		hardShare := (b.RouteShare - b.Easy) / (b.Hard - b.Easy)
		return nil, fmt.Errorf("outcome: bursts: hard tokens = %v with a share of hard positions of %v leaves"+
			" easy stretches of %v tokens, want at least 1: hard tokens of at least %v",
			b.HardTokens, hardShare, easyTokens, hardShare/(1-hardShare))
	}
	leaveEasy, leaveHard := 1/easyTokens, 1/b.HardTokens
	return NewModulated([]float64{b.Easy, b.Hard},
		[][]float64{{1 - leaveEasy, leaveEasy}, {leaveHard, 1 - leaveHard}})
}
