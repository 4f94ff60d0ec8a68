package faults

import (
	"context"

	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

func aclFaults() []Fault {
	allowAll := func(number int64, out bool) network.ACLEntry {
		return network.ACLEntry{Number: number, Out: out, Protocol: "-1", CIDR: "0.0.0.0/0"}
	}
	tcp := func(number int64, out, deny bool, from, to int64) network.ACLEntry {
		return network.ACLEntry{Number: number, Out: out, Deny: deny, Protocol: "6", CIDR: "0.0.0.0/0", From: from, To: to}
	}
	return []Fault{
		{
			Name:  "acl-closed-out",
			What:  "the subnet's network ACL denies port 443 before it allows all other traffic",
			Check: "NET-8",
			Cause: "lets nothing out to port 443",
			// The tcp entry is number 90, outbound, deny. EC2 evaluates this entry before number 100.
			Break: addACL(allowAll(100, false), allowAll(100, true), tcp(90, true, true, 443, 443))},
		{
			Name:  "acl-without-answers",
			What:  "the subnet's network ACL allows inbound traffic to service ports only, so responses to the nodes are denied",
			Check: "NET-8",
			Cause: "lets no answers in",
			// The tcp entries allow inbound traffic to ports 443 and 10250.
			Break: addACL(allowAll(100, true), tcp(100, false, false, 443, 443), tcp(110, false, false, 10250, 10250))},
	}
}

// addACL returns a Break function that gives the scene its own subnet with a network ACL.
func addACL(entries ...network.ACLEntry) func(context.Context, *Scene) error {
	return changeSubnet(func(s *Scene, subnet *network.Subnet, _ *network.RouteTable) {
		s.Lab.Estate.Region.Network.CreateNetworkACL(network.ACL{VPCID: subnet.VPCID, SubnetIDs: []string{subnet.ID}, Entries: entries})
	})
}
