package verify

import (
	"fmt"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// maxTypes is the maximum number of instance types of one planned node.
const maxTypes = 60

// plannedNode checks one planned node by itself, and adds it to the places.
func (c *checker) plannedNode(m *packing.PlannedNode) {
	at := place{name: "planned node " + m.Name}
	for _, id := range m.Pods {
		if p := c.take(id, at.name); p != nil {
			at.pods = append(at.pods, p)
		}
	}
	pool := c.pools[m.Pool]
	switch {
	case pool == nil:
		c.broken("%s is of pool %q, which does not exist", at.name, m.Pool)
		return
	case pool.Unusable != "":
		c.broken("%s is of pool %s, which must not be used: %s", at.name, m.Pool, pool.Unusable)
	}
	if c.names[m.Name] {
		c.broken("%s is a duplicate", at.name)
	}
	c.names[m.Name] = true
	if len(m.Pods) == 0 {
		c.broken("%s has no pods", at.name)
	}

	var name identity
	name.labels(m.Labels)
	types, seen := map[string]bool{}, map[packing.Choice]bool{}
	for i, choice := range m.Offerings {
		types[choice.InstanceType] = true
		if i > 0 && choice.Price < m.Offerings[i-1].Price {
			c.broken("%s: offering %d is cheaper than the one before it", at.name, i+1)
		}
		if seen[choice] {
			c.broken("%s: offering %d is a duplicate", at.name, i+1)
		}
		seen[choice] = true
		o := c.offer(pool, m.Labels, string(name), choice)
		if o == nil {
			missing := offer{choice: choice}
			c.broken("%s: there is no offering %s", at.name, &missing)
			continue
		}
		at.offers = append(at.offers, o)
	}
	if len(types) == 0 || len(types) > maxTypes {
		c.broken("%s keeps %d instance types, want 1 to %d", at.name, len(types), maxTypes)
	}
	c.promises(m, pool, at.offers)
	c.minValues(m, pool, &at)
	c.pinned(m, &at)
	c.hosts(&at)
	c.places = append(c.places, at)
}

// promises checks that the planned node has the node class, taints and labels of the pool, and that its requirements
// allow its offerings.
func (c *checker) promises(m *packing.PlannedNode, pool *cluster.Pool, offers []*offer) {
	if m.NodeClass != pool.NodeClass {
		c.broken("planned node %s is of node class %q, its pool is of %q", m.Name, m.NodeClass, pool.NodeClass)
	}
	if !slices.Equal(m.Taints, pool.Taints) || !slices.Equal(m.StartupTaints, pool.StartupTaints) {
		c.broken("planned node %s has other taints than its pool", m.Name)
	}
	for key, value := range pool.Labels {
		if m.Labels[key] != value {
			c.broken("planned node %s lacks the label %s=%s of its pool", m.Name, key, value)
		}
	}
	for _, r := range m.Requirements {
		values, _ := requirements.ValuesOf(r.Operator, r.Values...)
		asks := requirements.Requirements{r.Key: values}
		if i := slices.IndexFunc(offers, func(o *offer) bool { return !asks.Accepts(o.labels) }); i >= 0 {
			c.broken("planned node %s requires %s %s %v, which rules out its own offering %s",
				m.Name, r.Key, r.Operator, r.Values, offers[i])
		}
	}
}

// hosts checks that all pods of the planned node can run on each of its offerings.
func (c *checker) hosts(at *place) {
	var sum resources.Amounts
	var ports []cluster.HostPort
	asking := map[int]*cluster.Pod{} // by demand, as in demandOf: one of the pods
	var demands []int                // the keys of asking
	for _, p := range at.pods {
		sum = sum.Add(p.Requests)
		for _, port := range p.HostPorts {
			c.port(at.name, port, ports)
		}
		ports = append(ports, p.HostPorts...)
		n := c.demandOf(p)
		if asking[n] == nil {
			asking[n] = p
			demands = append(demands, n)
		}
	}
	for _, o := range at.offers {
		where := func() string { return fmt.Sprintf("%s as %s", at.name, o) }
		for _, wrong := range o.wrong {
			c.broken("%s: %s", where(), wrong)
		}
		for _, n := range demands {
			if !c.accepts(o, n) {
				c.broken("%s: pod %s does not accept it", where(), asking[n].ID())
			}
		}
		if lack := o.lacks(sum); len(lack) > 0 {
			c.broken("%s has too little %v for its pods", where(), lack)
		}
		if o.hasPortConflict(ports) {
			for _, port := range ports {
				c.port(at.name, port, o.ports())
			}
		}
	}
}

// port adds a sentence if the port conflicts with one of the ports in taken.
func (c *checker) port(where string, port cluster.HostPort, taken []cluster.HostPort) {
	if slices.ContainsFunc(taken, port.Conflicts) {
		c.broken("%s: port %d/%s is taken twice", where, port.Port, port.Protocol)
	}
}
