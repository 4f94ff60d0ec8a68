package controller

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/config"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// sweepInput is the state of EC2 and of the cluster. EC2 is read first, so that an instance launched in between is
// missing from the list, and does not appear to have no claim.
type sweepInput struct {
	instances []ec2.Instance
	claims    []*karpv1.NodeClaim
	nodes     map[string]bool // provider IDs of ready Nodes
	shifted   map[string]bool // IDs of zones with a zonal shift: EC2 may not return the instances there
	breaker   Breaker
	now       time.Time
}

// sweeping is what to remove, and the findings to report.
type sweeping struct {
	instances []ec2.Instance      // without a claim
	claims    []*karpv1.NodeClaim // without an instance
	held      []open              // too many to be plausible
	namesakes []ec2.Instance
	legacy    []ec2.Instance // with our cluster name, without a cluster UID, a claim or a Node here
}

// open is an open breaker for one kind of object.
type open struct {
	kind         string // "instance" or "nodeclaim"
	found, total int
}

// A machine must be so old before it can be missed, and a claim bought for so long.
const (
	sweepGrace = 30 * time.Second
	claimGrace = time.Minute
)

// sweep decides which objects are orphans.
func sweep(in sweepInput) sweeping {
	var out sweeping
	known := map[string]bool{} // provider IDs of claims
	waiting := map[string]bool{}
	for _, c := range in.claims {
		if c.Status.ProviderID != "" {
			known[c.Status.ProviderID] = true
			continue
		}
		waiting[c.Name] = true // it may be about to record its instance, or to search for it
	}
	alive := map[string]bool{}
	ours := 0
	for _, i := range in.instances {
		if i.State.Ended() {
			continue
		}
		alive[i.ProviderID()] = true
		switch i.Owner {
		case ec2.Ours:
			ours++
			if !known[i.ProviderID()] && !waiting[i.Claim()] && in.now.Sub(i.Launched) > sweepGrace && !i.Launched.IsZero() {
				out.instances = append(out.instances, i)
			}
		case ec2.SameName:
			out.namesakes = append(out.namesakes, i)
		case ec2.Legacy:
			if !known[i.ProviderID()] && !in.nodes[i.ProviderID()] {
				out.legacy = append(out.legacy, i)
			}
		}
	}
	out.claims = in.lost(alive)
	out.instances = limit(&out, in.breaker, "instance", out.instances, ours)
	out.claims = limit(&out, in.breaker, "nodeclaim", out.claims, len(in.claims))
	return out
}

// lost returns the claims whose instance EC2 no longer returns.
func (in sweepInput) lost(alive map[string]bool) []*karpv1.NodeClaim {
	var out []*karpv1.NodeClaim
	for _, c := range in.claims {
		launched, _ := c.StatusConditions().Find(karpv1.ConditionLaunched)
		id := c.Status.ProviderID
		if in.shifted[c.Labels[catalog.LabelZoneID]] {
			continue
		}
		if id == "" || !isServed(c.Spec.NodeClassRef) || alive[id] || in.nodes[id] || c.DeletionTimestamp != nil || in.now.Sub(launched.LastTransitionTime.Time) < claimGrace {
			continue
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *karpv1.NodeClaim) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// limit is the breaker: it returns all of the orphans, or none.
func limit[T any](out *sweeping, b Breaker, kind string, found []T, total int) []T {
	most, share := cmp.Or(b.Count, config.BreakerCount), cmp.Or(b.Share, config.BreakerShare)
	if len(found) <= most || float64(len(found)) <= share*float64(total) {
		return found
	}
	out.held = append(out.held, open{kind, len(found), total})
	return nil
}

// String describes the open breaker.
func (o open) String() string {
	return fmt.Sprintf("%d of %s of this cluster have no counterpart, more than can be true: nothing is removed", o.found, count(o.total, o.kind))
}
