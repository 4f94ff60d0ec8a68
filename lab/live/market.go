package live

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/lab"
)

// Market has the capacity types and architectures that the NodePool of a run allows.
type Market struct {
	CapacityTypes []string // "on-demand", "spot"
	Architectures []string // "amd64", "arm64"
}

// OnDemand returns the market of most runs: on-demand instances of amd64.
func OnDemand() Market {
	return Market{CapacityTypes: []string{"on-demand"}, Architectures: []string{"amd64"}}
}

// AllowSpot adds spot instances to the market.
func (m *Market) AllowSpot() {
	if !slices.Contains(m.CapacityTypes, "spot") {
		m.CapacityTypes = append(slices.Clip(m.CapacityTypes), "spot")
	}
}

// Varied returns a spec without script and side. Twelve consecutive seeds have each combination of mix, capacity types
// (on-demand, spot, both) and boot times once. A quarter of them allow both architectures.
func Varied(seed uint64) Spec {
	capacityTypes := [][]string{{"on-demand"}, {"spot"}, {"on-demand", "spot"}}
	s := Spec{Mix: Constrained, Seed: seed, Boots: lab.BootEven,
		Market: Market{CapacityTypes: capacityTypes[seed%3], Architectures: []string{"amd64"}}}
	if seed%2 == 0 {
		s.Mix = Plain
	}
	if seed/2%2 == 1 {
		s.Boots = lab.BootStragglers
	}
	if seed%4 == 1 {
		s.Market.Architectures = []string{"amd64", "arm64"}
	}
	return s
}

// String returns, for example, "on-demand, amd64".
func (m Market) String() string {
	return strings.Join(m.CapacityTypes, "+") + ", " + strings.Join(m.Architectures, "+")
}

// manifest returns a manifest with the EC2NodeClass and the NodePool of a run.
func (m Market) manifest(nodeRole, cluster string) string {
	return fmt.Sprintf(`
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: %s
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: %s}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: %s}}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [%s]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [%s]}
      - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
      - {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["4"]}
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 10s
    budgets: [{nodes: 20%%}]
`, nodeRole, cluster, cluster, strings.Join(m.Architectures, ", "), strings.Join(m.CapacityTypes, ", "))
}
