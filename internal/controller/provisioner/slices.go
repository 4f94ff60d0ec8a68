package provisioner

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/fairness"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// costlyPods has the pods whose scheduling rules exceed their share of a plan, and the state of their slices. A slice is a
// plan for some of these pods. It is planned in its own goroutine, so that other pods are planned at the same time.
// Only the provisioner's loop writes the fields.
type costlyPods struct {
	share fairness.Share                 // how much planning work one plan and one slice may spend
	turns map[string]costlyTurn          // by pod UID
	costs map[string]int                 // by pod UID: the planning cost of a waiting pod (fairness.Cost)
	Seats map[string]fairness.Nomination // by "namespace/name": where plans placed pods that kube-scheduler has not bound yet
	last  string                         // namespace that the latest slice served last

	refused map[string]packing.Refusal // by pod UID: the refusal in the last slice that the pod was in
	waiting int                        // number of pods that wait for a slice, including pods that were in a slice before
	Running bool                       // a slice is being planned
	done    chan slice                 // receives a slice when it is planned
	Ended   chan struct{}              // holds one element after each slice
	Due     time.Time                  // earliest start of the next slice
	round   sliceTotals                // slices since the last log line
	logged  string                     // the summary of refusals that was last logged
}

// sliceTotals has the totals of the slices since the last log line.
type sliceTotals struct {
	slices, pods, refused, claims int
	took                          time.Duration // planning time
}

type costlyTurn struct {
	times     int       // number of slices that the pod was in
	nextSlice time.Time // earliest time of its next slice
}

// slice is a plan for some costly pods.
type slice struct {
	planning
	last string     // namespace that the slice serves last
	cost int        // planning cost of its pods
	work *loop.Work // reports the progress of the slice
}

// A pod that still waits after its first slice may be in another one after firstCostlyDelay. The delay doubles with each
// further slice, up to maxCostlyDelay.
const (
	firstCostlyDelay = 5 * time.Second
	maxCostlyDelay   = time.Minute
	// maxRoundTime is the planning time after which the results of the slices are logged.
	maxRoundTime = time.Minute
)

func (c *costlyPods) init() {
	if c.turns == nil {
		c.share = fairness.DefaultShare()
		c.turns, c.costs = map[string]costlyTurn{}, map[string]int{}
		c.Seats, c.refused = map[string]fairness.Nomination{}, map[string]packing.Refusal{}
		c.done, c.Ended = make(chan slice, 1), make(chan struct{}, 1)
	}
}

// divide returns which pods are planned now, and which pods the next slice plans.
func (c *costlyPods) divide(pods []cluster.Pod, now time.Time) fairness.Division {
	c.init()
	served := map[string]bool{} // by pod UID: the pod must wait before its next slice
	for uid, t := range c.turns {
		if now.Before(t.nextSlice) {
			served[uid] = true
		}
	}
	for i := range pods {
		if _, ok := c.costs[pods[i].UID]; !ok {
			c.costs[pods[i].UID] = fairness.Cost(&pods[i])
		}
	}
	return fairness.Divide(pods, fairness.SliceState{Served: served, Costs: c.costs, Last: c.last}, c.share)
}

// forget drops the records of pods that no longer need a node.
func (c *costlyPods) forget(pods []cluster.Pod) {
	if len(c.costs) == 0 {
		return
	}
	waiting := make(map[string]bool, len(pods))
	for i := range pods {
		waiting[pods[i].UID] = true
	}
	for uid := range c.costs {
		if !waiting[uid] {
			delete(c.costs, uid)
			delete(c.turns, uid)
			delete(c.refused, uid)
		}
	}
	for id, seat := range c.Seats {
		if !waiting[seat.UID] {
			delete(c.Seats, id)
		}
	}
}

// hasUnserved reports whether any of the pods is on a leaving node and has not been in a slice yet.
func (c *costlyPods) hasUnserved(pods []cluster.Pod) bool {
	return slices.ContainsFunc(pods, func(p cluster.Pod) bool { return p.Node != "" && c.turns[p.UID].times == 0 })
}

// recordPlacements records on which nodes the plan places the pods of s, and drops older records of these pods.
func (c *costlyPods) recordPlacements(plan packing.Plan, s cluster.Snapshot) {
	nodes := map[string]*cluster.Node{} // by name
	for i := range s.Nodes {
		nodes[s.Nodes[i].Name] = &s.Nodes[i]
	}
	nodeOf := map[string]string{} // by pod ID
	for _, p := range plan.Placements {
		nodeOf[p.Pod] = p.Node
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		if n := nodes[nodeOf[p.ID()]]; n != nil {
			c.Seats[p.ID()] = fairness.NewNomination(p, n)
		} else {
			delete(c.Seats, p.ID())
		}
	}
}

func except(pods, excluded []cluster.Pod) []cluster.Pod {
	isExcluded := make(map[string]bool, len(excluded))
	for i := range excluded {
		isExcluded[excluded[i].UID] = true
	}
	var out []cluster.Pod
	for i := range pods {
		if !isExcluded[pods[i].UID] {
			out = append(out, pods[i])
		}
	}
	return out
}

// snapshotFor returns the snapshot with only these pods to plan. The other pods of due are counted on the nodes where
// earlier plans placed them.
func (c *costlyPods) snapshotFor(s cluster.Snapshot, due, pods []cluster.Pod) cluster.Snapshot {
	if len(c.Seats) > 0 {
		s.Nodes = fairness.CountNominated(s.Nodes, except(due, pods), c.Seats)
	}
	s.Pods = pods
	return s
}

// Refusals returns the refusals of these pods in their last slices.
func (c *costlyPods) Refusals(pods []cluster.Pod) []packing.Refusal {
	var out []packing.Refusal
	for i := range pods {
		if r, ok := c.refused[pods[i].UID]; ok {
			out = append(out, r)
		}
	}
	return out
}

func (p *Provisioner) recordWaiting(d fairness.Division) {
	p.Costly.waiting = len(d.Slice) + d.Later
	p.Metrics.Costly.Set(float64(p.Costly.waiting))
}

// Slice starts the next slice if it is due. It returns when Slice must be called again; zero: after the next change.
func (p *Provisioner) Slice(ctx context.Context) time.Time {
	c, now := &p.Costly, p.Now.Now()
	if c.Running || c.waiting == 0 {
		return time.Time{}
	}
	if now.Before(c.Due) {
		return c.Due
	}
	seen, ok := p.readInput(ctx, now)
	if !ok {
		return time.Time{} // the next pass logs the cause
	}
	due, held := p.PodBackoff.Split(seen.snapshot.Pods, seen.snapshot.Nodes, now)
	p.reportWaiting(held)
	d := c.divide(due, now)
	if p.recordWaiting(d); len(d.Slice) == 0 {
		p.logRound()
		return time.Time{} // all waiting pods were in a slice recently; after the next pass, some may be due again
	}
	s := slice{
		planning: planning{snapshot: c.snapshotFor(seen.snapshot, due, d.Slice), market: seen.market},
		last:     d.Last, cost: d.SliceCost, work: loop.Working(ctx, loop.LoopSlices, describePods(d.Slice)),
	}
	c.Running = true
	go func() {
		s.compute(p.Solve)
		c.done <- s
		c.Ended <- struct{}{}
	}()
	return time.Time{}
}

// Collect carries out the plan of a finished slice, if there is one.
func (p *Provisioner) Collect(ctx context.Context) {
	select {
	case s := <-p.Costly.done:
		p.carryOutSlice(ctx, s)
	default:
	}
}

// carryOutSlice creates the NodeClaims of a slice, and records the results for its pods.
func (p *Provisioner) carryOutSlice(ctx context.Context, s slice) {
	c := &p.Costly
	defer s.work.End()
	p.Metrics.Scheduling.Duration.WithLabelValues("provisioner.slices").Observe(s.took.Seconds())
	plan, created, isWhole := p.carryOut(ctx, s.planning)
	now := p.Now.Now()
	c.Running, c.last, c.share = false, s.last, c.share.AfterSlice(s.cost, s.took)
	c.Due = now.Add(s.took)        // at most half of the time is for slices
	hasResult := map[string]bool{} // by pod ID: the part of the plan that was carried out refuses or places the pod
	for _, r := range plan.Refusals {
		hasResult[r.Pod] = true
	}
	for _, placement := range plan.Placements {
		hasResult[placement.Pod] = true
	}
	for _, claim := range created {
		for _, id := range claim.Planned.Pods {
			hasResult[id] = true
		}
	}
	refused := map[string]packing.Refusal{}
	for _, r := range plan.Refusals {
		refused[r.Pod] = r
	}
	for i := range s.snapshot.Pods {
		pod := &s.snapshot.Pods[i]
		if !isWhole && !hasResult[pod.ID()] {
			continue // the next slice may plan the pod again, because nextSlice is not set
		}
		t := c.turns[pod.UID]
		t.times++
		t.nextSlice = now.Add(min(firstCostlyDelay<<min(t.times-1, 10), maxCostlyDelay)) // 10: avoids an overflow
		c.turns[pod.UID] = t
		if r, ok := refused[pod.ID()]; ok {
			c.refused[pod.UID] = r
		} else {
			delete(c.refused, pod.UID)
		}
	}
	c.recordPlacements(plan, s.snapshot)
	c.round.slices++
	c.round.pods += len(s.snapshot.Pods)
	c.round.refused += len(plan.Refusals)
	failed := p.reportResults(s.snapshot.Pods, plan, created)
	c.round.claims += len(created) - failed
	if c.round.took += s.took; c.round.took > maxRoundTime {
		p.logRound()
	}
}

// logRound logs the results of the slices since the last call.
func (p *Provisioner) logRound() {
	r := p.Costly.round
	p.Costly.round = sliceTotals{}
	summary := RefusalSummary(slices.Collect(maps.Values(p.Costly.refused)))
	if r.claims > 0 || r.slices > 0 && summary != p.Costly.logged {
		p.Costly.logged = summary
		p.Log.Info("planned pods with costly rules in slices", "slices", r.slices, "pods", r.pods, "nodeClaims", r.claims,
			"refused", r.refused, "reasons", summary, "seconds", r.took.Seconds())
	}
}

// describePods describes the pods of a slice, sorted by namespace, for the message about a stalled loop.
func describePods(pods []cluster.Pod) string {
	var namespaces []string
	for i := range pods {
		if n := pods[i].Namespace; len(namespaces) == 0 || namespaces[len(namespaces)-1] != n {
			namespaces = append(namespaces, n)
		}
	}
	const shown = 3
	more := ""
	if len(namespaces) > shown {
		more = " and " + loop.Count(len(namespaces)-shown, "other")
		namespaces = namespaces[:shown]
	}
	return "a plan for " + loop.Count(len(pods), "pod") + " of " + strings.Join(namespaces, ", ") + more + ", the first " + pods[0].ID()
}
