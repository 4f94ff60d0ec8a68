package helmvalues

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Types of values in the chart, as messages name them.
const (
	shapeMapping = "a mapping"
	shapeList    = "a list"
	shapeBool    = "true or false"
	shapeWhole   = "a whole number"
	shapeText    = "a text"
)

// chartShapes returns the types of values of Joiner's chart, by path. Values without an entry may have any type.
// TestChartShapes compares the result with the chart.
func chartShapes() map[string]string {
	out := map[string]string{}
	for shape, paths := range map[string]string{
		shapeMapping: `
			additionalAnnotations additionalLabels affinity affinity.nodeAffinity affinity.podAffinity affinity.podAntiAffinity controller
			controller.healthProbe controller.image controller.metrics controller.resources controller.resources.limits controller.resources.requests
		` + `
			controller.securityContext crds dnsConfig global networkPolicy nodeSelector podAnnotations podDisruptionBudget podLabels
			podSecurityContext postInstallHook rbac service service.annotations serviceAccount serviceAccount.annotations serviceMonitor
			serviceMonitor.additionalLabels serviceMonitor.endpointConfig settings settings.awsFeatureGates settings.featureGates strategy
			strategy.rollingUpdate webhook
		`,
		shapeList: `
			additionalClusterRoleRules controller.env controller.envFrom controller.extraVolumeMounts controller.resources.claims
			controller.sidecarContainer controller.sidecarVolumeMounts dnsConfig.nameservers dnsConfig.options dnsConfig.searches extraVolumes
			imagePullSecrets logErrorOutputPaths logOutputPaths networkPolicy.egress networkPolicy.from serviceMonitor.metricRelabelings
			serviceMonitor.relabelings tolerations topologySpreadConstraints
		`,
		shapeBool: `
			crds.apply hostNetwork networkPolicy.enabled networkPolicy.restrictEgress rbac.aggregate rbac.create serviceAccount.create
			serviceMonitor.enabled settings.awsFeatureGates.nodeClassCEL settings.disableClusterStateObservability settings.disableDryRun
			settings.eksControlPlane settings.enableZonalShift settings.featureGates.capacityBuffer settings.featureGates.nodeOverlay
			settings.featureGates.nodeRepair settings.featureGates.reservedCapacity settings.featureGates.spotToSpotConsolidation
			settings.featureGates.staticCapacity settings.ignoreDRARequests settings.isolatedVPC
		`,
		shapeWhole: `
			controller.healthProbe.port controller.metrics.port replicas revisionHistoryLimit serviceMonitor.sampleLimit
			terminationGracePeriodSeconds
		`,
	} {
		for path := range strings.FieldsSeq(paths) {
			out[path] = shape
		}
	}
	return out
}

// shapeProblems returns a sentence about each value whose type the chart refuses, sorted by path.
func shapeProblems(tree map[string]any) []string {
	shapes := chartShapes()
	var out []string
	var visit func(tree map[string]any, path string)
	visit = func(tree map[string]any, path string) {
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			value := tree[name]
			want, actual := shapes[path+name], shapeOf(value)
			switch {
			case value == nil: // null removes a default, whatever its type
			case want != "" && want != actual:
				text := fmt.Sprintf("value %s is %s: want %s", path+name, actual, want)
				if actual == shapeText && (want == shapeBool || want == shapeWhole) {
					text += ", without quotes"
				}
				out = append(out, text)
			case actual == shapeMapping:
				visit(value.(map[string]any), path+name+".")
			}
		}
	}
	visit(tree, "")
	return out
}

func shapeOf(value any) string {
	switch v := value.(type) {
	case map[string]any:
		return shapeMapping
	case []any:
		return shapeList
	case bool:
		return shapeBool
	case float64: // YAML is decoded as JSON, so integers are float64, too
		if v == float64(int64(v)) {
			return shapeWhole
		}
		return "a number"
	}
	return shapeText
}

// chartName returns the name of a setting in the charts: batchMaxDuration for the flag batch-max-duration.
func chartName(flag string) string {
	var b strings.Builder
	for i, word := range strings.Split(flag, "-") {
		capitals, ok := abbreviations[word]
		switch {
		case i == 0:
			b.WriteString(word)
		case ok:
			b.WriteString(capitals)
		default:
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// abbreviations maps a word in the name of a flag to its form in the name of a chart's value.
var abbreviations = map[string]string{"api": "API", "ca": "CA", "dra": "DRA", "enis": "ENIs", "vpc": "VPC"}
