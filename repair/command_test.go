package repair

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestRead: the words of a fix are those that a shell would make, and what only a shell can do is left to a person.
func TestRead(t *testing.T) {
	t.Parallel()
	for fix, want := range map[string]string{ // commands with " | " between words, "; " between commands; empty: by hand
		"aws eks create-access-entry --type EC2_LINUX   # or EC2_WINDOWS":  "aws | eks | create-access-entry | --type | EC2_LINUX",
		"aws eks delete-access-entry --a b\naws eks create-access-entry x": "aws | eks | delete-access-entry | --a | b; aws | eks | create-access-entry | x",
		`kubectl patch nodepool web -p '{"spec":{"a":"b c"}}'`:             `kubectl | patch | nodepool | web | -p | {"spec":{"a":"b c"}}`,
		`kubectl patch configmap x -p '{"it":"is '\''quoted'\''"}'`:        `kubectl | patch | configmap | x | -p | {"it":"is 'quoted'"}`,
		`aws iam put-role-policy --policy-document "plain words" --x a\ b`: "aws | iam | put-role-policy | --policy-document | plain words | --x | a b",
		"kubectl get pods | grep web":                                      "",
		"kubectl patch x -p $(cat patch.json)":                             "",
		`kubectl patch x -p "$PATCH"`:                                      "",
		"aws s3 rm s3://bucket/* ":                                         "",
		"KUBECONFIG=x kubectl patch x":                                     "",
		"kubectl patch x > out":                                            "",
		"if true; then kubectl patch x; fi":                                "",
		"kubectl patch x &":                                                "",
		"kubectl patch x -p 'unfinished":                                   "",
	} {
		commands, err := read(fix)
		var byHand *ByHand
		if want == "" {
			if !errors.As(err, &byHand) || byHand.Line == "" {
				t.Errorf("%s: %v, %v", fix, commands, err)
			}
			continue
		}
		var got []string
		for _, c := range commands {
			got = append(got, strings.Join(c.words, " | "))
		}
		if err != nil || strings.Join(got, "; ") != want {
			t.Errorf("%s: %q, %v; want %q", fix, got, err, want)
		}
	}
}

// TestPatch: of kubectl only patches of one object can be made.
func TestPatch(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{ // KIND NAMESPACE NAME TYPE, or part of the error
		`kubectl patch nodepool web --type merge -p '{}'`:                             "nodepool  web merge",
		`kubectl -n kube-system patch configmap aws-auth --type merge -p '{"a":1}'`:   "configmap kube-system aws-auth merge",
		`kubectl -n web patch deployment/app --type json -p '[]'`:                     "deployment web app json",
		`kubectl edit nodepool web`:                                                   "of kubectl only patch",
		`kubectl patch nodepool --type merge -p '{}'`:                                 "does not say what to patch",
		`kubectl patch nodepool web -p '{}'`:                                          "neither a merge patch nor a JSON patch",
		`kubectl patch nodepool web --type merge -p '{}' --as root`:                   "option --as is not understood",
		`kubectl patch nodepool web other --type merge -p '{}'`:                       "does not say what to patch",
		`kubectl patch nodepool web --type merge -p`:                                  "option -p is not understood",
		`kubectl delete nodepool web --type merge -p '{"spec":{"role":"x"}}' --force`: "option --force is not understood",
	} {
		commands, err := read(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := commands[0].patch()
		got := strings.Join([]string{p.Kind, p.Namespace, p.Name, p.Type}, " ")
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != want || err != nil && !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestPlanRefuses: nothing is planned of a fix that has a part which cannot be made from here, nor through a door that is closed.
func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	closed := Doors{NoKube: "there is no kubeconfig", NoAWS: "there are no credentials"}
	for fix, want := range map[string]string{
		"kubectl edit nodepool web   # loosen it":                                  "do it by hand: kubectl edit nodepool web",
		"aws ec2 terminate-instances --instance-ids i-1":                           "none of the commands that can be made from here: do it by hand: aws ec2",
		"aws eks create-access-entry --type x":                                     "reach AWS: there are no credentials",
		"kubectl delete nodeclaim --wait=false a b":                                "reach Kubernetes: there is no kubeconfig",
		"kubectl delete nodepool a":                                                "only NodeClaims can be deleted",
		"kubectl delete nodeclaim --all":                                           "option --all is not understood",
		`kubectl patch ec2nodeclass a --type merge -p "$(joiner correct a)"`:       "joiner cannot be asked from here",
		`kubectl patch ec2nodeclass a --type merge -p "$(curl example.com)"`:       "only a shell can say what its words are",
		`kubectl patch ec2nodeclass a --type merge -p "$(joiner correct a; id)"`:   "only a shell can say what its words are",
		`kubectl patch ec2nodeclass a --type merge -p "$(joiner correct $(id) a)"`: "only a shell can say what its words are",
		`kubectl patch ec2nodeclass a --type merge -p "$(joiner uninstall a)"`:     "only a shell can say what its words are",
		"kubectl patch nodepool web --type merge -p '{}'":                          "reach Kubernetes: there is no kubeconfig",
		"rm -rf /":        "none of the commands",
		"   # only words": "it names no command",
	} {
		changes, err := Plan(t.Context(), fix, closed)
		if err == nil || !strings.Contains(err.Error(), want) || len(changes) > 0 {
			t.Errorf("%s: %v, %v; want %q", fix, changes, err, want)
		}
	}
}

// TestKeepsRows: a patch of aws-auth that was written for an older text does not take anybody's row away.
func TestKeepsRows(t *testing.T) {
	t.Parallel()
	const admin = "- rolearn: arn:aws:iam::1:role/admin\n  username: admin\n  groups: [system:masters]\n"
	const node = "- rolearn: arn:aws:iam::1:role/node\n  username: system:node:{{EC2PrivateDNSName}}\n  groups: [system:nodes]\n"
	const wrong = "- rolearn: arn:aws:iam::1:role/path/node\n  username: x\n"
	for name, c := range map[string]struct{ before, after, want string }{
		"added":               {admin, admin + node, ""},
		"mended":              {admin + wrong, admin + node, ""},
		"somebody's row lost": {admin, node, "its row for arn:aws:iam::1:role/admin would be lost"},
		"unreadable":          {admin, "- rolearn: [", "could not be read afterwards"},
	} {
		err := keepsRows(c.before, c.after)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestAsks: what joiner would print stands in the command's place, and no other program is asked anything.
func TestAsks(t *testing.T) {
	t.Parallel()
	var asked []string
	d := Doors{NoKube: "there is no kubeconfig", Ask: func(_ context.Context, args []string) (string, error) {
		asked = append(asked, strings.Join(args, " "))
		return `{"spec":{}}` + "\n", nil
	}}
	commands, err := read(`kubectl patch ec2nodeclass web --type merge -p "$(joiner correct web --check TAINT-2)"   # line 3`)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.answer(t.Context(), commands[0]); err != nil {
		t.Fatal(err)
	}
	p, err := commands[0].patch()
	if err != nil || p.Text != `{"spec":{}}` || p.Name != "web" || len(asked) != 1 || asked[0] != "correct web --check TAINT-2" {
		t.Errorf("%+v, %v, asked %q", p, err, asked)
	}
}
