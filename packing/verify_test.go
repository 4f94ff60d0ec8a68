package packing_test

import (
	"fmt"
	"slices"

	"github.com/joiner-sh/joiner/capacity"
	"github.com/joiner-sh/joiner/catalog"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
	"github.com/joiner-sh/joiner/packing"
)

// verify holds a plan against the rules, as they are written in the Kubernetes
// and Karpenter documentation, pod by pod and offering by offering. It shares
// nothing with the solver but the values. It returns what is broken.
func verify(s cluster.Snapshot, market catalog.Market, plan packing.Plan) []string {
	v := &verifier{snapshot: s, market: market, pods: map[string]cluster.Pod{}, places: map[string]int{}}
	for _, p := range s.Pods {
		v.pods[p.ID()] = p
	}
	for _, m := range plan.Machines {
		v.machine(m)
	}
	v.placements(plan.Placements)
	v.limits(plan.Machines)
	for _, r := range plan.Refusals {
		v.places[r.Pod]++
		v.refusal(r)
	}
	for _, p := range s.Pods {
		if v.places[p.ID()] != 1 {
			v.broken("pod %s has %d places or refusals", p.ID(), v.places[p.ID()])
		}
	}
	v.price(plan)
	return v.found
}

type verifier struct {
	snapshot cluster.Snapshot
	market   catalog.Market
	pods     map[string]cluster.Pod
	places   map[string]int
	found    []string
}

func (v *verifier) broken(format string, args ...any) {
	v.found = append(v.found, fmt.Sprintf(format, args...))
}

func (v *verifier) pool(name string) (cluster.Pool, bool) {
	i := slices.IndexFunc(v.snapshot.Pools, func(p cluster.Pool) bool { return p.Name == name })
	if i < 0 {
		return cluster.Pool{}, false
	}
	return v.snapshot.Pools[i], true
}

func (v *verifier) machine(m packing.Machine) {
	pool, ok := v.pool(m.Pool)
	if !ok || pool.Unusable != "" {
		v.broken("machine %s is of pool %q, which may not be used", m.Name, m.Pool)
		return
	}
	var pods []cluster.Pod
	for _, id := range m.Pods {
		p, ok := v.pods[id]
		if !ok {
			v.broken("machine %s has pod %s, which nobody asked for", m.Name, id)
		}
		v.places[id]++
		pods = append(pods, p)
	}
	types := map[string]bool{}
	for i, c := range m.Offerings {
		types[c.InstanceType] = true
		if i > 0 && c.Price < m.Offerings[i-1].Price {
			v.broken("machine %s: offering %d is cheaper than the one before it", m.Name, i)
		}
		v.choice(m, pool, c, pods)
	}
	if len(types) == 0 || len(types) > 60 {
		v.broken("machine %s has %d instance types", m.Name, len(types))
	}
	v.minValues(m, pool)
}

// choice checks that a machine bought as this offering would take all its pods.
func (v *verifier) choice(m packing.Machine, pool cluster.Pool, c packing.Choice, pods []cluster.Pod) {
	where := fmt.Sprintf("machine %s as %s %s %s", m.Name, c.InstanceType, c.Zone, c.CapacityType)
	typ, offering, ok := v.offering(pool.NodeClass, c)
	if !ok {
		v.broken("%s: there is no such offering", where)
		return
	}
	if offering.Price != c.Price || !offering.Available {
		v.broken("%s: it costs %s, available %t", where, offering.Price, offering.Available)
	}
	labels := nodeLabels(pool, typ, offering)
	for k, value := range m.Labels {
		labels[k] = value
	}
	for _, r := range pool.Requirements {
		if values, _ := constraint.ValuesOf(r.Operator, r.Values...); !(constraint.Requirements{r.Key: values}).Accepts(labels) {
			v.broken("%s: the pool's requirement %+v is not met by %v", where, r, labels)
		}
	}
	all := slices.Clone(pods)
	for _, d := range v.snapshot.Daemons {
		as := cluster.Pod{Requests: d.Requests, Required: d.Required, Tolerations: d.Tolerations, HostPorts: d.HostPorts, Name: d.Name}
		if suits(as, labels, pool.Taints) && lacksNoDevice(d.Requests, typ.Allocatable) {
			all = append(all, as)
		}
	}
	for _, p := range pods {
		if !suits(p, labels, pool.Taints) {
			v.broken("%s: pod %s does not accept it", where, p.ID())
		}
	}
	v.fits(where, typ.Allocatable, all, len(pods))
}

func lacksNoDevice(asks, has capacity.Amounts) bool {
	for _, e := range asks.Extended {
		if e.Value > has.Of(e.Name) {
			return false
		}
	}
	return true
}

// fits checks room and host ports. The first planned of the pods are ours;
// if others take a port twice, that is not our doing.
func (v *verifier) fits(where string, room capacity.Amounts, pods []cluster.Pod, planned int) {
	var sum capacity.Amounts
	for i, p := range pods {
		sum = sum.Add(p.Requests)
		for _, other := range pods[:min(i, planned)] {
			for _, h := range p.HostPorts {
				if slices.ContainsFunc(other.HostPorts, h.Conflicts) {
					v.broken("%s: port %d is taken twice", where, h.Port)
				}
			}
		}
	}
	if lack := sum.Lacking(room); lack != nil {
		v.broken("%s: overfilled in %v: %v of %v", where, lack, sum, room)
	}
}

func (v *verifier) offering(class string, c packing.Choice) (catalog.Type, catalog.Offering, bool) {
	for _, t := range v.market[class].Types {
		for _, o := range t.Offerings {
			if t.Name == c.InstanceType && o.Zone == c.Zone && o.CapacityType == c.CapacityType {
				return t, o, true
			}
		}
	}
	return catalog.Type{}, catalog.Offering{}, false
}

// nodeLabels are those of a node of the pool that is bought as this offering,
// without custom labels that leave a choice.
func nodeLabels(pool cluster.Pool, t catalog.Type, o catalog.Offering) constraint.Labels {
	labels := constraint.Labels{"kubernetes.io/hostname": "some-name"}
	for _, from := range []constraint.Labels{t.Labels, o.Labels(), pool.Labels} {
		for k, v := range from {
			labels[k] = v
		}
	}
	labels["karpenter.sh/nodepool"] = pool.Name
	labels["karpenter.k8s.aws/ec2nodeclass"] = pool.NodeClass
	labels["karpenter.sh/registered"], labels["karpenter.sh/initialized"] = "true", "true"
	return labels
}

// suits reports whether the pod accepts a node with these labels and taints.
func suits(p cluster.Pod, labels constraint.Labels, taints []constraint.Taint) bool {
	if _, bad := constraint.Untolerated(taints, p.Tolerations); bad {
		return false
	}
	if len(p.Required) == 0 {
		return true
	}
	return slices.ContainsFunc(p.Required, func(r constraint.Requirements) bool { return r.Accepts(labels) })
}

func (v *verifier) minValues(m packing.Machine, pool cluster.Pool) {
	for _, r := range pool.Requirements {
		seen := map[string]bool{}
		for _, c := range m.Offerings {
			if t, o, ok := v.offering(pool.NodeClass, c); ok {
				if value, ok := nodeLabels(pool, t, o)[r.Key]; ok {
					seen[value] = true
				}
			}
		}
		if r.MinValues > 1 && len(seen) < r.MinValues {
			v.broken("machine %s has %d values of %s, the pool asks for %d", m.Name, len(seen), r.Key, r.MinValues)
		}
	}
}

func (v *verifier) placements(placements []packing.Placement) {
	for _, n := range v.snapshot.Nodes {
		var pods []cluster.Pod
		for _, at := range placements {
			if at.Node == n.Name {
				pods = append(pods, v.pods[at.Pod])
				v.places[at.Pod]++
			}
		}
		if len(pods) == 0 {
			continue
		}
		labels := constraint.Labels{"kubernetes.io/hostname": n.Name}
		for k, value := range n.Labels {
			labels[k] = value
		}
		for _, p := range pods {
			if n.Leaving || !suits(p, labels, n.Taints) {
				v.broken("pod %s does not accept node %s", p.ID(), n.Name)
			}
		}
		there := cluster.Pod{HostPorts: n.HostPorts}
		v.fits("node "+n.Name, n.Allocatable.Sub(n.Requested), append(pods, there), len(pods))
	}
}

// limits checks the pools' limits, whichever of its offerings each machine becomes.
func (v *verifier) limits(machines []packing.Machine) {
	for _, pool := range v.snapshot.Pools {
		used, nodes := pool.Usage, pool.Nodes
		bought := 0
		for _, m := range machines {
			if m.Pool != pool.Name {
				continue
			}
			bought++
			var largest capacity.Amounts
			for _, c := range m.Offerings {
				t, _, _ := v.offering(pool.NodeClass, c)
				largest = largest.Max(t.Capacity)
			}
			used = used.Add(largest)
		}
		if bought == 0 {
			continue
		}
		if n := pool.Limits.Nodes; n != nil && nodes+bought > *n {
			v.broken("pool %s: %d nodes, the limit is %d", pool.Name, nodes+bought, *n)
		}
		for name, most := range pool.Limits.Ceiling {
			if used.Of(name) > most && used.Of(name) > pool.Usage.Of(name) {
				v.broken("pool %s: %d of %s, the limit is %d", pool.Name, used.Of(name), name, most)
			}
		}
	}
}

// refusal checks that the obstacle is real: unless limits, minValues or the
// effort stand in the way, nothing that can be bought would take the pod alone.
func (v *verifier) refusal(r packing.Refusal) {
	p := v.pods[r.Pod]
	if len(r.Reasons) == 0 {
		v.broken("pod %s is refused for no reason", r.Pod)
	}
	for _, reason := range r.Reasons {
		switch reason.Code {
		case packing.LimitReached, packing.MinValues, packing.EffortSpent, packing.Unplannable:
			return
		}
	}
	for _, pool := range v.snapshot.Pools {
		if pool.Unusable != "" {
			continue
		}
		for _, t := range v.market[pool.NodeClass].Types {
			for _, o := range t.Offerings {
				if o.Available && v.takes(pool, t, o, p) {
					v.broken("pod %s is refused (%+v), but %s as %s %s %s of pool %s would take it", r.Pod, r.Reasons, p.Requests, t.Name, o.Zone, o.CapacityType, pool.Name)
					return
				}
			}
		}
	}
}

// takes reports whether the offering would take the pod alone. Pools with
// custom labels that leave a choice are left out.
func (v *verifier) takes(pool cluster.Pool, t catalog.Type, o catalog.Offering, p cluster.Pod) bool {
	labels := nodeLabels(pool, t, o)
	for _, r := range pool.Requirements {
		values, ok := constraint.ValuesOf(r.Operator, r.Values...)
		if !ok || !(constraint.Requirements{r.Key: values}).Accepts(labels) {
			return false
		}
	}
	probe := verifier{snapshot: v.snapshot, market: v.market}
	name := packing.Machine{Name: "probe", Labels: pool.Labels}
	probe.choice(name, pool, packing.Choice{InstanceType: t.Name, Zone: o.Zone, CapacityType: o.CapacityType, Price: o.Price}, []cluster.Pod{p})
	return len(probe.found) == 0
}

func (v *verifier) price(plan packing.Plan) {
	var sum catalog.Price
	for _, m := range plan.Machines {
		sum += m.Offerings[0].Price
	}
	if sum != plan.Price {
		v.broken("the machines cost %s, the plan says %s", sum, plan.Price)
	}
	if plan.Price < plan.LowerBound {
		v.broken("the plan costs %s, less than its lower bound %s", plan.Price, plan.LowerBound)
	}
}
