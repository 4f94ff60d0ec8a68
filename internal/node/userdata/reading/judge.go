package reading

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/bottlerocket"
	"github.com/joiner-sh/joiner/internal/node/userdata/kubelet"
)

// judge determines the kubelet's settings from the first start that was read, and checks them.
func judge(r *userdata.Reader) {
	judgeArch(r)
	if slices.ContainsFunc(r.Out.Problems, func(p userdata.Problem) bool {
		return p.Kind == userdata.TooLong || p.Kind == userdata.NotUnpackable && p.Harm == userdata.NeverJoins
	}) {
		return // other problems do not matter until the text is shorter, or can be unpacked
	}
	if len(r.Starts) == 0 {
		reportNoStart(r)
		return
	}
	reportSeveralStarts(r)
	s := r.Starts[0] // only the first start takes effect: later ones find the kubelet running
	r.Out.Cluster, r.Out.Endpoint, r.Out.NodeIP = s.Cluster, s.Endpoint, s.IP
	applyStart(r, s)
	judgeCluster(r, s)
	judgeAuthority(r, s)
	kubelet.JudgeProxy(r, s)
	if len(r.Unevaluated) > 0 {
		r.Report(userdata.Undetermined, userdata.Possible, userdata.JoinsDifferently, userdata.Position{},
			"the result may differ: %s", r.Unevaluated[0])
	}
}

// applyStart sets the kubelet's settings in r.Out from the arguments and the configuration of the start s, and checks
// them.
func applyStart(r *userdata.Reader, s userdata.Start) {
	for _, f := range s.Flags {
		r.Out.Kubelet.Flags = append(r.Out.Kubelet.Flags, f.Text)
	}
	if s.Config != nil {
		r.Out.Kubelet.Config = s.Config
	}
	firstProblem := len(r.Out.Problems)
	args, stray := kubelet.Arguments(s.Flags)
	kubelet.JudgeFlags(r, args, stray, userdata.NeverJoins)
	kubelet.JudgeConfig(r, s)
	kubelet.AddTaints(r, args, s)
	kubelet.AddLabels(r, args, s)
	kubelet.ReportOverridingFlags(r, args, s)
	r.Out.MaxPods = userdata.Value{At: s.Positions["maxPods"]}
	if n, ok := s.Config["maxPods"]; ok {
		r.Out.MaxPods.Text = fmt.Sprint(n)
	}
	if dns, ok := s.Config["clusterDNS"]; ok {
		var all []string
		for _, address := range userdata.List(dns) {
			all = append(all, fmt.Sprint(address))
		}
		r.Out.ClusterDNS = userdata.Value{Text: strings.Join(all, ","), At: s.Positions["clusterDNS"]}
	}
	for _, a := range args {
		value := userdata.Value{Text: a.Value, At: a.At}
		switch a.Name {
		case "max-pods":
			r.Out.MaxPods = value
		case "cluster-dns":
			r.Out.ClusterDNS = value
		case "node-ip":
			r.Out.NodeIP = value
		}
	}
	s.HasUnknownFlags = s.HasUnknownFlags || r.Starts[0].HasUnknownFlags // s is a copy, and kubelet.AddTaints changes r.Starts[0]
	kubelet.JudgeStartup(r, s)
	r.LowerCertainty(firstProblem, s.IsUnconditional)
}

func reportSeveralStarts(r *userdata.Reader) {
	if len(r.Starts) < 2 || !r.Starts[0].IsUnconditional {
		return
	}
	p := r.Report(userdata.StartsTwice, userdata.Certain, userdata.JoinsDifferently, r.Starts[0].At,
		"it starts the kubelet by %s itself, which comes first, so the settings of a later part are lost", r.Starts[0].By)
	p.Suggest("remove the call: Joiner writes it", "")
	if r.In.Family == userdata.FamilyCustom {
		p.Suggest("start it once", "")
	}
}

// reportNoStart reports why no kubelet is started, unless a more severe problem was reported.
func reportNoStart(r *userdata.Reader) {
	lacksJoinersPart := r.In.Family != userdata.FamilyCustom && r.In.Data == nil // Joiner's part starts the kubelet
	if lacksJoinersPart ||
		slices.ContainsFunc(r.Out.Problems, func(p userdata.Problem) bool {
			return p.Harm == userdata.NeverJoins || p.Harm == userdata.UnlessStarted
		}) {
		return
	}
	switch {
	case r.In.Family == userdata.FamilyCustom && (r.System() == "" || r.System() == userdata.WindowsSystem):
		r.Report(userdata.Undetermined, userdata.Possible, userdata.JoinsDifferently, userdata.Position{},
			"only the image determines how it reads its user data").
			Suggest("make sure that the kubelet gets", kubelet.StartupFlag)
	case len(r.Unevaluated) > 0:
		r.Report(userdata.Undetermined, userdata.Possible, userdata.NeverJoins, userdata.Position{},
			"no part of it is known to start the kubelet: %s", r.Unevaluated[0])
	default:
		starts := map[string]string{
			catalog.AL2: "calls " + userdata.BySh, catalog.AL2023: "is a NodeConfig for nodeadm",
			userdata.BottlerocketSystem: "names the cluster", userdata.WindowsSystem: "calls " + userdata.ByPS,
		}[r.System()]
		r.Report(userdata.NothingJoins, userdata.Certain, userdata.NeverJoins, userdata.Position{},
			"nothing in it %s, so the instance does not know its cluster", starts).
			Suggest("write it for "+r.System(), "")
	}
}

// settleHarm replaces the harm UnlessStarted: by NeverJoins if nothing starts the kubelet and Joiner adds no part of
// its own, else by JoinsDifferently.
func settleHarm(r *userdata.Reader) {
	harm := userdata.JoinsDifferently
	if len(r.Starts) == 0 && r.In.Family == userdata.FamilyCustom {
		harm = userdata.NeverJoins
	}
	for i := range r.Out.Problems {
		p := &r.Out.Problems[i]
		if p.Harm == userdata.UnlessStarted {
			p.Harm = harm
		}
		// For the family Custom, text that is known only on the instance may still start the kubelet, unless the user
		// data is too long or for another family.
		if r.In.Family == userdata.FamilyCustom && len(r.Unevaluated) > 0 && p.IsFatal() && p.Kind != userdata.OtherFamily &&
			p.Kind != userdata.TooLong {
			p.Certainty = userdata.Likely
		}
	}
}

// convertPositions converts positions for the user. Positions in Joiner's part get Position.Ours. The other positions
// have no part number if the user wrote no MIME message.
func convertPositions(r *userdata.Reader) {
	isSinglePart := r.OurPart > 0 && userdata.FormOf(r.In.Own) != userdata.FormMIME
	convert := func(p *userdata.Position) {
		switch {
		case r.OurPart > 0 && p.Part == r.OurPart:
			*p = userdata.Position{Ours: true}
		case isSinglePart:
			p.Part = 0
		}
	}
	for _, v := range []*userdata.Value{&r.Out.Cluster, &r.Out.Endpoint, &r.Out.NodeIP, &r.Out.MaxPods, &r.Out.ClusterDNS} {
		convert(&v.At)
	}
	for i := range r.Out.Taints {
		convert(&r.Out.Taints[i].At)
	}
	for i := range r.Out.Labels {
		convert(&r.Out.Labels[i].At)
	}
	for i := range r.Out.Problems {
		convert(&r.Out.Problems[i].At)
	}
}

// judgeCluster compares the cluster's name and API server in the user data with those of the cluster to join.
func judgeCluster(r *userdata.Reader, s userdata.Start) {
	if name := s.Cluster; name.IsSet() && !name.Vague && r.In.Cluster != "" && name.Text != r.In.Cluster {
		otherName := "another cluster"
		if isClusterName(name.Text) {
			otherName = "the cluster " + name.Text
		}
		certainty := userdata.Certain
		if !s.IsUnconditional {
			certainty = userdata.Likely
		}
		r.Report(userdata.OtherCluster, certainty, userdata.NeverJoins, name.At,
			"it is for %s, not for %s: the node asks for a token of the wrong cluster", otherName, r.In.Cluster).
			Suggest("write", r.In.Cluster)
	}
	endpoint := s.Endpoint
	if endpoint.IsSet() && !endpoint.Vague && r.In.Endpoint != "" &&
		!strings.EqualFold(strings.TrimSuffix(endpoint.Text, "/"), strings.TrimSuffix(r.In.Endpoint, "/")) {
		r.Report(userdata.OtherCluster, userdata.Likely, userdata.NeverJoins, endpoint.At,
			"its API server is not this cluster's").Suggest("write", r.In.Endpoint)
	}
}

func judgeAuthority(r *userdata.Reader, s userdata.Start) {
	if !s.CA.IsSet() || s.CA.Vague || r.In.CA == "" || sameAuthority(s.CA.Text, r.In.CA) {
		return
	}
	certainty := userdata.Certain
	if !s.IsUnconditional {
		certainty = userdata.Likely
	}
	r.Report(userdata.OtherAuthority, certainty, userdata.NeverJoins, s.CA.At, "it has another cluster's certificate authority, so the kubelet does not trust the API server's certificate").
		Suggest("write that of aws eks describe-cluster --query cluster.certificateAuthority.data", "")
}

// sameAuthority reports whether given contains the certificates of cluster, or cluster has none. Each is PEM, or base64
// of PEM.
func sameAuthority(given, cluster string) bool {
	given, cluster = bottlerocket.PemOf(given), bottlerocket.PemOf(cluster)
	return cluster == "" || strings.Contains(given, cluster)
}

func isClusterName(s string) bool { return kubelet.IsName(s) && !strings.Contains(s, ".") }

// architectures are names of the two architectures in downloads.
var architectures = map[string][]string{
	"amd64": {"x86_64", "amd64", "linux-64bit", "linux_64bit"},
	"arm64": {"aarch64", "arm64"},
}

// judgeArch reports the first line of the user's own text that names the other architecture and not the image's, such
// as a line with the URL of a download. It does not check a text that may distinguish the architectures, with uname or
// case.
func judgeArch(r *userdata.Reader) {
	otherArch := map[string]string{"amd64": "arm64", "arm64": "amd64"}[r.In.Arch]
	if otherArch == "" || strings.Contains(r.In.Own, "uname") || strings.Contains(r.In.Own, "case ") {
		return
	}
	n := 0
	for line := range strings.Lines(r.In.Own) {
		n++
		code, _, _ := strings.Cut(line, " #")
		if strings.HasPrefix(strings.TrimSpace(code), "#") {
			continue
		}
		names := func(arch string) bool {
			return slices.ContainsFunc(architectures[arch], func(name string) bool { return strings.Contains(strings.ToLower(code), name) })
		}
		if names(otherArch) && !names(r.In.Arch) {
			r.Report(userdata.OtherArch, userdata.Likely, userdata.JoinsDifferently, userdata.Position{Line: n},
				"it names a file for %s, but the image for %s cannot run it", otherArch, r.In.Arch).
				Suggest("use the output of uname -m", "")
			return
		}
	}
}
