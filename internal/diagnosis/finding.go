package diagnosis

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// Actionable returns the broken and suspicious findings, which need action. findings must be sorted by Rank.
func Actionable(findings []Finding) []Finding {
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
	Unknown    Verdict = "unknown"    // evidence that the check needs is missing; the cause names the evidence
	Fine       Verdict = "fine"       // the check has found no problem
)

// Order returns the rank of the verdict: 0 for Broken, the worst.
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
	Title     string    `json:"title"`               // the check's title
	Verdict   Verdict   `json:"verdict"`             // the check's result for the subject
	Subject   string    `json:"subject,omitempty"`   // "EC2NodeClass default"; empty: the cluster
	Cause     string    `json:"cause,omitempty"`     // one sentence; for the verdict Unknown, the missing evidence
	Certainty Certainty `json:"certainty,omitempty"` // how certain the cause is
	Evidence  []string  `json:"evidence,omitempty"`  // one line each
	Fix       fix.Fix   `json:"-"`                   // see MarshalJSON
	// Follows is the ID of the check that reports the cause of this problem. The fix of that cause also fixes this
	// problem. Follows is empty for a root cause.
	Follows string `json:"follows,omitempty"`
	// Explains lists the symptoms, of consoles or conditions, that the finding explains.
	Explains []Symptom `json:"explains,omitempty"`
	Page     string    `json:"page"` // path of the check's page in the documentation
	// Unused is true if the finding is about an EC2NodeClass that no NodePool and no NodeClaim uses. No pod waits
	// because of such a finding.
	Unused bool `json:"unused,omitempty"`

	BlocksPods bool  `json:"-"` // pods probably wait because of the finding
	Layer      Layer `json:"-"` // the check's stage in the life of a node
	Seen       bool  `json:"-"` // a symptom in Explains was observed
}

// With returns the finding with more lines of evidence. Empty lines are left out.
func (f Finding) With(lines ...string) Finding {
	for _, l := range lines {
		if l != "" {
			f.Evidence = append(f.Evidence, l)
		}
	}
	return f
}

// Explaining returns the finding with more symptoms that it explains.
func (f Finding) Explaining(symptoms ...Symptom) Finding {
	f.Explains = append(f.Explains, symptoms...)
	return f
}

// FixedBy returns the finding with a fix that has these steps.
func (f Finding) FixedBy(steps ...fix.Step) Finding {
	f.Fix = fix.New(f.Subject, steps...)
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
	}{plain(f), f.Fix.Correction().String(), f.Fix.Only(fix.ReadOnly).String(), f.Fix.Steps()})
}

// ReportBroken returns a finding with the verdict Broken. The cause is the formatted text.
func ReportBroken(subject string, c Certainty, format string, args ...any) Finding {
	return Finding{Verdict: Broken, Subject: subject, Certainty: c, Cause: fmt.Sprintf(format, args...)}
}

// ReportSuspicious returns a finding with the verdict Suspicious. The cause is the formatted text.
func ReportSuspicious(subject string, c Certainty, format string, args ...any) Finding {
	return Finding{Verdict: Suspicious, Subject: subject, Certainty: c, Cause: fmt.Sprintf(format, args...)}
}

// ReportFine returns a finding with the verdict Fine.
func ReportFine(subject string) Finding {
	return Finding{Verdict: Fine, Subject: subject, Certainty: Certain}
}

// Rank sorts findings, by these criteria in turn:
//   - Broken and suspicious findings come first.
//   - Findings about EC2NodeClasses that no NodePool and no NodeClaim uses come last.
//   - Findings that block pods come first.
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
			cmp.Compare(oneIf(!a.BlocksPods), oneIf(!b.BlocksPods)),
			cmp.Compare(a.Verdict.Order(), b.Verdict.Order()),
			cmp.Compare(oneIf(a.Follows != ""), oneIf(b.Follows != "")),
			cmp.Compare(oneIf(!a.Seen), oneIf(!b.Seen)),
			cmp.Compare(a.Layer, b.Layer),
			cmp.Compare(a.Check, b.Check),
			cmp.Compare(a.Subject, b.Subject),
			cmp.Compare(a.Cause, b.Cause))
	})
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}
