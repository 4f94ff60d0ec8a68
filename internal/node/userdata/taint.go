package userdata

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
)

// oldTaints are names that the startup taint, or one like it, had before.
// Source: the upgrade guide of karpenter.sh, versions 0.32 to 1.0.
var oldTaints = []string{"karpenter.sh/uninitialized", "karpenter.sh/not-ready", "node.karpenter.sh/unregistered", "karpenter.sh/initialized", "karpenter.k8s.aws/unregistered"}

var effects = []string{string(requirements.NoSchedule), string(requirements.PreferNoSchedule), string(requirements.NoExecute)}

// isStartup reports whether a key was meant for the startup taint.
func isStartup(key string) (meant, old bool) {
	want := bootstrap.Unregistered().Key
	if key == want {
		return true, false
	}
	if slices.Contains(oldTaints, key) {
		return true, true
	}
	return distance(strings.ToLower(key), want, 4) < 4, false
}

// parseTaint reads one taint of the kubelet's flag, key=value:effect or key:effect.
func parseTaint(s string) (t requirements.Taint, ok bool) {
	rest, effect, found := strings.Cut(s, ":")
	if !found || strings.Contains(effect, ":") {
		return t, false
	}
	key, value, _ := strings.Cut(rest, "=")
	t = requirements.Taint{Key: key, Value: value, Effect: requirements.Effect(effect)}
	return t, isKey(key) && (value == "" || isLabelValue(value)) && slices.Contains(effects, effect)
}

// rightTaints writes taints as they work, the startup taint among them.
func rightTaints(all []string) []string {
	var out []string
	startup := bootstrap.Unregistered().String()
	for _, one := range all {
		t, ok := parseTaint(one)
		key, _, _ := strings.Cut(one, ":")
		key, _, _ = strings.Cut(key, "=")
		if meant, _ := isStartup(key); meant || !ok {
			one = startup
		} else {
			one = t.String()
		}
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	if !slices.Contains(out, startup) {
		out = append(out, startup)
	}
	return out
}

// registered works out with which taints the node registers: those of the last
// flag, else those of the configuration.
func (r *reader) registered(args []argument, s start) {
	var last *argument
	for i := range args {
		if args[i].name == "register-with-taints" {
			if last != nil {
				r.problem(Overridden, Certain, JoinsAmiss, last.at, "--register-with-taints is given again later, and the kubelet takes the last one only").
					with("write all taints into one flag, with commas between", "")
			}
			last = &args[i]
		}
	}
	if last == nil {
		r.configTaints(s)
		return
	}
	r.flag = last
	if _, both := s.config["registerWithTaints"]; both && s.by == byNodeadm {
		r.problem(Overridden, Certain, JoinsAmiss, last.at, "the flag --register-with-taints wins over registerWithTaints of the kubelet's configuration, whose taints are lost").
			with("write taints into the NodePool: spec.template.spec.taints or startupTaints", "")
	}
	for _, one := range strings.Split(last.value, ",") {
		if one == "" {
			continue
		}
		t, ok := parseTaint(one)
		if strings.Contains(one, "…") {
			r.starts[0].hidden = true
			continue
		}
		if !ok {
			r.wrongTaint(one, last.at, s.by)
			continue
		}
		r.out.Taints = append(r.out.Taints, Taint{t, last.at})
	}
}

// wrongTaint says that the kubelet, or Bottlerocket, cannot read a taint.
func (r *reader) wrongTaint(one string, spot Spot, by string) {
	key, effect, _ := strings.Cut(one, ":")
	key, _, _ = strings.Cut(key, "=")
	name := "a taint"
	if isKey(key) && isTelling(key) {
		name = "the taint " + key
	}
	p := r.problem(TaintInvalid, Certain, NeverJoins, spot, "%s cannot be read, and the kubelet does not start with it: the form is key=value:effect", name)
	if near := nearest(effect, effects); near != "" {
		p.Cause = fmt.Sprintf("the effect of %s is none of NoSchedule, PreferNoSchedule and NoExecute, and the kubelet does not start with it", name)
		p.with("write", near)
	}
	if meant, _ := isStartup(key); meant {
		p.with("write", startupText(by))
	}
}

// startupText is the startup taint as it is written for what starts the kubelet.
func startupText(by string) string {
	switch by {
	case byNodeadm:
		return "{key: karpenter.sh/unregistered, effect: NoExecute}"
	case bySetting:
		return `"karpenter.sh/unregistered" = [":NoExecute"]`
	}
	return bootstrap.Unregistered().String()
}

// configTaints reads registerWithTaints of the kubelet's configuration.
func (r *reader) configTaints(s start) {
	spot := s.spots["registerWithTaints"]
	all, ok := s.config["registerWithTaints"].([]any)
	if _, given := s.config["registerWithTaints"]; given && !ok {
		r.problem(TaintInvalid, Certain, NeverJoins, spot, "registerWithTaints has to be a list of tables with key, value and effect, and the kubelet does not start with it")
	}
	for _, one := range all {
		table, _ := one.(map[string]any)
		key, _ := table["key"].(string)
		value, _ := table["value"].(string)
		effect, _ := table["effect"].(string)
		t, ok := parseTaint(key + "=" + value + ":" + effect)
		if !ok {
			r.wrongTaint(key+"="+value+":"+effect, spot, s.by)
			continue
		}
		r.out.Taints = append(r.out.Taints, Taint{t, spot})
	}
}

// judgeStartup holds the taints against the startup taint, which every node is to register with.
func (r *reader) judgeStartup(s start) {
	want := bootstrap.Unregistered()
	for _, t := range r.out.Taints {
		if t.Taint == want || t.Key == want.Key && t.Effect == want.Effect {
			return
		}
	}
	if s.hidden || len(r.opaque) > 0 && len(r.out.Taints) == 0 {
		r.problem(TaintMissing, Possible, JoinsAmiss, s.at, "the user data does not show whether the node registers with the taint %s", want).
			with("see to it that the kubelet gets", startupFlag)
		return
	}
	for _, t := range r.out.Taints {
		if meant, old := isStartup(t.Key); meant {
			r.misspelt(t, old)
			return
		}
	}
	cause := "no node registers with the taint %s, so pods may come before it is set up"
	spot := s.at
	if r.flag != nil {
		cause, spot = "no node registers with the taint %s, for the kubelet's --register-with-taints does not name it", r.flag.at
	}
	for _, p := range r.out.Problems {
		if p.Kind == TaintInvalid {
			return // said already
		}
		if p.Kind == ArgumentsLost && p.Write != "" && strings.Contains(p.Write, want.Key) {
			cause, spot = "no node registers with the taint %s, for it is lost on its way to the kubelet", p.At
		}
	}
	p := r.problem(TaintMissing, Certain, JoinsAmiss, spot, cause, want)
	p.with(r.startupFix(s))
}

const startupFlag = "--register-with-taints=karpenter.sh/unregistered:NoExecute"

// startupFix says how the startup taint is written for what starts the kubelet.
func (r *reader) startupFix(s start) (fix, write string) {
	if r.flag != nil && s.by == byNodeadm && r.in.Family != familyCustom {
		return "take the flag out, and write its taints into the NodePool: spec.template.spec.taints or startupTaints", ""
	}
	switch s.by {
	case bySh:
		for _, p := range r.out.Problems {
			if p.Kind == ArgumentsLost && p.Write != "" {
				return "write", p.Write
			}
		}
		var all []string
		for _, f := range s.flags {
			all = append(all, f.text)
		}
		if !slices.ContainsFunc(all, func(f string) bool { return strings.HasPrefix(f, "--register-with-taints") }) {
			all = append(all, startupFlag)
		}
		if flags := corrected(all); len(flags) > 0 {
			return "write", extraArgs + " '" + strings.Join(flags, " ") + "'"
		}
		return "add to the word behind " + extraArgs, startupFlag
	case byNodeadm:
		if r.flag != nil {
			return "add to the flag", bootstrap.Unregistered().String()
		}
		return "write into spec.kubelet.config", "registerWithTaints: [" + startupText(s.by) + "]"
	case bySetting:
		return "write below [settings.kubernetes.node-taints]", startupText(s.by)
	}
	return "add to -KubeletExtraArgs", startupFlag
}

// misspelt says that a taint was meant for the startup taint and is none.
func (r *reader) misspelt(t Taint, old bool) {
	want := bootstrap.Unregistered()
	kind, cause := TaintMisspelt, fmt.Sprintf("the startup taint is misspelt%s: it is %s", said(t.Key), want)
	switch {
	case old:
		kind, cause = TaintOldName, fmt.Sprintf("%s is an older name: the startup taint is %s", t.Key, want)
	case t.Key == want.Key:
		cause = fmt.Sprintf("the startup taint has the effect %s, and needs %s", t.Effect, want.Effect)
	}
	p := r.problem(kind, Certain, JoinsAmiss, t.At, "%s, and nothing takes this one off the node again", cause)
	p.with("write", startupText(r.starts[0].by))
	if t.Key == want.Key {
		p.Cause = cause
	}
}

// labels works out with which labels the node registers.
func (r *reader) labels(args []argument, s start) {
	labels := map[string]Label{}
	for _, a := range args {
		if a.name != "node-labels" {
			continue
		}
		for _, one := range strings.Split(a.value, ",") {
			key, value, ok := strings.Cut(strings.TrimSpace(one), "=")
			if one == "" || strings.Contains(one, "…") {
				continue
			}
			spot := either(s.labels[key], a.at)
			if ok && r.judgeLabel(key, value, spot, s.by) {
				labels[key] = Label{Key: key, Value: value, At: spot}
			}
			if !ok {
				r.problem(LabelInvalid, Certain, NeverJoins, spot, "a label of --node-labels has no value, and the kubelet does not start with it").
					with("write key=value,key=value, without blanks or quotes", "")
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		r.out.Labels = append(r.out.Labels, labels[key])
	}
}

// judgeLabel reports a label with which no kubelet starts, by name where the name is no secret.
func (r *reader) judgeLabel(key, value string, spot Spot, by string) bool {
	name, fix := "a label of --node-labels", "write key=value,key=value, without blanks or quotes"
	if by == bySetting {
		name, fix = "a label of settings.kubernetes.node-labels", ""
	}
	if isTelling(key) {
		name = "the label " + key
	}
	const refused = ", and the kubelet does not start with it"
	domain, _, _ := strings.Cut(key, "/")
	switch {
	case isKubernetes(key) && !isKubeletsOwn(key):
		fix = "write it into the NodePool: spec.template.metadata.labels"
		if !isKey(key) {
			fix = "take it out: an instance tag of that name belongs into spec.tags of the EC2NodeClass"
		}
		r.problem(LabelInvalid, Certain, NeverJoins, spot, "the kubelet may not set %s on its own node, since %s belongs to Kubernetes, and does not start with it", name, domain).with(fix, "")
	case !isKey(key):
		r.problem(LabelInvalid, Certain, NeverJoins, spot, "the key of %s is invalid%s%s", name, whyNoKey(key), refused).with(fix, "")
	case value != "" && !isLabelValue(value):
		r.problem(LabelInvalid, Certain, NeverJoins, spot, "the value of %s is invalid: it has to be at most 63 letters, digits, dashes, dots and underscores%s", name, refused).with(fix, "")
	default:
		return true
	}
	return false
}

// whyNoKey says what is wrong with a key of a label; empty if that is plain.
func whyNoKey(key string) string {
	_, name, _ := strings.Cut(key, "/")
	switch {
	case strings.Contains(name, "/"):
		return ": it has more than one slash"
	case strings.ContainsAny(key, "'\" \t"):
		return ": it has a blank or a quote"
	}
	return ""
}

// plainLabels reports whether a text is labels and nothing else.
func plainLabels(value string) bool {
	for _, one := range strings.Split(value, ",") {
		key, value, ok := strings.Cut(one, "=")
		if !ok || !isKey(key) || value != "" && !isLabelValue(value) {
			return false
		}
	}
	return true
}

// isKubernetes reports whether a label is in a domain of Kubernetes itself.
func isKubernetes(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok {
		return false
	}
	return slices.ContainsFunc([]string{"kubernetes.io", "k8s.io"}, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

// isKubeletsOwn reports whether a kubelet may set a label of Kubernetes' domains on its node.
// Source: pkg/apis/well_known_labels.go of k8s.io/kubelet.
func isKubeletsOwn(key string) bool {
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

// isKey reports whether a text is the key of a label or of a taint.
func isKey(s string) bool {
	domain, name, ok := strings.Cut(s, "/")
	if !ok {
		return isName(domain)
	}
	if domain == "" || len(domain) > 253 || strings.Trim(domain, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" {
		return false
	}
	for _, one := range strings.Split(domain, ".") {
		if one == "" || strings.HasPrefix(one, "-") || strings.HasSuffix(one, "-") {
			return false
		}
	}
	return isName(name)
}

func isLabelValue(s string) bool { return isName(s) }

// isName reports whether a text is up to 63 letters, digits, dashes, dots and underscores, with a letter or digit at both ends.
func isName(s string) bool {
	const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return s != "" && len(s) <= 63 && strings.Trim(s, alphanumeric+"-_.") == "" &&
		strings.ContainsRune(alphanumeric, rune(s[0])) && strings.ContainsRune(alphanumeric, rune(s[len(s)-1]))
}
