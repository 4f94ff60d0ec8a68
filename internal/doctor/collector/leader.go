package collector

import (
	"context"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/kube/evidence"
)

// Leader requests only the items that show whether a controller is active, for commands that print what a controller
// has written. EC2NodeClasses, NodePools and NodeClaims are read after the Lease, so that they also show a controller
// that acquired the Lease in between. Leader takes five seconds longer if the Lease seems expired.
func Leader(ctx context.Context, w *evidence.Witness) diagnosis.Evidence {
	c := &collector{Clients: Clients{Kube: w, Patience: usualPatience + renewing, Now: time.Now}}
	c.e = diagnosis.Evidence{Format: diagnosis.Format}
	c.e.Controller = c.controller(ctx, nil)
	if isSeen := c.e.Controller.Known() || c.e.Controller.Is(diagnosis.Missing); !isSeen || c.e.Controller.Value.IsAlone() {
		return c.e // the Lease is not known, or there is no leader election
	}
	c.e.Lease = c.lease(ctx)
	c.e.At = c.Now().UTC()
	c.together([]func(){
		list(ctx, c, &c.e.Classes, "ec2nodeclasses", w.Classes),
		list(ctx, c, &c.e.Pools, "nodepools", w.Pools),
		list(ctx, c, &c.e.Claims, "nodeclaims", w.Claims),
	})
	return c.e
}
