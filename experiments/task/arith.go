package task

import (
	"fmt"
	"strconv"
	"strings"
)

// arithLevel says how large the problems of a level are.
type arithLevel struct {
	terms       int
	digitsMax   int  // of a number that is added or taken away, from 2
	longFactors bool // some factors have two digits
}

// Level 1 is entry 0. Products have at most 4 digits, so running totals have at most 5.
var arithLevels = [LevelMax]arithLevel{
	{terms: 3, digitsMax: 2},
	{terms: 3, digitsMax: 3},
	{terms: 4, digitsMax: 3, longFactors: true},
	{terms: 5, digitsMax: 3, longFactors: true},
	{terms: 6, digitsMax: 4, longFactors: true},
	{terms: 8, digitsMax: 4, longFactors: true},
}

// term is a part of a sum: its text, its value, and the lines that work it out.
type term struct {
	text, steps string
	value       int
}

// arith draws a sum of terms. At least one term is no plain number, and no running total is negative.
func arith(d *dice, level int) draft {
	size := arithLevels[level-1]
	terms := make([]term, size.terms)
	worked := d.from(0, size.terms-1)
	for i := range terms {
		terms[i] = drawTerm(d, size, i == worked)
	}
	text, steps := new(strings.Builder), new(strings.Builder)
	for _, t := range terms {
		steps.WriteString(t.steps)
	}
	total := terms[0].value
	text.WriteString(terms[0].text)
	for _, t := range terms[1:] {
		sign, next := "+", total+t.value
		if d.from(0, 1) == 1 && t.value <= total {
			sign, next = "-", total-t.value
		}
		fmt.Fprintf(text, " %s %s", sign, t.text)
		line(steps, total, sign, t.value, next)
		total = next
	}
	return draft{
		canonical: text.String(), steps: steps.String(), answer: strconv.Itoa(total),
		prompt: fmt.Sprintf(pick(d, "Compute %s.", "What is %s?", "Work out %s."), text),
	}
}

// drawTerm draws a number, a product of numbers, or a bracket times a digit.
func drawTerm(d *dice, size arithLevel, worked bool) term {
	least := 0
	if worked {
		least = 1
	}
	switch kind := d.from(least, 3); {
	case kind == 0:
		n := d.number(d.from(2, size.digitsMax))
		return term{text: strconv.Itoa(n), value: n}
	case kind == 1:
		return bracket(d, min(size.digitsMax, 3))
	case size.longFactors && d.from(0, 1) == 1:
		return longProduct(d.number(2), d.from(11, 99))
	default:
		a, b := d.number(d.from(2, min(size.digitsMax, 3))), d.from(2, 9)
		steps := new(strings.Builder)
		line(steps, a, "*", b, a*b)
		return term{fmt.Sprintf("%d * %d", a, b), steps.String(), a * b}
	}
}

// longProduct is a product by two digits, worked by its tens and units.
func longProduct(a, b int) term {
	tens, units := b/10*10, b%10
	steps := new(strings.Builder)
	line(steps, a, "*", tens, a*tens)
	if units > 0 {
		line(steps, a, "*", units, a*units)
		line(steps, a*tens, "+", a*units, a*b)
	}
	return term{fmt.Sprintf("%d * %d", a, b), steps.String(), a * b}
}

// bracket is a sum or difference below 1000 times a digit.
func bracket(d *dice, digitsMax int) term {
	a, b, factor := d.number(d.from(2, digitsMax)), d.number(d.from(2, digitsMax)), d.from(2, 9)
	sign, inner := "+", a+b
	if inner > 999 || a > b && d.from(0, 1) == 1 {
		a, b = max(a, b), min(a, b)
		sign, inner = "-", a-b
	}
	steps := new(strings.Builder)
	line(steps, a, sign, b, inner)
	line(steps, inner, "*", factor, inner*factor)
	return term{fmt.Sprintf("(%d %s %d) * %d", a, sign, b, factor), steps.String(), inner * factor}
}

func line(steps *strings.Builder, a int, sign string, b, result int) {
	fmt.Fprintf(steps, "%d %s %d = %d\n", a, sign, b, result)
}
