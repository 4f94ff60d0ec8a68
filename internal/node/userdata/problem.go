package userdata

import (
	"cmp"
	"slices"
)

// Kind says what is wrong. It is the reason of a condition, too.
type Kind string

// The kinds of problems.
const (
	TooLong          Kind = "UserDataTooLong"
	NotUnpackable    Kind = "UserDataNotUnpackable" // gzip that ends early, or unfolds to too much
	BadMIME          Kind = "MIMEInvalid"
	UnknownPart      Kind = "PartUnknown"   // a part that nothing on the instance reads
	OtherFamily      Kind = "OtherFamily"   // user data for another AMI family
	ImageMismatch    Kind = "ImageMismatch" // the image is not of the node class' AMI family
	OtherArch        Kind = "OtherArchitecture"
	NothingJoins     Kind = "NothingJoins" // nothing in the user data starts the kubelet
	StartsTwice      Kind = "StartsTwice"
	NeverReached     Kind = "NeverReached" // the script ends before
	ScriptBroken     Kind = "ScriptBroken" // what the shell cannot parse, or start
	TaintMissing     Kind = "StartupTaintMissing"
	TaintMisspelt    Kind = "StartupTaintMisspelt"
	TaintOldName     Kind = "StartupTaintOldName"
	TaintInvalid     Kind = "TaintInvalid"
	LabelInvalid     Kind = "LabelInvalid"
	ArgumentsLost    Kind = "ArgumentsLost" // written, and yet the kubelet never gets them
	OptionUnknown    Kind = "OptionUnknown"
	ValueMissing     Kind = "ValueMissing"
	VariableUnset    Kind = "VariableUnset"
	FlagUnknown      Kind = "KubeletFlagUnknown"
	FlagRemoved      Kind = "KubeletFlagRemoved"
	SettingUnknown   Kind = "SettingUnknown"
	SettingInvalid   Kind = "SettingInvalid"
	NodeConfigBroken Kind = "NodeConfigInvalid"
	Overridden       Kind = "Overridden"
	OtherName        Kind = "OtherNodeName" // the node registers by a name that its credentials do not permit
	OtherCluster     Kind = "OtherCluster"
	OtherAuthority   Kind = "OtherAuthority"      // the certificate authority of another cluster
	ProxyCatches     Kind = "ProxyCatchesCluster" // the kubelet asks a proxy for the API server
	Obscure          Kind = "Obscure"             // only the instance can know
	Unwritable       Kind = "Unwritable"          // it cannot be made what an instance gets
)

// Certainty is how sure a problem is.
type Certainty string

// The degrees of certainty.
const (
	Certain  Certainty = "certain"
	Likely   Certainty = "likely"
	Possible Certainty = "possible"
)

// Harm is what comes of a problem.
type Harm string

// The degrees of harm.
const (
	NeverJoins Harm = "never joins" // no instance becomes a node
	JoinsAmiss Harm = "joins amiss" // it does, and not as it was meant

	// unlessStarted is settled in the end: the instance never joins unless another part makes it.
	UnlessStarted Harm = "?"
)

// Problem is one thing that is wrong with user data. Its texts hold nothing of
// the user data but names: of options, flags, settings, variables, taints and
// clusters. Values, which may be secrets, are not among them.
type Problem struct {
	Kind      Kind      `json:"kind"`
	Certainty Certainty `json:"certainty"`
	Harm      Harm      `json:"harm"`
	At        Spot      `json:"at"`
	Cause     string    `json:"cause"`         // one sentence, without its full stop
	Fix       string    `json:"fix,omitempty"` // what to do
	// Write is what to write instead, word by word; empty if that depends.
	Write string `json:"write,omitempty"`
}

// IsFatal reports whether no instance can ever join.
func (p Problem) IsFatal() bool { return p.Certainty == Certain && p.Harm == NeverJoins }

// String is the problem in one sentence, with its place and what to do.
func (p Problem) String() string {
	out := "spec.userData"
	switch {
	case p.Kind == ImageMismatch:
		out = "spec.amiFamily"
	case p.At.Ours && (p.Kind == SettingInvalid || p.Kind == SettingUnknown):
		out = "spec.kubelet" // from which Joiner wrote it
	}
	if spot := p.At.String(); spot != "" && !p.At.Ours {
		out += ", " + spot
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

// Check is the id of the check to which the problem belongs, as docs/checks has it.
func (p Problem) Check() string {
	switch p.Kind {
	case OtherName:
		return "AUTH-9"
	case OtherArch:
		return "ARCH-3"
	case OtherAuthority:
		return "BOOT-2"
	case ProxyCatches:
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

// Suggest adds what to do.
func (p *Problem) Suggest(fix, write string) { p.Fix, p.Write = fix, write }

// rank orders problems: what keeps nodes from joining comes before all else.
func (p Problem) rank() int {
	rank := map[Certainty]int{Certain: 0, Likely: 1, Possible: 2}[p.Certainty]
	if p.Harm == JoinsAmiss {
		rank += 3
	}
	return rank
}

// Ordered sorts problems, the gravest first, and leaves out what is there twice.
func Ordered(all []Problem) []Problem {
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.At.Part, b.At.Part), cmp.Compare(a.At.Line, b.At.Line),
			cmp.Compare(a.At.Column, b.At.Column))
	})
	return slices.Compact(all)
}

// Fatal returns the first problem that keeps every instance from joining. The second result says whether there is one.
func (r Reading) Fatal() (Problem, bool) {
	if len(r.Problems) > 0 && r.Problems[0].IsFatal() {
		return r.Problems[0], true
	}
	return Problem{}, false
}
