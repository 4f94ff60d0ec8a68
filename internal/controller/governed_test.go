package controller

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/permissions"
)

const controllerRole = "controller"

// attachControllerPolicies creates the controller's role with the policies that users attach to it. AWS denies the
// loops all other calls. The policies allow calls for any cluster UID, so that a test fails if a loop changes
// resources of another cluster with the same name.
func (r *rig) attachControllerPolicies(t testing.TB, w *world.World) {
	t.Helper()
	account := w.Account(emulator.DefaultAccount)
	if _, err := account.CreateRole(r.now(), identity.Role{Name: controllerRole}); err != nil {
		t.Fatal(err)
	}
	policies, err := permissions.Policies(permissions.Scope{
		Account: account.ID, Region: testRegion, Cluster: testCluster, NodeRoles: []string{"*"}, Queue: testQueue,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range policies {
		text, err := p.JSON()
		if err != nil {
			t.Fatal(err)
		}
		created, err := account.CreatePolicy(r.now(), identity.Policy{Name: p.Name, Document: string(text)})
		if err == nil {
			err = account.AttachPolicy(controllerRole, created.ARN)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
