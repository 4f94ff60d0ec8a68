package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"go.yaml.in/yaml/v3"
)

const examples = "../../deploy/terraform/examples"

// externalOutputs returns the outputs of the external modules that the examples use, by the name of the module block.
func externalOutputs() map[string]cty.Value {
	subnets := cty.ListVal([]cty.Value{cty.StringVal("subnet-1"), cty.StringVal("subnet-2"), cty.StringVal("subnet-3")})
	return map[string]cty.Value{
		"vpc": cty.ObjectVal(map[string]cty.Value{"vpc_id": cty.StringVal("vpc-1"), "private_subnets": subnets}),
		"eks": cty.ObjectVal(map[string]cty.Value{
			"cluster_name":                       cty.StringVal("joiner-example"),
			"cluster_endpoint":                   cty.StringVal("https://demo.eks"),
			"cluster_certificate_authority_data": cty.StringVal("Y2E="),
			"cluster_primary_security_group_id":  cty.StringVal("sg-1"),
			"oidc_provider_arn": cty.StringVal("arn:aws:iam::" + account +
				":oidc-provider/oidc.eks.us-east-1.amazonaws.com/id/ABC"),
		}),
	}
}

func planExample(t *testing.T, name string, s settings) *Plan {
	t.Helper()
	m, err := Read(filepath.Join(examples, name))
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlan(m, Inputs{Variables: s.values(t), Data: awsData(), Modules: externalOutputs()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestManagedNodeGroup(t *testing.T) {
	t.Parallel()
	p := planExample(t, "managed-node-group", settings{"cluster_uid": uid})
	for _, address := range []string{"aws_eks_pod_identity_association.controller[0]", "aws_eks_access_entry.node[0]",
		"helm_release.joiner[0]"} {
		if !hasResource(p, "module.joiner."+address) {
			t.Errorf("the plan has no %s", address)
		}
	}
	if hasResource(p, "module.joiner.aws_eks_fargate_profile.this[0]") {
		t.Error("the plan has a Fargate profile, want none")
	}
	checkManifests(t, p)
}

// TestFargateOnly checks the example fargate-only. The cluster must authorize the Fargate profile's pod execution role.
// The profile must select Joiner and CoreDNS: both must run before the first node exists.
func TestFargateOnly(t *testing.T) {
	t.Parallel()
	p := planExample(t, "fargate-only", nil)
	entry := p.properties(t, "module.joiner.aws_eks_access_entry.fargate[0]")
	profile := p.properties(t, "module.joiner.aws_eks_fargate_profile.this[0]")
	if entry["type"] != "FARGATE_LINUX" || entry["principal_arn"] != profile["pod_execution_role_arn"] ||
		entry["cluster_name"] != "joiner-example" {
		t.Errorf("access entry %v, profile %v; want a Fargate entry for the profile's role", entry, profile)
	}
	checkJSON(t, "selectors", profile["selector"], `[{"namespace": "kube-system", "labels": {"app.kubernetes.io/name": "joiner"}},
		{"namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}}]`)
	if hasResource(p, "module.joiner.aws_eks_pod_identity_association.controller[0]") {
		t.Error("the plan has a Pod Identity association, which has no effect on Fargate")
	}
	values := p.properties(t, "module.joiner.helm_release.joiner[0]")["values"].([]any)[0].(string)
	if !strings.Contains(values, "eks.amazonaws.com/role-arn") || !strings.Contains(values, `"dnsPolicy": "Default"`) {
		t.Errorf("want the role's annotation and dnsPolicy Default in the chart's values:\n%s", values)
	}
	if !slices.Contains(p.DependsOn["aws_eks_addon.coredns"], "module.joiner") {
		t.Error("the add-on CoreDNS does not depend on the module with the Fargate profile")
	}
	checkManifests(t, p)
}

// checkManifests checks that an example's output manifests has an EC2NodeClass and a NodePool, and that the
// EC2NodeClass has the role that the cluster authorizes.
func checkManifests(t *testing.T, p *Plan) {
	t.Helper()
	role := p.properties(t, "module.joiner.aws_iam_role.node[0]")
	if entry := p.properties(t, "module.joiner.aws_eks_access_entry.node[0]"); entry["principal_arn"] != role["arn"] ||
		entry["type"] != "EC2_LINUX" {
		t.Errorf("the access entry of nodes is %v, want type EC2_LINUX and principal %v", entry, role["arn"])
	}
	kinds := []string{}
	for part := range strings.SplitSeq(p.Outputs["manifests"].AsString(), "---\n") {
		var object struct {
			Kind string
			Spec struct{ Role string }
		}
		if err := yaml.Unmarshal([]byte(part), &object); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, object.Kind)
		if object.Kind == "EC2NodeClass" && object.Spec.Role != role["name"] {
			t.Errorf("the EC2NodeClass has role %q, but the cluster authorizes %v", object.Spec.Role, role["name"])
		}
	}
	if !slices.Equal(kinds, []string{"EC2NodeClass", "NodePool"}) {
		t.Errorf("the manifests are %v, want an EC2NodeClass and a NodePool", kinds)
	}
}

// TestFromKarpenter checks that each step of the migration keeps the resources that Karpenter uses.
func TestFromKarpenter(t *testing.T) {
	t.Parallel()
	variables := settings{"cluster_name": "demo", "cluster_endpoint": "https://demo.eks", "cluster_certificate_authority_data": "Y2E="}
	before := planExample(t, "from-karpenter", variables)
	if hasResource(before, "module.karpenter.helm_release.joiner[0]") {
		t.Error("Joiner is installed in the step in which Karpenter is still installed")
	}
	association := before.properties(t, "module.karpenter.aws_eks_pod_identity_association.controller[0]")
	if association["service_account"] != "karpenter" || association["namespace"] != "kube-system" {
		t.Errorf("the Pod Identity association is %v, want service account karpenter in kube-system", association)
	}
	variables["install"] = true
	after := planExample(t, "from-karpenter", variables)
	values := after.properties(t, "module.karpenter.helm_release.joiner[0]")["values"].([]any)
	if len(values) != 2 || !strings.Contains(values[0].(string), `"name": "karpenter"`) ||
		!strings.Contains(values[1].(string), `"create": false`) {
		t.Errorf("the chart's values are %v, want Karpenter's service account, which the chart does not create", values)
	}
	for address, want := range before.Resources {
		if got, ok := after.Resources[address]; !ok || !got.RawEquals(want) {
			t.Errorf("the installation of Joiner changes %s", address)
		}
	}
}

// TestExamplesAreListed checks that the README lists exactly the examples.
func TestExamplesAreListed(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join(examples, "../README.md"))
	if err != nil {
		t.Fatal(err)
	}
	folders, err := os.ReadDir(examples)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if !strings.Contains(string(readme), "](examples/"+f.Name()+")") {
			t.Errorf("the README does not list %s", f.Name())
		}
	}
	if got := strings.Count(string(readme), "](examples/"); got != len(folders) {
		t.Errorf("the README lists %d examples, there are %d", got, len(folders))
	}
}
