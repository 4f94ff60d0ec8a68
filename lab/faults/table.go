package faults

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// Untried maps the checks without a fault in the lab to the reason.
func Untried() map[string]string {
	const fargate, late = "the case of a controller on Fargate has tests of its own in the lab",
		"it speaks up after three minutes, and only where no other check knows more"
	return map[string]string{
		"AUTH-10": "it is a hint beside AUTH-2, and never the first finding",
		"AUTH-11": "its reasons lie in EKS's own authenticator, whose place a stand-in takes",
		"ARCH-6":  "it is a hint beside ARCH-5, and never the first finding",
		"ARCH-7":  "the region of the lab no longer offers A1 instances",
		"BOOT-12": "each way to lose one's credentials has a check that knows the reason: AUTH-5, AUTH-6, AUTH-7",
		"FG-1":    fargate, "FG-2": fargate, "FG-3": fargate, "FG-4": fargate, "FG-5": fargate, "FG-6": fargate, "FG-7": fargate, "FG-8": fargate,
		"ID-1":    "a controller does not start in a cluster of another name, and two clusters of one name have separate tests in the lab",
		"ID-7":    "the controller gives up the NodeClaim of an instance that is gone within a second",
		"NET-7":   "the emulated VPC has no firewalls besides groups and network ACLs, and what else is in the way has a check of its own",
		"READY-3": late,
		"RUN-1":   "the controller fixes every fault, and this fault removes the controller: a separate test in the lab stops it",
		"TAINT-5": "the API server notes only who wrote a node's taints last, and in a lab that is one of Kubernetes' own controllers before a check reads it",
	}
}

// Problems lists errors in the table of faults: duplicate names, unknown checks, and checks without a fault or a reason.
func Problems() []string {
	var out []string
	untried, known, names := Untried(), map[string]bool{}, map[string]bool{}
	for _, c := range checks.Checks() {
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
