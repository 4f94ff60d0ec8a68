package verify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// refusals checks that refused pods have no place: it tries each refused pod by itself, after all planned pods are
// bound, on the existing nodes and on a new node of every offering. EffortSpent is accepted if the plan used more than
// half of its steps, because the solver does not start work that might exceed the limit.
func (c *checker) refusals(plan packing.Plan, t *topology) {
	r := refuser{topology: t, answers: map[string]string{}, rooms: make([]resources.Amounts, len(c.places))}
	for i, at := range c.places {
		for _, p := range at.pods {
			r.rooms[i] = r.rooms[i].Add(p.Requests)
		}
	}
	for _, refusal := range plan.Refusals {
		p, ok := c.pods[refusal.Pod]
		if !ok {
			c.broken("pod %s is refused, but is not in the snapshot", refusal.Pod)
			continue
		}
		c.given[refusal.Pod]++
		switch {
		case len(refusal.Reasons) == 0:
			c.broken("pod %s is refused without a reason", refusal.Pod)
		case hasReason(refusal, packing.EffortSpent) && plan.Steps <= int(plan.Effort)/2:
			c.broken("pod %s is refused because of the work limit, but only %d of %d steps were used", refusal.Pod, plan.Steps, plan.Effort)
		case p.Unplannable != "" || hasReason(refusal, packing.EffortSpent, packing.Unplannable):
		default:
			// Limits and minValues may keep a pool from launching an offering, which one attempt does not show.
			onNewNodes := !hasReason(refusal, packing.LimitReached, packing.MinValues)
			if where := r.room(p, onNewNodes); where != "" {
				first := refusal.Reasons[0]
				c.broken("pod %s is refused (%s %s), but %s would take it", refusal.Pod, first.Code, first.Detail, where)
			}
		}
	}
}

// hasReason reports whether the refusal has a reason with one of the codes.
func hasReason(r packing.Refusal, codes ...packing.Code) bool {
	return slices.ContainsFunc(r.Reasons, func(reason packing.Reason) bool { return slices.Contains(codes, reason.Code) })
}

// refuser finds room for refused pods.
type refuser struct {
	*topology
	answers map[string]string   // cache of room, by identity of the pod's requirements
	rooms   []resources.Amounts // by place: requests of the planned pods
	offered []*offer            // all offerings that may be launched
	listed  bool                // offered is set
}

// room returns a place where the pod could go, for a sentence, or "". It tries new nodes only with onNewNodes.
func (r *refuser) room(p *cluster.Pod, onNewNodes bool) string {
	var w identity
	w.flag(onNewNodes)
	w.number(r.classOf[p])
	w.number(r.demandOf(p))
	w.ports(p.HostPorts)
	w.texts(p.Volumes)
	for _, name := range p.Requests.Names() {
		w.text(name)
		w.number(int(p.Requests.Of(name)))
	}
	where, ok := r.answers[string(w)]
	if !ok {
		where = r.nodeFor(p)
		if where == "" && onNewNodes {
			where = r.offerFor(p)
		}
		r.answers[string(w)] = where
	}
	return where
}

// nodeFor returns an existing node for the pod, or "".
func (r *refuser) nodeFor(p *cluster.Pod) string {
	for i := range r.places {
		at := &r.places[i]
		n := at.node
		if n == nil || n.Leaving || len(nodeLacks(n, r.rooms[i].Add(p.Requests))) > 0 {
			continue
		}
		taken := slices.Clone(n.HostPorts)
		for _, other := range at.pods {
			taken = append(taken, other.HostPorts...)
		}
		labels := nodeLabels(n)
		if suits(p.Required, p.Tolerations, labels, n.Taints) && !conflicts(p.HostPorts, taken) &&
			r.reachable(p.Volumes, n.Labels[labelZone]) && r.joins(p, labels, i, nil) {
			return at.name
		}
	}
	return ""
}

// offerFor returns a new node for the pod, or "". Pools that allow several values for a custom label are not tried:
// their offerings without a chosen value do not satisfy their requirements.
func (r *refuser) offerFor(p *cluster.Pod) string {
	if !r.listed {
		r.listed = true
		r.list()
	}
	demand := r.demandOf(p)
	for _, o := range r.offered {
		if len(o.lacks(p.Requests)) == 0 && r.accepts(o, demand) && !o.hasPortConflict(p.HostPorts) &&
			r.reachable(p.Volumes, o.labels[labelZone]) && r.joins(p, o.labels, -1, o.kinds) {
			return fmt.Sprintf("a planned node of pool %s as %s", o.pool.Name, o)
		}
	}
	return ""
}

// list sets offered, pool by pool, without the offerings of reservations that have no instance left.
func (r *refuser) list() {
	left := r.unusedInstances()
	for _, name := range slices.Sorted(maps.Keys(r.pools)) {
		pool := r.pools[name]
		if pool.Unusable != "" {
			continue
		}
		var w identity
		w.labels(pool.Labels)
		for _, t := range r.market.Types(pool.NodeClass, pool.Name) {
			for _, of := range t.Offerings {
				o := r.offer(pool, pool.Labels, string(w), choiceOf(t.Name, of))
				usedUp := of.Reservation.ID != "" && r.taken[of.Reservation.ID] >= left[of.Reservation.ID]
				if o != nil && len(o.wrong) == 0 && !usedUp {
					r.offered = append(r.offered, o)
				}
			}
		}
	}
}

// conflicts reports whether one of the ports conflicts with one in taken.
func conflicts(ports, taken []cluster.HostPort) bool {
	return slices.ContainsFunc(ports, func(p cluster.HostPort) bool { return slices.ContainsFunc(taken, p.Conflicts) })
}

// joins reports whether the rules between pods allow the pod on a node with these labels, after all planned pods are
// bound. place is -1 for a node that is not in the plan; daemons are the DaemonSet pods on such a node.
func (r *refuser) joins(p *cluster.Pod, labels map[string]string, place int, daemons []*cluster.Kind) bool {
	c := &r.classes[r.classOf[p]]
	at := func(v *view) reach { return r.reachOf(v, labels, place) }
	for _, u := range c.uses {
		e := r.spreadEnd[u.rule]
		here := at(e.view)
		u.self += counted(daemons, e.counts)
		if over, _ := e.excess(u, here, place); over > 0 || len(here.domains) == 0 {
			return false
		}
	}
	if c.near >= 0 {
		n := r.nearEnd[c.near]
		for _, v := range n.views {
			if len(at(v).domains) == 0 {
				return false
			}
		}
		_, _, bad := n.misses(func(term int) reach { return at(n.views[term]) }, place, c.self)
		if bad && counted(daemons, n.counts) == 0 {
			return false
		}
	}
	matched := r.kinds[c.kind].aparts
	for _, n := range slices.Concat(c.avoids, matched) {
		_, owner := slices.BinarySearch(c.avoids, n)
		_, target := slices.BinarySearch(matched, n)
		rule := r.aparts[n]
		clash := owner && counted(daemons, rule.counts) > 0 || target && slices.ContainsFunc(daemons, rule.isOf)
		closed := func(d int) bool { return clash || !rule.admits(owner, target, d) }
		if slices.ContainsFunc(at(rule.view).domains, closed) {
			return false
		}
	}
	return true
}

// counted returns how many pods of these kinds a rule counts.
func counted(kinds []*cluster.Kind, counts func(namespace string, labels map[string]string) bool) int {
	n := 0
	for _, k := range kinds {
		if counts(k.Namespace, k.Labels) {
			n++
		}
	}
	return n
}

// reachOf returns the reach of the place or, if place is -1, of a node with these labels: empty if the node lacks the
// label of the view.
func (r *refuser) reachOf(v *view, labels map[string]string, place int) reach {
	if place >= 0 {
		return v.at(place)
	}
	value, ok := labels[v.axis.key]
	if !ok {
		return reach{}
	}
	return reach{domains: []int{v.axis.domain(value)}, sure: true}
}
