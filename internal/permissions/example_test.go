package permissions

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
)

// denied returns, by Sid, the example requests of the controller that are denied by the policies in documents.
func denied(t *testing.T, s Scope, documents ...string) map[string][]string {
	t.Helper()
	var policies []iampolicy.Policy
	for _, text := range documents {
		p, err := iampolicy.Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p)
	}
	examples, err := Examples(s, policiesOf(t, s))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, example := range examples {
		for _, action := range example.Actions {
			for _, resource := range example.Resources {
				if !iampolicy.Judge(policies, iampolicy.Request{Action: action, Resource: resource, Keys: example.Keys}).Allowed {
					out[example.Sid] = append(out[example.Sid], action+" "+resource)
				}
			}
		}
	}
	return out
}

// TestExamplesAreAllowed: the policies allow all example requests, with and without a UID. Without the policy launch,
// its requests are denied.
func TestExamplesAreAllowed(t *testing.T) {
	t.Parallel()
	noUID := demo
	noUID.UID = ""
	for _, s := range []Scope{demo, noUID} {
		var documents []string
		for _, p := range policiesOf(t, s) {
			text, err := p.JSON()
			if err != nil {
				t.Fatal(err)
			}
			documents = append(documents, string(text))
		}
		if got := denied(t, s, documents...); len(got) > 0 {
			t.Errorf("with UID %q, the policies deny %v, want no denied request", s.UID, got)
		}
		got := denied(t, s, documents[1:]...) // without the first policy, launch
		if len(got["MakeWhatIsTagged"]) == 0 || len(got["EndOwnInstances"]) == 0 || len(got["PassNodeRoles"]) > 0 {
			t.Errorf("without the policy launch, %v are denied, want only requests of that policy", got)
		}
	}
}

// TestExamplesNameTheCluster: the policy launch of another cluster does not allow requests that are limited to this
// cluster.
func TestExamplesNameTheCluster(t *testing.T) {
	t.Parallel()
	other := demo
	other.Cluster = "other"
	text, err := policiesOf(t, other)[0].JSON()
	if err != nil {
		t.Fatal(err)
	}
	got := denied(t, demo, string(text))
	// MakeWhatIsTagged allows 3 actions on 6 kinds of resources, NameOwnInstances 1 action on 1 kind.
	if len(got["UseWhatOthersMade"]) > 0 || len(got["MakeWhatIsTagged"]) != 3*6 || len(got["NameOwnInstances"]) != 1 {
		t.Errorf("the policy launch of another cluster denies %v, want only requests that are limited to the cluster", got)
	}
}
