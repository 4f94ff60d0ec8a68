package userdata

import (
	"cmp"
	"slices"
)

// Kind is the kind of a problem. It is also the reason of a condition.
type Kind string

// The kinds of problems.
const (
	TooLong           Kind = "UserDataTooLong"       // longer than EC2's limit
	NotUnpackable     Kind = "UserDataNotUnpackable" // incomplete gzip, or content that is too large when unpacked
	BadMIME           Kind = "MIMEInvalid"
	UnknownPart       Kind = "PartUnknown"          // a part that no program on the instance reads
	OtherFamily       Kind = "OtherFamily"          // user data for another AMI family
	ImageMismatch     Kind = "ImageMismatch"        // the image is not of the node class' AMI family
	OtherArch         Kind = "OtherArchitecture"    // a download for another architecture than the image's
	NothingJoins      Kind = "NothingJoins"         // nothing in the user data starts the kubelet
	StartsTwice       Kind = "StartsTwice"          // the kubelet is started more than once
	NeverReached      Kind = "NeverReached"         // the script ends before it starts the kubelet
	ScriptBroken      Kind = "ScriptBroken"         // a script that the shell cannot parse or start
	TaintMissing      Kind = "StartupTaintMissing"  // the node registers without karpenter.sh/unregistered
	TaintMisspelt     Kind = "StartupTaintMisspelt" // a taint similar to karpenter.sh/unregistered
	TaintOldName      Kind = "StartupTaintOldName"  // a taint with a former name of it
	TaintInvalid      Kind = "TaintInvalid"
	LabelInvalid      Kind = "LabelInvalid"
	ArgumentsLost     Kind = "ArgumentsLost" // the kubelet never gets arguments that the user wrote
	OptionUnknown     Kind = "OptionUnknown" // the program that starts the kubelet does not have this option
	ValueMissing      Kind = "ValueMissing"  // an option, a flag or a required setting has no value
	VariableUnset     Kind = "VariableUnset" // a script uses a variable that is never set
	FlagUnknown       Kind = "KubeletFlagUnknown"
	FlagRemoved       Kind = "KubeletFlagRemoved" // the kubelet of this version no longer has the flag
	SettingUnknown    Kind = "SettingUnknown"
	SettingInvalid    Kind = "SettingInvalid"
	NodeConfigBroken  Kind = "NodeConfigInvalid"
	Overridden        Kind = "Overridden"          // a value has no effect, or overrides one with which Joiner plans
	OtherName         Kind = "OtherNodeName"       // the node registers under a name that its credentials do not permit
	OtherCluster      Kind = "OtherCluster"        // the name or API server of another cluster
	OtherAuthority    Kind = "OtherAuthority"      // the certificate authority of another cluster
	ProxyForAPIServer Kind = "ProxyCatchesCluster" // the kubelet uses a proxy for the API server
	Undetermined      Kind = "Obscure"             // the result is known only on the instance
	Unwritable        Kind = "Unwritable"          // Joiner cannot generate an instance's user data from the user's
)

// Certainty is how certain a problem is.
type Certainty string

// The degrees of certainty.
const (
	Certain  Certainty = "certain"
	Likely   Certainty = "likely"
	Possible Certainty = "possible"
)

// Severity is the consequence of a problem.
type Severity string

// The severities.
const (
	NeverJoins       Severity = "never joins" // no instance becomes a node
	JoinsDifferently Severity = "joins amiss" // instances join, but not as the user intended

	// UnlessStarted stands for JoinsDifferently if another part of the user data starts the kubelet, and else for
	// NeverJoins. Package reading replaces this value before it returns the Reading.
	UnlessStarted Severity = "?"
)

// Problem is one error in user data. Its texts quote from the user data only the names of options, flags, settings,
// variables, taints and clusters, and values that are not secret, such as numbers and addresses.
type Problem struct {
	Kind      Kind      `json:"kind"`          // what is wrong
	Certainty Certainty `json:"certainty"`     // how certain the problem is
	Harm      Severity  `json:"harm"`          // consequence of the problem
	At        Position  `json:"at"`            // position in the user data
	Cause     string    `json:"cause"`         // one sentence, without its full stop
	Fix       string    `json:"fix,omitempty"` // how to fix it
	// Write is the literal text to write instead; empty if it depends on the user.
	Write string `json:"write,omitempty"`
}

// IsFatal reports whether the problem certainly prevents every instance from joining.
func (p Problem) IsFatal() bool { return p.Certainty == Certain && p.Harm == NeverJoins }

// String returns the problem in one sentence, with its position and fix.
func (p Problem) String() string {
	out := "spec.userData"
	switch {
	case p.Kind == ImageMismatch:
		out = "spec.amiFamily"
	case p.At.Ours && (p.Kind == SettingInvalid || p.Kind == SettingUnknown):
		out = "spec.kubelet" // Joiner generated its own part from spec.kubelet
	}
	if position := p.At.String(); position != "" && !p.At.Ours {
		out += ", " + position
	}
	out += ": " + p.Cause
	if p.Fix != "" {
		out += ": " + p.Fix
	}
	if p.Write != "" {
		out += ": " + p.Write
	}
	return out
}

// Check returns the ID of the check of docs/checks that finds the problem.
func (p Problem) Check() string {
	switch p.Kind {
	case OtherName:
		return "AUTH-9"
	case OtherArch:
		return "ARCH-3"
	case OtherAuthority:
		return "BOOT-2"
	case ProxyForAPIServer:
		return "BOOT-17"
	case TooLong:
		return "LAUNCH-7"
	case TaintMissing, TaintMisspelt, TaintOldName:
		return "TAINT-1"
	case ArgumentsLost, ScriptBroken, VariableUnset, ValueMissing, OptionUnknown, Overridden, StartsTwice, NeverReached:
		return "TAINT-2"
	case SettingUnknown, SettingInvalid, NodeConfigBroken, TaintInvalid, LabelInvalid, FlagUnknown, FlagRemoved:
		return "TAINT-3"
	default:
	}
	return "BOOT-7"
}

// Suggest sets Fix, and Write, which may be empty.
func (p *Problem) Suggest(fix, write string) { p.Fix, p.Write = fix, write }

// rank returns the position of a problem in the order of severity; 0: fatal.
func (p Problem) rank() int {
	rank := map[Certainty]int{Certain: 0, Likely: 1, Possible: 2}[p.Certainty]
	if p.Harm == JoinsDifferently {
		rank += 3
	}
	return rank
}

// SortProblems sorts problems, most severe first and then by position, and removes adjacent duplicates.
func SortProblems(all []Problem) []Problem {
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.At.Part, b.At.Part), cmp.Compare(a.At.Line, b.At.Line),
			cmp.Compare(a.At.Column, b.At.Column))
	})
	return slices.Compact(all)
}

// Fatal returns the first problem that prevents every instance from joining. The second result reports whether there is
// one. SortProblems puts fatal problems first.
func (r Reading) Fatal() (Problem, bool) {
	if len(r.Problems) > 0 && r.Problems[0].IsFatal() {
		return r.Problems[0], true
	}
	return Problem{}, false
}
