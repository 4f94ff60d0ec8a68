package permissions

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
)

// refused lists the actions that policies deny of the controller's example requests, by statement.
func refused(t *testing.T, s Scope, texts ...string) map[string][]string {
	t.Helper()
	var policies []iampolicy.Policy
	for _, text := range texts {
		p, err := iampolicy.Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p)
	}
	asks, err := Asks(s, policiesOf(t, s))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, ask := range asks {
		for _, action := range ask.Actions {
			for _, resource := range ask.Resources {
				if !iampolicy.Judge(policies, iampolicy.Request{Action: action, Resource: resource, Keys: ask.Keys}).Allowed {
					out[ask.Sid] = append(out[ask.Sid], action+" "+resource)
				}
			}
		}
	}
	return out
}

// TestAsksAreGranted: the policies allow all example requests, with and without a UID. A missing policy is noticed.
func TestAsksAreGranted(t *testing.T) {
	t.Parallel()
	anyCluster := demo
	anyCluster.UID = ""
	for _, s := range []Scope{demo, anyCluster} {
		var texts []string
		for _, p := range policiesOf(t, s) {
			text, err := p.JSON()
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(text))
		}
		if left := refused(t, s, texts...); len(left) > 0 {
			t.Errorf("with UID %q refused: %v", s.UID, left)
		}
		left := refused(t, s, texts[1:]...)
		if len(left["MakeWhatIsTagged"]) == 0 || len(left["EndOwnInstances"]) == 0 || len(left["PassNodeRoles"]) > 0 {
			t.Errorf("without the first policy refused: %v", left)
		}
	}
}

// TestAsksNameTheCluster: the policies of another cluster do not allow requests that are limited to this cluster.
func TestAsksNameTheCluster(t *testing.T) {
	t.Parallel()
	other := demo
	other.Cluster = "other"
	text, err := policiesOf(t, other)[0].JSON()
	if err != nil {
		t.Fatal(err)
	}
	left := refused(t, demo, string(text))
	if len(left["UseWhatOthersMade"]) > 0 || len(left["MakeWhatIsTagged"]) != 3*6 || len(left["NameOwnInstances"]) != 1 {
		t.Errorf("refused: %v", left)
	}
}
