// Package checks runs all checks of a diagnosis.
//
// In: diagnosis.Evidence.
// Out: the findings of all checks, ranked, root causes first; the findings certain before a launch (Preflight).
// Never: a network call, a reading of the clock, or a verdict without evidence.
package checks

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/architecture"
	"github.com/joiner-sh/joiner/internal/diagnosis/auth"
	"github.com/joiner-sh/joiner/internal/diagnosis/boot"
	"github.com/joiner-sh/joiner/internal/diagnosis/fargate"
	"github.com/joiner-sh/joiner/internal/diagnosis/identity"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
	"github.com/joiner-sh/joiner/internal/diagnosis/launch"
	"github.com/joiner-sh/joiner/internal/diagnosis/leader"
	"github.com/joiner-sh/joiner/internal/diagnosis/network"
	"github.com/joiner-sh/joiner/internal/diagnosis/ready"
)

// Checks returns all checks, by layer and ID.
func Checks() []index.Check {
	all := slices.Concat(fargate.Checks(), leader.Checks(), identity.Checks(), architecture.Checks(), launch.Checks(),
		boot.Checks(), ready.TaintChecks(),
		network.Checks(), auth.Checks(), ready.Checks())
	slices.SortStableFunc(all, func(a, b index.Check) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), compareIDs(a.ID, b.ID))
	})
	return all
}

// compareIDs compares check IDs by prefix, then by number: "AUTH-2" is before "AUTH-10".
func compareIDs(a, b string) int {
	prefixA, numberA, _ := strings.Cut(a, "-")
	prefixB, numberB, _ := strings.Cut(b, "-")
	return cmp.Or(cmp.Compare(prefixA, prefixB), cmp.Compare(len(numberA), len(numberB)), cmp.Compare(numberA, numberB))
}

// Diagnose runs all checks and returns their findings, also fine ones, in the order of diagnosis.Rank. A finding of a
// fallback check becomes fine if findings of other checks explain its symptoms. The result is deterministic.
func Diagnose(e diagnosis.Evidence) []diagnosis.Finding {
	ix := index.New(e)
	var out, fallbacks []diagnosis.Finding
	for _, c := range Checks() {
		found := c.Judge(ix)
		if len(found) == 0 {
			found = []diagnosis.Finding{diagnosis.ReportFine("")}
		}
		for _, f := range found {
			f.Check, f.Title, f.Layer = c.ID, c.Title, c.Layer
			f = withRelaunch(ix, f)
			f.Page = "docs/checks/" + c.ID + ".md"
			f.Seen = slices.ContainsFunc(f.Explains, ix.HasSymptom)
			f.Unused = f.Verdict.Order() < diagnosis.Unknown.Order() && isUnused(ix, f.Subject)
			f.BlocksPods = blocksPods(ix, f)
			if c.Fallback && f.Verdict.Order() < diagnosis.Unknown.Order() {
				fallbacks = append(fallbacks, f)
				continue
			}
			out = append(out, f)
		}
	}
	for _, f := range fallbacks {
		if isExplained(ix, out, f) {
			f = diagnosis.Finding{
				Check:     f.Check,
				Title:     f.Title,
				Page:      f.Page,
				Layer:     f.Layer,
				Verdict:   diagnosis.Fine,
				Certainty: diagnosis.Certain,
			}
		}
		out = append(out, f)
	}
	diagnosis.Rank(out)
	return slices.CompactFunc(out, isSame)
}

// isExplained reports whether broken findings of other checks explain all symptoms of a finding of a fallback check. A
// finding about one EC2NodeClass explains no symptom of another EC2NodeClass.
func isExplained(ix *index.Index, findings []diagnosis.Finding, fallback diagnosis.Finding) bool {
	class := classOfSubject(ix, fallback.Subject)
	for _, s := range fallback.Explains {
		if !slices.ContainsFunc(findings, func(f diagnosis.Finding) bool {
			explains := f.Verdict == diagnosis.Broken && !f.Unused && slices.Contains(f.Explains, s)
			classOfF := classOfSubject(ix, f.Subject)
			return explains && (class == "" || classOfF == "" || class == classOfF)
		}) {
			return false
		}
	}
	return len(fallback.Explains) > 0
}

// classOfSubject returns the EC2NodeClass that a finding with the subject is about; empty if it may be about several.
func classOfSubject(ix *index.Index, subject string) string {
	kind, name, _ := strings.Cut(subject, " ")
	switch kind {
	case "EC2NodeClass":
		if !strings.Contains(name, " ") {
			return name
		}
	case "instance":
		for _, i := range ix.Evidence.Instances.Value {
			if i.ID == name {
				return i.Class
			}
		}
	}
	return ""
}

func isSame(a, b diagnosis.Finding) bool {
	return a.Check == b.Check && a.Subject == b.Subject && a.Verdict == b.Verdict && a.Cause == b.Cause
}
