package collector

import (
	"context"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/kube/evidence"
)

// Leader requests only the items that show whether a controller is active, for commands that print what a controller
// has written. EC2NodeClasses, NodePools and NodeClaims are read after the Lease, so that they also contain the
// writes of a controller that acquired the Lease after it was read. Leader takes five seconds longer if the Lease seems
// expired.
func Leader(ctx context.Context, kube *evidence.Reader) diagnosis.Evidence {
	c := &collector{Clients: Clients{Kube: kube, ItemTimeout: defaultItemTimeout + leaseRecheckPause, Now: time.Now}}
	c.e = diagnosis.Evidence{Format: diagnosis.Format}
	c.e.Controller = c.controller(ctx, nil)
	if wasRead := c.e.Controller.Known() || c.e.Controller.Is(diagnosis.Missing); !wasRead || c.e.Controller.Value.SkipsLeaderElection() {
		return c.e // the name of the Lease is unknown, or there is no leader election
	}
	c.e.Lease = c.lease(ctx)
	c.e.At = c.Now().UTC()
	c.runConcurrently([]func(){
		listInto(ctx, c, &c.e.Classes, "ec2nodeclasses", kube.Classes),
		listInto(ctx, c, &c.e.Pools, "nodepools", kube.Pools),
		listInto(ctx, c, &c.e.Claims, "nodeclaims", kube.Claims),
	})
	return c.e
}
