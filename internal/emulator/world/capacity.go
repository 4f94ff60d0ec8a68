package world

import "strings"

// Capacity determines how many more instances a region can launch, from the limits of CapacityPools, the account's
// quotas, and the current usage.
type Capacity struct {
	// Quotas are the account's maximum numbers of vCPUs. A Quota without an entry is not limited.
	Quotas map[Quota]int64

	limits []limit
	usage  usage
}

// CapacityPool selects offerings that share a limit; it is not a NodePool. An empty field matches all values.
type CapacityPool struct {
	Type         string // "m5.large", or a family "m5.*"
	Zone         string // "us-east-1a"
	CapacityType string // "on-demand" or "spot"
}

type limit struct {
	pool CapacityPool
	most int // pending and running instances
}

// usage counts the pending and running instances and their vCPUs.
type usage struct {
	running map[Offering]int // includes pending instances
	vcpus   map[Quota]int64
}

// Quota identifies a quota of vCPUs, by instance class and capacity type.
type Quota struct {
	Kind string // "standard", "f", "g", "p", "x", "inf", "trn", "dl", "hpc", "u"
	Spot bool   // the quota is for spot instances; false: for all other instances
}

// Limit sets the maximum number of pending and running instances of a pool. It replaces an earlier limit of the same
// pool. An offering that belongs to several pools has several limits, and the lowest one applies.
func (c *Capacity) Limit(p CapacityPool, n int) {
	for i := range c.limits {
		if c.limits[i].pool == p {
			c.limits[i].most = n
			return
		}
	}
	c.limits = append(c.limits, limit{pool: p, most: n})
}

// RemoveLimit removes the limit of a pool.
func (c *Capacity) RemoveLimit(p CapacityPool) {
	for i := range c.limits {
		if c.limits[i].pool == p {
			c.limits = append(c.limits[:i:i], c.limits[i+1:]...) // copies: a caller may iterate over the old list
			return
		}
	}
}

func (p CapacityPool) includes(o Offering) bool {
	if p.Type != "" && p.Type != o.Type {
		family, ok := strings.CutSuffix(p.Type, ".*")
		if !ok || !strings.HasPrefix(o.Type, family+".") {
			return false
		}
	}
	if p.Zone != "" && p.Zone != o.Zone {
		return false
	}
	return p.CapacityType == "" || (p.CapacityType == "spot") == o.Spot
}

// remaining returns how many more instances of the offering can be launched; 1<<30 if no limit applies.
func (c *Capacity) remaining(o Offering) int {
	const unlimited = 1 << 30
	least := unlimited
	for _, l := range c.limits {
		if !l.pool.includes(o) {
			continue
		}
		n := l.most
		for used, count := range c.usage.running {
			if l.pool.includes(used) {
				n -= count
			}
		}
		least = min(least, n)
	}
	return max(least, 0)
}

// quotaAllows reports whether the quota q allows another instance with this number of vCPUs.
func (c *Capacity) quotaAllows(q Quota, vcpus int64) bool {
	most, isLimited := c.Quotas[q]
	return !isLimited || c.usage.vcpus[q]+vcpus <= most
}

// QuotaOf returns the quota that applies to the instance type.
func QuotaOf(instanceType string, spot bool) Quota {
	family, _, _ := strings.Cut(instanceType, ".")
	for _, kind := range []string{"inf", "trn", "dl", "hpc"} {
		if strings.HasPrefix(family, kind) {
			return Quota{Kind: kind, Spot: spot}
		}
	}
	switch first := family[:min(1, len(family))]; first {
	case "g", "v": // VT instances share the quota of G instances
		return Quota{Kind: "g", Spot: spot}
	case "f", "p", "x", "u":
		return Quota{Kind: first, Spot: spot}
	}
	return Quota{Kind: "standard", Spot: spot}
}

func (c *Capacity) occupy(o Offering, vcpus int64) {
	c.usage.running[o]++
	c.usage.vcpus[QuotaOf(o.Type, o.Spot)] += vcpus
}

func (c *Capacity) vacate(o Offering, vcpus int64) {
	c.usage.running[o]--
	if c.usage.running[o] == 0 {
		delete(c.usage.running, o)
	}
	c.usage.vcpus[QuotaOf(o.Type, o.Spot)] -= vcpus
}
