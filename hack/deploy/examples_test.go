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

// others are the outputs of external modules that the examples use.
func others() map[string]cty.Value {
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

func example(t *testing.T, name string, s settings) *Plan {
	t.Helper()
	m, err := Read(filepath.Join(examples, name))
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlan(m, Inputs{Variables: s.values(t), Data: aws(), Modules: others()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestManagedNodeGroup(t *testing.T) {
	t.Parallel()
	p := example(t, "managed-node-group", settings{"cluster_uid": uid})
	for _, address := range []string{"aws_eks_pod_identity_association.controller[0]", "aws_eks_access_entry.node[0]",
		"helm_release.joiner[0]"} {
		if !has(p, "module.joiner."+address) {
			t.Errorf("the plan has no %s", address)
		}
	}
	if has(p, "module.joiner.aws_eks_fargate_profile.this[0]") {
		t.Error("the plan has a Fargate profile")
	}
	checkManifests(t, p)
}

// TestFargateOnly tests the part of case fargate before any pod exists. The execution role is authorized before the profile is created, and
// the profile selects Joiner and CoreDNS, which run before the first node.
func TestFargateOnly(t *testing.T) {
	t.Parallel()
	p := example(t, "fargate-only", nil)
	entry := p.properties(t, "module.joiner.aws_eks_access_entry.fargate[0]")
	profile := p.properties(t, "module.joiner.aws_eks_fargate_profile.this[0]")
	if entry["type"] != "FARGATE_LINUX" || entry["principal_arn"] != profile["pod_execution_role_arn"] ||
		entry["cluster_name"] != "joiner-example" {
		t.Errorf("access entry %v, profile %v", entry, profile)
	}
	same(t, "selectors", profile["selector"], `[{"namespace": "kube-system", "labels": {"app.kubernetes.io/name": "joiner"}},
		{"namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}}]`)
	if has(p, "module.joiner.aws_eks_pod_identity_association.controller[0]") {
		t.Error("Fargate has no Pod Identity")
	}
	values := p.properties(t, "module.joiner.helm_release.joiner[0]")["values"].([]any)[0].(string)
	if !strings.Contains(values, "eks.amazonaws.com/role-arn") || !strings.Contains(values, `"dnsPolicy": "Default"`) {
		t.Errorf("the chart's values are\n%s", values)
	}
	if !slices.Contains(p.After["aws_eks_addon.coredns"], "module.joiner") {
		t.Error("CoreDNS does not wait for the profile")
	}
	checkManifests(t, p)
}

// checkManifests: the EC2NodeClass of an example names the role that the cluster authorizes.
func checkManifests(t *testing.T, p *Plan) {
	t.Helper()
	role := p.properties(t, "module.joiner.aws_iam_role.node[0]")
	if entry := p.properties(t, "module.joiner.aws_eks_access_entry.node[0]"); entry["principal_arn"] != role["arn"] ||
		entry["type"] != "EC2_LINUX" {
		t.Errorf("the entry of nodes is %v, for role %v", entry, role["arn"])
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
			t.Errorf("the EC2NodeClass has role %q, the cluster knows %v", object.Spec.Role, role["name"])
		}
	}
	if !slices.Equal(kinds, []string{"EC2NodeClass", "NodePool"}) {
		t.Errorf("the manifests are %v", kinds)
	}
}

// TestFromKarpenter checks that in every step of the migration, the resources that Karpenter uses stay.
func TestFromKarpenter(t *testing.T) {
	t.Parallel()
	set := settings{"cluster_name": "demo", "cluster_endpoint": "https://demo.eks", "cluster_certificate_authority_data": "Y2E="}
	before := example(t, "from-karpenter", set)
	if has(before, "module.karpenter.helm_release.joiner[0]") {
		t.Error("Joiner is installed while Karpenter still is")
	}
	association := before.properties(t, "module.karpenter.aws_eks_pod_identity_association.controller[0]")
	if association["service_account"] != "karpenter" || association["namespace"] != "kube-system" {
		t.Errorf("the association would be replaced: %v", association)
	}
	set["install"] = true
	after := example(t, "from-karpenter", set)
	values := after.properties(t, "module.karpenter.helm_release.joiner[0]")["values"].([]any)
	if len(values) != 2 || !strings.Contains(values[0].(string), `"name": "karpenter"`) ||
		!strings.Contains(values[1].(string), `"create": false`) {
		t.Errorf("the chart's values are %v", values)
	}
	for address, was := range before.Resources {
		if now, ok := after.Resources[address]; !ok || !now.RawEquals(was) {
			t.Errorf("installing changes %s", address)
		}
	}
}

// TestExamplesAreListed checks that the table lists every example, and no others.
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
