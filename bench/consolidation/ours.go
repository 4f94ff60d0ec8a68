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

// ours is Joiner as the controller of a fleet. It scans every ten seconds, and checks moves in progress after every
// change.
type ours struct {
	fleet      *fleet.Fleet
	reader     *snapshot.Reader // watches the fleet, as in the controller
	spotToSpot bool

	moves []*underway
	seen  int // value of Changes at the last scan

	steady consolidation.ChurnDetector
	deep   bool // the last scan was a deep search

	record record
}

// underway is a move in progress: its replacement nodes are not all ready, or some of its pods have no place yet.
type underway struct {
	nodes        []string  // nodes to remove
	evictions    []string  // pods to evict one after the other; see EvictionOrder of consolidation.Move
	replacements []string  // replacement nodes
	since        time.Time // time since which pods of the move have no place; zero if that was never so
}

// blockedFor is how long pods without a place block a move before it is undone.
const blockedFor = 30 * time.Second

// pass scans the cluster once, and acts. It skips the scan if nothing has changed since the last one. It returns true
// if it did anything, if a move is in progress, or if a deep search is still due.
func (o *ours) pass() (bool, error) {
	if deep := o.steady.IsLow(o.fleet.Now()); o.fleet.Changes() == o.seen && deep == o.deep {
		return len(o.moves) > 0 || !deep, nil
	}
	o.seen = o.fleet.Changes()
	var d decision
	var err error
	took := o.record.watch(func() { d, err = o.decide() })
	if err != nil {
		return false, err
	}
	o.fleet.Advance(o.fleet.Now().Add(took))
	err = o.act(d)
	return len(d.launch)+len(d.empty)+len(d.moves)+len(o.moves) > 0 || !o.deep, err
}

// decision is the result of one scan.
type decision struct {
	launch []packing.PlannedNode // for pending pods
	empty  []string              // nodes without pods
	moves  []consolidation.Move
}

// decide takes a snapshot, plans for pending and evicted pods, and searches for moves. The duration of a scan is the
// time of decide.
func (o *ours) decide() (decision, error) {
	snapshot, err := o.snapshot()
	if err != nil {
		return decision{}, err
	}
	o.steady.Observe(snapshot, o.fleet.Now())
	o.deep = o.steady.IsLow(o.fleet.Now())
	plan := packing.Solve(snapshot, o.fleet.Market, packing.Usual)
	d := decision{launch: plan.PlannedNodes}
	in := disruption.Input{
		Snapshot: snapshot, Plan: plan, Policies: map[string]disruption.Policy{}, Records: map[string]disruption.Record{}, Now: o.fleet.Now(),
	}
	for _, p := range o.fleet.Pools {
		policy := disruption.Policy{After: p.Spec.Disruption.ConsolidateAfter.Duration}
		for _, b := range p.Spec.Disruption.Budgets {
			policy.Budgets = append(policy.Budgets, disruption.Budget{Nodes: b.Nodes})
		}
		in.Policies[p.Name] = policy
	}
	for _, n := range snapshot.Nodes {
		in.Records[n.Name] = disruption.Record{Ready: true}
	}
	proposal := disruption.Propose(in)
	removing := map[string]int{} // number of empty nodes to remove, by NodePool
	for _, m := range proposal.Moves {
		d.empty = append(d.empty, m.Nodes...)
		removing[m.Pool] += len(m.Nodes)
	}
	rooms := map[string]int{} // number of further nodes that the disruption budgets allow to remove, by NodePool
	for _, r := range proposal.Rooms {
		rooms[r.Pool] = max(r.Nodes-removing[r.Pool], 0)
	}
	if o.isInTurn(snapshot) {
		return d, nil // cordoning more nodes would take room from these pods
	}
	d.moves = consolidation.Find(o.input(disruption.WithoutVacant(in), plan, rooms)).Moves
	return d, nil
}

// isInTurn reports whether a removal that evicts its pods one after the other is in progress, or will follow from a
// move in progress.
func (o *ours) isInTurn(snapshot cluster.Snapshot) bool {
	return slices.ContainsFunc(o.moves, func(u *underway) bool { return len(u.evictions) > 0 }) ||
		slices.ContainsFunc(snapshot.Nodes, func(n cluster.Node) bool {
			m := o.fleet.Instance(n.Name)
			return m != nil && m.Phase == fleet.Removing && len(n.Pods) > 0
		})
}

// snapshot returns the cluster as seen by the controller's informers.
func (o *ours) snapshot() (cluster.Snapshot, error) {
	return o.reader.Snapshot(context.Background(), o.fleet.Now(), o.fleet.Market)
}

// input returns the input of the search for moves. The candidates are nodes with pods that are not the target of a
// planned pod.
func (o *ours) input(snapshot cluster.Snapshot, plan packing.Plan, rooms map[string]int) consolidation.Input {
	in := consolidation.Input{
		Snapshot: snapshot, Market: o.fleet.Market, Nodes: map[string]consolidation.Candidate{}, SpotToSpot: o.spotToSpot, MaxRemovals: rooms,
		LowChurn: o.deep, HighChurn: o.steady.IsHigh(o.fleet.Now()), OneAtATime: true,
	}
	for _, n := range snapshot.Nodes {
		if m := o.fleet.Instance(n.Name); m != nil && m.Phase == fleet.Ready && len(n.Pods) > 0 {
			in.Nodes[n.Name] = consolidation.Candidate{Price: m.Offering.Price, Cost: float64(len(n.Pods))}
		}
	}
	for _, p := range plan.Placements {
		delete(in.Nodes, p.Node)
	}
	return in
}

// act carries out a decision. It skips moves of nodes that are no longer ready, and completes moves without replacement
// nodes at once.
func (o *ours) act(d decision) error {
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
		u := &underway{nodes: m.Nodes, evictions: m.EvictionOrder}
		for _, planned := range m.PlannedNodes {
			name, err := o.launch(planned)
			if err != nil {
				return err
			}
			u.replacements = append(u.replacements, name)
		}
		for _, name := range m.Nodes {
			o.fleet.Cordon(name, true)
		}
		o.fleet.Note() // each move gets its own step in the bill
		o.moves = append(o.moves, u)
	}
	return o.finish()
}

// launch launches a planned node with its cheapest offering, and returns the node's name.
func (o *ours) launch(planned packing.PlannedNode) (string, error) {
	order, err := workload.OrderOf(o.fleet.Market, planned)
	if err != nil {
		return "", err
	}
	return o.fleet.Launch(order).Name, nil
}

// finish completes the moves whose replacement nodes are all ready, if the moves' pods have a place. It undoes a move
// that is blocked for blockedFor. One plan covers all of these moves.
func (o *ours) finish() error {
	ready := slices.DeleteFunc(slices.Clone(o.moves), func(u *underway) bool { return !o.isReady(u) })
	if len(ready) == 0 {
		return nil
	}
	var nodes, evictions []string
	for _, u := range ready {
		nodes, evictions = append(nodes, u.nodes...), append(evictions, u.evictions...)
	}
	nowhere, err := o.nowhere(nodes, evictions)
	if err != nil {
		return err
	}
	var removed []string
	over := map[*underway]bool{} // completed or undone
	for _, u := range ready {
		blocked := slices.ContainsFunc(u.nodes, func(name string) bool { return nowhere[name] })
		switch {
		case !blocked && len(u.evictions) > 0:
			o.fleet.RemoveInTurn(u.evictions, u.nodes...)
			over[u] = true
		case !blocked:
			removed, over[u] = append(removed, u.nodes...), true
		case u.since.IsZero():
			u.since = o.fleet.Now()
		case o.fleet.Now().Sub(u.since) >= blockedFor:
			over[u] = true
			for _, name := range u.nodes {
				o.fleet.Cordon(name, false)
			}
		}
	}
	o.moves = slices.DeleteFunc(o.moves, func(u *underway) bool { return over[u] })
	o.fleet.Remove(removed...)
	return nil
}

// isReady reports whether the replacement nodes of the move are ready or no longer exist.
func (o *ours) isReady(u *underway) bool {
	return !slices.ContainsFunc(u.replacements,
		func(name string) bool { m := o.fleet.Instance(name); return m != nil && m.Phase != fleet.Ready })
}

// nowhere returns the nodes that have a pod without a place elsewhere, if the given nodes are removed and the given
// pods are evicted one after the other.
func (o *ours) nowhere(nodes, evictions []string) (map[string]bool, error) {
	snapshot, err := o.snapshot()
	if err != nil {
		return nil, err
	}
	on := map[string]string{}
	for i := range snapshot.Nodes {
		for k := range snapshot.Nodes[i].Pods {
			if n := &snapshot.Nodes[i]; n.Leaving {
				on[n.Pods[k].ID()] = n.Name
			}
		}
	}
	out := map[string]bool{}
	for _, id := range consolidation.Unschedulable(snapshot, packing.Solve(snapshot, o.fleet.Market, packing.Usual), nodes, evictions) {
		out[on[id]] = true
	}
	return out, nil
}
