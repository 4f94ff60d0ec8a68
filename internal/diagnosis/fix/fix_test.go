package fix_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// TestOnlyConstructors: no other package can create or change a step, so a fix made from arbitrary text does not
// compile.
func TestOnlyConstructors(t *testing.T) {
	t.Parallel()
	for _, zero := range []any{fix.Fix{}, fix.Step{}, fix.Value{}, fix.Object{}} {
		for i := range reflect.TypeOf(zero).NumField() {
			if f := reflect.TypeOf(zero).Field(i); f.IsExported() {
				t.Errorf("other packages can set %T.%s", zero, f.Name)
			}
		}
	}
	// Parameters for the program's own text have a type that other packages cannot name.
	for name, f := range map[string]any{"Text": fix.Text, "Placeholder": fix.Placeholder, "P": fix.P, "Call": fix.Call,
		"AdviceStep": fix.AdviceStep, "Apply": fix.Apply, "EditAll": fix.EditAll, "Path": fix.Path, "Show": fix.Show,
		"Save": fix.Save, "Annotate": fix.Annotate, "SetEnv": fix.SetEnv, "PFrom": fix.PFrom,
		"With": fix.Step.With, "SplitWords": fix.SplitWords, "To": fix.Step.To} {
		for i := range reflect.TypeOf(f).NumIn() {
			if in := reflect.TypeOf(f).In(i); in == reflect.TypeFor[string]() {
				t.Errorf("%s has a parameter of type string, which takes any text", name)
			}
		}
	}
	step := fix.Merge(fix.NodePool("web"), fix.At(fix.Text("x"), "spec"))
	k, _ := step.Kubernetes()
	k.Names[0] = "other"
	if again, _ := step.Kubernetes(); again.Names[0] != "web" {
		t.Error("changing the action that Step.Kubernetes returned has changed the step")
	}
}

// TestGrammars: identifiers that an API accepts are valid, and other texts are not. A text with a leading hyphen is
// never valid.
func TestGrammars(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		valueOf   func(string) fix.Value
		good, bad string // texts, separated by spaces
	}{
		"name": {fix.Name, "web web-1 a.b.example.com ip-10-0-0-1.ec2.internal",
			"Web -web web- a..b a_b a/b web;x $(x) " + strings.Repeat("a", 254)},
		"namespace":   {fix.Namespace, "web kube-system", "a.b -a " + strings.Repeat("a", 64)},
		"label key":   {fix.LabelKey, "team example.com/team kubernetes.io/arch A_b.c", "-a a/b/c /a a/ a=b a,b"},
		"label value": {fix.LabelValue, "x amd64 A_b.c-1", "-x x- a/b a:b"},
		"cluster":     {fix.ClusterName, "prod Prod_1-x", "-prod _prod a.b prod;x " + strings.Repeat("a", 101)},
		"region":      {fix.Region, "us-east-1 us-gov-west-1 eu-isoe-west-1 ap-southeast-5", "us-east US-EAST-1 --x us-east-1a"},
		"role":        {fix.RoleName, "NodeRole node_role+=,.@-", "-x a/b a:b a;b " + strings.Repeat("a", 65)},
		"role of":     {fix.RoleOf, "NodeRole arn:aws:iam::111122223333:role/NodeRole arn:aws-cn:iam::111122223333:role/team/a/NodeRole team/NodeRole /team/NodeRole", "arn:aws:iam::1:role/x x;y/role arn:x/y --kubeconfig=/x a/-b file:///x"},
		"policy": {fix.Policy, "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy arn:aws:iam::111122223333:policy/a/b",
			"arn:x;y arn:aws:iam::aws:policy/x;y"},
		"scp": {fix.OrganizationPolicy,
			"arn:aws:organizations::999999999999:policy/o-a/service_control_policy/p-1234", "p-1234 arn:x/p-1234"},
		"instance": {fix.Instance, "i-0123456789abcdef0 i-01234567", "i- i-x;y -i i-A"},
		"type":     {fix.InstanceType, "m5.large u-6tb1.56xlarge mac2-m2pro.metal c7gn.metal", "m5 .large -m5.large m5.large;x"},
		"key": {fix.Key, "1234abcd-12ab-34cd-56ef-1234567890ab alias/x arn:aws:kms:us-east-1:111122223333:key/1234",
			"-x a;b arn:aws:s3:::x"},
		"flag":     {fix.Flag, "feature-gates", "--x X a=b"},
		"program":  {fix.Program, "swapon /usr/bin/x", "-rf a;b a%b"},
		"family":   {fix.Family, "AL2 AL2023 Bottlerocket Windows2022", "al2 AL3 x"},
		"username": {fix.Username, "system:node:{{EC2PrivateDNSName}} admin jane@example.com", "$(x) a;b -x"},
	} {
		for good := range strings.FieldsSeq(c.good) {
			if !c.valueOf(good).IsValid() {
				t.Errorf("%s: %s is not valid, want valid", name, good)
			}
		}
		for bad := range strings.FieldsSeq(c.bad) {
			if c.valueOf(bad).IsValid() {
				t.Errorf("%s: %s is valid, want not valid", name, bad)
			}
		}
		// No kind of value allows control characters, bidirectional marks or spaces.
		for _, bad := range []string{"x\ny", "x\x00", "x\u202e", "x "} {
			if c.valueOf(bad).IsValid() {
				t.Errorf("%s: %q is valid, want not valid", name, bad)
			}
		}
	}
}

// TestInvalidChange: if one change of a fix has an invalid value, no change of the fix is printed, and advice names the
// value.
func TestInvalidChange(t *testing.T) {
	t.Parallel()
	role := func(name string) fix.Param { return fix.P("--principal-arn", fix.RoleARN(name)) }
	f := fix.New("EC2NodeClass web", fix.Call("eks", "delete-access-entry", role("arn:aws:iam::111122223333:role/node")),
		fix.Call("eks", "create-access-entry", role("arn:aws:iam::111122223333:role/x'; y")), fix.Show("describe", fix.NodePool("web")))
	const want = `# no command is given for EC2NodeClass web: the ARN of an IAM role is not valid: arn:aws:iam::111122223333:role/x\x27\x3b y` + "\nkubectl describe nodepool web"
	if f.String() != want || f.Changes() {
		t.Errorf("the fix is\n%s\nwant\n%s", f, want)
	}
	if again := f.And(fix.DeleteClaims(fix.Claim{Name: "a"})); again.Changes() {
		t.Errorf("And has added a deletion to a fix that changes nothing: %s", again)
	}
	if got := fix.New("", fix.Call("eks", "list-clusters",
		fix.P("--region", fix.Region("")))).String(); got != "# no command can be given for the cluster: the AWS region is not known" {
		t.Errorf("the fix with an unknown region is %s, want advice that the region is not known", got)
	}
}

// TestPrinted: the words of a printed step are quoted for a shell where necessary. Its comment is one line without
// characters that a shell acts on.
func TestPrinted(t *testing.T) {
	t.Parallel()
	labels := fix.Labels{Key: fix.LabelKey("example.com/team"), Value: fix.LabelValue("a")}
	for want, s := range map[string]fix.Step{
		`kubectl patch nodepool web --type merge -p '{"spec":{"labels":{"example.com/team":"a"}}}'   # or \x24\x28x\x29\x3b \x1b\u202e y`: fix.Merge(fix.NodePool("web"),
			fix.At(labels, "spec", "labels")).With("or %s y", "$(x); \x1b\u202e"),
		`kubectl -n web set env deployment/api A=1`:                           fix.SetEnv(fix.Deployment("web", "api"), "A", fix.Number(1)),
		`kubectl -n kube-system get configmap aws-auth -o yaml > before.yaml`: fix.Save(fix.AuthMap(), "before.yaml"),
		`aws ec2 associate-dhcp-options --vpc-id vpc-1 --dhcp-options-id "$(aws ec2 create-dhcp-options --x 'a b' --query Q --output text)"`: fix.Call("ec2", "associate-dhcp-options",
			fix.P("--vpc-id", fix.VPC("vpc-1")), fix.PFrom("--dhcp-options-id",
				fix.Call("ec2", "create-dhcp-options", fix.P("--x", fix.Text("a b"))), "Q")),
		`kubectl patch ec2nodeclass web --type json -p '[{"op":"add","path":"/spec/x/3","value":"it'\''s"}]'`: fix.JSONPatch(fix.NodeClass("web"),
			fix.Fields{"op": fix.Text("add"), "path": fix.Path("/spec/x/%d", 3), "value": fix.Text("it's")}),
	} {
		if s.String() != want {
			t.Errorf("the step is %s\nwant        %s", s, want)
		}
	}
	text, err := json.Marshal(fix.Correct("web", fix.Text("--check"), fix.Check("TAINT-2")))
	if want := `{"kind":"change","command":["kubectl","patch","ec2nodeclass","web","--type","merge","-p",["joiner","correct","web","--check","TAINT-2"]]}`; err != nil || string(text) != want {
		t.Errorf("the JSON is %s, %v, want %s", text, err, want)
	}
	if got := fix.Visible("a\x1b[2J\n\u202eb\xff\U000e0001é"); got != `a\x1b[2J\x0a\u202eb\xff\U000e0001é` {
		t.Errorf("Visible returns %s, want control and bidirectional characters escaped", got)
	}
}
