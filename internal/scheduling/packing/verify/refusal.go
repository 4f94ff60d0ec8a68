package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// checkRefusals checks that refused pods have no place. After all planned pods are bound, it tries each refused pod
// by itself on the existing nodes and on a new node of every offering. EffortSpent is accepted if the plan used more
// than half of its steps, because the solver does not start work that might exceed the limit.
func (c *checker) checkRefusals(plan packing.Plan, t *topology) {
	r := roomFinder{topology: t, cache: map[string]string{}, requests: make([]resources.Amounts, len(c.places))}
	for i, at := range c.places {
		for _, p := range at.pods {
			r.requests[i] = r.requests[i].Add(p.Requests)
		}
	}
	for _, refusal := range plan.Refusals {
		p, ok := c.pods[refusal.Pod]
		if !ok {
			c.report("pod %s is refused, but is not in the snapshot", refusal.Pod)
			continue
		}
		c.outcomes[refusal.Pod]++
		switch {
		case len(refusal.Reasons) == 0:
			c.report("pod %s is refused without a reason", refusal.Pod)
		case hasReason(refusal, packing.EffortSpent) && plan.Steps <= int(plan.Effort)/2:
			c.report("pod %s is refused because of the work limit, but only %d of %d steps were used", refusal.Pod, plan.Steps, plan.Effort)
		case p.Unplannable != "" || hasReason(refusal, packing.EffortSpent, packing.Unplannable):
		default:
			// Limits and minValues may keep a pool from launching an offering. placeFor does not check them.
			onNewNodes := !hasReason(refusal, packing.LimitReached, packing.MinValues)
			if where := r.placeFor(p, onNewNodes); where != "" {
				first := refusal.Reasons[0]
				reason := strings.TrimSpace(string(first.Code) + " " + first.Detail)
				c.report("pod %s is refused (%s), but %s would take it", refusal.Pod, reason, where)
			}
		}
	}
}

func hasReason(r packing.Refusal, codes ...packing.Code) bool {
	return slices.ContainsFunc(r.Reasons, func(reason packing.Reason) bool { return slices.Contains(codes, reason.Code) })
}

// roomFinder finds room for refused pods.
type roomFinder struct {
	*topology
	cache      map[string]string   // cache of placeFor, by identity of the pod's requirements
	requests   []resources.Amounts // by place: requests of the planned pods
	launchable []*offer            // all offerings that may be launched
	isListed   bool                // launchable is set
}

// placeFor returns, for a sentence, a node that would take the pod, or "". It tries new nodes only with onNewNodes.
func (r *roomFinder) placeFor(p *cluster.Pod, onNewNodes bool) string {
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
	where, ok := r.cache[string(w)]
	if !ok {
		where = r.nodeFor(p)
		if where == "" && onNewNodes {
			where = r.offerFor(p)
		}
		r.cache[string(w)] = where
	}
	return where
}

func (r *roomFinder) nodeFor(p *cluster.Pod) string {
	for i := range r.places {
		at := &r.places[i]
		n := at.node
		if n == nil || n.Leaving || len(nodeLackingResources(n, r.requests[i].Add(p.Requests))) > 0 {
			continue
		}
		taken := slices.Clone(n.HostPorts)
		for _, other := range at.pods {
			taken = append(taken, other.HostPorts...)
		}
		labels := nodeLabels(n)
		if suits(p.Required, p.Tolerations, labels, n.Taints) && !conflicts(p.HostPorts, taken) &&
			r.claimsAllow(p.Volumes, n.Labels[labelZone]) && r.rulesAllow(p, labels, i, nil) {
			return at.name
		}
	}
	return ""
}

// offerFor returns a new node for the pod, or "". Pools that allow several values for a custom label are not tried,
// because a node without a chosen value does not satisfy their requirements.
func (r *roomFinder) offerFor(p *cluster.Pod) string {
	if !r.isListed {
		r.isListed = true
		r.listLaunchable()
	}
	demand := r.demandOf(p)
	for _, o := range r.launchable {
		if len(o.lackingResources(p.Requests)) == 0 && r.accepts(o, demand) && !o.hasPortConflict(p.HostPorts) &&
			r.claimsAllow(p.Volumes, o.labels[labelZone]) && r.rulesAllow(p, o.labels, -1, o.kinds) {
			return fmt.Sprintf("a planned node of pool %s (offering %s)", o.pool.Name, o)
		}
	}
	return ""
}

// listLaunchable sets launchable, pool by pool, without the offerings of reservations that have no instance left.
func (r *roomFinder) listLaunchable() {
	unused := r.unusedInstances()
	for _, name := range slices.Sorted(maps.Keys(r.pools)) {
		pool := r.pools[name]
		if pool.Unusable != "" {
			continue
		}
		var w identity
		w.labels(pool.Labels)
		for _, t := range r.market.Types(pool.NodeClass, pool.Name) {
			for _, offering := range t.Offerings {
				o := r.cachedOffer(pool, pool.Labels, string(w), choiceOf(t.Name, offering))
				usedUp := offering.Reservation.ID != "" && r.taken[offering.Reservation.ID] >= unused[offering.Reservation.ID]
				if o != nil && len(o.problems) == 0 && !usedUp {
					r.launchable = append(r.launchable, o)
				}
			}
		}
	}
}

func conflicts(ports, taken []cluster.HostPort) bool {
	return slices.ContainsFunc(ports, func(p cluster.HostPort) bool { return slices.ContainsFunc(taken, p.Conflicts) })
}

// rulesAllow reports whether the rules between pods allow the pod on a node with these labels, after all planned pods
// are bound. place is -1 for a node that is not in the plan; daemons are the DaemonSet pods on such a node.
func (r *roomFinder) rulesAllow(p *cluster.Pod, labels map[string]string, place int, daemons []*cluster.PodKind) bool {
	c := &r.classes[r.classOf[p]]
	at := func(v *view) reach { return r.reachOf(v, labels, place) }
	for _, u := range c.uses {
		e := r.spreadEnd[u.rule]
		here := at(e.view)
		u.self += counted(daemons, e.counts) // they start before the pod
		if over, _ := e.excess(u, here, place); over > 0 || len(here.domains) == 0 {
			return false
		}
	}
	if c.affinity >= 0 {
		n := r.affinityEnd[c.affinity]
		for _, v := range n.views {
			if len(at(v).domains) == 0 {
				return false
			}
		}
		_, _, unmet := n.unmetTerm(func(term int) reach { return at(n.views[term]) }, place, c.self)
		if unmet && counted(daemons, n.counts) == 0 {
			return false
		}
	}
	matched := r.kinds[c.kind].antiAffinities
	for _, n := range slices.Concat(c.avoids, matched) {
		_, owner := slices.BinarySearch(c.avoids, n)
		_, target := slices.BinarySearch(matched, n)
		rule := r.antiAffinities[n]
		clash := owner && counted(daemons, rule.counts) > 0 || target && slices.ContainsFunc(daemons, rule.isTermOf)
		excludes := func(d int) bool { return clash || !rule.admits(owner, target, d) }
		if slices.ContainsFunc(at(rule.view).domains, excludes) {
			return false
		}
	}
	return true
}

// counted returns how many pods of these kinds a rule counts.
func counted(kinds []*cluster.PodKind, counts func(namespace string, labels map[string]string) bool) int {
	n := 0
	for _, k := range kinds {
		if counts(k.Namespace, k.Labels) {
			n++
		}
	}
	return n
}

// reachOf returns the reach of the place or, if place is -1, of a node with these labels. The reach is empty if the
// node lacks the label of the view.
func (r *roomFinder) reachOf(v *view, labels map[string]string, place int) reach {
	if place >= 0 {
		return v.reachOfPlace(place)
	}
	value, ok := labels[v.axis.key]
	if !ok {
		return reach{}
	}
	return reach{domains: []int{v.axis.domain(value)}, sure: true}
}
