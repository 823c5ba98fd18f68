package task

import (
	"fmt"
	"slices"
	"strings"
)

// symbolsLevel says how large the problems of a level are.
type symbolsLevel struct{ letters, steps int }

// Level 1 is entry 0.
var symbolsLevels = [LevelMax]symbolsLevel{{5, 5}, {6, 6}, {7, 7}, {8, 8}, {9, 9}, {10, 10}}

// The most that letters are rotated and moved along the alphabet.
const (
	rotateMax  = 3
	advanceMax = 5
)

// symbols draws letters and what is done with them. No step is done twice in a row.
func symbols(d *dice, level int) draft {
	size := symbolsLevels[level-1]
	letters := make([]byte, size.letters)
	for i := range letters {
		letters[i] = byte(d.from('a', 'z'))
	}
	start := spaced(letters)
	var orders []string
	steps := new(strings.Builder)
	last := -1
	for range size.steps {
		kind := d.from(0, 4)
		for kind == last {
			kind = d.from(0, 4)
		}
		last = kind
		order := act(d, kind, letters)
		orders = append(orders, order)
		fmt.Fprintf(steps, "%s: %s\n", order, spaced(letters))
	}
	todo := strings.Join(orders, ", ")
	return draft{
		canonical: start + ": " + todo, steps: steps.String(), answer: spaced(letters),
		prompt: fmt.Sprintf(pick(d, "Letters: %s. Steps: %s.", "Take %s and do this: %s."), start, todo),
	}
}

// act changes letters and says how.
func act(d *dice, kind int, letters []byte) string {
	switch kind {
	case 0:
		slices.Reverse(letters)
		return "reverse"
	case 1:
		slices.Sort(letters)
		return "sort"
	case 2:
		by := d.from(1, rotateMax)
		copy(letters, append(slices.Clone(letters[by:]), letters[:by]...))
		return fmt.Sprintf("rotate left %d", by)
	case 3:
		by := d.from(1, advanceMax)
		for i, letter := range letters {
			letters[i] = 'a' + (letter-'a'+byte(by))%26
		}
		return fmt.Sprintf("advance %d", by)
	case 4:
		// One that is there and any other.
		a := pick(d, letters...)
		b := 'a' + (a-'a'+byte(d.from(1, 25)))%26
		for i, letter := range letters {
			switch letter {
			case a:
				letters[i] = b
			case b:
				letters[i] = a
			}
		}
		return fmt.Sprintf("exchange %c and %c", a, b)
	default:
		panic(fmt.Sprintf("task: no step of kind %d", kind))
	}
}

// spaced puts a space between letters, so that each is a token of its own.
func spaced(letters []byte) string { return strings.Join(strings.Split(string(letters), ""), " ") }
