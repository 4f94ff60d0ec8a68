package gc

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// finding is a problem that the collector leaves to the user.
type finding struct {
	key     string            // identifies the subject; a finding is logged once while it lasts
	reason  kubeclient.Reason // reason of the event
	message string            // the problem, and why Joiner does not act
	hint    string            // what the user can do
}

// findingsOf returns the findings of a pass in a stable order. name is the name of the cluster.
func findingsOf(result SweepResult, name string) []finding {
	var all []finding
	for _, o := range result.Held {
		all = append(all, finding{"breaker " + o.Kind, kubeclient.ReasonGarbageCollectionHeld, o.String(),
			"if these objects are really orphans, remove them by hand, or set --breaker-share (BREAKER_SHARE) to 1 until they are gone; otherwise check which resources were restored, renamed or hidden"})
	}
	byUID := map[string][]ec2.Instance{}
	for _, i := range result.SameName {
		byUID[i.Tags[ec2.TagUID]] = append(byUID[i.Tags[ec2.TagUID]], i)
	}
	for _, uid := range slices.Sorted(maps.Keys(byUID)) {
		all = append(all, finding{"same name " + uid, kubeclient.ReasonSameClusterName,
			fmt.Sprintf("another cluster has our name%s: its uid is %s, and it has %s here: %s; Joiner does not touch them",
				quoted(name), uid, loop.Count(len(byUID[uid]), "instance"), ownerFacts(byUID[uid])),
			"give each cluster of an account and region a different name"})
	}
	if len(result.Legacy) > 0 {
		ids := make([]string, 0, len(result.Legacy))
		for _, i := range result.Legacy {
			ids = append(ids, i.ID)
		}
		slices.Sort(ids)
		all = append(all, finding{"legacy " + strings.Join(ids, ","), kubeclient.ReasonSameClusterName,
			fmt.Sprintf("%s our cluster's name%s, no cluster UID, and no NodeClaim or Node here: another cluster's Karpenter may have our name: %s; Joiner does not touch them",
				subjectAndVerb(len(ids)), quoted(name), ownerFacts(result.Legacy)),
			"find out which cluster owns them; terminate them by hand if they are not needed"})
	}
	return all
}

// ownerFacts returns facts that help to find the owner of instances: tags, VPC and instance profile of the instance
// with the lowest ID.
func ownerFacts(instances []ec2.Instance) string {
	i := slices.MinFunc(instances, func(a, b ec2.Instance) int { return cmp.Compare(a.ID, b.ID) })
	out := i.ID
	for _, fact := range []struct{ what, value string }{
		{"NodePool", i.Tags[ec2.TagNodePool]}, {"NodeClaim", i.Claim()}, {"VPC", i.VPC},
		{"instance profile", i.Profile[strings.LastIndexByte(i.Profile, '/')+1:]},
	} {
		if fact.value != "" {
			out += ", " + fact.what + " " + fact.value
		}
	}
	return out
}

// quoted returns the cluster's name in quotes, after a comma; "" for an empty name.
func quoted(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(", %q", name)
}

func subjectAndVerb(n int) string {
	if n == 1 {
		return "an instance has"
	}
	return fmt.Sprintf("%d instances have", n)
}

// report reports the findings: in metrics, as events on all NodePools, and in the log when they appear.
func (s *Collector) report(ctx context.Context, result SweepResult) {
	s.Metrics.SameName.Set(float64(len(result.SameName)))
	s.Metrics.BreakerOpen.Reset()
	for _, o := range result.Held {
		s.Metrics.BreakerOpen.WithLabelValues(o.Kind).Set(1)
	}
	logged := map[string]bool{}
	all := findingsOf(result, s.Name)
	for _, f := range all {
		logged[f.key] = true
		if !s.logged[f.key] {
			s.Log.Warn(f.message, "hint", f.hint)
		}
	}
	s.logged = logged
	s.emitOnPools(ctx, all)
}

// emitOnPools emits events about the findings on all NodePools. If the pools cannot be listed, the next pass retries.
// Kubernetes keeps one event per reason and object, so all findings with the same reason are in one event.
func (s *Collector) emitOnPools(ctx context.Context, all []finding) {
	if len(all) == 0 {
		return
	}
	var pools karpv1.NodePoolList
	if err := s.Cache.List(ctx, &pools); err != nil {
		return
	}
	texts := map[kubeclient.Reason][]string{}
	for _, f := range all {
		texts[f.reason] = append(texts[f.reason], f.message+"; "+f.hint)
	}
	for i := range pools.Items {
		for _, reason := range slices.Sorted(maps.Keys(texts)) {
			s.Events.Emit(&pools.Items[i], reason, strings.Join(texts[reason], ". Also: "))
		}
	}
}
