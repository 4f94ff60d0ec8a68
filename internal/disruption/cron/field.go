package cron

import (
	"fmt"
	"strconv"
	"strings"
)

// field describes one of the five columns of a cron line: its name, its range, and the words for its numbers.
type field struct {
	name        string
	least, most int    // the range of its numbers
	words       string // names of three letters each, the first for the value least; empty: numbers only
}

func fields() [5]field {
	return [5]field{
		{name: "minute", least: 0, most: 59},
		{name: "hour", least: 0, most: 23},
		{name: "day of the month", least: 1, most: 31},
		{name: "month", least: 1, most: 12, words: "janfebmaraprmayjunjulaugsepoctnovdec"},
		{name: "day of the week", least: 0, most: 6, words: "sunmontuewedthufrisat"},
	}
}

// set is a set of numbers that a column selects.
type set struct {
	bits uint64
	// isAny is true if the column is unrestricted: * or ?, without a step above 1.
	isAny bool
}

func (s set) has(n int) bool { return s.bits&(1<<n) != 0 }

// parse parses a column: "*", "5", "1-5", "*/15", "1,3,mon-fri/2".
func (f field) parse(text string) (set, error) {
	var out set
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		element, err := f.parseRange(part)
		if err != nil {
			return set{}, fmt.Errorf("%s %q: %w", f.name, text, err)
		}
		out.bits |= element.bits
		out.isAny = out.isAny || element.isAny
	}
	if out.bits == 0 {
		return set{}, fmt.Errorf("%s %q: the list is empty", f.name, text)
	}
	return out, nil
}

// parseRange parses an element of the list: "*", "5", "1-5", each with or without a step "/2".
func (f field) parseRange(text string) (set, error) {
	span, stepText, hasStep := strings.Cut(text, "/")
	first, last, isSpan := strings.Cut(span, "-")
	out := set{isAny: first == "*" || first == "?"}
	from, to, step := f.least, f.most, 1
	var err error
	if !out.isAny {
		if from, err = f.number(first); err != nil {
			return set{}, err
		}
		switch {
		case isSpan:
			if to, err = f.number(last); err != nil {
				return set{}, err
			}
		case !hasStep: // with a step, as in "5/10", the range ends at f.most
			to = from
		}
	}
	if hasStep {
		if step, err = strconv.Atoi(stepText); err != nil || step < 1 {
			return set{}, fmt.Errorf("the step %q is not a whole number above 0", stepText)
		}
		out.isAny = out.isAny && step == 1
	}
	if from > to {
		return set{}, fmt.Errorf("%s begins after its end", span)
	}
	for n := from; n <= to; n += min(step, f.most+1) { // a step larger than the range must not overflow
		out.bits |= 1 << n
	}
	return out, nil
}

// number parses a number or a name of the column.
func (f field) number(text string) (int, error) {
	if len(text) == 3 {
		if at := strings.Index(f.words, strings.ToLower(text)); at >= 0 && at%3 == 0 {
			return f.least + at/3, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	if n < f.least || n > f.most {
		return 0, fmt.Errorf("%d is not from %d to %d", n, f.least, f.most)
	}
	return n, nil
}
