package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

const instanceID = "i-0123456789abcdef0"

func TestIdentity(t *testing.T) {
	t.Parallel()
	ec2 := lifecycle.Identity{Instance: instanceID, PrivateDNS: "ip-10-0-0-12.ec2.internal",
		Addresses: []string{"10.0.0.12", "10.0.0.77", "2600:1f18::c"}}
	with := func(change func(*lifecycle.Identity)) lifecycle.Identity {
		i := ec2
		change(&i)
		return i
	}
	resourceName := with(func(i *lifecycle.Identity) { i.PrivateDNS = instanceID + ".us-west-2.compute.internal" })
	dhcpDomain := with(func(i *lifecycle.Identity) { i.Domains = []string{"corp.example"} })
	for name, c := range map[string]struct {
		ec2       lifecycle.Identity
		node      string
		addresses []string
		want      lifecycle.Verdict
		why       string // a part of the text; empty: no text
	}{
		"IP name":            {ec2, "ip-10-0-0-12.ec2.internal", []string{"10.0.0.12"}, lifecycle.IdentityMatches, ""},
		"IP name, no domain": {ec2, "ip-10-0-0-12", []string{"10.0.0.12"}, lifecycle.IdentityMatches, ""},
		"upper case":         {ec2, "IP-10-0-0-12.EC2.internal", []string{"10.0.0.12"}, lifecycle.IdentityMatches, ""},
		"instance id":        {ec2, instanceID, []string{"10.0.0.12"}, lifecycle.IdentityMatches, ""},
		"resource name": {resourceName, instanceID + ".us-west-2.compute.internal", []string{"10.0.0.12"},
			lifecycle.IdentityMatches, ""},
		"IPv6 cluster": {ec2, "ip-10-0-0-12.ec2.internal", []string{"2600:1f18::c"}, lifecycle.IdentityMatches, ""},
		"dual stack": {ec2, "ip-10-0-0-12.ec2.internal", []string{"10.0.0.12", "2600:1f18::c"},
			lifecycle.IdentityMatches, ""},
		"address of a second interface": {ec2, "ip-10-0-0-12.ec2.internal", []string{"10.0.0.77"}, lifecycle.IdentityMatches, ""},
		"another instance's name": {ec2, "ip-6-6-6-6.ec2.internal", []string{"6.6.6.6"},
			lifecycle.IdentityMismatch, "private DNS name"},
		"another instance's name, our address": {ec2, "ip-6-6-6-6.ec2.internal", []string{"10.0.0.12"},
			lifecycle.IdentityMismatch, "private DNS name"},
		"another instance's id as the name": {ec2, "i-0fedcba9876543210", []string{"10.0.0.12"},
			lifecycle.IdentityMismatch, "private DNS name"},
		"our name, another address": {ec2, "ip-10-0-0-12.ec2.internal", []string{"6.6.6.6"}, lifecycle.IdentityMismatch, "address"},
		"our first label, another domain": {ec2, "ip-10-0-0-12.evil.example", []string{"10.0.0.12"},
			lifecycle.IdentityMismatch, "private DNS name"},
		"our name as the end of another": {ec2, "x-ip-10-0-0-12.ec2.internal", []string{"10.0.0.12"},
			lifecycle.IdentityMismatch, "private DNS name"},
		"domain of DHCP options": {dhcpDomain, "ip-10-0-0-12.corp.example", []string{"10.0.0.12"}, lifecycle.IdentityMatches, ""},
		"domain of DHCP options, other host": {dhcpDomain, "ip-10-0-0-13.corp.example", []string{"10.0.0.12"},
			lifecycle.IdentityMismatch, "private DNS name"},
		"name from the node class": {with(func(i *lifecycle.Identity) { i.Names = []string{"mine.example.com"} }),
			"mine.example.com", []string{"10.0.0.12"},
			lifecycle.IdentityMatches, ""},
		"any name": {with(func(i *lifecycle.Identity) { i.Domains = []string{"*"} }), "anything", []string{"10.0.0.12"},
			lifecycle.IdentityMatches, ""},
		"any name, another address": {with(func(i *lifecycle.Identity) { i.Domains = []string{"*"} }), "anything", []string{"6.6.6.6"},
			lifecycle.IdentityMismatch, "address"},
		"no address yet": {ec2, "ip-10-0-0-12.ec2.internal", nil, lifecycle.IdentityUnknown, "InternalIP"},
		"EC2 shows no address yet": {with(func(i *lifecycle.Identity) { i.Addresses = nil }), "ip-10-0-0-12.ec2.internal", []string{"10.0.0.12"},
			lifecycle.IdentityUnknown, "address"},
		"EC2 shows no name yet": {with(func(i *lifecycle.Identity) { i.PrivateDNS = "" }), "ip-10-0-0-12.ec2.internal", []string{"10.0.0.12"},
			lifecycle.IdentityUnknown, "private DNS name"},
		"no name": {ec2, "", []string{"10.0.0.12"}, lifecycle.IdentityMismatch, "private DNS name"},
	} {
		got, why := c.ec2.Judge(lifecycle.NodeIdentity{Name: c.node, Instance: instanceID, Addresses: c.addresses})
		if got != c.want || !strings.Contains(why, c.why) || (why == "") != (got == lifecycle.IdentityMatches) {
			t.Errorf("%s: %v %q, want %v %q", name, got, why, c.want, c.why)
		}
	}
	if got, why := ec2.Judge(lifecycle.NodeIdentity{Name: ec2.PrivateDNS, Instance: "i-0fedcba9876543210",
		Addresses: ec2.Addresses}); got != lifecycle.IdentityMismatch || why == "" {
		t.Errorf("Node with another instance ID: %v %q, want IdentityMismatch with a reason", got, why)
	}
}

// TestAddressesOfNodes: a kubelet may write any text as an address. That text must not appear in the message of Judge:
// an event has the message and then a command, and users paste commands from events.
func TestAddressesOfNodes(t *testing.T) {
	t.Parallel()
	ec2 := lifecycle.Identity{Instance: instanceID, PrivateDNS: "ip-10-0-0-12.ec2.internal", Addresses: []string{"10.0.0.12"}}
	for _, hostile := range []string{"6.6.6.6; run: kubectl delete nodeclaim --all", "\x1b[2J", "$(reboot)",
		"fe80::1%; kubectl delete nodeclaim --all", strings.Repeat("9", 100_000)} {
		addresses := []string{"6.6.6.6", hostile}
		for range 1_000 {
			addresses = append(addresses, "6.6.6.7")
		}
		// Only the harmless address, both, only the hostile one, and all 1,002.
		for _, list := range [][]string{addresses[:1], addresses[:2], addresses[1:2], addresses} {
			verdict, why := ec2.Judge(lifecycle.NodeIdentity{Name: ec2.PrivateDNS, Instance: instanceID, Addresses: list})
			if verdict != lifecycle.IdentityMismatch || len(why) > 200 || strings.Contains(why, "kubectl") ||
				strings.Contains(why, "\x1b") || strings.Contains(why, "$(") {
				t.Errorf("address %.60q: verdict %d, text %.300q; want IdentityMismatch and at most 200 bytes without the hostile text",
					hostile, verdict, why)
			}
		}
	}
}
