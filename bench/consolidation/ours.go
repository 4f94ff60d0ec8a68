package consolidation

import (
	"context"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/bench/fleet"
	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// joinerController is Joiner as the controller of a fleet. It scans every ten seconds, and checks moves in progress
// after every change.
type joinerController struct {
	fleet      *fleet.Fleet
	reader     *snapshot.Reader // watches the fleet, as in the controller
	spotToSpot bool

	moves          []*activeMove // moves in progress
	scannedChanges int           // value of fleet.Changes at the last scan; -1: no scan yet

	churn consolidation.ChurnDetector
	// lowChurn is the result of churn.IsLow at the last scan. If true, the scan searched more deeply; see
	// consolidation.Input.LowChurn.
	lowChurn bool

	record record
}

// activeMove is a move in progress: not all of its replacement nodes are ready, or some of its pods have no place yet.
type activeMove struct {
	nodes        []string  // nodes to remove
	evictions    []string  // pods to evict one after the other; see EvictionOrder of consolidation.Move
	replacements []string  // replacement nodes
	blockedSince time.Time // when pods of the move first had no place; zero: never
}

// maxBlocked is how long pods without a place may block a move before the move is undone.
const maxBlocked = 30 * time.Second

// pass scans the cluster once, and carries out the decision. It skips the scan if neither the fleet nor the result of
// churn.IsLow has changed since the last scan. It returns true if it acted, if a move is in progress, or if churn is
// not low yet: when churn becomes low, a deeper search follows.
func (o *joinerController) pass() (bool, error) {
	if lowChurn := o.churn.IsLow(o.fleet.Now()); o.fleet.Changes() == o.scannedChanges && lowChurn == o.lowChurn {
		return len(o.moves) > 0 || !lowChurn, nil
	}
	o.scannedChanges = o.fleet.Changes()
	var d decision
	var err error
	took := o.record.measure(func() { d, err = o.decide() })
	if err != nil {
		return false, err
	}
	o.fleet.Advance(o.fleet.Now().Add(took)) // the simulated time passes during the scan
	err = o.act(d)
	return len(d.launch)+len(d.empty)+len(d.moves)+len(o.moves) > 0 || !o.lowChurn, err
}

type decision struct {
	launch []packing.PlannedNode // nodes to launch for pending pods
	empty  []string              // names of nodes without pods, which are removed
	moves  []consolidation.Move  // moves to start
}

// decide takes a snapshot, plans for pending and evicted pods, and searches for moves. Its duration is that
// of the scan.
func (o *joinerController) decide() (decision, error) {
	s, err := o.snapshot()
	if err != nil {
		return decision{}, err
	}
	o.churn.Observe(s, o.fleet.Now())
	o.lowChurn = o.churn.IsLow(o.fleet.Now())
	plan := packing.Solve(s, o.fleet.Market, packing.DefaultEffort)
	d := decision{launch: plan.PlannedNodes}
	in := disruption.Input{
		Snapshot: s, Plan: plan, Policies: map[string]disruption.Policy{}, Records: map[string]disruption.Record{}, Now: o.fleet.Now(),
	}
	for _, p := range o.fleet.Pools {
		policy := disruption.Policy{After: p.Spec.Disruption.ConsolidateAfter.Duration}
		for _, b := range p.Spec.Disruption.Budgets {
			policy.Budgets = append(policy.Budgets, disruption.Budget{Nodes: b.Nodes})
		}
		in.Policies[p.Name] = policy
	}
	for _, n := range s.Nodes {
		in.Records[n.Name] = disruption.Record{Ready: true}
	}
	proposal := disruption.Propose(in)
	removing := map[string]int{} // number of empty nodes to remove, by NodePool
	for _, m := range proposal.Moves {
		d.empty = append(d.empty, m.Nodes...)
		removing[m.Pool] += len(m.Nodes)
	}
	maxRemovals := map[string]int{} // number of further nodes that the disruption budgets allow to remove, by NodePool
	for _, r := range proposal.Rooms {
		maxRemovals[r.Pool] = max(r.Nodes-removing[r.Pool], 0)
	}
	if o.evictsInTurn(s) {
		return d, nil // the pods that are evicted one after the other need the room of the other nodes
	}
	d.moves = consolidation.Find(o.input(disruption.WithoutRemovableEmpty(in), plan, maxRemovals)).Moves
	return d, nil
}

// evictsInTurn reports whether pods are being evicted one after the other, or a move in progress will evict its pods in
// this way.
func (o *joinerController) evictsInTurn(s cluster.Snapshot) bool {
	return slices.ContainsFunc(o.moves, func(m *activeMove) bool { return len(m.evictions) > 0 }) ||
		slices.ContainsFunc(s.Nodes, func(n cluster.Node) bool {
			instance := o.fleet.Instance(n.Name)
			return instance != nil && instance.Phase == fleet.Removing && len(n.Pods) > 0
		})
}

// snapshot returns the cluster as Joiner's controller sees it through its informers.
func (o *joinerController) snapshot() (cluster.Snapshot, error) {
	return o.reader.Snapshot(context.Background(), o.fleet.Now(), o.fleet.Market)
}

// input returns the input of the search for moves. The candidates are the ready nodes that have pods, except those on
// which the plan places further pods.
func (o *joinerController) input(s cluster.Snapshot, plan packing.Plan, maxRemovals map[string]int) consolidation.Input {
	in := consolidation.Input{
		Snapshot: s, Market: o.fleet.Market, Nodes: map[string]consolidation.Candidate{}, SpotToSpot: o.spotToSpot, MaxRemovals: maxRemovals,
		LowChurn: o.lowChurn, HighChurn: o.churn.IsHigh(o.fleet.Now()), OneAtATime: true,
	}
	for _, n := range s.Nodes {
		if instance := o.fleet.Instance(n.Name); instance != nil && instance.Phase == fleet.Ready && len(n.Pods) > 0 {
			in.Nodes[n.Name] = consolidation.Candidate{Price: instance.Offering.Price, Cost: float64(len(n.Pods))}
		}
	}
	for _, p := range plan.Placements {
		delete(in.Nodes, p.Node)
	}
	return in
}

// act carries out a decision. It skips moves of nodes that are no longer ready. It completes moves without replacement
// nodes at once.
func (o *joinerController) act(d decision) error {
	for _, planned := range d.launch {
		if _, err := o.launch(planned); err != nil {
			return err
		}
	}
	o.fleet.Remove(d.empty...)
	for _, m := range d.moves {
		if slices.ContainsFunc(m.Nodes, func(name string) bool {
			n := o.fleet.Instance(name)
			return n == nil || n.Phase != fleet.Ready || n.Cordoned
		}) {
			continue
		}
		started := &activeMove{nodes: m.Nodes, evictions: m.EvictionOrder}
		for _, planned := range m.PlannedNodes {
			name, err := o.launch(planned)
			if err != nil {
				return err
			}
			started.replacements = append(started.replacements, name)
		}
		for _, name := range m.Nodes {
			o.fleet.Cordon(name, true)
		}
		o.fleet.AddStep() // each move gets its own step in the bill
		o.moves = append(o.moves, started)
	}
	return o.finish()
}

// launch launches a planned node with its cheapest offering, and returns the node's name.
func (o *joinerController) launch(planned packing.PlannedNode) (string, error) {
	order, err := workload.OrderOf(o.fleet.Market, planned)
	if err != nil {
		return "", err
	}
	return o.fleet.Launch(order).Name, nil
}

// finish completes the moves whose replacement nodes are all ready and whose pods all have a place. It undoes a move
// that has been blocked for maxBlocked. One plan decides for all these moves together.
func (o *joinerController) finish() error {
	ready := slices.DeleteFunc(slices.Clone(o.moves), func(m *activeMove) bool { return !o.isReady(m) })
	if len(ready) == 0 {
		return nil
	}
	var nodes, evictions []string
	for _, m := range ready {
		nodes, evictions = append(nodes, m.nodes...), append(evictions, m.evictions...)
	}
	blockedNodes, err := o.blockedNodes(nodes, evictions)
	if err != nil {
		return err
	}
	var removed []string
	ended := map[*activeMove]bool{} // completed or undone
	for _, m := range ready {
		isBlocked := slices.ContainsFunc(m.nodes, func(name string) bool { return blockedNodes[name] })
		switch {
		case !isBlocked && len(m.evictions) > 0:
			o.fleet.RemoveGradually(m.evictions, m.nodes...)
			ended[m] = true
		case !isBlocked:
			removed, ended[m] = append(removed, m.nodes...), true
		case m.blockedSince.IsZero():
			m.blockedSince = o.fleet.Now()
		case o.fleet.Now().Sub(m.blockedSince) >= maxBlocked:
			ended[m] = true
			for _, name := range m.nodes {
				o.fleet.Cordon(name, false)
			}
		}
	}
	o.moves = slices.DeleteFunc(o.moves, func(m *activeMove) bool { return ended[m] })
	o.fleet.Remove(removed...)
	return nil
}

// isReady reports whether each replacement node of the move is ready or no longer exists.
func (o *joinerController) isReady(m *activeMove) bool {
	return !slices.ContainsFunc(m.replacements,
		func(name string) bool { n := o.fleet.Instance(name); return n != nil && n.Phase != fleet.Ready })
}

// blockedNodes returns those of the given nodes that have a pod without a place elsewhere. It assumes that all given
// nodes are removed, and that the pods in evictions are evicted one after the other.
func (o *joinerController) blockedNodes(nodes, evictions []string) (map[string]bool, error) {
	s, err := o.snapshot()
	if err != nil {
		return nil, err
	}
	nodeOf := map[string]string{} // of the pods on leaving nodes, by pod; the given nodes are leaving
	for i := range s.Nodes {
		for k := range s.Nodes[i].Pods {
			if n := &s.Nodes[i]; n.Leaving {
				nodeOf[n.Pods[k].ID()] = n.Name
			}
		}
	}
	out := map[string]bool{}
	for _, id := range consolidation.Unschedulable(s, packing.Solve(s, o.fleet.Market, packing.DefaultEffort), nodes, evictions) {
		out[nodeOf[id]] = true
	}
	return out, nil
}
