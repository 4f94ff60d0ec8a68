package helmvalues

import (
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/config"
	"github.com/joiner-sh/joiner/internal/migration"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// chartPaths returns the paths of the values of Joiner's chart, except those below settings. A path whose value is a
// free-form map or list, such as nodeSelector, stands for all paths below it, too. TestChartPaths compares the
// result with the chart.
func chartPaths() []string {
	return []string{
		"additionalAnnotations", "additionalClusterRoleRules", "additionalLabels", "affinity.nodeAffinity", "affinity.podAffinity",
		"affinity.podAntiAffinity", "controller.containerName", "controller.env", "controller.envFrom", "controller.extraVolumeMounts",
		"controller.healthProbe.port", "controller.image.digest", "controller.image.repository", "controller.image.tag",
		"controller.metrics.port",
		"controller.resources.claims", "controller.resources.limits", "controller.resources.requests", "controller.securityContext",
		"controller.sidecarContainer", "controller.sidecarVolumeMounts", "crds.apply", "dnsConfig.nameservers",
		"dnsConfig.options", "dnsConfig.searches",
		"dnsPolicy", "extraVolumes", "fullnameOverride", "global", "hostNetwork", "imagePullPolicy", "imagePullSecrets", "initContainers",
		"logErrorOutputPaths", "logLevel", "logOutputPaths", "nameOverride", "networkPolicy.egress", "networkPolicy.enabled",
		"networkPolicy.from",
		"networkPolicy.restrictEgress", "nodeSelector", "podAnnotations", "podDisruptionBudget.maxUnavailable",
		"podDisruptionBudget.name", "podLabels",
		"podSecurityContext", "postInstallHook", "priorityClassName", "rbac.aggregate", "rbac.create", "replicas",
		"revisionHistoryLimit", "schedulerName",
		"service.annotations", "serviceAccount.annotations", "serviceAccount.create", "serviceAccount.name", "serviceMonitor.additionalLabels",
		"serviceMonitor.enabled", "serviceMonitor.endpointConfig", "serviceMonitor.metricRelabelings", "serviceMonitor.relabelings",
		"serviceMonitor.sampleLimit", "strategy.rollingUpdate.maxSurge", "strategy.rollingUpdate.maxUnavailable", "strategy.type",
		"terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints", "webhook",
	}
}

// UnknownValues returns the values that are not in chartPaths, sorted by path, each with the path that the user
// probably meant. It does not check values below settings: ReadValues checks those.
func UnknownValues(flat map[string]string) []migration.UnknownValue {
	paths := chartPaths()
	var out []migration.UnknownValue
	seen := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(flat)) {
		if strings.HasPrefix(path, "settings.") {
			continue
		}
		if unknown, near := unknownValue(path, paths); unknown != "" && !seen[unknown] {
			seen[unknown] = true
			out = append(out, migration.UnknownValue{Path: unknown, Near: near})
		}
	}
	return out
}

// unknownValue returns the shortest prefix of a path that is not in known, and the path that the user probably meant.
// Both are empty if known has the path.
func unknownValue(path string, known []string) (unknown, near string) {
	parent := ""
	for _, name := range strings.Split(path, ".") {
		if slices.Contains(known, strings.TrimSuffix(parent, ".")) {
			return "", "" // the values below are free-form
		}
		var siblings []string
		for _, k := range known {
			if rest, ok := strings.CutPrefix(k, parent); ok {
				first, _, _ := strings.Cut(rest, ".")
				siblings = append(siblings, first)
			}
		}
		if parent == "" {
			siblings = append(siblings, "settings")
		}
		if slices.Contains(siblings, name) {
			parent += name + "."
			continue
		}
		if meant := suggest.Nearest(name, siblings); meant != "" {
			return parent + name, parent + meant
		}
		return parent + name, pathEndingWith(name, known)
	}
	return "", ""
}

// pathEndingWith returns a path in known, or below settings, whose last part is name; empty if there is none.
func pathEndingWith(name string, known []string) string {
	for _, k := range known {
		if k[strings.LastIndexByte(k, '.')+1:] == name {
			return k
		}
	}
	for _, s := range config.All() {
		if strings.ReplaceAll(s.Flag, "-", "") == strings.ToLower(name) {
			return "settings." + name
		}
	}
	return ""
}
