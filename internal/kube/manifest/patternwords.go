package manifest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// patternWords describes, by field name, the valid values of fields for which the CRD has a pattern.
var patternWords = map[string]string{
	"volumeSize":             "an amount in Gi, Ti, G or T, for instance 100Gi",
	"consolidateAfter":       "a duration in h, m or s, for instance 1h30m, or Never",
	"expireAfter":            "a duration in h, m or s, for instance 720h, or Never",
	"terminationGracePeriod": "a duration in h, m or s, for instance 1h30m",
	"duration":               "a duration in h and m, for instance 8h or 1h30m",
	"schedule":               "a cron line of five fields in UTC, for instance 0 9 * * mon-fri, or @daily",
	"nodes":                  "a number or a percentage, for instance 10 or 10%",
	"ownerID":                "an AWS account of 12 digits",
	"evictionHard":           "a percentage up to 100% or an amount, for instance 5% or 100Mi",
	"evictionSoft":           "a percentage up to 100% or an amount, for instance 5% or 100Mi",
	"limits":                 "an amount, for instance 100, 500m or 100Gi",
	"kubeReserved":           "an amount, for instance 100m or 1Gi",
	"systemReserved":         "an amount, for instance 100m or 1Gi",
	"labels":                 "at most 63 letters, digits, dashes, underscores and dots, with a letter or digit at both ends",
	"values":                 "at most 63 letters, digits, dashes, underscores and dots, with a letter or digit at both ends",
	"key":                    "a label key, for instance example.com/team",
	"value":                  "a label value: letters, digits, dashes, underscores and dots, with a letter or digit at both ends",
}

// idPattern matches the beginning of the patterns for AWS resource IDs.
var idPattern = regexp.MustCompile(`^\^?(ami|cr|pg|sg|subnet|snap)-`)

// patternText describes what a value must be, for a value that does not match the pattern of its field.
func patternText(path, value, pattern string) string {
	if id := idPattern.FindStringSubmatch(pattern); id != nil {
		return fmt.Sprintf("must be an ID such as %s-0123456789abcdef0", id[1])
	}
	words := "" // of the last name in path, else of the first name that has words: limits for spec.limits.cpu
	for _, name := range strings.FieldsFunc(path, func(c rune) bool { return c == '.' }) {
		name, _, _ = strings.Cut(name, "[")
		if found := patternWords[name]; found != "" && (words == "" || strings.HasSuffix(path, name)) {
			words = found
		}
	}
	if words == "" {
		return "should match '" + pattern + "'"
	}
	if meant := meantAmount(value); meant != "" && regexp.MustCompile(pattern).MatchString(meant) {
		return fmt.Sprintf("must be %s (did you mean %s?)", words, meant)
	}
	return "must be " + words
}

// Amounts and durations in a syntax that Kubernetes does not accept: "3d", "10 GB", "5min".
var (
	inDays      = regexp.MustCompile(`^([0-9]{1,4})(d|days?)$`)
	inBytes     = regexp.MustCompile(`^([0-9]+) ?([KMGT])i?[Bb]$`)
	inLongUnits = regexp.MustCompile(`^([0-9]+) ?(h|m|s)[a-z]+$`)
)

// meantAmount rewrites an amount or a duration in the syntax of Kubernetes; empty if the meaning is unclear.
func meantAmount(value string) string {
	if days := inDays.FindStringSubmatch(value); days != nil {
		n, _ := strconv.Atoi(days[1])
		return fmt.Sprintf("%dh", 24*n)
	}
	if bytes := inBytes.FindStringSubmatch(value); bytes != nil {
		return bytes[1] + bytes[2] + "i"
	}
	if time := inLongUnits.FindStringSubmatch(value); time != nil {
		return time[1] + time[2]
	}
	if value != "" && strings.Trim(value, "0123456789") == "" {
		return value + "Gi" // the caller checks whether this matches the pattern
	}
	return ""
}

// meantLabel returns the well-known label that is most similar to key and has the same domain; empty if none is
// similar, or if key itself is well-known.
func meantLabel(key string) string {
	domain, name, _ := strings.Cut(key, "/")
	var names []string
	for _, label := range awsv1.WellKnownLabels() {
		if labelDomain, labelName, _ := strings.Cut(label, "/"); labelDomain == domain {
			names = append(names, labelName)
		}
	}
	if near := suggest.Nearest(name, names); near != "" && near != name {
		return domain + "/" + near
	}
	return ""
}

// movedFields are hints by field: for fields of older API versions ("now"), and for fields that users write at a wrong
// place. Source: the guide to Karpenter's v1 migration.
var movedFields = map[string]string{
	"spec.template.spec.kubelet":                 "it is spec.kubelet of the EC2NodeClass now",
	"spec.template.spec.nodeClassRef.apiVersion": "write group: karpenter.k8s.aws",
	"spec.disruption.expireAfter":                "it is spec.template.spec.expireAfter now",
	"spec.expireAfter":                           "it is spec.template.spec.expireAfter",
	"spec.ttlSecondsAfterEmpty":                  "it is spec.disruption.consolidateAfter now",
	"spec.ttlSecondsUntilExpired":                "it is spec.template.spec.expireAfter now",
	"spec.requirements":                          "it is spec.template.spec.requirements",
	"spec.taints":                                "it is spec.template.spec.taints",
	"spec.startupTaints":                         "it is spec.template.spec.startupTaints",
	"spec.labels":                                "it is spec.template.metadata.labels",
	"spec.template.spec.labels":                  "it is spec.template.metadata.labels",
	"spec.template.labels":                       "it is spec.template.metadata.labels",
	"spec.nodeClassRef":                          "it is spec.template.spec.nodeClassRef",
	"spec.providerRef":                           "it is spec.template.spec.nodeClassRef now",
	"spec.template.spec.disruption":              "it is spec.disruption",
	"spec.template.spec.limits":                  "it is spec.limits",
	"spec.template.spec.weight":                  "it is spec.weight",
	"spec.launchTemplate":                        "custom launch templates are not supported: set the fields of the EC2NodeClass",
	"spec.launchTemplateName":                    "custom launch templates are not supported: set the fields of the EC2NodeClass",
	"spec.instanceTypes":                         "instance types are requirements of the NodePool: node.kubernetes.io/instance-type",
}
