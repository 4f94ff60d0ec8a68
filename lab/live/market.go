package live

import (
	"fmt"
	"strings"
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
