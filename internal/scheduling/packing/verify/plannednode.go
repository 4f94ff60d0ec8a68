package verify

import (
	"fmt"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// maxTypes is the maximum number of instance types of one planned node: one CreateFleet request
// accepts about this many.
const maxTypes = 60

// checkPlannedNode checks one planned node by itself, and adds it to the places.
func (c *checker) checkPlannedNode(pn *packing.PlannedNode) {
	at := place{name: "planned node " + pn.Name}
	for _, id := range pn.Pods {
		if p := c.recordPod(id, at.name); p != nil {
			at.pods = append(at.pods, p)
		}
	}
	pool := c.pools[pn.Pool]
	switch {
	case pool == nil:
		c.report("%s is of pool %q, which does not exist", at.name, pn.Pool)
		return
	case pool.Unusable != "":
		c.report("%s is of pool %s, which must not be used: %s", at.name, pn.Pool, pool.Unusable)
	}
	if c.names[pn.Name] {
		c.report("%s is a duplicate", at.name)
	}
	c.names[pn.Name] = true
	if len(pn.Pods) == 0 {
		c.report("%s has no pods", at.name)
	}

	var name identity
	name.labels(pn.Labels)
	types, seen := map[string]bool{}, map[packing.Choice]bool{}
	for i, choice := range pn.Offerings {
		types[choice.InstanceType] = true
		if i > 0 && choice.Price < pn.Offerings[i-1].Price {
			c.report("%s: offering %d is cheaper than the one before it", at.name, i+1)
		}
		if seen[choice] {
			c.report("%s: offering %d is a duplicate", at.name, i+1)
		}
		seen[choice] = true
		o := c.cachedOffer(pool, pn.Labels, string(name), choice)
		if o == nil {
			missing := offer{choice: choice}
			c.report("%s: there is no offering %s", at.name, &missing)
			continue
		}
		at.offers = append(at.offers, o)
	}
	if len(types) == 0 || len(types) > maxTypes {
		c.report("%s keeps %d instance types, want 1 to %d", at.name, len(types), maxTypes)
	}
	c.checkNodeClaim(pn, pool, at.offers)
	c.checkMinValues(pn, pool, &at)
	c.checkReservation(pn, &at)
	c.checkOfferings(&at)
	c.places = append(c.places, at)
}

// checkNodeClaim checks that the planned node has the node class, taints and labels of the pool, and that its
// requirements allow its offerings.
func (c *checker) checkNodeClaim(pn *packing.PlannedNode, pool *cluster.Pool, offers []*offer) {
	if pn.NodeClass != pool.NodeClass {
		c.report("planned node %s is of node class %q, its pool is of %q", pn.Name, pn.NodeClass, pool.NodeClass)
	}
	if !slices.Equal(pn.Taints, pool.Taints) || !slices.Equal(pn.StartupTaints, pool.StartupTaints) {
		c.report("planned node %s has other taints than its pool", pn.Name)
	}
	for key, value := range pool.Labels {
		if pn.Labels[key] != value {
			c.report("planned node %s lacks the label %s=%s of its pool", pn.Name, key, value)
		}
	}
	for _, r := range pn.Requirements {
		values, _ := requirements.ValuesOf(r.Operator, r.Values...)
		required := requirements.Requirements{r.Key: values}
		if i := slices.IndexFunc(offers, func(o *offer) bool { return !required.Accepts(o.labels) }); i >= 0 {
			c.report("planned node %s requires %s %s %v, which rules out its own offering %s",
				pn.Name, r.Key, r.Operator, r.Values, offers[i])
		}
	}
}

// checkOfferings checks that all pods of the planned node can run on each of its offerings.
func (c *checker) checkOfferings(at *place) {
	var sum resources.Amounts
	var ports []cluster.HostPort
	podByDemand := map[int]*cluster.Pod{} // by demand, as in demandOf: one of the pods
	var demands []int                     // the keys of podByDemand
	for _, p := range at.pods {
		sum = sum.Add(p.Requests)
		for _, port := range p.HostPorts {
			c.checkPort(at.name, port, ports)
		}
		ports = append(ports, p.HostPorts...)
		n := c.demandOf(p)
		if podByDemand[n] == nil {
			podByDemand[n] = p
			demands = append(demands, n)
		}
	}
	for _, o := range at.offers {
		where := func() string { return fmt.Sprintf("%s as %s", at.name, o) }
		for _, problem := range o.problems {
			c.report("%s: %s", where(), problem)
		}
		for _, n := range demands {
			if !c.accepts(o, n) {
				c.report("%s: pod %s does not accept it", where(), podByDemand[n].ID())
			}
		}
		if lack := o.lackingResources(sum); len(lack) > 0 {
			c.report("%s has too little %v for its pods", where(), lack)
		}
		if o.hasPortConflict(ports) {
			for _, port := range ports {
				c.checkPort(at.name, port, o.ports())
			}
		}
	}
}

func (c *checker) checkPort(where string, port cluster.HostPort, taken []cluster.HostPort) {
	if slices.ContainsFunc(taken, port.Conflicts) {
		c.report("%s: port %d/%s is taken twice", where, port.Port, port.Protocol)
	}
}
