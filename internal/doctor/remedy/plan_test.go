package remedy

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

type recorder struct {
	calls     []string
	deletions map[string]kubeclient.Deletion
}

func (r *recorder) DryRun(_ context.Context, p kubeclient.Patch) (kubeclient.PatchDryRun, error) {
	r.calls = append(r.calls, "try "+p.Group+"/"+p.Kind+" "+p.Namespace+"/"+p.Name+" "+p.Type+" "+p.Text)
	return kubeclient.PatchDryRun{}, nil
}

func (r *recorder) Apply(_ context.Context, p kubeclient.Patch, _ kubeclient.PatchDryRun) error {
	r.calls = append(r.calls, "patch "+p.Group+"/"+p.Kind+" "+p.Namespace+"/"+p.Name+" "+p.Type+" "+p.Text)
	return nil
}

func (r *recorder) DryRunDelete(_ context.Context, kind, name string) (kubeclient.Deletion, bool, error) {
	d, found := r.deletions[name]
	d.Kind, d.Name = kind, name
	return d, found, nil
}

func (r *recorder) Delete(_ context.Context, d kubeclient.Deletion) error {
	r.calls = append(r.calls, "delete "+d.Kind+" "+d.Name)
	return nil
}

// TestPlanRefuses: a fix is not planned at all if one of its steps cannot be applied, or needs a missing client.
func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	noClients := Clients{NoKube: "there is no kubeconfig", NoAWS: "there are no credentials"}
	merge := fix.Merge(fix.NodePool("web"), fix.At(fix.Text("x"), "spec", "a"))
	entry := fix.P("--principal-arn", fix.RoleARN("arn:aws:iam::111122223333:role/node"))
	for want, f := range map[string]fix.Fix{
		"only a user can do it: do it by hand: kubectl edit nodepool web   # loosen it": fix.New("",
			fix.Edit(fix.NodePool("web")).With("loosen it"), merge),
		"joiner cannot make this call": fix.New("",
			fix.Call("ec2", "terminate-instances", fix.P("--instance-ids", fix.Instance("i-1")))),
		"reach AWS: there are no credentials": fix.New("", fix.Call("eks", "create-access-entry", entry)),
		"reach Kubernetes: there is no kubeconfig": fix.New("",
			fix.DeleteClaims(fix.Claim{Name: "a"}, fix.Claim{Name: "b"})),
		"joiner deletes only NodeClaims": fix.New("", fix.Delete(fix.Node("a"))),
		"joiner cannot run itself here": fix.New("",
			fix.Correct("a", fix.Text("--check"), fix.Check("TAINT-2"))),
		"a placeholder must be replaced": fix.New("",
			fix.Call("kms", "enable-key", fix.P("--key-id", fix.Placeholder("KEY_ID")))),
		"joiner cannot carry out any of its steps": fix.New("", fix.AdviceStep("ask the owner")),
		"the fix changes nothing":                  fix.New("", fix.Show("describe", fix.NodeClaim("a"))),
		"of the actions on Kubernetes, joiner carries out only patches": fix.New("",
			fix.Scale(fix.Deployment("kube-system", "joiner"), 2)),
		"the parameter --subnets is not supported": fix.New("",
			fix.Call("eks", "create-access-entry", fix.P("--subnets", fix.Subnet("subnet-1"), fix.Subnet("subnet-2")))),
	} {
		changes, err := Plan(t.Context(), f, noClients)
		if err == nil || !strings.Contains(err.Error(), want) || len(changes) > 0 {
			t.Errorf("%s: %v, %v; want %q", f, changes, err, want)
		}
	}
	var byHand *ManualStepError
	if _, err := Plan(t.Context(), fix.Fix{}, noClients); !errors.As(err, &byHand) {
		t.Errorf("for the zero fix: %v, want a *ManualStepError", err)
	}
}

// TestPlanPatches: a patch is made from the step's value, or from the output of joiner correct if the step requires it.
// Read-only steps are skipped.
func TestPlanPatches(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	var correctArgs []string // of each run of joiner correct
	clients := Clients{Kube: r, RunCorrect: func(_ context.Context, args []string) (string, error) {
		correctArgs = append(correctArgs, strings.Join(args, " "))
		return `{"spec":{}}` + "\n", nil
	}}
	f := fix.New("", fix.Show("describe", fix.NodeClaim("a")),
		fix.Merge(fix.DaemonSet("kube-system", "agent"), fix.At(fix.Text("it's $(true)"), "spec", "x")),
		fix.Correct("web", fix.Text("--check"), fix.Check("TAINT-2")).With("line 3"))
	changes, err := Plan(t.Context(), f, clients)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := Apply(t.Context(), changes); n != 2 || err != nil {
		t.Fatalf("%d changes were made, want 2: %v", n, err)
	}
	const agent, web = `apps/daemonset kube-system/agent merge {"spec":{"x":"it's $(true)"}}`,
		`karpenter.k8s.aws/ec2nodeclass /web merge {"spec":{}}`
	if got := strings.Join(r.calls, "\n"); got != "try "+agent+"\ntry "+web+"\npatch "+agent+"\npatch "+web {
		t.Errorf("want two dry runs and then two patches, the calls are\n%s", got)
	}
	if len(correctArgs) != 1 || correctArgs[0] != "correct web --check TAINT-2" ||
		changes[1].Command != `kubectl patch ec2nodeclass web --type merge -p "$(joiner correct web --check TAINT-2)"` {
		t.Errorf("want one run of joiner correct, the arguments are %q, for the command %s", correctArgs, changes[1].Command)
	}
}

// TestDeletePreconditions: a NodeClaim is deleted only if it has the instance of the fix, and has not joined since
// the diagnosis.
func TestDeletePreconditions(t *testing.T) {
	t.Parallel()
	r := &recorder{deletions: map[string]kubeclient.Deletion{
		"late": {ProviderID: "aws:///us-east-1a/i-2"}, "joined": {ProviderID: "aws:///us-east-1a/i-3", Joined: true},
		"no-instance": {},
	}}
	clients := Clients{Kube: r}
	for _, c := range []struct {
		claim fix.Claim
		want  string // part of the error; empty: the NodeClaim is deleted
	}{
		{fix.Claim{Name: "late", Instance: "i-2"}, ""},
		{fix.Claim{Name: "late"}, ""},
		{fix.Claim{Name: "joined", Instance: "i-3", Joined: true}, ""},
		{fix.Claim{Name: "joined", Instance: "i-3"}, "its node has joined the cluster"},
		{fix.Claim{Name: "joined"}, "its node has joined the cluster"},
		{fix.Claim{Name: "joined", Instance: "i-2", Joined: true}, "not instance i-2"},
		{fix.Claim{Name: "no-instance", Instance: "i-2"}, "not instance i-2"},
	} {
		r.calls = nil
		changes, err := Plan(t.Context(), fix.New("", fix.DeleteClaims(c.claim)), clients)
		if err == nil {
			_, err = Apply(t.Context(), changes)
		}
		isDeleted := err == nil && len(r.calls) == 1
		isRefused := err != nil && strings.Contains(err.Error(), c.want) && len(r.calls) == 0
		if c.want == "" && !isDeleted || c.want != "" && !isRefused {
			t.Errorf("%+v: %v, %v; want %q", c.claim, r.calls, err, c.want)
		}
	}
	// A NodeClaim whose node joins while the user reviews the fix is kept.
	changes, err := Plan(t.Context(), fix.New("", fix.DeleteClaims(fix.Claim{Name: "late", Instance: "i-2"})), clients)
	if err != nil {
		t.Fatal(err)
	}
	r.deletions["late"], r.calls = kubeclient.Deletion{ProviderID: "aws:///us-east-1a/i-2", Joined: true}, nil
	if n, err := Apply(t.Context(), changes); n != 0 || err == nil || len(r.calls) > 0 {
		t.Errorf("%d changes were made, want none: %v: %v", n, err, r.calls)
	}
}

// TestCheckRowsKept: a patch of aws-auth may add and correct rows, but not remove the last row of a role.
func TestCheckRowsKept(t *testing.T) {
	t.Parallel()
	const admin = "- rolearn: arn:aws:iam::1:role/admin\n  username: admin\n  groups: [system:masters]\n"
	const node = "- rolearn: arn:aws:iam::1:role/node\n  username: system:node:{{EC2PrivateDNSName}}\n  groups: [system:nodes]\n"
	const wrong = "- rolearn: arn:aws:iam::1:role/path/node\n  username: x\n"
	for name, c := range map[string]struct{ before, after, want string }{
		"added":      {admin, admin + node, ""},
		"corrected":  {admin + wrong, admin + node, ""},
		"a row lost": {admin, node, "its row for arn:aws:iam::1:role/admin would be lost"},
		"unreadable": {admin, "- rolearn: [", "could not be read afterwards"},
	} {
		err := checkRowsKept(c.before, c.after)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
