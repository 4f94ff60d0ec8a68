package deploy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/joiner-sh/joiner/internal/permissions"
)

const (
	joiner = "../../deploy/terraform/joiner"
	uid    = "11111111-2222-3333-4444-555555555555"
)

func awsData() map[string]cty.Value {
	object := func(pairs ...string) cty.Value {
		m := map[string]cty.Value{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = cty.StringVal(pairs[i+1])
		}
		return cty.ObjectVal(m)
	}
	return map[string]cty.Value{
		"aws_caller_identity": object("account_id", account),
		"aws_partition":       object("partition", "aws", "dns_suffix", "amazonaws.com"),
		"aws_region":          object("region", "us-east-1"),
	}
}

// settings are the variables of a module as Go values that can be encoded as JSON.
type settings map[string]any

func (s settings) values(t *testing.T) map[string]cty.Value {
	t.Helper()
	out := map[string]cty.Value{}
	for name, v := range s {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		typ, err := ctyjson.ImpliedType(text)
		if err != nil {
			t.Fatal(err)
		}
		if out[name], err = ctyjson.Unmarshal(text, typ); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// planJoiner plans the module joiner for a cluster "demo" with additional variables.
func planJoiner(t *testing.T, s settings) *Plan {
	t.Helper()
	p, err := tryPlan(t, s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// tryPlan is like planJoiner, but an error of the plan does not fail the test.
func tryPlan(t *testing.T, s settings) (*Plan, error) {
	t.Helper()
	m, err := Read(joiner)
	if err != nil {
		t.Fatal(err)
	}
	all := settings{"cluster_name": "demo"}
	maps.Copy(all, s)
	return NewPlan(m, Inputs{Variables: all.values(t), Data: awsData()})
}

// properties returns the properties of a resource, as jsonValue converts them.
func (p *Plan) properties(t *testing.T, address string) map[string]any {
	t.Helper()
	v, ok := p.Resources[address]
	if !ok {
		t.Fatalf("the plan has no %s: %v", address, slices.Sorted(maps.Keys(p.Resources)))
	}
	return jsonValue(t, v).(map[string]any)
}

// jsonValue converts a value to maps, lists and scalars. It parses strings that contain JSON objects.
func jsonValue(t *testing.T, v cty.Value) any {
	t.Helper()
	text, err := ctyjson.SimpleJSONValue{Value: v}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return parseStrings(out)
}

func parseStrings(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			v[name] = parseStrings(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = parseStrings(inner)
		}
	case string:
		var inner map[string]any
		if strings.HasPrefix(v, "{") && json.Unmarshal([]byte(v), &inner) == nil {
			return parseStrings(inner)
		}
	}
	return v
}

func checkJSON(t *testing.T, what string, got any, want string) {
	t.Helper()
	var wanted any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	g, _ := json.MarshalIndent(got, "", "  ")
	w, _ := json.MarshalIndent(wanted, "", "  ")
	if string(g) != string(w) {
		t.Errorf("%s is\n%s\nwant\n%s", what, g, w)
	}
}

// TestPolicies checks that the policies of a plan equal those of package permissions for the same cluster.
func TestPolicies(t *testing.T) {
	t.Parallel()
	scope := permissions.Scope{Account: account, Region: "us-east-1", Cluster: "demo",
		NodeRoles: []string{"Karpenter-demo-2026"}, Queue: "Karpenter-demo"} // newResource adds 2026 to a prefix
	withUID := scope
	withUID.UID = uid
	custom := withUID
	custom.NodeRoles, custom.Queue, custom.Parameters = []string{"path/mine", "other"}, "notices", []string{"images/mine"}
	for name, c := range map[string]struct {
		variables settings
		scope     permissions.Scope
	}{
		"nothing set": {nil, scope},
		"UID":         {settings{"cluster_uid": uid}, withUID},
		"roles, queue, parameters": {settings{
			"cluster_uid": uid, "create_node_iam_role": false, "node_iam_role_arn": "arn:aws:iam::" + account +
				":role/path/mine", "queue_name": "notices",
			"additional_node_iam_role_arns": []string{"arn:aws:iam::" + account + ":role/other"},
			"ami_id_ssm_parameter_arns":     []string{"arn:aws:ssm:us-east-1:" + account + ":parameter/images/mine"},
		}, custom},
	} {
		p := planJoiner(t, c.variables)
		policies, err := permissions.Policies(c.scope)
		if err != nil {
			t.Fatal(err)
		}
		for _, policy := range policies {
			want, err := policy.JSON()
			if err != nil {
				t.Fatal(err)
			}
			checkJSON(t, name+": policy "+policy.Name, p.properties(t, `aws_iam_policy.controller["`+policy.Name+`"]`)["policy"], string(want))
			attachment := p.properties(t, `aws_iam_role_policy_attachment.controller["`+policy.Name+`"]`)
			if attachment["role"] != "KarpenterController-2026" || !strings.Contains(attachment["policy_arn"].(string), policy.Name) {
				t.Errorf("%s: policy %s is attached by %v, want role KarpenterController-2026", name, policy.Name, attachment)
			}
		}
	}
	if p := planJoiner(t, settings{"enable_spot_termination": false}); len(p.Resources) == 0 ||
		hasResource(p, `aws_iam_policy.controller["interruption"]`) {
		t.Error("without spot termination, the plan is empty or has a policy for the queue")
	}
}

// TestTrust checks the trust policy of the controller's role with Pod Identity and with IRSA.
func TestTrust(t *testing.T) {
	t.Parallel()
	const provider = "arn:aws:iam::" + account + ":oidc-provider/oidc.eks.us-east-1.amazonaws.com/id/ABC"
	trust := func(s settings) any {
		return planJoiner(t, s).properties(t, "aws_iam_role.controller[0]")["assume_role_policy"]
	}
	checkJSON(t, "Pod Identity", trust(nil), `{"Version": "2012-10-17", "Statement": [{
		"Sid": "PodIdentity", "Effect": "Allow", "Action": ["sts:AssumeRole", "sts:TagSession"], "Principal": {"Service": "pods.eks.amazonaws.com"},
		"Condition": {"StringEquals": {
			"aws:RequestTag/eks-cluster-arn": "arn:aws:eks:us-east-1:111122223333:cluster/demo",
			"aws:RequestTag/kubernetes-namespace": "kube-system", "aws:RequestTag/kubernetes-service-account": "joiner"}}}]}`)
	irsa := settings{"enable_pod_identity": false, "create_pod_identity_association": false, "enable_irsa": true,
		"irsa_oidc_provider_arn": provider}
	checkJSON(t, "IRSA", trust(irsa), `{"Version": "2012-10-17", "Statement": [{
		"Sid": "ServiceAccount", "Effect": "Allow", "Action": ["sts:AssumeRoleWithWebIdentity"], "Principal": {"Federated": "`+provider+`"},
		"Condition": {"StringEquals": {
			"oidc.eks.us-east-1.amazonaws.com/id/ABC:aud": "sts.amazonaws.com",
			"oidc.eks.us-east-1.amazonaws.com/id/ABC:sub": ["system:serviceaccount:kube-system:joiner"]}}}]}`)
	values := jsonValue(t, planJoiner(t, irsa).Outputs["chart_values"]).(string)
	for _, want := range []string{`"eks.amazonaws.com/role-arn": "arn:aws:iam::` + account +
		`:role/KarpenterController-2026"`, `"AWS_REGION"`, `"dnsPolicy": "Default"`} {
		if !strings.Contains(values, want) {
			t.Errorf("the chart's values lack %s:\n%s", want, values)
		}
	}
}

// TestFargate checks that pods of the Fargate profile can run: the pod execution role is authorized before the profile
// is created.
func TestFargate(t *testing.T) {
	t.Parallel()
	fargate := settings{
		"create_fargate_profile": true, "fargate_subnet_ids": []string{"subnet-1", "subnet-2"},
		"enable_irsa": true, "create_pod_identity_association": false,
		"irsa_oidc_provider_arn": "arn:aws:iam::" + account + ":oidc-provider/issuer", "create_helm_release": true,
	}
	p := planJoiner(t, fargate)
	role := p.properties(t, "aws_iam_role.fargate[0]")
	checkJSON(t, "trust", role["assume_role_policy"], `{"Version": "2012-10-17", "Statement": [{"Sid": "FargatePods", "Effect": "Allow", "Action": "sts:AssumeRole",
		"Principal": {"Service": "eks-fargate-pods.amazonaws.com"},
		"Condition": {"ArnLike": {"aws:SourceArn": "arn:aws:eks:us-east-1:111122223333:fargateprofile/demo/*"}}}]}`)
	entry, profile := p.properties(t, "aws_eks_access_entry.fargate[0]"), p.properties(t, "aws_eks_fargate_profile.this[0]")
	if entry["type"] != "FARGATE_LINUX" || entry["principal_arn"] != role["arn"] || profile["pod_execution_role_arn"] != role["arn"] {
		t.Errorf("want the role %v in a FARGATE_LINUX entry and in the profile, got %v and %v", role["arn"], entry, profile)
	}
	if role["arn"] == p.properties(t, "aws_iam_role.node[0]")["arn"] {
		t.Error("the Fargate profile has the role of the nodes, want its own role")
	}
	checkJSON(t, "selectors", profile["selector"], `[{"namespace": "kube-system", "labels": {"app.kubernetes.io/name": "joiner"}}]`)
	if !slices.Contains(p.DependsOn["aws_eks_fargate_profile.this"], "aws_eks_access_entry.fargate") {
		t.Error("the Fargate profile does not depend on the access entry")
	}
	if !slices.Contains(p.DependsOn["helm_release.joiner"], "aws_eks_fargate_profile.this") {
		t.Error("the Helm release does not depend on the Fargate profile")
	}
	attachment := p.properties(t, "aws_iam_role_policy_attachment.fargate[0]")
	if attachment["role"] != role["name"] || attachment["policy_arn"] != "arn:aws:iam::aws:policy/AmazonEKSFargatePodExecutionRolePolicy" {
		t.Errorf("the role's attachment is %v, want the policy for Fargate pod execution", attachment)
	}
	for _, item := range jsonValue(t, p.Outputs["aws_auth_roles"]).([]any) {
		if row := item.(map[string]any); strings.HasSuffix(row["rolearn"].(string), "/"+role["name"].(string)) {
			checkJSON(t, "the row of aws-auth", []any{row["username"], row["groups"]},
				`["system:node:{{SessionName}}", ["system:bootstrappers", "system:nodes", "system:node-proxier"]]`)
			return
		}
	}
	t.Error("aws_auth_roles has no row for Fargate")
}

// TestFargateRejects checks that settings that do not work on Fargate are rejected before anything is created.
func TestFargateRejects(t *testing.T) {
	t.Parallel()
	fargate := settings{
		"create_fargate_profile": true, "fargate_subnet_ids": []string{"subnet-1", "subnet-2"},
		"enable_irsa": true, "create_pod_identity_association": false,
		"irsa_oidc_provider_arn": "arn:aws:iam::" + account + ":oidc-provider/issuer", "create_helm_release": true,
	}
	for name, c := range map[string]struct {
		change settings
		want   string
	}{
		"Pod Identity": {settings{"create_pod_identity_association": true}, "Pod Identity does not work on Fargate"},
		"no IRSA":      {settings{"enable_irsa": false}, "Pod Identity does not work on Fargate"},
		"no provider":  {settings{"irsa_oidc_provider_arn": ""}, "irsa_oidc_provider_arn must be"},
		"no subnets":   {settings{"fargate_subnet_ids": []string{}}, "fargate_subnet_ids"},
		"no role":      {settings{"create_fargate_iam_role": false, "create_fargate_access_entry": false}, "set fargate_iam_role_arn"},
	} {
		all := maps.Clone(fargate)
		maps.Copy(all, c.change)
		if _, err := tryPlan(t, all); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error of the plan is %v, want one that contains %q", name, err, c.want)
		}
	}
}

// TestReplacesKarpenterModule checks that the module has the variables, outputs and resources of Karpenter's submodule,
// with the same addresses and names. Then a user only has to change the source of the module.
func TestReplacesKarpenterModule(t *testing.T) {
	t.Parallel()
	p := planJoiner(t, nil)
	for address, wanted := range map[string]map[string]string{
		"aws_iam_role.controller[0]":   {"name_prefix": "KarpenterController-"},
		"aws_iam_role.node[0]":         {"name_prefix": "Karpenter-demo-"},
		"aws_sqs_queue.this[0]":        {"name": "Karpenter-demo"},
		"aws_sqs_queue_policy.this[0]": {},
		"aws_eks_access_entry.node[0]": {"type": "EC2_LINUX", "cluster_name": "demo"},
		`aws_iam_role_policy_attachment.node["AmazonEKSWorkerNodePolicy"]`:          {"policy_arn": "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"},
		`aws_iam_role_policy_attachment.node["AmazonEC2ContainerRegistryPullOnly"]`: {"policy_arn": "arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly"},
		`aws_iam_role_policy_attachment.node["AmazonEKS_CNI_Policy"]`:               {"policy_arn": "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy"},
		`aws_cloudwatch_event_rule.this["health_event"]`:                            {"name_prefix": "KarpenterHealthEvent-"},
		`aws_cloudwatch_event_rule.this["spot_interrupt"]`:                          {"name_prefix": "KarpenterSpotInterrupt-"},
		`aws_cloudwatch_event_rule.this["instance_rebalance"]`:                      {"name_prefix": "KarpenterInstanceRebalance-"},
		`aws_cloudwatch_event_rule.this["instance_state_change"]`:                   {"name_prefix": "KarpenterInstanceStateChange-"},
		`aws_cloudwatch_event_target.this["spot_interrupt"]`:                        {"target_id": "KarpenterInterruptionQueueTarget"},
		"aws_eks_pod_identity_association.controller[0]":                            {"cluster_name": "demo", "namespace": "kube-system"},
	} {
		got := p.properties(t, address)
		for property, want := range wanted {
			if got[property] != want {
				t.Errorf("%s: %s is %v, want %s: Terraform would replace the resource", address, property, got[property], want)
			}
		}
	}
	if p.Moved["aws_eks_pod_identity_association.karpenter"] != "aws_eks_pod_identity_association.controller" {
		t.Errorf("the moved blocks are %v, want one from Karpenter's address of the Pod Identity association", p.Moved)
	}
	m, err := Read(joiner)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(`access_entry_type ami_id_ssm_parameter_arns cluster_ip_family cluster_name create create_access_entry create_iam_role
		create_instance_profile create_node_iam_role create_pod_identity_association enable_irsa enable_pod_identity enable_spot_termination iam_policy_description
		iam_policy_name iam_policy_path iam_policy_use_name_prefix iam_role_description iam_role_max_session_duration iam_role_name iam_role_path
		iam_role_permissions_boundary_arn iam_role_policies iam_role_tags iam_role_use_name_prefix irsa_assume_role_condition_test
		irsa_namespace_service_accounts irsa_oidc_provider_arn namespace node_iam_role_additional_policies node_iam_role_arn node_iam_role_attach_cni_policy
		node_iam_role_description node_iam_role_max_session_duration node_iam_role_name node_iam_role_path node_iam_role_permissions_boundary
		node_iam_role_tags node_iam_role_use_name_prefix queue_kms_data_key_reuse_period_seconds queue_kms_master_key_id queue_managed_sse_enabled
		queue_name region rule_name_prefix service_account tags`) {
		if m.Variables[name] == nil {
			t.Errorf("the module has no variable %s, which Karpenter's submodule has", name)
		}
	}
	for _, name := range strings.Fields(`event_rules iam_role_arn iam_role_name iam_role_unique_id instance_profile_arn instance_profile_id instance_profile_name
		instance_profile_unique namespace node_access_entry_arn node_iam_role_arn node_iam_role_name node_iam_role_unique_id queue_arn queue_name queue_url
		service_account`) {
		if m.Outputs[name] == nil {
			t.Errorf("the module has no output %s, which Karpenter's submodule has", name)
		}
	}
}

// TestSettings checks that disabled resources are not created, and invalid values are rejected with the fix.
func TestSettings(t *testing.T) {
	t.Parallel()
	if p := planJoiner(t, settings{"create": false}); len(p.Resources) > 0 {
		t.Errorf("create = false creates %v", slices.Sorted(maps.Keys(p.Resources)))
	}
	p := planJoiner(t, settings{"create_access_entry": false, "node_iam_role_path": "/nodes/",
		"access_entry_type": "EC2_WINDOWS", "cluster_ip_family": "ipv6"})
	checkJSON(t, "aws_auth_roles", jsonValue(t, p.Outputs["aws_auth_roles"]), `[{"groups": ["system:bootstrappers", "system:nodes", "eks:kube-proxy-windows"],
		"rolearn": "arn:aws:iam::111122223333:role/Karpenter-demo-2026", "username": "system:node:{{EC2PrivateDNSName}}"}]`)
	if hasResource(p, "aws_eks_access_entry.node[0]") || !hasResource(p, `aws_iam_role_policy_attachment.node["AmazonEKS_CNI_IPv6_Policy"]`) {
		t.Error("the plan has an access entry for nodes, or lacks the CNI policy for IPv6")
	}
	profile := settings{"create_instance_profile": true, "create_node_iam_role": false, "node_iam_role_arn": "arn:aws:iam::1:role/a/mine"}
	if got := planJoiner(t, profile).properties(t, "aws_iam_instance_profile.this[0]")["role"]; got != "mine" {
		t.Errorf("the instance profile has role %v, want mine", got)
	}
	for name, c := range map[string]struct {
		variables settings
		want      string
	}{
		"cluster name": {settings{"cluster_name": "a b"}, "1 to 100 letters"},
		"UID":          {settings{"cluster_uid": "demo"}, "kubectl get namespace kube-system"},
		"IP family":    {settings{"cluster_ip_family": "IPv4"}, "ipv4 or ipv6"},
		"entry type":   {settings{"access_entry_type": "FARGATE_LINUX"}, "create_fargate_access_entry"},
		"node role":    {settings{"create_node_iam_role": false, "create_access_entry": false}, "set node_iam_role_arn"},
		"no trust":     {settings{"enable_pod_identity": false, "create_pod_identity_association": false}, "No pod could assume"},
		"unused association": {settings{"enable_pod_identity": false, "enable_irsa": true,
			"irsa_oidc_provider_arn": "arn:aws:iam::1:oidc-provider/x"}, "has no effect"},
		"misspelled variable": {settings{"enable_spot_terminations": true}, `no variable "enable_spot_terminations"`},
	} {
		if _, err := tryPlan(t, c.variables); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error of the plan is %v, want one with %q", name, err, c.want)
		}
	}
}

func hasResource(p *Plan, address string) bool {
	_, ok := p.Resources[address]
	return ok
}
