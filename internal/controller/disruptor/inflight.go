package disruptor

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/diagnoser"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/disruption/replacement"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// InFlightMove is a move in progress. Its data comes from the annotations of NodeClaims.
type InFlightMove struct {
	Mark         nodestate.MoveMark      // the annotation that all claims in Leaving have
	Leaving      []*karpv1.NodeClaim     // claims of the nodes that leave, sorted by name
	replacements []*karpv1.NodeClaim     // claims of the replacements, sorted by name
	nodes        map[string]*corev1.Node // the Nodes of Leaving, by claim name
	problem      string                  // why the mark is unreadable; empty if it is readable

	Pods map[string][]*corev1.Pod // the pods of all Nodes, by Node name; shared by all moves in flight
}

// flightsOf returns the moves that are recorded on the claims, sorted by ID. created has claims that this process has
// created, and that may be missing in claims, because the cache is behind.
func flightsOf(claims, created []*karpv1.NodeClaim, nodes []*corev1.Node) []*InFlightMove {
	byID := map[string]*InFlightMove{}
	known := map[string]bool{}
	for _, c := range claims {
		known[string(c.UID)] = true
		m, err := nodestate.MoveOf(c) // with an error, m is a placeholder with an ID of its own
		if m == nil {
			continue
		}
		f := byID[m.ID]
		if f == nil {
			f = &InFlightMove{Mark: *m, nodes: map[string]*corev1.Node{}}
			byID[m.ID] = f
		}
		if err != nil {
			f.problem = err.Error()
		}
		f.Leaving = append(f.Leaving, c)
	}
	addReplacement := func(c *karpv1.NodeClaim) {
		if f := byID[c.Annotations[nodestate.AnnotationReplaces]]; f != nil {
			f.replacements = append(f.replacements, c)
		}
	}
	for _, c := range claims {
		addReplacement(c)
	}
	for _, c := range created {
		if !known[string(c.UID)] {
			addReplacement(c)
		}
	}
	byName := map[string]*corev1.Node{}
	for _, n := range nodes {
		byName[n.Name] = n
	}
	var out []*InFlightMove
	for _, f := range byID {
		for _, c := range f.Leaving {
			if n := byName[c.Status.NodeName]; snapshot.IsNodeOf(c, n) {
				f.nodes[c.Name] = n
			}
		}
		slices.SortFunc(f.Leaving, byClaimName)
		slices.SortFunc(f.replacements, byClaimName)
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b *InFlightMove) int { return strings.Compare(a.Mark.ID, b.Mark.ID) })
	return out
}

func byClaimName(a, b *karpv1.NodeClaim) int { return strings.Compare(a.Name, b.Name) }

// nextInput returns the input of replacement.Next, without the parts that need a plan. diagnoses reports which claims
// will not join; nil reports none.
func (f *InFlightMove) nextInput(diagnoses *diagnoser.Diagnoser) replacement.MoveState {
	out := replacement.MoveState{Started: f.Mark.Started, ReplacementCount: f.Mark.Claims, Obsolete: f.problem}
	for _, c := range f.Leaving {
		out.Candidates = append(out.Candidates, replacement.Candidate{Claim: c.Name, State: f.candidateState(c)})
	}
	for _, c := range f.replacements {
		out.Replacements = append(out.Replacements, replacementOf(c, diagnoses))
	}
	return out
}

func replacementOf(c *karpv1.NodeClaim, diagnoses *diagnoser.Diagnoser) replacement.Replacement {
	conditions := c.StatusConditions()
	out := replacement.Replacement{Claim: c.Name, State: replacement.Launching}
	why, isDoomed := diagnoses.WillNotJoin(c)
	registered, _ := conditions.Find(karpv1.ConditionRegistered)
	switch {
	case c.DeletionTimestamp != nil:
		out.State = replacement.Lost
	case conditions.IsTrue(karpv1.ConditionInitialized):
		out.State = replacement.Ready
	case registered.Status == "True":
		initialized, _ := conditions.Find(karpv1.ConditionInitialized)
		out.Joined, out.Why = registered.LastTransitionTime.Time, initialized.Message
	case isDoomed:
		out.State, out.Why = replacement.WillNotJoin, why
	}
	return out
}

// candidateState returns the state of a candidate: a node that leaves.
func (f *InFlightMove) candidateState(c *karpv1.NodeClaim) replacement.CandidateState {
	m, _ := nodestate.MoveOf(c)
	node := f.nodes[c.Name]
	switch {
	case c.DeletionTimestamp != nil && m.Committed:
		return replacement.Deleted
	case c.DeletionTimestamp != nil:
		return replacement.Gone
	case m.Committed:
		return replacement.Committed
	case node == nil || !nodestate.IsOpen(node):
		return replacement.Closed // a missing Node needs no taint
	}
	return replacement.Marked
}

// isReady reports whether all replacements are ready.
func (f *InFlightMove) isReady(s replacement.MoveState) bool {
	ready := 0
	for _, c := range s.Replacements {
		if c.State == replacement.Ready {
			ready++
		}
	}
	return ready == s.ReplacementCount
}

// blocker returns the pod that blocks the move, with the reason: the pod cannot be evicted now, or has no ready node to
// go to. The text is empty if no pod blocks the move. A PodDisruptionBudget that allows no eviction now does not block
// the move, because the drain waits for it. unbound are the pods that kube-scheduler would leave pending.
func (f *InFlightMove) blocker(s cluster.Snapshot, plan packing.Plan, unbound map[string]bool, now time.Time) string {
	unplaced := unplacedReasons(s, plan, unbound)
	for _, c := range f.Leaving {
		node := f.nodes[c.Name]
		if node == nil || c.DeletionTimestamp != nil {
			continue
		}
		// The drain of a drifted node evicts protected pods too, when the claim's terminationGracePeriod ends.
		evictsProtected := f.Mark.Reason == disruption.Drifted && c.Spec.TerminationGracePeriod != nil
		for _, pod := range f.Pods[node.Name] {
			p := nodestate.DrainPodOf(pod)
			why := unplaced[p.ID()]
			if p.Protected(now) && !evictsProtected {
				why = "has the annotation " + karpv1.AnnotationDoNotDisrupt
			}
			needsNode := p.MustLeave(now) && !p.Daemon && p.Deleted.IsZero()
			if why != "" && needsNode {
				return "pod " + p.ID() + " " + why
			}
		}
	}
	return ""
}

// unplacedReasons returns, by "namespace/name", why pods have no ready node to go to. Pods with such a node are
// missing.
func unplacedReasons(s cluster.Snapshot, plan packing.Plan, unbound map[string]bool) map[string]string {
	ready, reasons := map[string]bool{}, map[string]string{}
	for i := range s.Nodes {
		ready[s.Nodes[i].Name] = s.Nodes[i].Initialized && !s.Nodes[i].Leaving
	}
	for id := range unbound {
		reasons[id] = "would be left pending by kube-scheduler"
	}
	for i := range plan.Refusals {
		reasons[plan.Refusals[i].Pod] = "fits on no node"
	}
	for _, p := range plan.Placements {
		if !ready[p.Node] {
			reasons[p.Pod] = "is planned for a node that is not ready"
		}
	}
	for i := range plan.PlannedNodes {
		for _, id := range plan.PlannedNodes[i].Pods {
			reasons[id] = "fits on no existing node, only on a node that would be launched"
		}
	}
	return reasons
}

// saving returns the hourly saving of the move: the price of its nodes minus the price of their replacements. It
// returns false if a price is not known.
func (f *InFlightMove) saving(types nodestate.TypeMarket) (catalog.Price, bool) {
	before, hasBefore := priceOfClaims(types, f.Leaving)
	after, hasAfter := priceOfClaims(types, f.replacements)
	return before - after, hasBefore && hasAfter
}

// priceOfClaims returns the total hourly price of the claims' instances; false if one of the prices is not known.
func priceOfClaims(types nodestate.TypeMarket, claims []*karpv1.NodeClaim) (catalog.Price, bool) {
	var sum catalog.Price
	for _, c := range claims {
		cost := nodestate.CostSum{Market: types, Pool: c.Labels[karpv1.LabelNodePool]}
		cost.Add(c)
		if cost.Sum == 0 { // the price is not known
			return 0, false
		}
		sum += cost.Sum
	}
	return sum, true
}

// podsByNode returns the pods by the name of their Node. Pods without a Node are under the empty name.
func podsByNode(o snapshot.Objects) map[string][]*corev1.Pod {
	out := map[string][]*corev1.Pod{}
	for _, p := range o.Pods {
		out[p.Spec.NodeName] = append(out[p.Spec.NodeName], p)
	}
	return out
}

// EvictsInOrder reports whether the move still has pods that it evicts one after the other. It returns false for a move
// that started longer than nodestate.StaleAfter ago.
func (f *InFlightMove) EvictsInOrder(now time.Time) bool {
	if len(f.Mark.EvictionOrder) == 0 || now.Sub(f.Mark.Started) > nodestate.StaleAfter {
		return false
	}
	return slices.ContainsFunc(f.Leaving, func(c *karpv1.NodeClaim) bool {
		return c.DeletionTimestamp == nil || // the drain has not started
			slices.ContainsFunc(f.Pods[c.Status.NodeName], func(p *corev1.Pod) bool {
				return slices.Contains(f.Mark.EvictionOrder, nodestate.PodID(p))
			})
	})
}

// StaleNodes returns the names of the nodes that have been leaving for longer than nodestate.StaleAfter.
func (s *DisruptionInput) StaleNodes() map[string]bool {
	started := map[string]time.Time{} // by claim: when its move started
	for _, f := range s.Flights {
		for _, c := range f.Leaving {
			started[c.Name] = f.Mark.Started
		}
	}
	out := map[string]bool{}
	for i := range s.In.Snapshot.Nodes {
		n := &s.In.Snapshot.Nodes[i]
		since, known := started[n.Claim]
		// A claim without a move leaves from its deletion on. Of two times, the earlier counts.
		if c := s.Claims[n.Claim]; c != nil && c.DeletionTimestamp != nil && (!known || c.DeletionTimestamp.Time.Before(since)) {
			since, known = c.DeletionTimestamp.Time, true
		}
		if n.Leaving && known && s.In.Now.Sub(since) > nodestate.StaleAfter {
			out[n.Name] = true
		}
	}
	return out
}
