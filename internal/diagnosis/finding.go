package diagnosis

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// Worst returns the findings that need action: broken and suspicious ones. The findings must be sorted by Rank.
func Worst(findings []Finding) []Finding {
	i := slices.IndexFunc(findings, func(f Finding) bool { return f.Verdict.Order() >= Unknown.Order() })
	if i < 0 {
		return findings
	}
	return findings[:i]
}

// Verdict is the result of a check.
type Verdict string

// The verdicts, worst first.
const (
	Broken     Verdict = "broken"     // no node joins, or pods do not run, until the problem is fixed
	Suspicious Verdict = "suspicious" // the subject contradicts other evidence, or will fail in a likely case
	Unknown    Verdict = "unknown"    // the evidence for the check is missing; Cause says which
	Fine       Verdict = "fine"       // the check has found no problem
)

// Order ranks verdicts, worst first.
func (v Verdict) Order() int {
	return slices.Index([]Verdict{Broken, Suspicious, Unknown, Fine}, v)
}

// Certainty is how certain a finding is.
type Certainty string

// The certainties.
const (
	Certain  Certainty = "certain"  // the evidence allows no other explanation
	Likely   Certainty = "likely"   // no other known explanation fits the evidence
	Possible Certainty = "possible" // one of several explanations
)

// Finding is what a check found about one subject.
type Finding struct {
	Check     string    `json:"check"`               // "AUTH-2"
	Title     string    `json:"title"`               // of the check
	Verdict   Verdict   `json:"verdict"`             // of the check
	Subject   string    `json:"subject,omitempty"`   // "EC2NodeClass default"; empty: the cluster
	Cause     string    `json:"cause,omitempty"`     // one sentence; for Unknown, the missing evidence
	Certainty Certainty `json:"certainty,omitempty"` // of the cause
	Evidence  []string  `json:"evidence,omitempty"`  // one line each
	Fix       fix.Fix   `json:"-"`                   // see MarshalJSON
	// Follows is the check whose finding causes this one; the fix of that finding also fixes this one. Empty for a root
	// cause.
	Follows string `json:"follows,omitempty"`
	// Explains lists the symptoms, of consoles or conditions, that the finding explains.
	Explains []Symptom `json:"explains,omitempty"`
	Page     string    `json:"page"` // in the documentation
	// Unused is true if the finding is about an EC2NodeClass that no NodePool and no NodeClaim uses. No pod waits
	// because of it.
	Unused bool `json:"unused,omitempty"`

	Holds bool  `json:"-"` // pods wait because of the finding, or NodeClaims of its subject are not initialized
	Layer Layer `json:"-"` // stage of the node that the check is about
	Seen  bool  `json:"-"` // a symptom in Explains was observed
}

// With adds lines of evidence.
func (f Finding) With(lines ...string) Finding {
	for _, l := range lines {
		if l != "" {
			f.Evidence = append(f.Evidence, l)
		}
	}
	return f
}

// Explaining adds symptoms that the finding explains.
func (f Finding) Explaining(signs ...Symptom) Finding {
	f.Explains = append(f.Explains, signs...)
	return f
}

// FixedBy sets the fix, step by step.
func (f Finding) FixedBy(steps ...fix.Step) Finding {
	f.Fix = fix.Of(f.Subject, steps...)
	return f
}

// MarshalJSON writes the finding with its fix in three forms: the correcting commands as shell text, the read-only
// commands as shell text, and all steps with the words of their commands.
func (f Finding) MarshalJSON() ([]byte, error) {
	type plain Finding
	return json.Marshal(struct {
		plain
		Fix   string     `json:"fix,omitempty"`
		Look  string     `json:"look,omitempty"`
		Steps []fix.Step `json:"steps,omitempty"`
	}{plain(f), f.Fix.Correction().String(), f.Fix.Only(fix.Look).String(), f.Fix.Steps()})
}

// ReportBroken returns the finding of a check that failed.
func ReportBroken(subject string, c Certainty, format string, args ...any) Finding {
	return Finding{Verdict: Broken, Subject: subject, Certainty: c, Cause: fmt.Sprintf(format, args...)}
}

// ReportSuspicious returns the finding of a check that may have failed.
func ReportSuspicious(subject string, c Certainty, format string, args ...any) Finding {
	return Finding{Verdict: Suspicious, Subject: subject, Certainty: c, Cause: fmt.Sprintf(format, args...)}
}

// ReportFine returns the finding of a check that passed.
func ReportFine(subject string) Finding {
	return Finding{Verdict: Fine, Subject: subject, Certainty: Certain}
}

// Rank sorts findings, by these criteria in turn:
//   - Broken and suspicious findings come first.
//   - Findings about EC2NodeClasses that no NodePool and no NodeClaim uses come last.
//   - Findings that hold pods come first.
//   - The worst verdict comes first.
//   - Root causes come before their consequences.
//   - Findings that explain an observed symptom come first.
//   - Earlier layers come first, because a node with a problem there has not reached later layers.
//   - The rest is by check, subject and cause.
func Rank(all []Finding) {
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(max(a.Verdict.Order(), Suspicious.Order()), max(b.Verdict.Order(), Suspicious.Order())),
			cmp.Compare(oneIf(a.Unused), oneIf(b.Unused)),
			cmp.Compare(oneIf(!a.Holds), oneIf(!b.Holds)),
			cmp.Compare(a.Verdict.Order(), b.Verdict.Order()),
			cmp.Compare(oneIf(a.Follows != ""), oneIf(b.Follows != "")),
			cmp.Compare(oneIf(!a.Seen), oneIf(!b.Seen)),
			cmp.Compare(a.Layer, b.Layer),
			cmp.Compare(a.Check, b.Check),
			cmp.Compare(a.Subject, b.Subject),
			cmp.Compare(a.Cause, b.Cause))
	})
}

// oneIf returns 1 for true, else 0.
func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}
