package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

const (
	nodePools      = "karpenter.sh_nodepools.yaml"
	nodeClaims     = "karpenter.sh_nodeclaims.yaml"
	nodeOverlays   = "karpenter.sh_nodeoverlays.yaml"
	ec2NodeClasses = "karpenter.k8s.aws_ec2nodeclasses.yaml"
)

// Patterns of keys and values that Kubernetes accepts.
const (
	qualifiedName = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?` +
		`([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	labelValue = `^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	quantity   = `(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))` +
		`(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?`
	percentage = `(\d{1,2}(\.\d{1,2})?|100(\.0{1,2})?)%`
)

// rule changes the schema at one path of a CRD. See the function edit for the form of the path.
type rule struct {
	path   string
	change func(*apiextensionsv1.JSONSchemaProps)
}

func files() []string { return []string{nodePools, nodeClaims, nodeOverlays, ec2NodeClasses} }

// rules returns the rules for a file. They validate types of Kubernetes (Taint, Condition), the values of maps, and
// labels. The labels that users may set differ between NodePool and NodeClaim, and are derived from the constants of
// the API.
func rules(file string) []rule {
	switch file {
	case nodePools:
		return append(taintRules("spec.template.spec."),
			rule{"spec.template.metadata.labels", restrictLabels},
			rule{"spec.template.metadata.labels.{}", func(s *apiextensionsv1.JSONSchemaProps) {
				s.MaxLength = new(int64(63))
				s.Pattern = labelValue
			}},
			rule{"spec.template.spec.requirements.[].key", restrictPoolKey},
		)
	case nodeClaims:
		return append(taintRules("spec."),
			rule{"spec.requirements.[].key", restrictClaimKey},
			rule{"status.conditions.[]", allowShortCondition},
			rule{"status.conditions.[].reason", allowEmptyReason},
		)
	case nodeOverlays:
		return []rule{{"spec.requirements.[].key", restrictOverlayKey}}
	case ec2NodeClasses:
		return []rule{ // "||" also accepts an empty text, as in Karpenter's CRD
			{"spec.kubelet.kubeReserved.{}", pattern("^" + quantity + "$")},
			{"spec.kubelet.systemReserved.{}", pattern("^" + quantity + "$")},
			{"spec.kubelet.evictionHard.{}", pattern("^(" + percentage + "||" + quantity + ")$")},
			{"spec.kubelet.evictionSoft.{}", pattern("^(" + percentage + "||" + quantity + ")$")},
		}
	}
	return nil
}

// taintRules returns the rules for taints and startup taints. spec is the path of their spec, with a dot at its end.
func taintRules(spec string) []rule {
	var rules []rule
	for _, list := range []string{"taints", "startupTaints"} {
		rules = append(rules,
			rule{spec + list + ".[].key", func(s *apiextensionsv1.JSONSchemaProps) {
				s.MinLength = new(int64(1))
				s.Pattern = qualifiedName
			}},
			rule{spec + list + ".[].value", pattern(qualifiedName)},
			rule{spec + list + ".[].effect", func(s *apiextensionsv1.JSONSchemaProps) {
				s.Enum = []apiextensionsv1.JSON{
					{Raw: []byte(`"NoSchedule"`)}, {Raw: []byte(`"PreferNoSchedule"`)}, {Raw: []byte(`"NoExecute"`)},
				}
			}},
		)
	}
	return rules
}

func pattern(regex string) func(*apiextensionsv1.JSONSchemaProps) {
	return func(s *apiextensionsv1.JSONSchemaProps) { s.Pattern = regex }
}

// allowShortCondition requires only the condition fields that the first Karpenter releases wrote, so that NodeClaims of
// those releases can still be updated.
func allowShortCondition(s *apiextensionsv1.JSONSchemaProps) {
	s.Required = []string{"lastTransitionTime", "status", "type"}
}

// allowEmptyReason accepts conditions without a reason, which the first Karpenter releases wrote.
func allowEmptyReason(s *apiextensionsv1.JSONSchemaProps) {
	s.MinLength = nil
	s.Pattern = `^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$`
}

// restrictLabels rejects the labels that users may not set in a NodePool's template.
func restrictLabels(s *apiextensionsv1.JSONSchemaProps) {
	s.XValidations = append(s.XValidations,
		forAll(rejectDomain("x", karpv1.Group, coreLabels())),
		forAll(rejectKey("x", karpv1.LabelNodePool)),
		forAll(rejectKey("x", "kubernetes.io/hostname")),
		forAll(rejectDomain("x", awsv1.Group, awsv1.UsableLabels())),
	)
}

// restrictPoolKey rejects the keys that users may not use in a NodePool's requirements.
func restrictPoolKey(s *apiextensionsv1.JSONSchemaProps) {
	s.XValidations = append(s.XValidations,
		rejectDomain("self", karpv1.Group, coreLabels()),
		rejectKey("self", karpv1.LabelNodePool),
		rejectKey("self", "kubernetes.io/hostname"),
		rejectDomain("self", awsv1.Group, awsv1.UsableLabels()),
	)
}

// restrictClaimKey does the same as restrictPoolKey for a NodeClaim, which may also require the label of its NodePool.
func restrictClaimKey(s *apiextensionsv1.JSONSchemaProps) {
	s.XValidations = append(s.XValidations,
		rejectDomain("self", karpv1.Group, coreLabels()),
		rejectKey("self", "kubernetes.io/hostname"),
		rejectDomain("self", awsv1.Group, awsv1.UsableLabels()),
	)
}

// restrictOverlayKey does the same as restrictClaimKey for a NodeOverlay. An overlay selects offerings, so its
// requirements cannot use labels of single instances.
func restrictOverlayKey(s *apiextensionsv1.JSONSchemaProps) {
	usable := slices.DeleteFunc(awsv1.UsableLabels(), func(label string) bool {
		return slices.Contains([]string{
			awsv1.LabelInstanceTenancy, awsv1.LabelCapacityReservationType, awsv1.LabelCapacityReservationID,
			awsv1.LabelCapacityReservationInterruptible, awsv1.LabelPlacementGroupID, awsv1.LabelPlacementGroupPartition,
		}, label)
	})
	s.XValidations = append(s.XValidations,
		rejectDomain("self", karpv1.Group, coreLabels()),
		rejectKey("self", "kubernetes.io/hostname"),
		rejectDomain("self", awsv1.Group, usable),
	)
}

// coreLabels returns the labels under karpenter.sh that the rules of rejectDomain allow. Where LabelNodePool is not
// allowed, a rule of rejectKey rejects it.
func coreLabels() []string { return []string{karpv1.LabelCapacityType, karpv1.LabelNodePool} }

// rejectDomain returns a rule that rejects the keys of a domain except the allowed ones. key is the CEL expression of
// the checked key. As in Karpenter, a key belongs to the domain if its prefix ends with the domain.
func rejectDomain(key, domain string, allowed []string) apiextensionsv1.ValidationRule {
	quoted := make([]string, 0, len(allowed))
	for _, label := range allowed {
		quoted = append(quoted, strconv.Quote(label))
	}
	return apiextensionsv1.ValidationRule{
		Rule: fmt.Sprintf(`%s in [%s] || !%s.find("^([^/]+)").endsWith(%q)`,
			key, strings.Join(quoted, ", "), key, domain),
		Message: fmt.Sprintf("labels under %s must be well-known labels: use one of these, or another domain", domain),
	}
}

// rejectKey returns a rule that rejects the label. key is the CEL expression of the checked key.
func rejectKey(key, label string) apiextensionsv1.ValidationRule {
	return apiextensionsv1.ValidationRule{
		Rule:    fmt.Sprintf(`%s != %q`, key, label),
		Message: fmt.Sprintf("the label %s is set for you: leave it out", label),
	}
}

// forAll turns a rule about the key x into a rule about all keys of a map.
func forAll(ruleOfX apiextensionsv1.ValidationRule) apiextensionsv1.ValidationRule {
	ruleOfX.Rule = "self.all(x, " + ruleOfX.Rule + ")"
	return ruleOfX
}
