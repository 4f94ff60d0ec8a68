package controller

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/permissions"
)

// controllerRole is the role that the loops of a rig have.
const controllerRole = "controller"

// govern gives the controller's role the policies that users give it: every AWS call of a rig's loops must be allowed by
// them. The policies do not know the cluster's UID. The loops themselves protect resources of another cluster with the same
// name, and IAM must not hide it if they fail to.
func (r *rig) govern(t testing.TB, w *world.World) {
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
		made, err := account.CreatePolicy(r.now(), identity.Policy{Name: p.Name, Document: string(text)})
		if err == nil {
			err = account.AttachPolicy(controllerRole, made.ARN)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
