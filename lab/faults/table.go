package faults

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// ChecksWithoutFault returns the IDs of the checks that have no fault in the lab, each with the reason.
func ChecksWithoutFault() map[string]string {
	const fargate, late = "separate tests in the lab cover a controller on Fargate",
		"it reports only after three minutes, and only if no other check finds a cause"
	return map[string]string{
		"AUTH-10": "it is a hint beside AUTH-2, and never the first finding",
		"AUTH-11": "its causes are in EKS's own authenticator, which the lab emulates",
		"ARCH-6":  "it is a hint beside ARCH-5, and never the first finding",
		"ARCH-7":  "the region of the lab no longer offers A1 instances",
		"BOOT-12": "every cause of missing credentials has its own check: AUTH-5, AUTH-6, AUTH-7",
		"FG-1":    fargate, "FG-2": fargate, "FG-3": fargate, "FG-4": fargate, "FG-5": fargate, "FG-6": fargate, "FG-7": fargate, "FG-8": fargate,
		"ID-1":    "a controller does not start in a cluster with another name, and separate tests in the lab cover two clusters with the same name",
		"ID-7":    "the controller deletes the NodeClaim of a terminated instance within a second",
		"NET-7":   "the emulated VPC has only security groups and network ACLs, which have their own checks",
		"READY-3": late,
		"RUN-1":   "the controller fixes every fault, and this fault removes the controller: a separate test in the lab stops it",
		"TAINT-5": "the API server records only the last writer of a node's taints, and in the lab a Kubernetes controller writes them before the check reads them",
	}
}

// Problems lists errors in the table of faults: duplicate names, unknown checks, and checks without a fault or a
// reason.
func Problems() []string {
	var out []string
	withoutFault, known, names := ChecksWithoutFault(), map[string]bool{}, map[string]bool{}
	for _, c := range checks.Checks() {
		known[c.ID] = true
	}
	withFault := map[string]bool{}
	for _, f := range All() {
		if names[f.Name] {
			out = append(out, fmt.Sprintf("there are two faults named %s", f.Name))
		}
		names[f.Name], withFault[f.Check] = true, true
		if !known[f.Check] || f.Cause == "" || f.What == "" || f.Break == nil && f.AfterCreate == nil {
			out = append(out, fmt.Sprintf("the fault %s has an unknown Check, no Cause, no What, or neither Break nor AfterCreate", f.Name))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		switch {
		case !withFault[id] && withoutFault[id] == "":
			out = append(out, fmt.Sprintf("the check %s has no fault, and no reason in ChecksWithoutFault", id))
		case withFault[id] && withoutFault[id] != "":
			out = append(out, fmt.Sprintf("the check %s has a fault, and also a reason in ChecksWithoutFault", id))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(withoutFault)) {
		if !known[id] {
			out = append(out, fmt.Sprintf("ChecksWithoutFault has the unknown check %s", id))
		}
	}
	return out
}
