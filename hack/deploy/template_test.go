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

// stacked evaluates the template for a cluster "demo".
func stacked(t *testing.T, more map[string]string) *Stack {
	t.Helper()
	s, err := tryStack(t, more)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tryStack(t *testing.T, more map[string]string) (*Stack, error) {
	t.Helper()
	template, err := ReadTemplate(cloudformation)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"ClusterName": "demo"}
	maps.Copy(all, more)
	return NewStack(template, all)
}

// TestTemplatePolicies checks that the policies of a stack equal those of package permissions for the same cluster.
func TestTemplatePolicies(t *testing.T) {
	t.Parallel()
	scope := permissions.Scope{Account: account, Region: "us-east-1", Cluster: "demo", NodeRoles: []string{"NodeRole"}}
	known := scope
	known.UID = uid
	own := known
	own.NodeRoles, own.Parameters = []string{"path/mine", "other"}, []string{"images/mine", "images/yours"}
	others := known
	others.Queue = "notices"
	role, parameter := "arn:aws:iam::"+account+":role/", "arn:aws:ssm:us-east-1:"+account+":parameter/"
	for name, c := range map[string]struct {
		set   map[string]string
		scope permissions.Scope
	}{
		"nothing set":           {nil, scope},
		"UID":                   {map[string]string{"ClusterUID": uid}, known},
		"a queue that is there": {map[string]string{"ClusterUID": uid, "InterruptionQueue": "false", "QueueName": "notices"}, others},
		"lists": {map[string]string{
			"ClusterUID": uid, "NodeRoleArns": role + "path/mine," + role + "other", "ImageParameterArns": parameter +
				"images/mine," + parameter + "images/yours",
		}, own},
	} {
		s := stacked(t, c.set)
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
				t.Errorf("%s: policy %s is attached to %v", name, policy.Name, roles)
			}
			same(t, name+": policy "+policy.Name, unfold(resource.Properties["PolicyDocument"]), string(want))
		}
	}
}

// TestTemplateParameters checks that every parameter is used, has a description, and is checked.
func TestTemplateParameters(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	irsa := map[string]string{"Identity": "IRSA", "OIDCProvider": "oidc.eks/id/A"}
	fargate := maps.Clone(irsa)
	fargate["FargateSubnetIds"] = "subnet-1,subnet-2"
	names := map[string]string{"NodeRoleName": "n", "QueueName": "q", "ImageParameterArns": "arn", "ClusterUID": uid}
	var last *Stack
	for _, set := range []map[string]string{nil, irsa, fargate, names,
		{"NodeRoleArns": "arn:aws:iam::1:role/r", "AccessEntries": "false", "InterruptionQueue": "false"}} {
		last = stacked(t, set)
		maps.Copy(used, last.used)
	}
	for name, p := range last.t.Parameters {
		if p.Description == "" || p.AllowedPattern != "" && p.Constraint == "" || !used[name] {
			t.Errorf("parameter %s has no description, or is unused", name)
		}
	}
	for name := range last.t.Conditions {
		if !used[name] {
			t.Errorf("condition %s is unused", name)
		}
	}
	for name := range last.Resources {
		if strings.HasSuffix(name, "Rule") || strings.HasSuffix(name, "Entry") || strings.HasPrefix(name, "Queue") ||
			name == "InterruptionPolicy" || name == "NodeRole" {
			t.Errorf("%s is created although it is disabled", name)
		}
	}
	for name, c := range map[string]struct {
		set  map[string]string
		want string
	}{
		"cluster":     {map[string]string{"ClusterName": "a b"}, "name of an EKS cluster"},
		"UID":         {map[string]string{"ClusterUID": "x"}, "Must be a UID"},
		"IRSA":        {map[string]string{"Identity": "IRSA"}, "set OIDCProvider"},
		"issuer":      {map[string]string{"Identity": "IRSA", "OIDCProvider": "https://oidc.eks/id/A"}, "without https://"},
		"Fargate":     {map[string]string{"FargateSubnetIds": "subnet-1"}, "set Identity=IRSA"},
		"a typo":      {map[string]string{"QueueNames": "q"}, "does not exist"},
		"not allowed": {map[string]string{"Identity": "Pods"}, "must be one of"},
	} {
		if _, err := tryStack(t, c.set); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestTemplateLikeModule checks that template and module create the same trust policies, access entries, queue policy
// and profile.
func TestTemplateLikeModule(t *testing.T) {
	t.Parallel()
	const issuer = "oidc.eks.us-east-1.amazonaws.com/id/ABC"
	s := stacked(t, map[string]string{"Identity": "IRSA", "OIDCProvider": issuer, "FargateSubnetIds": "subnet-1,subnet-2"})
	p := planned(t, settings{
		"create_fargate_profile": true, "fargate_subnet_ids": []string{"subnet-1", "subnet-2"}, "enable_irsa": true, "enable_pod_identity": false,
		"create_pod_identity_association": false, "irsa_oidc_provider_arn": "arn:aws:iam::" + account + ":oidc-provider/" + issuer,
	})
	for resource, address := range map[string]string{
		"ControllerRole": "aws_iam_role.controller[0]", "NodeRole": "aws_iam_role.node[0]", "FargateExecutionRole": "aws_iam_role.fargate[0]",
	} {
		ours := bare(unfold(s.Resources[resource].Properties["AssumeRolePolicyDocument"]))
		theirs := bare(p.properties(t, address)["assume_role_policy"])
		text, err := json.Marshal(theirs)
		if err != nil {
			t.Fatal(err)
		}
		same(t, resource, ours, string(text))
	}
	pods := stacked(t, nil)
	theirs, err := json.Marshal(bare(planned(t, nil).properties(t, "aws_iam_role.controller[0]")["assume_role_policy"]))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "Pod Identity", bare(unfold(pods.Resources["ControllerRole"].Properties["AssumeRolePolicyDocument"])), string(theirs))
	if got := s.Resources["NodeAccessEntry"].Properties; got["Type"] != "EC2_LINUX" ||
		!strings.HasSuffix(got["PrincipalArn"].(string), ":role/NodeRole") {
		t.Errorf("entry of nodes: %v", got)
	}
	if got := s.Resources["FargateAccessEntry"].Properties; got["Type"] != "FARGATE_LINUX" ||
		!strings.HasSuffix(got["PrincipalArn"].(string), ":role/FargateExecutionRole") {
		t.Errorf("entry of Fargate: %v", got)
	}
	profile := s.Resources["FargateProfile"].Properties
	if tags, _ := json.Marshal(profile["Tags"]); !strings.Contains(string(tags), "access-entry/FargateAccessEntry") {
		t.Errorf("the profile does not wait for the entry: %s", tags)
	}
	same(t, "selectors", profile["Selectors"],
		`[{"Namespace": "kube-system", "Labels": [{"Key": "app.kubernetes.io/name", "Value": "joiner"}]}]`)
	arns := p.properties(t, "aws_sqs_queue_policy.this[0]")["policy"].(map[string]any)["Statement"].([]any)[0].(map[string]any)["Condition"]
	if text, _ := json.Marshal(arns); strings.Count(string(text), "arn:aws:events:") != len(rulesOfStack(t, s)) {
		t.Errorf("the module's queue takes events of %s", text)
	}
	taken, _ := json.Marshal(s.Resources["QueuePolicy"].Properties)
	for _, name := range slices.Sorted(maps.Keys(rulesOfStack(t, s))) {
		if !strings.Contains(string(taken), ":rule/"+name+`"`) {
			t.Errorf("the queue does not accept events of rule %s", name)
		}
	}
}

// bare returns a policy without Sids, which have no effect in a trust policy, and with single items as lists.
func bare(v any) any {
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
			out[name] = bare(inner)
		}
		return out
	case []any:
		var out []any
		for _, inner := range v {
			out = append(out, bare(inner))
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
