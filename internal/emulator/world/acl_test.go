package world_test

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

// TestNetworkACL: the matching entry with the lowest number decides. Packets without a matching entry are dropped. The
// VPC's default ACL applies to subnets that no other ACL lists. Protocol 6 is TCP, 17 is UDP.
func TestNetworkACL(t *testing.T) {
	t.Parallel()
	allowAll := network.ACLEntry{Number: 100, Out: true, Protocol: "-1", CIDR: "0.0.0.0/0"}
	cases := map[string]struct {
		entries []network.ACLEntry
		want    bool
	}{
		"no entry":    {nil, false},
		"all allowed": {[]network.ACLEntry{allowAll}, true},
		"denied with a lower number": {[]network.ACLEntry{allowAll,
			{Number: 90, Out: true, Deny: true, Protocol: "6", CIDR: "0.0.0.0/0", From: 443, To: 443}}, false},
		"denied with a higher number": {[]network.ACLEntry{
			{Number: 110, Out: true, Deny: true, Protocol: "-1", CIDR: "0.0.0.0/0"}, allowAll}, true},
		"another port is denied": {[]network.ACLEntry{allowAll,
			{Number: 90, Out: true, Deny: true, Protocol: "6", CIDR: "0.0.0.0/0", From: 22, To: 22}}, true},
		"inbound only": {[]network.ACLEntry{{Number: 100, Protocol: "-1", CIDR: "0.0.0.0/0"}}, false},
		"UDP only":     {[]network.ACLEntry{{Number: 100, Out: true, Protocol: "17", CIDR: "0.0.0.0/0", To: 65535}}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			acl := network.ACL{Entries: c.entries}
			const out = true
			if got := acl.Allows(out, 443); got != c.want {
				t.Errorf("outbound port 443 is allowed: %t, want %t", got, c.want)
			}
		})
	}
	_, e := newClusterWorld(t)
	subnet := e.PrivateSubnets[0]
	if e.Region.Network.NetworkACL(subnet) != nil {
		t.Error("a new VPC has a network ACL, want none")
	}
	defaultACL := e.Region.Network.CreateNetworkACL(network.ACL{VPCID: e.VPC.ID, Default: true})
	subnetACL := e.Region.Network.CreateNetworkACL(network.ACL{VPCID: e.VPC.ID, SubnetIDs: []string{subnet.ID}})
	if e.Region.Network.NetworkACL(subnet) != subnetACL || e.Region.Network.NetworkACL(e.PrivateSubnets[1]) != defaultACL {
		t.Error("wrong ACLs, want the ACL that lists the subnet, and the VPC's default ACL for another subnet")
	}
}
