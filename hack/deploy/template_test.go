package deploy

import (
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/permissions"
)

const cloudformation = "../../deploy/cloudformation/joiner.yaml"

// joinerStack evaluates the template for a cluster "demo" with additional parameters.
func joinerStack(t *testing.T, parameters map[string]string) *Stack {
	t.Helper()
	s, err := tryStack(t, parameters)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tryStack is like joinerStack, but an error of the evaluation does not fail the test.
func tryStack(t *testing.T, parameters map[string]string) (*Stack, error) {
	t.Helper()
	template, err := ReadTemplate(cloudformation)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"ClusterName": "demo"}
	maps.Copy(all, parameters)
	return NewStack(template, all)
}

// TestTemplatePolicies checks that the policies of a stack equal those of package permissions for the same cluster.
func TestTemplatePolicies(t *testing.T) {
	t.Parallel()
	scope := permissions.Scope{Account: account, Region: "us-east-1", Cluster: "demo", NodeRoles: []string{"NodeRole"}}
	withUID := scope
	withUID.UID = uid
	custom := withUID
	custom.NodeRoles, custom.Parameters = []string{"path/mine", "other"}, []string{"images/mine", "images/yours"}
	withQueue := withUID
	withQueue.Queue = "notices"
	role, parameter := "arn:aws:iam::"+account+":role/", "arn:aws:ssm:us-east-1:"+account+":parameter/"
	for name, c := range map[string]struct {
		parameters map[string]string
		scope      permissions.Scope
	}{
		"nothing set":    {nil, scope},
		"UID":            {map[string]string{"ClusterUID": uid}, withUID},
		"existing queue": {map[string]string{"ClusterUID": uid, "InterruptionQueue": "false", "QueueName": "notices"}, withQueue},
		"lists": {map[string]string{
			"ClusterUID": uid, "NodeRoleArns": role + "path/mine," + role + "other", "ImageParameterArns": parameter +
				"images/mine," + parameter + "images/yours",
		}, custom},
	} {
		s := joinerStack(t, c.parameters)
		policies, err := permissions.Policies(c.scope)
		if err != nil {
			t.Fatal(err)
		}
		for _, policy := range policies {
			want, err := policy.JSON()
			if err != nil {
				t.Fatal(err)
			}
			resource := s.Resources[strings.ToUpper(policy.Name[:1])+policy.Name[1:]+"Policy"]
			if roles, _ := resource.Properties["Roles"].([]any); len(roles) != 1 || roles[0] != "ControllerRole" {
				t.Errorf("%s: policy %s is attached to %v, want ControllerRole", name, policy.Name, roles)
			}
			checkJSON(t, name+": policy "+policy.Name, parseStrings(resource.Properties["PolicyDocument"]), string(want))
		}
	}
}

// TestTemplateParameters checks that each parameter is used and described, and that invalid parameters are rejected.
func TestTemplateParameters(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	irsa := map[string]string{"Identity": "IRSA", "OIDCProvider": "oidc.eks/id/A"}
	fargate := maps.Clone(irsa)
	fargate["FargateSubnetIds"] = "subnet-1,subnet-2"
	names := map[string]string{"NodeRoleName": "n", "QueueName": "q", "ImageParameterArns": "arn", "ClusterUID": uid}
	var smallest *Stack // the last: all optional resources are disabled
	for _, parameters := range []map[string]string{nil, irsa, fargate, names,
		{"NodeRoleArns": "arn:aws:iam::1:role/r", "AccessEntries": "false", "InterruptionQueue": "false"}} {
		smallest = joinerStack(t, parameters)
		maps.Copy(used, smallest.used)
	}
	for name, p := range smallest.template.Parameters {
		if p.Description == "" || p.AllowedPattern != "" && p.Constraint == "" || !used[name] {
			t.Errorf("parameter %s has no description, is unused, or has an AllowedPattern without ConstraintDescription", name)
		}
	}
	for name := range smallest.template.Conditions {
		if !used[name] {
			t.Errorf("condition %s is unused", name)
		}
	}
	for name := range smallest.Resources {
		if strings.HasSuffix(name, "Rule") || strings.HasSuffix(name, "Entry") || strings.HasPrefix(name, "Queue") ||
			name == "InterruptionPolicy" || name == "NodeRole" {
			t.Errorf("%s is created although it is disabled", name)
		}
	}
	for name, c := range map[string]struct {
		parameters map[string]string
		want       string
	}{
		"cluster":     {map[string]string{"ClusterName": "a b"}, "name of an EKS cluster"},
		"UID":         {map[string]string{"ClusterUID": "x"}, "Must be a UID"},
		"IRSA":        {map[string]string{"Identity": "IRSA"}, "set OIDCProvider"},
		"issuer":      {map[string]string{"Identity": "IRSA", "OIDCProvider": "https://oidc.eks/id/A"}, "without https://"},
		"Fargate":     {map[string]string{"FargateSubnetIds": "subnet-1"}, "set Identity=IRSA"},
		"a typo":      {map[string]string{"QueueNames": "q"}, "does not exist"},
		"not allowed": {map[string]string{"Identity": "Pods"}, "must be one of"},
	} {
		if _, err := tryStack(t, c.parameters); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error of the stack is %v, want one that contains %q", name, err, c.want)
		}
	}
}

// TestTemplateLikeModule checks that template and module create the same trust policies, access entries, queue policy
// and profile.
func TestTemplateLikeModule(t *testing.T) {
	t.Parallel()
	const issuer = "oidc.eks.us-east-1.amazonaws.com/id/ABC"
	s := joinerStack(t, map[string]string{"Identity": "IRSA", "OIDCProvider": issuer, "FargateSubnetIds": "subnet-1,subnet-2"})
	p := planJoiner(t, settings{
		"create_fargate_profile": true, "fargate_subnet_ids": []string{"subnet-1", "subnet-2"}, "enable_irsa": true, "enable_pod_identity": false,
		"create_pod_identity_association": false, "irsa_oidc_provider_arn": "arn:aws:iam::" + account + ":oidc-provider/" + issuer,
	})
	for resource, address := range map[string]string{
		"ControllerRole": "aws_iam_role.controller[0]", "NodeRole": "aws_iam_role.node[0]", "FargateExecutionRole": "aws_iam_role.fargate[0]",
	} {
		fromTemplate := normalize(parseStrings(s.Resources[resource].Properties["AssumeRolePolicyDocument"]))
		fromModule := normalize(p.properties(t, address)["assume_role_policy"])
		text, err := json.Marshal(fromModule)
		if err != nil {
			t.Fatal(err)
		}
		checkJSON(t, resource, fromTemplate, string(text))
	}
	defaults := joinerStack(t, nil)
	fromModule, err := json.Marshal(normalize(planJoiner(t, nil).properties(t, "aws_iam_role.controller[0]")["assume_role_policy"]))
	if err != nil {
		t.Fatal(err)
	}
	checkJSON(t, "Pod Identity", normalize(parseStrings(defaults.Resources["ControllerRole"].Properties["AssumeRolePolicyDocument"])), string(fromModule))
	if got := s.Resources["NodeAccessEntry"].Properties; got["Type"] != "EC2_LINUX" ||
		!strings.HasSuffix(got["PrincipalArn"].(string), ":role/NodeRole") {
		t.Errorf("the access entry of nodes is %v, want EC2_LINUX and role NodeRole", got)
	}
	if got := s.Resources["FargateAccessEntry"].Properties; got["Type"] != "FARGATE_LINUX" ||
		!strings.HasSuffix(got["PrincipalArn"].(string), ":role/FargateExecutionRole") {
		t.Errorf("the access entry of Fargate is %v, want FARGATE_LINUX and role FargateExecutionRole", got)
	}
	profile := s.Resources["FargateProfile"].Properties
	// CloudFormation creates the profile after the entry, because a tag of the profile refers to the entry.
	if tags, _ := json.Marshal(profile["Tags"]); !strings.Contains(string(tags), "access-entry/FargateAccessEntry") {
		t.Errorf("the Fargate profile does not depend on the access entry: its tags are %s", tags)
	}
	checkJSON(t, "selectors", profile["Selectors"],
		`[{"Namespace": "kube-system", "Labels": [{"Key": "app.kubernetes.io/name", "Value": "joiner"}]}]`)
	condition := p.properties(t, "aws_sqs_queue_policy.this[0]")["policy"].(map[string]any)["Statement"].([]any)[0].(map[string]any)["Condition"]
	if text, _ := json.Marshal(condition); strings.Count(string(text), "arn:aws:events:") != len(rulesOfStack(t, s)) {
		t.Errorf("the module's queue accepts events of the rules %s, want as many as the template's rules", text)
	}
	queuePolicy, _ := json.Marshal(s.Resources["QueuePolicy"].Properties)
	for _, name := range slices.Sorted(maps.Keys(rulesOfStack(t, s))) {
		if !strings.Contains(string(queuePolicy), ":rule/"+name+`"`) {
			t.Errorf("the template's queue does not accept events of rule %s", name)
		}
	}
}

// normalize returns a policy without Sids, which have no effect in a trust policy. It replaces strings by lists, except
// the Version and the Effect.
func normalize(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range v {
			if name == "Sid" {
				continue
			}
			if text, ok := inner.(string); ok && name != "Version" && name != "Effect" {
				inner = []any{text}
			}
			out[name] = normalize(inner)
		}
		return out
	case []any:
		var out []any
		for _, inner := range v {
			out = append(out, normalize(inner))
		}
		return out
	}
	return v
}

// TestLint runs cfn-lint where it is installed.
func TestLint(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("cfn-lint")
	if err != nil {
		t.Skip("cfn-lint is not installed: pip install cfn-lint")
	}
	out, err := exec.CommandContext(t.Context(), program, "--", cloudformation).CombinedOutput()
	if err != nil {
		t.Errorf("cfn-lint: %v\n%s", err, out)
	}
}
