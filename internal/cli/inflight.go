package cli

import (
	"cmp"
	"slices"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/cli/output"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// inFlight returns the pending pods for which nodes are being launched, and the NodeClaims whose nodes are not
// initialized. These pods are in o, but not in the snapshot s, so the plan leaves them out. It returns nil if there are
// no such pods or no such NodeClaims.
func inFlight(o snapshot.Objects, s cluster.Snapshot, now time.Time) *output.InFlight {
	planned := map[string]bool{}
	for i := range s.Pods {
		planned[s.Pods[i].ID()] = true
	}
	out := &output.InFlight{Pods: []string{}, NodeClaims: []output.LaunchingClaim{}}
	for _, p := range o.Pods {
		if id := p.Namespace + "/" + p.Name; conversion.Provisionable(p) && !planned[id] {
			out.Pods = append(out.Pods, id)
		}
	}
	for _, c := range o.Claims {
		if c.DeletionTimestamp != nil || c.StatusConditions().IsTrue(karpv1.ConditionInitialized) {
			continue
		}
		out.NodeClaims = append(out.NodeClaims, output.LaunchingClaim{
			Name: c.Name, NodePool: c.Labels[karpv1.LabelNodePool], Step: stepOf(c),
			AgeSeconds: max(now.Sub(c.CreationTimestamp.Time), 0).Truncate(time.Second).Seconds(),
		})
	}
	if len(out.Pods) == 0 || len(out.NodeClaims) == 0 {
		return nil
	}
	slices.Sort(out.Pods)
	slices.SortFunc(out.NodeClaims, func(a, b output.LaunchingClaim) int {
		return cmp.Or(cmp.Compare(b.AgeSeconds, a.AgeSeconds), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// stepOf returns the last completed step of a NodeClaim that is not initialized: Created, Launched or Registered.
func stepOf(c *karpv1.NodeClaim) string {
	for _, step := range []string{karpv1.ConditionRegistered, karpv1.ConditionLaunched} {
		if c.StatusConditions().IsTrue(step) {
			return step
		}
	}
	return "Created"
}
