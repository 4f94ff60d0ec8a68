package kubelet

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/node/userdata"
)

// kubeletFieldTable has one field of KubeletConfiguration v1beta1 on each line: its path and its type. kubeletGateTable
// has one feature gate on each line, with its value if that is fixed. kubeletFields and KubeletGates hold the lines of
// the two tables, by path and by gate.
// Source: k8s.io/kubelet/config/v1beta1 and the gates of the kubelet, Kubernetes 1.36; a test of the lab compares the
// tables with these sources.
var (
	//go:embed kubeletfields.txt
	kubeletFieldTable string
	//go:embed kubeletgates.txt
	kubeletGateTable string

	kubeletFields = pairsOf(kubeletFieldTable)
	KubeletGates  = pairsOf(kubeletGateTable)
)

// pairsOf parses lines that consist of a key, a space and a value. The value may be missing.
func pairsOf(table string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(table) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		out[key] = value
	}
	return out
}

// NodeadmGates are nodeadm's own feature gates, which must be in spec.featureGates.
// Source: nodeadm/api/v1alpha1 of github.com/awslabs/amazon-eks-ami.
var NodeadmGates = []string{"InstanceIdNodeName", "FastImagePull"}

type configCheck struct {
	r     *userdata.Reader
	start userdata.Start
}

// JudgeConfig reports fields in s.Config that the kubelet ignores, and fields with which the kubelet does not start.
func JudgeConfig(r *userdata.Reader, s userdata.Start) {
	if s.By != userdata.ByNodeadm {
		return // Bottlerocket writes the configuration itself; bootstrap.sh takes flags
	}
	c := &configCheck{r, s}
	for key, want := range map[string]string{"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1"} {
		if given, ok := s.Config[key]; ok && given != want {
			c.reject(key, "write "+want, "%s of the kubelet's configuration must be %s", key, want)
		}
	}
	c.checkTable("", s.Config)
	c.reportContradictions()
}

// positionOf returns the position of a field, else that of its top-level field, else that of the start.
func (c *configCheck) positionOf(path string) userdata.Position {
	top, _, _ := strings.Cut(path, ".")
	inNodeConfig := c.start.NodeConfigPositions["spec.kubelet.config."+path]
	return userdata.FirstKnown(inNodeConfig, userdata.FirstKnown(c.start.Positions[top], c.start.At))
}

// reject reports a field with which the kubelet does not start. The text is format with args. fix may be empty.
func (c *configCheck) reject(path, fix, format string, args ...any) {
	c.r.Report(userdata.SettingInvalid, userdata.Certain, userdata.NeverJoins, c.positionOf(path),
		format+"; as it is, the kubelet does not start", args...).Suggest(fix, "")
}

// checkTable checks the fields of a table. table is its path, empty for the whole configuration.
func (c *configCheck) checkTable(table string, fields map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		path := strings.TrimPrefix(table+"."+name, ".")
		kind, ok := kubeletFields[path]
		switch value := fields[name]; {
		case !ok:
			c.reportUnknown(table, path, name)
		case value == nil: // like a missing field
		case path == "featureGates":
			c.checkGates(value)
		default:
			c.checkValue(path, kind, value)
		}
	}
}

// checkValue checks one value against kind, the field's type in kubeletFieldTable.
func (c *configCheck) checkValue(path, kind string, value any) {
	rejectType := func(want string) {
		got := jsonTypeName(value)
		c.reject(path, quotesFix(want, got), "%s must be %s, but is %s", path, want, got)
	}
	switch kind {
	case "text":
		c.checkText(path, value, rejectType)
	case "truth":
		if _, ok := value.(bool); !ok {
			rejectType(TypeTruth)
		}
	case "number":
		c.checkNumber(path, value, rejectType)
	case "duration":
		c.checkDuration(path, value)
	case "texts", "list":
		c.checkList(path, kind, value, rejectType)
	case "table", "text-table": // all values of a text-table are text
		table, ok := value.(map[string]any)
		switch {
		case !ok:
			rejectType(TypeTable)
		case kind == "table":
			c.checkKnownTable(path, table)
		default:
			c.checkTexts(path, table)
		}
	}
}

// quotesFix returns a fix that adds or removes quotes, for a value that has type got and must have type want. It
// returns "" if quotes do not turn one type into the other.
func quotesFix(want, got string) string {
	switch {
	case want == TypeText && (got == TypeNumber || got == TypeTruth):
		return "write the value in quotes"
	case got == TypeText && (want == TypeNumber || want == TypeTruth):
		return "write the value without quotes"
	}
	return ""
}

// checkText checks a value that must be text. In a field of configWords, the text must be one of the field's words.
func (c *configCheck) checkText(path string, value any, rejectType func(want string)) {
	s, ok := value.(string)
	if !ok {
		rejectType(TypeText)
		return
	}
	if words := strings.Fields(configWords[path]); len(words) > 0 && !slices.Contains(words, s) && s != "" {
		c.reject(path, "", "%s must be one of %s", path, strings.Join(words, ", "))
	}
	switch {
	case s == "":
	case path == "containerLogMaxSize" && !Quantities.MatchString(s):
		c.reject(path, "", `%s must be an amount such as "10Mi"`, path)
	case path == "reservedSystemCPUs" && !CPUSets.MatchString(s):
		c.reject(path, "", `%s must be processors such as "0-3,7"`, path)
	}
}

// checkDuration checks a value that must be text such as "30s", within durationBounds.
func (c *configCheck) checkDuration(path string, value any) {
	if s, ok := value.(string); !ok {
		c.reject(path, "write the value in quotes, with a unit", `%s must be a duration such as "30s", but is %s`,
			path, jsonTypeName(value))
	} else if d, err := time.ParseDuration(s); err != nil {
		c.reject(path, "", `%s must be a duration such as "30s" or "1m30s"`, path)
	} else if bounds, ok := durationBounds[path]; ok && (d < bounds[0] || d > bounds[1]) {
		want := fmt.Sprintf("at least %s", bounds[0])
		if bounds[1] < forever {
			want = fmt.Sprintf("from %s to %s", bounds[0], bounds[1])
		}
		c.reject(path, "", "%s must be %s", path, want)
	}
}

// checkList checks a value that must be a list. If kind is "texts", each entry must be text.
func (c *configCheck) checkList(path, kind string, value any, rejectType func(want string)) {
	all, ok := value.([]any)
	if !ok {
		rejectType(TypeList)
		return
	}
	for _, entry := range all {
		if _, ok := entry.(string); !ok && kind == "texts" {
			c.reject(path, "write the value in quotes", "an entry of %s must be text, but is %s", path, jsonTypeName(entry))
		}
	}
}

// checkKnownTable checks a table if kubeletFields holds its fields. Other tables may have any fields.
func (c *configCheck) checkKnownTable(path string, table map[string]any) {
	for known := range kubeletFields {
		if strings.HasPrefix(known, path+".") {
			c.checkTable(path, table)
			return
		}
	}
}

func (c *configCheck) checkNumber(path string, value any, rejectType func(string)) {
	n, ok := value.(float64) // JSON numbers are float64
	switch bounds, bounded := configBounds[path]; {
	case !ok:
		rejectType(TypeNumber)
	case n != float64(int64(n)):
		c.reject(path, "", "%s must be a whole number", path)
	case bounded && (int64(n) < bounds[0] || int64(n) > bounds[1]):
		c.reject(path, "", "%s must be a number from %d to %d", path, bounds[0], bounds[1])
	}
}

// checkTexts checks a table of text. The tables of configKeys allow only the keys listed there. Their values are
// durations in evictionSoftGracePeriod, and amounts or percentages in the other tables.
func (c *configCheck) checkTexts(path string, table map[string]any) {
	keys := strings.Fields(configKeys[path])
	for _, key := range slices.Sorted(maps.Keys(table)) {
		s, isText := table[key].(string)
		name := "an entry of " + path
		if userdata.IsQuotable(key) {
			name = path + "." + key
		}
		switch {
		case !isText && table[key] != nil:
			c.reject(path, "write the value in quotes", "%s must be text, but is %s", name, jsonTypeName(table[key]))
		case len(keys) > 0 && !slices.Contains(keys, key):
			c.reject(path, "", "a key%s of %s must be one of %s", userdata.InParentheses(key), path, strings.Join(keys, ", "))
		case len(keys) == 0: // any text is valid
		case path == "evictionSoftGracePeriod":
			if _, err := time.ParseDuration(s); err != nil {
				c.reject(path, "", `%s must be a duration such as "1m30s"`, name)
			}
		case s == "100%": // the kubelet ignores an eviction threshold of 100%
		case strings.HasPrefix(path, "eviction") && IsThreshold(s):
		case !Quantities.MatchString(s):
			c.reject(path, "", `%s must be an amount such as "100Mi"`, name)
		}
	}
}

// reportUnknown reports a field that the kubelet does not know, and ignores.
func (c *configCheck) reportUnknown(table, path, name string) {
	certainty := userdata.Likely // a kubelet of another version may have this field
	if minor := Minor(c.r); minor == newestMinor {
		certainty = userdata.Certain
	}
	var known []string
	for field := range kubeletFields {
		if parent, last := splitPath(field); parent == table {
			known = append(known, last)
		}
	}
	slices.Sort(known)
	p := c.r.Report(userdata.SettingUnknown, certainty, userdata.JoinsDifferently, c.positionOf(path),
		"the kubelet's configuration has no field%s%s, and the kubelet ignores it", userdata.InParentheses(name), userdata.InTable(table))
	dashed := kebab(name)
	otherCase := slices.IndexFunc(known, func(field string) bool { return kebab(field) == dashed || strings.EqualFold(field, name) })
	near := userdata.Nearest(name, known)
	switch {
	case otherCase >= 0:
		p.Suggest("write", known[otherCase])
	case fieldsInstead[name] != "":
		p.Suggest("write "+fieldsInstead[name], "")
	case near != "":
		p.Suggest("write", near)
	case table == "" && KnownFlag(dashed):
		p.Suggest("write it as a flag, into spec.kubelet.flags: --"+dashed, "")
	default:
		p.Suggest("remove it", "")
	}
}

// fieldsInstead maps names that other programs or flags use to the kubelet's field of the same meaning.
var fieldsInstead = map[string]string{
	"memorySwapBehavior": "memorySwap: {swapBehavior: …}", "swapBehavior": "memorySwap: {swapBehavior: …}",
	"clientCAFile": "authentication: {x509: {clientCAFile: …}}", "featureGate": "featureGates",
	"imageGcHighThreshold": "imageGCHighThresholdPercent", "imageGcLowThreshold": "imageGCLowThresholdPercent",
	"imageGCHighThreshold": "imageGCHighThresholdPercent", "imageGCLowThreshold": "imageGCLowThresholdPercent",
	"eventQPS": "eventRecordQPS", "registryQPS": "registryPullQPS", "podMaxPids": "podPidsLimit", "taints": "registerWithTaints",
}

func (c *configCheck) checkGates(value any) {
	table, ok := value.(map[string]any)
	if !ok {
		c.reject("featureGates", "", "featureGates must be a table, but is %s", jsonTypeName(value))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		on, isBool := table[name].(bool)
		if !isBool {
			c.reject("featureGates."+name, "write the value without quotes",
				"an entry of featureGates must be true or false, but is %s", jsonTypeName(table[name]))
			continue
		}
		judgeGate(c.r, name, on, c.positionOf("featureGates."+name), userdata.NeverJoins)
	}
}

// judgeGate reports a feature gate with which the kubelet does not start: a gate that is unknown, that belongs to
// nodeadm, or that has a fixed value other than given.
func judgeGate(r *userdata.Reader, name string, given bool, position userdata.Position, harm userdata.Severity) {
	fixed, known := KubeletGates[name]
	minor := Minor(r)
	switch {
	case slices.Contains(NodeadmGates, name):
		r.Report(userdata.SettingUnknown, userdata.Certain, harm, position,
			"%s is a feature gate of nodeadm, not of the kubelet; as it is, the kubelet does not start", name).
			Suggest("write it into spec.featureGates of the NodeConfig", "")
	case name == "AllAlpha" || name == "AllBeta": // not in the table
	case known && fixed != "" && fixed != strconv.FormatBool(given) && (minor == 0 || minor >= newestMinor):
		certainty := userdata.Likely // the kubelet may be of another version
		if minor == newestMinor {
			certainty = userdata.Certain
		}
		r.Report(userdata.SettingInvalid, certainty, harm, position, "the feature gate %s is always %s in Kubernetes 1.%d, and the kubelet does not start when it is set to %t", name, fixed, newestMinor, given).
			Suggest("remove it", "")
	case known:
	default:
		certainty := userdata.Likely // a kubelet of another version may have this gate
		if minor == newestMinor {
			certainty = userdata.Certain
		}
		p := r.Report(userdata.SettingUnknown, certainty, harm, position, "the kubelet of Kubernetes 1.%d knows no such feature gate%s, and does not start with an unknown one", newestMinor, userdata.InParentheses(name))
		p.Suggest("remove it", "")
		if near := userdata.Nearest(name, slices.Sorted(maps.Keys(KubeletGates))); near != "" {
			p.Suggest("write", near)
		}
	}
}

// judgeGateFlag checks the gates of --feature-gates=A=true,B=false.
func judgeGateFlag(r *userdata.Reader, a userdata.Argument, harm userdata.Severity) {
	for gate := range strings.SplitSeq(a.Value, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(gate), "=")
		on, err := strconv.ParseBool(strings.TrimSpace(value))
		switch {
		case gate == "" || strings.Contains(gate, "…"): // "…" stands for text that only the instance knows
		case !ok || err != nil:
			r.Report(userdata.SettingInvalid, userdata.Certain, harm, a.At,
				"a gate%s of --feature-gates must be true or false; as it is, the kubelet does not start", userdata.InParentheses(name)).
				Suggest("write Name=true,Name=false", "")
		default:
			judgeGate(r, name, on, a.At, harm)
		}
	}
}

func jsonTypeName(value any) string {
	if value == nil {
		return "nothing"
	}
	return TypeName(value)
}

func splitPath(path string) (parent, last string) {
	i := strings.LastIndexByte(path, '.')
	return path[:max(i, 0)], path[i+1:]
}

// kebab returns a name in the form of a flag: max-pods for maxPods, max_pods and max-pods.
func kebab(name string) string {
	var b strings.Builder
	for i, c := range name {
		upper := c >= 'A' && c <= 'Z' // a capital begins a word, unless another capital or a separator precedes
		if upper && i > 0 && (name[i-1] < 'A' || name[i-1] > 'Z') && name[i-1] != '-' && name[i-1] != '_' {
			b.WriteByte('-')
		}
		b.WriteString(strings.ToLower(string(c)))
	}
	return strings.ReplaceAll(b.String(), "_", "-")
}

// Signals are the signals that may have eviction thresholds. reservable are the resources that may be reserved.
const (
	Signals    = "memory.available nodefs.available nodefs.inodesFree imagefs.available imagefs.inodesFree containerfs.available containerfs.inodesFree pid.available allocatableMemory.available"
	reservable = "cpu memory ephemeral-storage pid"
)

// configKeys maps a table of text to its keys, if it allows no other keys.
var configKeys = map[string]string{
	"evictionHard": Signals, "evictionSoft": Signals, "evictionSoftGracePeriod": Signals, "evictionMinimumReclaim": Signals,
	"systemReserved": reservable, "kubeReserved": reservable,
}

// configWords maps a field to its allowed texts.
// Source: pkg/kubelet/apis/config/validation of k8s.io/kubernetes, and the managers that read the fields.
var configWords = map[string]string{
	"cpuManagerPolicy": "none static", "memoryManagerPolicy": "None Static", "topologyManagerScope": "container pod",
	"topologyManagerPolicy": "none best-effort restricted single-numa-node", "hairpinMode": "none hairpin-veth promiscuous-bridge",
	"memorySwap.swapBehavior": "NoSwap LimitedSwap", "authorization.mode": "AlwaysAllow Webhook",
	"tlsMinVersion": "VersionTLS10 VersionTLS11 VersionTLS12 VersionTLS13",
	"configMapAndSecretChangeDetectionStrategy": "Get Cache Watch", "cgroupDriver": "cgroupfs systemd",
	"imagePullCredentialsVerificationPolicy": "NeverVerify NeverVerifyPreloadedImages NeverVerifyAllowlistedImages AlwaysVerify",
}

// noMax is the maximum in configBounds of a number that is limited only by its 32-bit type. maxOpenFiles has 64 bits.
const noMax = 1 << 31

// configBounds maps a field to the minimum and the maximum of its number.
// Source: the same as for configWords.
var configBounds = map[string][2]int64{
	"containerLogMaxFiles": {2, noMax}, "containerLogMaxWorkers": {1, noMax}, "eventBurst": {0, noMax}, "eventRecordQPS": {0, noMax},
	"healthzPort": {0, 65535}, "imageGCHighThresholdPercent": {0, 100}, "imageGCLowThresholdPercent": {0, 100},
	"kubeAPIBurst": {0, noMax}, "maxOpenFiles": {0, 1 << 62}, "maxPods": {0, noMax}, "nodeLeaseDurationSeconds": {1, noMax},
	"nodeStatusMaxImages": {-1, noMax}, "oomScoreAdj": {-1000, 1000}, "podsPerCore": {0, noMax}, "port": {1, 65535},
	"readOnlyPort": {0, 65535}, "registryBurst": {0, noMax}, "registryPullQPS": {0, noMax}, "maxParallelImagePulls": {1, noMax},
}
