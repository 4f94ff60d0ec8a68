package collector

import (
	"context"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/kube/evidence"
)

// Leader requests only what shows whether a controller is active, for commands that report what controllers write. The
// objects that a controller writes are read last, because it may have acquired the Lease after that was read. It takes
// five seconds longer if the Lease seems expired.
func Leader(ctx context.Context, w *evidence.Witness) diagnosis.Evidence {
	c := &collector{Clients: Clients{Kube: w, Patience: usualPatience + renewing, Now: time.Now}}
	c.e = diagnosis.Evidence{Format: diagnosis.Format}
	c.e.Controller = c.controller(ctx, nil)
	if isSeen := c.e.Controller.Known() || c.e.Controller.Is(diagnosis.Missing); !isSeen || c.e.Controller.Value.IsAlone() {
		return c.e // no Lease to judge by
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
