package permissions

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
)

var rewrite = flag.Bool("rewrite", false, "write the policies, templates, guide and RBAC rules of deploy and docs again")

// folder has the policies as files, for users without the joiner command.
const folder = "../../deploy/iam"

// placeholders is the scope of the files in folder: users replace its variables with envsubst.
var placeholders = Scope{Partition: "${AWS_PARTITION}", Account: "${AWS_ACCOUNT_ID}", Region: "${AWS_REGION}", Cluster: "${CLUSTER_NAME}"}

// demo is a scope with a UID.
var demo = Scope{Account: "111122223333", Region: "us-east-1", Cluster: "demo", UID: "11111111-2222-3333-4444-555555555555"}

func policiesOf(t *testing.T, s Scope) []Policy {
	t.Helper()
	all, err := Policies(s)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestFiles compares the files in deploy/iam, and the table in their README, with the policies.
func TestFiles(t *testing.T) {
	var table strings.Builder
	doctor, err := Doctor(placeholders)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range append(policiesOf(t, placeholders), doctor...) {
		text, err := p.JSON()
		if err != nil {
			t.Fatal(err)
		}
		compare(t, filepath.Join(folder, p.Name+".json"), string(text))
		for _, s := range p.Statements {
			table.WriteString("| `" + p.Name + ".json` | `" + s.Sid + "` | " + s.Why + " |\n")
		}
	}
	// The policies of deploy/iam have no UID, so these statements come from demo.
	for _, s := range policiesOf(t, demo)[0].Statements {
		if s.Effect == deny {
			table.WriteString("| `launch` | `" + s.Sid + "` | " + s.Why + " |\n")
		}
	}
	readme := filepath.Join(folder, "README.md")
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	const head = "|---|---|---|\n"
	before, rest, ok := strings.Cut(string(text), head)
	_, after, hasEnd := strings.Cut(rest, "\n\n")
	if !ok || !hasEnd {
		t.Fatalf("%s has no table of statements", readme)
	}
	compare(t, readme, before+head+table.String()+"\n"+after)
}

// compare compares a file with its generated text want. With -rewrite it writes the file.
func compare(t *testing.T, file, want string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != want {
		t.Errorf("%s differs from the lists in package permissions (%v): go test ./internal/permissions -run TestFiles -rewrite", file, err)
	}
}

// withPart returns the file's text with part as the text between begin and end.
func withPart(t *testing.T, file, begin, part, end string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, hasBegin := strings.Cut(string(text), begin)
	_, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		t.Fatalf("%s lacks the lines before and after its generated part: %q … %q", file, begin, end)
	}
	return before + begin + part + end + after
}

// TestSizes: IAM accepts managed policies of at most 6,144 characters, not counting white space. Cluster names have up
// to 100 characters.
func TestSizes(t *testing.T) {
	t.Parallel()
	long := Scope{
		Partition: "aws-us-gov", Account: demo.Account, Region: "ap-southeast-2", Cluster: strings.Repeat("c", 100), UID: demo.UID,
		NodeRoles: []string{strings.Repeat("r", 64), strings.Repeat("r", 64), strings.Repeat("r", 64)},
	}
	for _, p := range policiesOf(t, long) {
		text, err := p.JSON()
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, r := range string(text) {
			if !unicode.IsSpace(r) {
				size++
			}
		}
		if size > 6144 {
			t.Errorf("policy %s has %d characters, more than 6144", p.Name, size)
		}
		var document map[string]json.RawMessage
		if err := json.Unmarshal(text, &document); err != nil || string(document["Version"]) != `"2012-10-17"` {
			t.Errorf("policy %s is not a JSON object with Version 2012-10-17: %v", p.Name, err)
		}
	}
}

// TestChangesAreScoped: each statement that allows changes requires the tag of this cluster, in the request or on the
// resource. The exceptions are in harmless; none of them allows every resource.
func TestChangesAreScoped(t *testing.T) {
	t.Parallel()
	harmless := map[string]string{
		"UseWhatOthersMade": "images, subnets, security groups, reservations and placement groups are used, not changed",
		"PassNodeRoles":     "the roles are named",
		"HeedInterruptions": "the queue is named",
	}
	seen := map[string]bool{}
	for _, p := range policiesOf(t, demo) {
		for _, s := range p.Statements {
			if seen[s.Sid] || s.Why == "" || strings.Trim(s.Sid, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
				t.Errorf("statement %q: want a unique Sid of letters and digits, and a reason", s.Sid)
			}
			seen[s.Sid] = true
			allowsChanges := s.Effect == allow && slices.ContainsFunc(s.Action, isChange)
			if !allowsChanges || harmless[s.Sid] != "" {
				continue
			}
			equals := s.Condition["StringEquals"]
			const tag = tagCluster + "demo"
			if got := slices.Concat(equals[requestTag+tag], equals[resourceTag+tag]); !slices.Equal(got, []string{"owned"}) {
				t.Errorf("%s allows %v with the conditions %v, want a condition on the cluster's tag", s.Sid, s.Action, s.Condition)
			}
		}
	}
	for sid := range harmless {
		if !seen[sid] {
			t.Errorf("there is no statement %s any more", sid)
		}
	}
	for _, sid := range []string{"UseWhatOthersMade", "PassNodeRoles", "HeedInterruptions"} {
		for _, p := range policiesOf(t, demo) {
			for _, s := range p.Statements {
				if s.Sid == sid && slices.Contains(s.Resource, "*") {
					t.Errorf("%s allows every resource", sid)
				}
			}
		}
	}
}

func isChange(action string) bool {
	_, verb, _ := strings.Cut(action, ":")
	return !strings.HasPrefix(verb, "Describe") && !strings.HasPrefix(verb, "Get") && !strings.HasPrefix(verb, "List")
}

// TestVerdicts evaluates single requests: for this cluster, for another cluster, and for one with the same name.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	tags := func(prefix, cluster, uid string) iampolicy.Keys {
		return iampolicy.Keys{
			prefix + tagCluster + cluster: {"owned"}, prefix + tagName: {cluster}, prefix + tagNodePool: {"web"},
			prefix + tagNodeClass: {"default"}, prefix + tagRegion: {"us-east-1"}, prefix + tagUID: {uid},
		}
	}
	with := func(k iampolicy.Keys, key, value string) iampolicy.Keys {
		k = maps.Clone(k)
		k[key] = []string{value}
		return k
	}
	without := func(k iampolicy.Keys, key string) iampolicy.Keys {
		k = maps.Clone(k)
		delete(k, key)
		return k
	}
	const (
		otherUID     = "99999999-2222-3333-4444-555555555555"
		instance     = "arn:aws:ec2:us-east-1:111122223333:instance/i-1"
		template     = "arn:aws:ec2:us-east-1:111122223333:launch-template/lt-1"
		profile      = "arn:aws:iam::111122223333:instance-profile/karpenter/us-east-1/demo/u/p"
		otherProfile = "arn:aws:iam::111122223333:instance-profile/karpenter/us-east-1/other/u/p"
		role         = "arn:aws:iam::111122223333:role/KarpenterNodeRole-demo"
	)
	ours, theirs := tags(resourceTag, "demo", demo.UID), tags(resourceTag, "other", otherUID)
	sameName, inRequest := tags(resourceTag, "demo", otherUID), tags(requestTag, "demo", demo.UID)
	createAction := "ec2:CreateAction"
	for _, c := range []struct {
		action, resource    string
		keys                iampolicy.Keys
		withUID, withoutUID bool // allowed with a UID in the policy, and without
	}{
		{"ec2:TerminateInstances", instance, ours, true, true},
		{"ec2:TerminateInstances", instance, without(ours, resourceTag+tagUID), true, true}, // launched by Karpenter
		{"ec2:TerminateInstances", instance, theirs, false, false},
		{"ec2:TerminateInstances", instance, sameName, false, true},
		{"ec2:TerminateInstances", instance, nil, false, false},
		{"ec2:StopInstances", instance, ours, false, false},
		{"ec2:DeleteLaunchTemplate", template, ours, true, true},
		{"ec2:DeleteLaunchTemplate", template, with(ours, resourceTag+tagNodePool, ""), true, true}, // the launch template of a dry run
		{"ec2:DeleteLaunchTemplate", template, theirs, false, false},
		{"ec2:DeleteLaunchTemplate", template, sameName, false, true},
		{"ec2:DeleteLaunchTemplate", template, without(ours, resourceTag+tagUID), false, false}, // created by Karpenter
		{"ec2:CreateFleet", template, ours, true, true},
		{"ec2:CreateFleet", template, theirs, false, false},
		{"ec2:RunInstances", instance, inRequest, true, true},
		{"ec2:RunInstances", instance, tags(requestTag, "other", otherUID), false, false},
		{"ec2:RunInstances", instance, nil, false, false},
		{"ec2:RunInstances", "arn:aws:ec2:us-east-1::image/ami-1", nil, true, true},
		{"ec2:RunInstances", "arn:aws:ec2:us-east-2::image/ami-1", nil, false, false},
		{"ec2:CreateTags", instance, with(inRequest, createAction, "RunInstances"), true, true},
		{"ec2:CreateTags", instance, with(inRequest, createAction, "CreateVolume"), false, false},
		{"ec2:CreateTags", instance, inRequest, false, false}, // an existing instance
		{"ec2:CreateTags", instance, maps.Collect(chain(inRequest, theirs)), false, false},
		{"ec2:CreateTags", instance, with(ours, "aws:TagKeys", "Name"), true, true},
		{"ec2:CreateTags", instance, with(without(ours, resourceTag+tagUID), "aws:TagKeys", "Name"), true, true}, // launched by Karpenter
		{"ec2:CreateTags", instance, with(ours, "aws:TagKeys", tagUID), false, false},
		{"ec2:CreateTags", instance, with(with(ours, "aws:TagKeys", tagName), requestTag+tagName, "other"), false, false},
		{"ec2:CreateTags", instance, with(theirs, "aws:TagKeys", "Name"), false, false},
		{"ec2:CreateTags", instance, with(sameName, "aws:TagKeys", "Name"), false, true},
		{"iam:CreateInstanceProfile", profile, inRequest, true, true},
		{"iam:TagInstanceProfile", profile, inRequest, true, true},
		{"iam:TagInstanceProfile", profile, maps.Collect(chain(inRequest, ours)), true, true},
		{"iam:TagInstanceProfile", profile, maps.Collect(chain(inRequest, theirs)), false, false},
		{"iam:TagInstanceProfile", profile, maps.Collect(chain(inRequest, sameName)), false, true},
		{"iam:TagInstanceProfile", profile, ours, false, false}, // without the cluster's tags in the request
		{"iam:TagInstanceProfile", otherProfile, inRequest, false, false},
		{"ec2:GetConsoleOutput", instance, ours, true, true},
		{"ec2:GetConsoleOutput", instance, without(ours, resourceTag+tagUID), true, true}, // launched by Karpenter
		{"ec2:GetConsoleOutput", instance, theirs, false, false},
		{"ec2:GetConsoleOutput", instance, nil, false, false},
		{"ec2:GetConsoleOutput", instance, iampolicy.Keys{"aws:RequestedRegion": {"us-east-1"}}, false, false},
		{"iam:GetRole", role, nil, true, true},
		{"iam:ListAttachedRolePolicies", role, nil, true, true},
		{"iam:GetRole", "arn:aws:iam::111122223333:role/admin", nil, false, false},
		{"iam:ListRolePolicies", "arn:aws:iam::111122223333:role/admin", nil, false, false},
		{"iam:CreateInstanceProfile", otherProfile, inRequest, false, false},
		{"iam:CreateInstanceProfile", profile, nil, false, false},
		{"iam:DeleteInstanceProfile", profile, ours, true, true},
		{"iam:DeleteInstanceProfile", profile, theirs, false, false},
		{"iam:DeleteInstanceProfile", profile, sameName, false, true},
		{"iam:DeleteInstanceProfile", otherProfile, theirs, false, false},
		{"iam:RemoveRoleFromInstanceProfile", otherProfile, ours, false, false},
		{"iam:GetInstanceProfile", otherProfile, nil, true, true},
		{"iam:PassRole", role, iampolicy.Keys{"iam:PassedToService": {"ec2.amazonaws.com"}}, true, true},
		{"iam:PassRole", role, iampolicy.Keys{"iam:PassedToService": {"lambda.amazonaws.com"}}, false, false},
		{"iam:PassRole", "arn:aws:iam::111122223333:role/admin", iampolicy.Keys{"iam:PassedToService": {"ec2.amazonaws.com"}}, false, false},
		{"eks:DescribeCluster", "arn:aws:eks:us-east-1:111122223333:cluster/demo", nil, true, true},
		{"eks:DescribeCluster", "arn:aws:eks:us-east-1:111122223333:cluster/other", nil, false, false},
		{"sqs:DeleteMessage", "arn:aws:sqs:us-east-1:111122223333:demo", nil, true, true},
		{"sqs:DeleteMessage", "arn:aws:sqs:us-east-1:111122223333:other", nil, false, false},
		{"ssm:GetParameter", "arn:aws:ssm:us-east-1::parameter/aws/service/eks/x", nil, true, true},
		{"ssm:GetParameter", "arn:aws:ssm:us-east-1:111122223333:parameter/secret", nil, false, false},
		{"ec2:DescribeInstances", "*", iampolicy.Keys{"aws:RequestedRegion": {"us-east-1"}}, true, true},
		{"ec2:DescribeInstances", "*", iampolicy.Keys{"aws:RequestedRegion": {"us-east-2"}}, false, false},
	} {
		r := iampolicy.Request{Action: c.action, Resource: c.resource, Keys: c.keys}
		if got := iampolicy.Judge(read(t, demo), r); got.Allowed != c.withUID {
			t.Errorf("%s on %s with %v: %+v, want allowed %t", c.action, c.resource, c.keys, got, c.withUID)
		}
		noUID := demo
		noUID.UID = ""
		if got := iampolicy.Judge(read(t, noUID), r); got.Allowed != c.withoutUID {
			t.Errorf("%s on %s with %v, without a known UID: %+v, want allowed %t", c.action, c.resource, c.keys, got, c.withoutUID)
		}
	}
}

func chain(a, b iampolicy.Keys) func(func(string, []string) bool) {
	return func(yield func(string, []string) bool) {
		for _, m := range []iampolicy.Keys{a, b} {
			for k, v := range m {
				if !yield(k, v) {
					return
				}
			}
		}
	}
}

func read(t *testing.T, s Scope) []iampolicy.Policy {
	t.Helper()
	var out []iampolicy.Policy
	for _, p := range policiesOf(t, s) {
		text, err := p.JSON()
		if err != nil {
			t.Fatal(err)
		}
		policy, err := iampolicy.Read(text)
		if err != nil {
			t.Fatalf("policy %s: %v", p.Name, err)
		}
		out = append(out, policy)
	}
	return out
}

// TestScopeIsChecked: invalid scopes are errors. Policies have the names of their scope.
func TestScopeIsChecked(t *testing.T) {
	t.Parallel()
	for _, s := range []Scope{
		{},
		{Account: "1", Region: "r"},
		{Account: "1", Region: "r", Cluster: "a\"b"},
		{Account: "1", Region: "r", Cluster: "c", NodeRoles: []string{"a b"}},
	} {
		if _, err := Policies(s); err == nil {
			t.Errorf("Policies accepts the scope %+v, want an error", s)
		}
	}
	for region, want := range map[string]string{
		"eu-west-1": "aws", "cn-north-1": "aws-cn", "us-gov-east-1": "aws-us-gov", "us-iso-east-1": "aws-iso", "us-isob-east-1": "aws-iso-b",
	} {
		s, err := Scope{Account: "1", Region: region, Cluster: "c"}.complete()
		if err != nil || s.Partition != want {
			t.Errorf("the partition of %s is %q, want %q: %v", region, s.Partition, want, err)
		}
	}
	cn := demo
	cn.Partition, cn.NodeRoles, cn.Parameters, cn.Queue = "aws-cn", []string{"/path/node"}, []string{"/own/image"}, "messages"
	for _, want := range []string{
		"arn:aws-cn:iam::111122223333:role/path/node", "ec2.amazonaws.com.cn", "arn:aws-cn:ssm:us-east-1:111122223333:parameter/own/image",
		"arn:aws-cn:sqs:us-east-1:111122223333:messages",
	} {
		var all strings.Builder
		for _, p := range policiesOf(t, cn) {
			text, err := p.JSON()
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		if !strings.Contains(all.String(), want) {
			t.Errorf("no policy has %s", want)
		}
	}
}
