package kubelet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/node/userdata"
)

// Leaf is a value in a document: any value that is not a table, or an empty table.
type Leaf struct {
	Path  string // "spec.kubelet.config.maxPods"
	Value any    // value of the leaf, possibly a list
}

// Leaves returns the leaves of value, a table whose path is path, sorted by path. Lists are leaves.
func Leaves(path string, value any) []Leaf {
	table, ok := value.(map[string]any)
	if !ok || len(table) == 0 {
		return []Leaf{{path, value}}
	}
	var out []Leaf
	for _, key := range slices.Sorted(maps.Keys(table)) {
		out = append(out, Leaves(strings.TrimPrefix(path+"."+key, "."), table[key])...)
	}
	return out
}

// IsClusterIdentity reports whether the setting at a path identifies the cluster. Joiner's values of these settings are
// placeholders if Input.Endpoint is unknown. Package reading compares the settings with the cluster.
func IsClusterIdentity(path string) bool {
	return strings.HasPrefix(path, "spec.cluster.") || path == "settings.kubernetes.api-server" ||
		path == "settings.kubernetes.cluster-certificate" || path == "settings.kubernetes.cluster-name"
}

// OwnSettings returns the user's own Bottlerocket settings; nil if they are invalid, too long, or not merged with
// Joiner's.
func OwnSettings(r *userdata.Reader) map[string]any {
	if r.In.Data == nil || r.In.Own == "" || r.In.Family == catalog.Custom || len(r.In.Own) > userdata.MaxBytes {
		return nil
	}
	doc, ok := userdata.DecodeTOML(r.In.Own)
	if !ok {
		return nil
	}
	own, _ := doc["settings"].(map[string]any)
	return own
}

// Find returns the value at a path that was split at its dots; false if there is none. A key of the table may itself
// contain dots.
func Find(table map[string]any, path []string) (any, bool) {
	for i := 1; i <= len(path); i++ {
		value, ok := table[strings.Join(path[:i], ".")]
		if !ok {
			continue
		}
		if i == len(path) {
			return value, true
		}
		if below, isTable := value.(map[string]any); isTable {
			if found, ok := Find(below, path[i:]); ok {
				return found, true
			}
		}
	}
	return nil, false
}

// PositionAbove returns the position of a path, or of its nearest parent with a known position.
func PositionAbove(positions map[string]userdata.Position, path string) userdata.Position {
	for path != "" {
		if position, ok := positions[path]; ok {
			return position
		}
		i := strings.LastIndexByte(path, '.')
		path = path[:max(i, 0)]
	}
	return userdata.Position{}
}

// ReportOverridden reports the leaf l, which has no effect. other is the value that takes effect at the path of l, or
// nil if the whole table was replaced. by names the author of other or of the new table.
func ReportOverridden(r *userdata.Reader, position userdata.Position, l Leaf, other any, by string) {
	field := strings.TrimPrefix(strings.TrimPrefix(l.Path, "spec.kubelet.config."), "spec.kubelet.")
	for !userdata.IsQuotable(field) && field != "" {
		field, _ = splitPath(field)
	}
	cause := fmt.Sprintf("%s%s has no effect", field, valueText(l.Value))
	if other != nil {
		cause += fmt.Sprintf(": %s sets %s, and wins", by, overridingText(l.Path, other))
	} else {
		cause += fmt.Sprintf(": %s replaces that table", by)
	}
	r.Report(userdata.Overridden, userdata.Certain, userdata.JoinsDifferently, position, "%s",
		cause).Suggest(overrideFix(l.Path, r.In.Family == catalog.Custom), "")
}

// overridingText describes the value that takes effect at path, for a text such as "Joiner sets it to 110".
func overridingText(path string, value any) string {
	if path == "spec.kubelet.maxPodsExpression" {
		return "maxPods" + valueText(value)
	}
	if text := valueText(value); text != "" {
		// " (110)" becomes " 110".
		return "it to" + strings.TrimSuffix(strings.Replace(text, " (", " ", 1), ")")
	}
	return "it"
}

// valueText formats a value, or a list of at most four values, in parentheses. It returns "" for a longer list, and if
// isHarmless rejects a value.
func valueText(value any) string {
	var words []string
	for _, entry := range userdata.List(value) {
		switch v := entry.(type) {
		case bool, int64, float64:
			words = append(words, fmt.Sprint(v))
		case string:
			if !isHarmless(v) {
				return ""
			}
			words = append(words, v)
		default:
			return ""
		}
	}
	if len(words) == 0 || len(words) > 4 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// isHarmless reports whether a text may be quoted in a problem: a number, an amount, a percentage, a duration, an
// address or a CIDR.
func isHarmless(s string) bool {
	address, _, _ := strings.Cut(s, "/")
	isAmount := IsThreshold(s) && Quantities.MatchString(strings.TrimSuffix(s, "%"))
	return len(s) <= 40 && (isAmount || IsAddress(address) || IsSettingDuration(s))
}

// classFields maps settings in user data to the equivalent field of spec.kubelet of the EC2NodeClass.
var classFields = map[string]string{
	"maxPods": "maxPods", "max-pods": "maxPods", "maxPodsExpression": "maxPods", "clusterDNS": "clusterDNS", "cluster-dns-ip": "clusterDNS",
	"podsPerCore": "podsPerCore", "systemReserved": "systemReserved", "system-reserved": "systemReserved", "kubeReserved": "kubeReserved",
	"kube-reserved": "kubeReserved", "evictionHard": "evictionHard", "eviction-hard": "evictionHard", "evictionSoft": "evictionSoft",
	"eviction-soft": "evictionSoft", "evictionSoftGracePeriod": "evictionSoftGracePeriod",
	"eviction-soft-grace-period": "evictionSoftGracePeriod",
	"evictionMaxPodGracePeriod":  "evictionMaxPodGracePeriod", "eviction-max-pod-grace-period": "evictionMaxPodGracePeriod",
	"imageGCHighThresholdPercent": "imageGCHighThresholdPercent", "image-gc-high-threshold-percent": "imageGCHighThresholdPercent",
	"imageGCLowThresholdPercent": "imageGCLowThresholdPercent", "image-gc-low-threshold-percent": "imageGCLowThresholdPercent",
	"cpuCFSQuota": "cpuCFSQuota", "cpu-cfs-quota-enforced": "cpuCFSQuota", "cpu-cfs-quota": "cpuCFSQuota", "cluster-dns": "clusterDNS",
	"pods-per-core": "podsPerCore", "image-gc-high-threshold": "imageGCHighThresholdPercent",
	"image-gc-low-threshold": "imageGCLowThresholdPercent",
}

// overrideFix returns the fix for an overridden value, which names the field that the user must set instead. For the
// family Custom, the user writes all user data.
func overrideFix(path string, isCustom bool) string {
	words := strings.FieldsFunc(path, func(c rune) bool { return c == '.' })
	for _, word := range words {
		switch {
		case isCustom:
			return "write it once"
		case word == "registerWithTaints", word == "node-taints":
			return "write taints into the NodePool: spec.template.spec.taints or startupTaints"
		case word == "node-labels":
			return "write labels into the NodePool: spec.template.metadata.labels"
		case word == "localStorage", word == "000-mount-instance-storage":
			return "write spec.instanceStorePolicy of the EC2NodeClass"
		case word == "cluster", word == "api-server", word == "cluster-certificate", word == "cluster-name":
			return "remove it: Joiner writes the facts about the cluster"
		case classFields[word] != "":
			return "write spec.kubelet." + classFields[word] + " of the EC2NodeClass"
		}
	}
	return "write it once"
}

// ReportOverridingFlags reports flags of the user that override a setting with which Joiner plans. The setting is a
// field of spec.kubelet of the EC2NodeClass, or its default.
func ReportOverridingFlags(r *userdata.Reader, args []userdata.Argument, s userdata.Start) {
	if s.By != userdata.ByNodeadm || r.In.Family == catalog.Custom {
		return
	}
	for _, a := range args {
		field := classFields[a.Name]
		value, planned := s.Config[field]
		isOurs := r.OurPart > 0 && a.At.Part == r.OurPart
		if field == "" || !planned || isOurs || flagText(value) == a.Value {
			continue
		}
		r.Report(userdata.Overridden, userdata.Certain, userdata.JoinsDifferently, a.At,
			"the flag --%s%s wins over %s%s, with which Joiner plans", a.Name, valueText(a.Value), field, valueText(value)).
			Suggest("remove the flag, and write spec.kubelet."+field+" of the EC2NodeClass", "")
	}
}

// flagText formats a value of the configuration like the value of the flag with the same meaning.
func flagText(value any) string {
	var words []string
	if table, ok := value.(map[string]any); ok {
		for _, key := range slices.Sorted(maps.Keys(table)) {
			words = append(words, fmt.Sprintf("%s=%v", key, table[key]))
		}
		return strings.Join(words, ",")
	}
	for _, entry := range userdata.List(value) {
		words = append(words, fmt.Sprint(entry))
	}
	return strings.Join(words, ",")
}
