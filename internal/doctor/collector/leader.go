package collector

import (
	"context"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/kube"
)

// Leader asks Kubernetes what tells whether a controller acts, and nothing else, for whoever tells of what controllers write. What a
// controller has written is asked for last: it may have taken the lease since that was looked at. It takes five seconds longer where the lease
// seems to have ended.
func Leader(ctx context.Context, w *kube.Witness) diagnosis.Evidence {
	c := &collector{Doors: Doors{Kube: w, Patience: usualPatience + renewing, Now: time.Now}}
	c.e = diagnosis.Evidence{Format: diagnosis.Format}
	c.e.Controller = c.controller(ctx, nil)
	if isSeen := c.e.Controller.Known() || c.e.Controller.Is(diagnosis.Missing); !isSeen || c.e.Controller.Value.IsAlone() {
		return c.e // no lease would tell
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
