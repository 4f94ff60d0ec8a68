package kubelet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
	"github.com/joiner-sh/joiner/internal/node/userdata"
)

// oldTaints are former names of the startup taint, and names that users confuse with it. In this package, the startup
// taint is bootstrap.Unregistered, not one of a NodePool's startupTaints.
// Source: the upgrade guide of karpenter.sh, versions 0.32 to 1.0.
var oldTaints = []string{"karpenter.sh/uninitialized", "karpenter.sh/not-ready", "node.karpenter.sh/unregistered",
	"karpenter.sh/initialized", "karpenter.k8s.aws/unregistered"}

var effects = []string{string(requirements.NoSchedule), string(requirements.PreferNoSchedule), string(requirements.NoExecute)}

// isStartup reports whether a user who writes the key means the startup taint: meant is true for that taint's key, the
// keys of oldTaints, and keys similar to the first. old is true only for the keys of oldTaints.
func isStartup(key string) (meant, old bool) {
	want := bootstrap.Unregistered().Key
	if key == want {
		return true, false
	}
	if slices.Contains(oldTaints, key) {
		return true, true
	}
	return userdata.Distance(strings.ToLower(key), want, 4) < 4, false
}

// parseTaint parses one taint of the kubelet's flag, key=value:effect or key:effect; ok is false if it is invalid.
func parseTaint(s string) (t requirements.Taint, ok bool) {
	rest, effect, found := strings.Cut(s, ":")
	if !found || strings.Contains(effect, ":") {
		return t, false
	}
	key, value, _ := strings.Cut(rest, "=")
	t = requirements.Taint{Key: key, Value: value, Effect: requirements.Effect(effect)}
	return t, IsKey(key) && (value == "" || IsLabelValue(value)) && slices.Contains(effects, effect)
}

// CorrectTaints returns the taints with the startup taint, without duplicates. The startup taint replaces each
// misspelling of it, and each taint that is invalid.
func CorrectTaints(all []string) []string {
	var out []string
	startup := bootstrap.Unregistered().String()
	for _, text := range all {
		t, ok := parseTaint(text)
		key, _, _ := strings.Cut(text, ":")
		key, _, _ = strings.Cut(key, "=")
		if meant, _ := isStartup(key); meant || !ok {
			text = startup
		} else {
			text = t.String()
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if !slices.Contains(out, startup) {
		out = append(out, startup)
	}
	return out
}

// AddTaints adds to r.Out the taints with which the node registers. The taints come from the last flag
// --register-with-taints, or from the kubelet's configuration if there is no such flag. It reports flags and taints
// that have no effect, and invalid taints.
func AddTaints(r *userdata.Reader, args []userdata.Argument, s userdata.Start) {
	var last *userdata.Argument
	for i := range args {
		if args[i].Name == "register-with-taints" {
			if last != nil {
				r.Report(userdata.Overridden, userdata.Certain, userdata.JoinsDifferently, last.At,
					"--register-with-taints is given again later, and the kubelet uses only the last one").
					Suggest("write all taints into one flag, with commas between", "")
			}
			last = &args[i]
		}
	}
	if last == nil {
		addConfigTaints(r, s)
		return
	}
	r.TaintFlag = last
	if _, both := s.Config["registerWithTaints"]; both && s.By == userdata.ByNodeadm {
		r.Report(userdata.Overridden, userdata.Certain, userdata.JoinsDifferently, last.At, "the flag --register-with-taints wins over registerWithTaints of the kubelet's configuration, whose taints are lost").
			Suggest("write taints into the NodePool: spec.template.spec.taints or startupTaints", "")
	}
	for _, text := range strings.Split(last.Value, ",") {
		if text == "" {
			continue
		}
		t, ok := parseTaint(text)
		if strings.Contains(text, "…") {
			r.Starts[0].HasUnknownFlags = true // s is a copy of r.Starts[0]
			continue
		}
		if !ok {
			reportInvalidTaint(r, text, last.At, s.By)
			continue
		}
		r.Out.Taints = append(r.Out.Taints, userdata.Taint{Taint: t, At: last.At})
	}
}

// reportInvalidTaint reports a taint that the kubelet cannot parse. by is the program that starts the kubelet.
func reportInvalidTaint(r *userdata.Reader, text string, position userdata.Position, by string) {
	key, effect, _ := strings.Cut(text, ":")
	key, _, _ = strings.Cut(key, "=")
	name := "a taint"
	if IsKey(key) && userdata.IsQuotable(key) {
		name = "the taint " + key
	}
	p := r.Report(userdata.TaintInvalid, userdata.Certain, userdata.NeverJoins, position,
		"%s cannot be read; as it is, the kubelet does not start: the form is key=value:effect", name)
	if near := userdata.Nearest(effect, effects); near != "" {
		p.Cause = fmt.Sprintf("the effect of %s is none of NoSchedule, PreferNoSchedule and NoExecute; as it is, the kubelet does not start", name)
		p.Suggest("write", near)
	}
	if meant, _ := isStartup(key); meant {
		p.Suggest("write", startupText(by))
	}
}

// startupText returns the startup taint in the syntax of the program that starts the kubelet.
func startupText(by string) string {
	switch by {
	case userdata.ByNodeadm:
		return "{key: karpenter.sh/unregistered, effect: NoExecute}"
	case userdata.BySetting:
		return `"karpenter.sh/unregistered" = [":NoExecute"]`
	}
	return bootstrap.Unregistered().String()
}

func addConfigTaints(r *userdata.Reader, s userdata.Start) {
	position := s.Positions["registerWithTaints"]
	all, ok := s.Config["registerWithTaints"].([]any)
	if _, given := s.Config["registerWithTaints"]; given && !ok {
		r.Report(userdata.TaintInvalid, userdata.Certain, userdata.NeverJoins, position, "registerWithTaints must be a list of tables with key, value and effect; as it is, the kubelet does not start")
	}
	for _, entry := range all {
		table, _ := entry.(map[string]any)
		key, _ := table["key"].(string)
		value, _ := table["value"].(string)
		effect, _ := table["effect"].(string)
		t, ok := parseTaint(key + "=" + value + ":" + effect)
		if !ok {
			reportInvalidTaint(r, key+"="+value+":"+effect, position, s.By)
			continue
		}
		r.Out.Taints = append(r.Out.Taints, userdata.Taint{Taint: t, At: position})
	}
}

// JudgeStartup checks that the node registers with the startup taint, which every node must have.
func JudgeStartup(r *userdata.Reader, s userdata.Start) {
	want := bootstrap.Unregistered()
	for _, t := range r.Out.Taints {
		if t.Key == want.Key && t.Effect == want.Effect {
			return
		}
	}
	if s.HasUnknownFlags || len(r.Unevaluated) > 0 && len(r.Out.Taints) == 0 {
		r.Report(userdata.TaintMissing, userdata.Possible, userdata.JoinsDifferently, s.At,
			"the user data does not show whether the node registers with the taint %s", want).
			Suggest("make sure that the kubelet gets", StartupFlag)
		return
	}
	for _, t := range r.Out.Taints {
		if meant, old := isStartup(t.Key); meant {
			reportMisspelt(r, t, old)
			return
		}
	}
	cause := "no node registers with the taint %s, so pods may run on it before it is set up"
	position := s.At
	if r.TaintFlag != nil {
		cause, position = "no node registers with the taint %s, because the kubelet's --register-with-taints does not contain it", r.TaintFlag.At
	}
	for _, p := range r.Out.Problems {
		if p.Kind == userdata.TaintInvalid {
			return // the invalid taint may be the startup taint
		}
		if p.Kind == userdata.ArgumentsLost && p.Write != "" && strings.Contains(p.Write, want.Key) {
			cause, position = "no node registers with the taint %s, because it is lost before it reaches the kubelet", p.At
		}
	}
	p := r.Report(userdata.TaintMissing, userdata.Certain, userdata.JoinsDifferently, position, cause, want)
	p.Suggest(startupFix(r, s))
}

// StartupFlag is the kubelet's flag for Karpenter's startup taint.
const StartupFlag = "--register-with-taints=karpenter.sh/unregistered:NoExecute"

// startupFix returns the arguments of Problem.Suggest for a missing startup taint, in the syntax of the program that
// starts the kubelet.
func startupFix(r *userdata.Reader, s userdata.Start) (fix, write string) {
	if r.TaintFlag != nil && s.By == userdata.ByNodeadm && r.In.Family != userdata.FamilyCustom {
		return "remove the flag, and write its taints into the NodePool: spec.template.spec.taints or startupTaints", ""
	}
	switch s.By {
	case userdata.BySh:
		for _, p := range r.Out.Problems {
			if p.Kind == userdata.ArgumentsLost && p.Write != "" {
				return "write", p.Write
			}
		}
		var all []string
		for _, f := range s.Flags {
			all = append(all, f.Text)
		}
		if !slices.ContainsFunc(all, func(f string) bool { return strings.HasPrefix(f, "--register-with-taints") }) {
			all = append(all, StartupFlag)
		}
		if flags := CorrectArguments(all); len(flags) > 0 {
			return "write", ExtraArgs + " '" + strings.Join(flags, " ") + "'"
		}
		return "add to the word behind " + ExtraArgs, StartupFlag
	case userdata.ByNodeadm:
		if r.TaintFlag != nil {
			return "add to the flag", bootstrap.Unregistered().String()
		}
		return "write into spec.kubelet.config", "registerWithTaints: [" + startupText(s.By) + "]"
	case userdata.BySetting:
		return "write below [settings.kubernetes.node-taints]", startupText(s.By)
	}
	return "add to -KubeletExtraArgs", StartupFlag
}

// reportMisspelt reports a taint that is meant to be the startup taint but differs from it. old means that the taint's
// key is one of oldTaints.
func reportMisspelt(r *userdata.Reader, t userdata.Taint, old bool) {
	want := bootstrap.Unregistered()
	kind, cause := userdata.TaintMisspelt, fmt.Sprintf("the startup taint is misspelt%s: it is %s", userdata.InParentheses(t.Key), want)
	switch {
	case old:
		kind, cause = userdata.TaintOldName, fmt.Sprintf("%s is an older name: the startup taint is %s", t.Key, want)
	case t.Key == want.Key:
		cause = fmt.Sprintf("the startup taint has the effect %s, and needs %s", t.Effect, want.Effect)
	}
	p := r.Report(kind, userdata.Certain, userdata.JoinsDifferently, t.At, "%s, and nothing removes this one from the node", cause)
	p.Suggest("write", startupText(r.Starts[0].By))
	if t.Key == want.Key { // the controller removes it, so "nothing removes this one" is wrong
		p.Cause = cause
	}
}

// AddLabels adds to r.Out the labels with which the node registers. It reports labels with which the kubelet does not
// start.
func AddLabels(r *userdata.Reader, args []userdata.Argument, s userdata.Start) {
	labels := map[string]userdata.Label{}
	for _, a := range args {
		if a.Name != "node-labels" {
			continue
		}
		for _, label := range strings.Split(a.Value, ",") {
			key, value, ok := strings.Cut(strings.TrimSpace(label), "=")
			if label == "" || strings.Contains(label, "…") {
				continue
			}
			position := userdata.FirstKnown(s.Labels[key], a.At)
			if ok && judgeLabel(r, key, value, position, s.By) {
				labels[key] = userdata.Label{Key: key, Value: value, At: position}
			}
			if !ok {
				r.Report(userdata.LabelInvalid, userdata.Certain, userdata.NeverJoins, position,
					"a label of --node-labels has no value; as it is, the kubelet does not start").
					Suggest("write key=value,key=value, without blanks or quotes", "")
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		r.Out.Labels = append(r.Out.Labels, labels[key])
	}
}

// judgeLabel reports a label with which the kubelet does not start, and then returns false. The problem contains the
// key only if userdata.IsQuotable allows it.
func judgeLabel(r *userdata.Reader, key, value string, position userdata.Position, by string) bool {
	name, fix := "a label of --node-labels", "write key=value,key=value, without blanks or quotes"
	if by == userdata.BySetting {
		name, fix = "a label of settings.kubernetes.node-labels", ""
	}
	if userdata.IsQuotable(key) {
		name = "the label " + key
	}
	const doesNotStart = "; as it is, the kubelet does not start"
	domain, _, _ := strings.Cut(key, "/")
	switch {
	case IsKubernetes(key) && !IsKubeletsOwn(key):
		fix = "write it into the NodePool: spec.template.metadata.labels"
		if !IsKey(key) { // such as kubernetes.io/cluster/NAME
			fix = "remove it: an instance tag of that name belongs in spec.tags of the EC2NodeClass"
		}
		r.Report(userdata.LabelInvalid, userdata.Certain, userdata.NeverJoins, position, "the kubelet is not allowed to set %s on its own node, because %s belongs to Kubernetes, and does not start with it", name, domain).Suggest(fix, "")
	case !IsKey(key):
		r.Report(userdata.LabelInvalid, userdata.Certain, userdata.NeverJoins, position, "the key of %s is invalid%s%s", name,
			keyProblem(key), doesNotStart).Suggest(fix, "")
	case value != "" && !IsLabelValue(value):
		r.Report(userdata.LabelInvalid, userdata.Certain, userdata.NeverJoins, position,
			"the value of %s is invalid: it must be at most 63 letters, digits, dashes, dots and underscores%s", name, doesNotStart).Suggest(fix, "")
	default:
		return true
	}
	return false
}

// keyProblem returns why the key of a label is invalid: a second slash, or a blank or quote; empty: another reason.
func keyProblem(key string) string {
	_, name, _ := strings.Cut(key, "/")
	switch {
	case strings.Contains(name, "/"):
		return ": it has more than one slash"
	case strings.ContainsAny(key, "'\" \t"):
		return ": it has a blank or a quote"
	}
	return ""
}

// arePlainLabels reports whether a text is a list of valid labels, key=value,key=value.
func arePlainLabels(value string) bool {
	for _, label := range strings.Split(value, ",") {
		key, value, ok := strings.Cut(label, "=")
		if !ok || !IsKey(key) || value != "" && !IsLabelValue(value) {
			return false
		}
	}
	return true
}

// IsKubernetes reports whether a label is in a domain of Kubernetes itself.
func IsKubernetes(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok {
		return false
	}
	return slices.ContainsFunc([]string{"kubernetes.io", "k8s.io"},
		func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

// IsKubeletsOwn reports whether the kubelet is allowed to set a label in a Kubernetes domain on its node.
// Source: pkg/apis/well_known_labels.go of k8s.io/kubelet.
func IsKubeletsOwn(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	for _, d := range []string{"kubelet.kubernetes.io", "node.kubernetes.io"} {
		if domain == d || strings.HasSuffix(domain, "."+d) {
			return true
		}
	}
	return slices.Contains([]string{
		"kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/region", "beta.kubernetes.io/instance-type", "kubernetes.io/os", "kubernetes.io/arch",
		"beta.kubernetes.io/os", "beta.kubernetes.io/arch",
	}, key)
}

// IsKey reports whether a text is a valid key of a label or a taint.
func IsKey(s string) bool {
	domain, name, ok := strings.Cut(s, "/")
	if !ok {
		return IsName(domain)
	}
	if domain == "" || len(domain) > 253 || strings.Trim(domain, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" {
		return false
	}
	for _, part := range strings.Split(domain, ".") {
		if part == "" || strings.HasPrefix(part, "-") || strings.HasSuffix(part, "-") {
			return false
		}
	}
	return IsName(name)
}

// IsLabelValue reports whether the text is a valid value of a label.
func IsLabelValue(s string) bool { return IsName(s) }

// IsName reports whether a text has at most 63 letters, digits, dashes, dots and underscores, with a letter or digit at
// both ends.
func IsName(s string) bool {
	const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return s != "" && len(s) <= 63 && strings.Trim(s, alphanumeric+"-_.") == "" &&
		strings.ContainsRune(alphanumeric, rune(s[0])) && strings.ContainsRune(alphanumeric, rune(s[len(s)-1]))
}
