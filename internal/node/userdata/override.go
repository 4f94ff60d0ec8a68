package userdata

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// leaf is one value of a document that is no table.
type leaf struct {
	path  string // "spec.kubelet.config.maxPods"
	value any
}

// leaves are the values of a document, in the order of their paths. Lists are values.
func leaves(path string, value any) []leaf {
	table, ok := value.(map[string]any)
	if !ok || len(table) == 0 {
		return []leaf{{path, value}}
	}
	var out []leaf
	for _, key := range slices.Sorted(maps.Keys(table)) {
		out = append(out, leaves(strings.TrimPrefix(path+"."+key, "."), table[key])...)
	}
	return out
}

// isIdentity reports whether a path is about the cluster. What does not fit there is judged by judgeCluster, and may be a placeholder.
func isIdentity(path string) bool {
	return strings.HasPrefix(path, "spec.cluster.") || path == "settings.kubernetes.api-server" ||
		path == "settings.kubernetes.cluster-certificate" || path == "settings.kubernetes.cluster-name"
}

// overridden reports which values of a NodeConfig do not count, since a later NodeConfig has others.
func (r *reader) overridden(all []oneConfig) {
	for i, one := range all[:len(all)-1] {
		spec, _ := one.doc["spec"].(map[string]any)
		for _, l := range leaves("spec", spec) {
			if l.value == nil || strings.HasPrefix(l.path, "spec.kubelet.flags") || isIdentity(l.path) && r.in.Endpoint == "" {
				continue
			}
			for _, later := range all[i+1:] {
				value, _ := find(later.doc, strings.Split(l.path, "."))
				if value == nil && l.path == "spec.kubelet.maxPodsExpression" {
					value = dig(later.doc, "spec", "kubelet", "config", "maxPods")
				}
				if _, isTable := value.(map[string]any); value == nil || isTable || fmt.Sprint(list(value)...) == fmt.Sprint(list(l.value)...) {
					continue
				}
				by := "a later NodeConfig"
				if later.at.Part == r.ours && r.ours > 0 {
					by = "the NodeConfig that Joiner writes"
				}
				r.doesNotCount(either(one.spots[l.path], one.at), l, value, by)
				break
			}
		}
	}
}

// overriddenSettings reports which of the user's settings of Bottlerocket do not count, since Joiner writes others.
func (r *reader) overriddenSettings(settings map[string]any, spots map[string]Spot) {
	own := r.ownSettings()
	if own == nil {
		return
	}
	for _, l := range leaves("settings", own) {
		if table, isTable := l.value.(map[string]any); isTable && len(table) == 0 || isIdentity(l.path) && r.in.Endpoint == "" {
			continue
		}
		value, there := find(settings, strings.Split(strings.TrimPrefix(l.path, "settings."), "."))
		if there && fmt.Sprint(list(value)...) == fmt.Sprint(list(l.value)...) {
			continue
		}
		r.doesNotCount(spotAbove(spots, l.path), l, value, "Joiner")
	}
}

// ownSettings are the user's own settings, nil where nothing was merged with them.
func (r *reader) ownSettings() map[string]any {
	if r.in.Data == nil || r.in.Own == "" || r.in.Family == catalog.Custom || len(r.in.Own) > maxBytes {
		return nil
	}
	doc, ok := decodeTOML(r.in.Own)
	if !ok {
		return nil
	}
	own, _ := doc["settings"].(map[string]any)
	return own
}

// find returns what stands at a path, whose keys may have dots.
func find(table map[string]any, path []string) (any, bool) {
	for i := 1; i <= len(path); i++ {
		value, ok := table[strings.Join(path[:i], ".")]
		if !ok {
			continue
		}
		if i == len(path) {
			return value, true
		}
		if below, isTable := value.(map[string]any); isTable {
			if found, ok := find(below, path[i:]); ok {
				return found, true
			}
		}
	}
	return nil, false
}

func spotAbove(spots map[string]Spot, path string) Spot {
	return (&settingsCheck{spots: spots}).spotOf(path)
}

// doesNotCount reports a value in place of which another counts. other is nil where none does.
func (r *reader) doesNotCount(spot Spot, l leaf, other any, by string) {
	field := strings.TrimPrefix(strings.TrimPrefix(l.path, "spec.kubelet.config."), "spec.kubelet.")
	for !isTelling(field) && field != "" {
		field, _ = splitPath(field)
	}
	cause := fmt.Sprintf("%s%s has no effect", field, shown(l.value))
	if other != nil {
		cause += fmt.Sprintf(": %s sets %s, and wins", by, elsewhere(l.path, other))
	} else {
		cause += fmt.Sprintf(": %s replaces that table", by)
	}
	r.problem(Overridden, Certain, JoinsAmiss, spot, "%s", cause).with(insteadOf(l.path, r.in.Family == catalog.Custom), "")
}

// elsewhere names the value that counts.
func elsewhere(path string, value any) string {
	if path == "spec.kubelet.maxPodsExpression" {
		return "maxPods" + shown(value)
	}
	if text := shown(value); text != "" {
		return "it to" + strings.TrimSuffix(strings.Replace(text, " (", " ", 1), ")")
	}
	return "it"
}

// shown writes a value that is no secret: a number, an amount, addresses.
func shown(value any) string {
	var words []string
	for _, one := range list(value) {
		switch v := one.(type) {
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

// isHarmless reports whether a text may be repeated: a number, an amount, a percentage, an address or a range of addresses.
func isHarmless(s string) bool {
	address, _, _ := strings.Cut(s, "/")
	return len(s) <= 40 && (isThreshold(s) && quantities.MatchString(strings.TrimSuffix(s, "%")) || isAddress(address) || isSettingDuration(s))
}

// classFields are the fields of an EC2NodeClass that set what users write into user data.
var classFields = map[string]string{
	"maxPods": "maxPods", "max-pods": "maxPods", "maxPodsExpression": "maxPods", "clusterDNS": "clusterDNS", "cluster-dns-ip": "clusterDNS",
	"podsPerCore": "podsPerCore", "systemReserved": "systemReserved", "system-reserved": "systemReserved", "kubeReserved": "kubeReserved",
	"kube-reserved": "kubeReserved", "evictionHard": "evictionHard", "eviction-hard": "evictionHard", "evictionSoft": "evictionSoft",
	"eviction-soft": "evictionSoft", "evictionSoftGracePeriod": "evictionSoftGracePeriod", "eviction-soft-grace-period": "evictionSoftGracePeriod",
	"evictionMaxPodGracePeriod": "evictionMaxPodGracePeriod", "eviction-max-pod-grace-period": "evictionMaxPodGracePeriod",
	"imageGCHighThresholdPercent": "imageGCHighThresholdPercent", "image-gc-high-threshold-percent": "imageGCHighThresholdPercent",
	"imageGCLowThresholdPercent": "imageGCLowThresholdPercent", "image-gc-low-threshold-percent": "imageGCLowThresholdPercent",
	"cpuCFSQuota": "cpuCFSQuota", "cpu-cfs-quota-enforced": "cpuCFSQuota", "cpu-cfs-quota": "cpuCFSQuota", "cluster-dns": "clusterDNS",
	"pods-per-core": "podsPerCore", "image-gc-high-threshold": "imageGCHighThresholdPercent", "image-gc-low-threshold": "imageGCLowThresholdPercent",
}

// insteadOf says where a value is to be set. custom is true where the user writes all user data.
func insteadOf(path string, custom bool) string {
	words := strings.FieldsFunc(path, func(c rune) bool { return c == '.' })
	for _, word := range words {
		switch {
		case custom:
			return "write it once"
		case word == "registerWithTaints", word == "node-taints":
			return "write taints into the NodePool: spec.template.spec.taints or startupTaints"
		case word == "node-labels":
			return "write labels into the NodePool: spec.template.metadata.labels"
		case word == "localStorage", word == "000-mount-instance-storage":
			return "write spec.instanceStorePolicy of the EC2NodeClass"
		case word == "cluster", word == "api-server", word == "cluster-certificate", word == "cluster-name":
			return "take it out: Joiner writes what is known of the cluster"
		case classFields[word] != "":
			return "write spec.kubelet." + classFields[word] + " of the EC2NodeClass"
		}
	}
	return "write it once"
}

// overridingFlags reports flags of the user that win over what Joiner plans with: spec.kubelet of the EC2NodeClass, or its defaults.
func (r *reader) overridingFlags(args []argument, s start) {
	if s.by != byNodeadm || r.in.Family == catalog.Custom {
		return
	}
	for _, a := range args {
		field := classFields[a.name]
		value, planned := s.config[field]
		if field == "" || !planned || a.at.Part == r.ours && r.ours > 0 || flagText(value) == a.value {
			continue
		}
		r.problem(Overridden, Certain, JoinsAmiss, a.at, "the flag --%s%s wins over %s%s, with which Joiner plans", a.name, shown(a.value), field, shown(value)).
			with("take the flag out, and write spec.kubelet."+field+" of the EC2NodeClass", "")
	}
}

// flagText is a value of the configuration as its flag has it.
func flagText(value any) string {
	var words []string
	if table, ok := value.(map[string]any); ok {
		for _, key := range slices.Sorted(maps.Keys(table)) {
			words = append(words, fmt.Sprintf("%s=%v", key, table[key]))
		}
		return strings.Join(words, ",")
	}
	for _, one := range list(value) {
		words = append(words, fmt.Sprint(one))
	}
	return strings.Join(words, ",")
}
