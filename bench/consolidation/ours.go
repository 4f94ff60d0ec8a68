package consolidation

import (
	"context"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/bench/fleet"
	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/kube"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// ours is our side in charge of a fleet: it looks every ten seconds, and at moves under way whenever something has changed.
type ours struct {
	fleet      *fleet.Fleet
	reader     *kube.Reader // follows the fleet, as in the controller
	spotToSpot bool

	moves []*underway
	seen  int // Changes of the fleet when it was looked at last

	steady consolidation.Steady
	closer bool // whether it was then

	record record
}

// underway is a move that waits for its machines.
type underway struct {
	nodes []string
	turns []string // see consolidation.Move
	comes []string
	since time.Time // since when its pods have no place; zero if they have
}

// blockedFor is how long pods without a place hold up a move before it is undone.
const blockedFor = 30 * time.Second

// pass looks at the cluster once, and does what is to be done. It returns whether anything was, or is under way, or it is yet to be looked closer.
func (o *ours) pass() (bool, error) {
	if closer := o.steady.Is(o.fleet.Now()); o.fleet.Changes() == o.seen && closer == o.closer {
		return len(o.moves) > 0 || !closer, nil
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
	return len(d.buy)+len(d.empty)+len(d.moves)+len(o.moves) > 0 || !o.closer, err
}

// decision is what one look comes to.
type decision struct {
	buy   []packing.Machine // for pods that wait
	empty []string          // nodes without pods
	moves []consolidation.Move
}

// decide is all that takes time: the snapshot, a plan for the pods that wait or are to move, and the moves.
func (o *ours) decide() (decision, error) {
	snapshot, err := o.snapshot()
	if err != nil {
		return decision{}, err
	}
	o.steady.Look(snapshot, o.fleet.Now())
	o.closer = o.steady.Is(o.fleet.Now())
	plan := packing.Solve(snapshot, o.fleet.Market, packing.Usual)
	d := decision{buy: plan.Machines}
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
	going := map[string]int{} // by pool
	for _, m := range proposal.Moves {
		d.empty = append(d.empty, m.Nodes...)
		going[m.Pool] += len(m.Nodes)
	}
	rooms := map[string]int{}
	for _, r := range proposal.Rooms {
		rooms[r.Pool] = max(r.Nodes-going[r.Pool], 0)
	}
	if o.isInTurn(snapshot) {
		return d, nil // who closes nodes now takes places away
	}
	d.moves = consolidation.Find(o.input(disruption.WithoutVacant(in), plan, rooms)).Moves
	return d, nil
}

// isInTurn reports whether pods leave one after the other, or are about to.
func (o *ours) isInTurn(snapshot cluster.Snapshot) bool {
	return slices.ContainsFunc(o.moves, func(u *underway) bool { return len(u.turns) > 0 }) || slices.ContainsFunc(snapshot.Nodes, func(n cluster.Node) bool {
		m := o.fleet.Machine(n.Name)
		return m != nil && m.Phase == fleet.Going && len(n.Pods) > 0
	})
}

// snapshot is the cluster as the controller's informers have told of it.
func (o *ours) snapshot() (cluster.Snapshot, error) {
	return o.reader.Snapshot(context.Background(), o.fleet.Now(), o.fleet.Market)
}

// input is what the moves rest on: nodes that run pods, which nobody waits to go to.
func (o *ours) input(snapshot cluster.Snapshot, plan packing.Plan, rooms map[string]int) consolidation.Input {
	in := consolidation.Input{
		Snapshot: snapshot, Market: o.fleet.Market, Nodes: map[string]consolidation.Candidate{}, SpotToSpot: o.spotToSpot, Rooms: rooms,
		Steady: o.closer, Restless: o.steady.Restless(o.fleet.Now()), InTurn: true,
	}
	for _, n := range snapshot.Nodes {
		if m := o.fleet.Machine(n.Name); m != nil && m.Phase == fleet.Ready && len(n.Pods) > 0 {
			in.Nodes[n.Name] = consolidation.Candidate{Price: m.Offering.Price, Cost: float64(len(n.Pods))}
		}
	}
	for _, p := range plan.Placements {
		delete(in.Nodes, p.Node)
	}
	return in
}

// act does it. Moves that buy nothing are over at once.
func (o *ours) act(d decision) error {
	for _, m := range d.buy {
		if _, err := o.launch(m); err != nil {
			return err
		}
	}
	o.fleet.Remove(d.empty...)
	for _, m := range d.moves {
		if slices.ContainsFunc(m.Nodes, func(name string) bool {
			f := o.fleet.Machine(name)
			return f == nil || f.Phase != fleet.Ready || f.Closed
		}) {
			continue
		}
		u := &underway{nodes: m.Nodes, turns: m.Turns}
		for _, machine := range m.Machines {
			name, err := o.launch(machine)
			if err != nil {
				return err
			}
			u.comes = append(u.comes, name)
		}
		for _, name := range m.Nodes {
			o.fleet.Close(name, true)
		}
		o.fleet.Note() // each move stands by itself
		o.moves = append(o.moves, u)
	}
	return o.finish()
}

func (o *ours) launch(m packing.Machine) (string, error) {
	order, err := workload.OrderOf(o.fleet.Market, m)
	if err != nil {
		return "", err
	}
	return o.fleet.Launch(order).Name, nil
}

// finish ends the moves of which all machines are ready, if their pods have a place on nodes that are: one plan for all of them.
func (o *ours) finish() error {
	ready := slices.DeleteFunc(slices.Clone(o.moves), func(u *underway) bool { return !o.isReady(u) })
	if len(ready) == 0 {
		return nil
	}
	var nodes, turns []string
	for _, u := range ready {
		nodes, turns = append(nodes, u.nodes...), append(turns, u.turns...)
	}
	nowhere, err := o.nowhere(nodes, turns)
	if err != nil {
		return err
	}
	var gone []string
	over := map[*underway]bool{}
	for _, u := range ready {
		blocked := slices.ContainsFunc(u.nodes, func(name string) bool { return nowhere[name] })
		switch {
		case !blocked && len(u.turns) > 0:
			o.fleet.RemoveInTurn(u.turns, u.nodes...)
			over[u] = true
		case !blocked:
			gone, over[u] = append(gone, u.nodes...), true
		case u.since.IsZero():
			u.since = o.fleet.Now()
		case o.fleet.Now().Sub(u.since) >= blockedFor:
			over[u] = true
			for _, name := range u.nodes {
				o.fleet.Close(name, false)
			}
		}
	}
	o.moves = slices.DeleteFunc(o.moves, func(u *underway) bool { return over[u] })
	o.fleet.Remove(gone...)
	return nil
}

func (o *ours) isReady(u *underway) bool {
	return !slices.ContainsFunc(u.comes, func(name string) bool { m := o.fleet.Machine(name); return m != nil && m.Phase != fleet.Ready })
}

// nowhere are those of the nodes of which a pod would find no place.
func (o *ours) nowhere(nodes, turns []string) (map[string]bool, error) {
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
	for _, id := range consolidation.Unbound(snapshot, packing.Solve(snapshot, o.fleet.Market, packing.Usual), nodes, turns) {
		out[on[id]] = true
	}
	return out, nil
}
