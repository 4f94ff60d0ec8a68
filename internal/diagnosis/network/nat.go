package network

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
	"github.com/joiner-sh/joiner/internal/diagnosis/nodeclass"
)

// likelyNAT returns a NAT gateway for a subnet. If the route tables of the subnets in the same zone lead to one NAT
// gateway, it returns that gateway. Otherwise it returns the only NAT gateway of all route tables. The result is empty
// if the user must choose.
func likelyNAT(ix *index.Index, subnet string) string {
	zone := func(id string) string {
		i := slices.IndexFunc(ix.Evidence.Subnets.Value, func(s diagnosis.Subnet) bool { return s.ID == id })
		if i < 0 {
			return ""
		}
		return ix.Evidence.Subnets.Value[i].Zone
	}
	all, near := map[string]nodeclass.Usage{}, map[string]nodeclass.Usage{} // by gateway; all counts are 0
	for _, t := range ix.Evidence.Routes.Value {
		for _, r := range t.Routes {
			if !strings.HasPrefix(r.Target, "nat-") || r.Blackhole {
				continue
			}
			all[r.Target] = nodeclass.Usage{}
			if slices.ContainsFunc(t.Subnets, func(id string) bool { return zone(id) != "" && zone(id) == zone(subnet) }) {
				near[r.Target] = nodeclass.Usage{}
			}
		}
	}
	for _, gateways := range []map[string]nodeclass.Usage{near, all} {
		if names := nodeclass.MostUsed(gateways); len(names) == 1 {
			return names[0]
		}
	}
	return ""
}
