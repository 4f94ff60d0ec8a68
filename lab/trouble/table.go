package trouble

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/diagnosis"
)

// Untried are the checks that no fault makes true here, and why.
func Untried() map[string]string {
	return map[string]string{}
}

// Problems says what is wrong with the table of faults: names that are used twice, checks that are none, and checks without a fault or a reason.
func Problems() []string {
	var out []string
	untried, known, names := Untried(), map[string]bool{}, map[string]bool{}
	for _, c := range diagnosis.Checks() {
		known[c.ID] = true
	}
	tried := map[string]bool{}
	for _, f := range All() {
		if names[f.Name] {
			out = append(out, fmt.Sprintf("there are two faults named %s", f.Name))
		}
		names[f.Name], tried[f.Check] = true, true
		if !known[f.Check] || f.Cause == "" || f.What == "" || f.Break == nil && f.Then == nil {
			out = append(out, fmt.Sprintf("the fault %s lacks its check, its cause, what it does or how", f.Name))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		switch {
		case !tried[id] && untried[id] == "":
			out = append(out, fmt.Sprintf("no fault makes %s true, and no reason is given", id))
		case tried[id] && untried[id] != "":
			out = append(out, fmt.Sprintf("%s has a fault, and a reason to have none", id))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(untried)) {
		if !known[id] {
			out = append(out, fmt.Sprintf("there is no check %s", id))
		}
	}
	return out
}
