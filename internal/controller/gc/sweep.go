package gc

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/config"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// SweepInput is the state of EC2 and of the cluster. EC2 must be read before the cluster. Then an instance that is launched
// between the two reads is missing in Instances. In the other order, it would seem to have no claim.
type SweepInput struct {
	Instances []ec2.Instance      // instances with the tags of this cluster's name
	Claims    []*karpv1.NodeClaim // all NodeClaims
	Nodes     map[string]bool     // provider IDs of ready Nodes
	Shifted   map[string]bool     // IDs of zones with a zonal shift: EC2 may not return the instances there
	Breaker   loop.Breaker        // limits how many objects may be removed
	Now       time.Time           // time of the pass
}

// SweepResult has the objects to remove, and the findings to report.
type SweepResult struct {
	Instances []ec2.Instance      // instances without a claim, to terminate
	Claims    []*karpv1.NodeClaim // claims without an instance, to delete
	Held      []openBreaker       // kinds of objects of which none is removed, because implausibly many are orphans
	SameName  []ec2.Instance      // instances of another cluster with our cluster's name
	Legacy    []ec2.Instance      // instances with our cluster's name, but without a cluster UID, a claim or a Node here
}

type openBreaker struct {
	Kind         string // kind of the objects: "instance" or "nodeclaim"
	Found, Total int    // number of orphans, and of all objects of the kind
}

// SweepGrace is the minimum age of an orphaned instance. claimGrace is how long ago the instance of an orphaned claim
// must have been launched.
const (
	SweepGrace = 30 * time.Second
	claimGrace = time.Minute
)

// Sweep decides which objects are orphans.
func Sweep(in SweepInput) SweepResult {
	var out SweepResult
	claimed := map[string]bool{}   // provider IDs of claims
	launching := map[string]bool{} // names of claims without a provider ID: an instance may have been launched for them
	for _, c := range in.Claims {
		if c.Status.ProviderID != "" {
			claimed[c.Status.ProviderID] = true
			continue
		}
		launching[c.Name] = true
	}
	alive := map[string]bool{} // provider IDs of instances that have not ended
	ours := 0                  // instances of this cluster
	for _, i := range in.Instances {
		if i.State.Ended() {
			continue
		}
		alive[i.ProviderID()] = true
		switch i.Owner {
		case ec2.Ours:
			ours++
			if !claimed[i.ProviderID()] && !launching[i.Claim()] && in.Now.Sub(i.Launched) > SweepGrace && !i.Launched.IsZero() {
				out.Instances = append(out.Instances, i)
			}
		case ec2.SameName:
			out.SameName = append(out.SameName, i)
		case ec2.Legacy:
			if !claimed[i.ProviderID()] && !in.Nodes[i.ProviderID()] {
				out.Legacy = append(out.Legacy, i)
			}
		case ec2.Foreign, ec2.Untagged:
		}
	}
	out.Claims = in.lostClaims(alive)
	out.Instances = applyBreaker(&out, in.Breaker, "instance", out.Instances, ours)
	out.Claims = applyBreaker(&out, in.Breaker, "nodeclaim", out.Claims, len(in.Claims))
	return out
}

// lostClaims returns the claims whose instances are not in alive. A claim with a ready Node is not lost.
func (in SweepInput) lostClaims(alive map[string]bool) []*karpv1.NodeClaim {
	var out []*karpv1.NodeClaim
	for _, c := range in.Claims {
		launched, _ := c.StatusConditions().Find(karpv1.ConditionLaunched)
		id := c.Status.ProviderID
		if in.Shifted[c.Labels[catalog.LabelZoneID]] {
			continue
		}
		if id == "" || !nodestate.IsServed(c.Spec.NodeClassRef) || alive[id] || in.Nodes[id] || c.DeletionTimestamp != nil ||
			in.Now.Sub(launched.LastTransitionTime.Time) < claimGrace {
			continue
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *karpv1.NodeClaim) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// applyBreaker applies the breaker to the orphans of a kind. It returns all of them if the breaker stays closed. The
// breaker opens if the orphans exceed both its count and its share of total. Then applyBreaker adds it to out.Held, and
// returns nil.
func applyBreaker[T any](out *SweepResult, b loop.Breaker, kind string, orphans []T, total int) []T {
	count, share := cmp.Or(b.Count, config.BreakerCount), cmp.Or(b.Share, config.BreakerShare)
	if len(orphans) <= count || float64(len(orphans)) <= share*float64(total) {
		return orphans
	}
	out.Held = append(out.Held, openBreaker{kind, len(orphans), total})
	return nil
}

// String describes the open breaker.
func (o openBreaker) String() string {
	return fmt.Sprintf("%d of %s of this cluster have no counterpart, which is too many to be plausible, so none is removed", o.Found,
		loop.Count(o.Total, o.Kind))
}
