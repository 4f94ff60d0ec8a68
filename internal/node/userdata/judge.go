package userdata

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// judge works out what the kubelet makes of all that was read, and what is wrong with it.
func (r *reader) judge() {
	r.judgeArch()
	if slices.ContainsFunc(r.out.Problems, func(p Problem) bool { return p.Kind == TooLong || p.Kind == NotUnpackable && p.Harm == NeverJoins }) {
		return // whatever else may be said of it does not matter yet
	}
	if len(r.starts) == 0 {
		r.nothingStarts()
		return
	}
	r.several()
	s := r.starts[0] // the first one starts the kubelet; those after it find it running
	r.out.Cluster, r.out.Endpoint, r.out.NodeIP = s.cluster, s.endpoint, s.ip
	r.effective(s)
	r.judgeCluster(s)
	r.judgeAuthority(s)
	r.judgeProxy(s)
	if len(r.opaque) > 0 {
		r.problem(Obscure, Possible, JoinsAmiss, Spot{}, "it may come otherwise: %s", r.opaque[0])
	}
}

// effective works out what the kubelet makes of its arguments and its configuration.
func (r *reader) effective(s start) {
	for _, f := range s.flags {
		r.out.Kubelet.Flags = append(r.out.Kubelet.Flags, f.text)
	}
	if s.config != nil {
		r.out.Kubelet.Config = s.config
	}
	first := len(r.out.Problems)
	args, stray := arguments(s.flags)
	r.judgeFlags(args, stray, NeverJoins)
	r.judgeConfig(s)
	r.registered(args, s)
	r.labels(args, s)
	r.overridingFlags(args, s)
	r.out.MaxPods = Value{At: s.spots["maxPods"]}
	if n, ok := s.config["maxPods"]; ok {
		r.out.MaxPods.Text = fmt.Sprint(n)
	}
	if dns, ok := s.config["clusterDNS"]; ok {
		var all []string
		for _, one := range list(dns) {
			all = append(all, fmt.Sprint(one))
		}
		r.out.ClusterDNS = Value{Text: strings.Join(all, ","), At: s.spots["clusterDNS"]}
	}
	for _, a := range args {
		value := Value{Text: a.value, At: a.at}
		switch a.name {
		case "max-pods":
			r.out.MaxPods = value
		case "cluster-dns":
			r.out.ClusterDNS = value
		case "node-ip":
			r.out.NodeIP = value
		}
	}
	r.hidden(&s)
	r.judgeStartup(s)
	r.soften(first, s.sure)
}

// soften makes problems, from the one of a number on, no more than likely if what they are about may not be run at all.
func (r *reader) soften(first int, sure bool) {
	for i := first; i < len(r.out.Problems) && !sure; i++ {
		if p := &r.out.Problems[i]; p.Certainty == Certain {
			p.Certainty = Likely
		}
	}
}

// hidden takes over what was found out about the start since.
func (r *reader) hidden(s *start) { s.hidden = s.hidden || r.starts[0].hidden }

// several says that user data starts the kubelet more than once.
func (r *reader) several() {
	if len(r.starts) < 2 || !r.starts[0].sure {
		return
	}
	p := r.problem(StartsTwice, Certain, JoinsAmiss, r.starts[0].at, "it starts the kubelet by %s itself, which comes first, so what a later part says is lost", r.starts[0].by)
	p.with("take the call out: Joiner writes it", "")
	if r.in.Family == familyCustom {
		p.with("start it once", "")
	}
}

// nothingStarts says why no kubelet is started, unless something worse was said.
func (r *reader) nothingStarts() {
	if r.in.Family != familyCustom && r.in.Data == nil ||
		slices.ContainsFunc(r.out.Problems, func(p Problem) bool { return p.Harm == NeverJoins || p.Harm == unlessStarted }) {
		return
	}
	switch {
	case r.in.Family == familyCustom && r.system() == "", r.system() == windowsSystem && r.in.Family == familyCustom:
		r.problem(Obscure, Possible, JoinsAmiss, Spot{}, "only the image knows what it makes of its user data").
			with("see to it that the kubelet gets", startupFlag)
	case len(r.opaque) > 0:
		r.problem(Obscure, Possible, NeverJoins, Spot{}, "nothing in it is seen to start the kubelet: %s", r.opaque[0])
	default:
		what := map[string]string{
			catalog.AL2: "calls " + bySh, catalog.AL2023: "is a NodeConfig for nodeadm",
			bottlerocketSystem: "names the cluster", windowsSystem: "calls " + byPS,
		}[r.system()]
		r.problem(NothingJoins, Certain, NeverJoins, Spot{}, "nothing in it %s, so the instance does not know its cluster", what).
			with("write it for "+r.system(), "")
	}
}

// settle says of what keeps a part from working whether the instance joins by another one.
func (r *reader) settle() {
	harm := JoinsAmiss
	if len(r.starts) == 0 && r.in.Family == familyCustom {
		harm = NeverJoins
	}
	for i := range r.out.Problems {
		p := &r.out.Problems[i]
		if p.Harm == unlessStarted {
			p.Harm = harm
		}
		// What only the instance can know may start the kubelet all the same.
		if r.in.Family == familyCustom && len(r.opaque) > 0 && p.IsFatal() && p.Kind != OtherFamily && p.Kind != TooLong {
			p.Certainty = Likely
		}
	}
}

// place gives places as the user knows them: without a part where he wrote one
// piece, and as Joiner's where he wrote nothing.
func (r *reader) place() {
	single := r.ours > 0 && formOf(r.in.Own) != FormMIME
	mend := func(s *Spot) {
		switch {
		case r.ours > 0 && s.Part == r.ours:
			*s = Spot{Ours: true}
		case single:
			s.Part = 0
		}
	}
	for _, v := range []*Value{&r.out.Cluster, &r.out.Endpoint, &r.out.NodeIP, &r.out.MaxPods, &r.out.ClusterDNS} {
		mend(&v.At)
	}
	for i := range r.out.Taints {
		mend(&r.out.Taints[i].At)
	}
	for i := range r.out.Labels {
		mend(&r.out.Labels[i].At)
	}
	for i := range r.out.Problems {
		mend(&r.out.Problems[i].At)
	}
}

// judgeCluster holds the cluster of the user data against the one to join.
func (r *reader) judgeCluster(s start) {
	if name := s.cluster; name.IsSet() && !name.Vague && r.in.Cluster != "" && name.Text != r.in.Cluster {
		called := "another cluster"
		if isClusterName(name.Text) {
			called = "the cluster " + name.Text
		}
		certainty := Certain
		if !s.sure {
			certainty = Likely
		}
		r.problem(OtherCluster, certainty, NeverJoins, name.At, "it is for %s, and this is %s: the node asks for a token of the wrong cluster", called, r.in.Cluster).
			with("write", r.in.Cluster)
	}
	end := s.endpoint
	if end.IsSet() && !end.Vague && r.in.Endpoint != "" && !strings.EqualFold(strings.TrimSuffix(end.Text, "/"), strings.TrimSuffix(r.in.Endpoint, "/")) {
		r.problem(OtherCluster, Likely, NeverJoins, end.At, "the API server that it names is not this cluster's").with("write", r.in.Endpoint)
	}
}

// judgeAuthority holds the certificate authority of the user data against the cluster's.
func (r *reader) judgeAuthority(s start) {
	if !s.ca.IsSet() || s.ca.Vague || r.in.CA == "" || sameAuthority(s.ca.Text, r.in.CA) {
		return
	}
	certainty := Certain
	if !s.sure {
		certainty = Likely
	}
	r.problem(OtherAuthority, certainty, NeverJoins, s.ca.At, "it has another cluster's certificate authority, so the kubelet does not trust the API server's certificate").
		with("write that of aws eks describe-cluster --query cluster.certificateAuthority.data", "")
}

// sameAuthority reports whether the certificates of one are among those of the other; each is PEM, or base64 of it.
func sameAuthority(given, cluster string) bool {
	given, cluster = pemOf(given), pemOf(cluster)
	return cluster == "" || strings.Contains(given, cluster)
}

// pemOf is PEM without blanks, which differ from tool to tool.
func pemOf(text string) string {
	if plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil {
		text = string(plain)
	}
	return strings.Join(strings.Fields(text), "")
}

// isClusterName reports whether a text may be the name of an EKS cluster.
func isClusterName(s string) bool { return isName(s) && !strings.Contains(s, ".") }

// architectures are words for the two, as the names of downloads have them.
var architectures = map[string][]string{
	"amd64": {"x86_64", "amd64", "linux-64bit", "linux_64bit"},
	"arm64": {"aarch64", "arm64"},
}

// judgeArch looks for what a script fetches or runs for the other architecture.
func (r *reader) judgeArch() {
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[r.in.Arch]
	if other == "" || strings.Contains(r.in.Own, "uname") || strings.Contains(r.in.Own, "case ") {
		return
	}
	n := 0
	for line := range strings.Lines(r.in.Own) {
		n++
		code, _, _ := strings.Cut(line, " #")
		if strings.HasPrefix(strings.TrimSpace(code), "#") {
			continue
		}
		has := func(arch string) bool {
			return slices.ContainsFunc(architectures[arch], func(name string) bool { return strings.Contains(strings.ToLower(code), name) })
		}
		if has(other) && !has(r.in.Arch) {
			r.problem(OtherArch, Likely, JoinsAmiss, Spot{Line: n}, "it names something of %s, and the image is of %s, which cannot run it", other, r.in.Arch).
				with("take what uname -m says", "")
			return
		}
	}
}
