package lifecycle

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Identity is what EC2 says of an instance, and what its Node must agree with. docs/decisions/0026 says which comparisons are required.
type Identity struct {
	Instance   string   // "i-0123…"
	PrivateDNS string   // "ip-10-0-0-12.ec2.internal"; empty while EC2 does not say
	Addresses  []string // all private addresses of all network interfaces, IPv4 and IPv6; empty while EC2 does not say

	// Names are names that the node class gives its Nodes, besides those that EC2 knows.
	Names []string
	// Domains may stand in place of the domain of PrivateDNS. "*" accepts any name; the address is compared all the same.
	Domains []string
}

// Claimant is a Node that says it is the Node of an instance.
type Claimant struct {
	Name      string
	Instance  string   // of its spec.providerID
	Addresses []string // of the type InternalIP
}

// Verdict is what a comparison of a Node with its instance comes to.
type Verdict int

// The verdicts. The zero value accepts no Node.
const (
	IdentityUnknown  Verdict = iota // EC2 or the kubelet has not said enough yet
	IdentityMatches                 // the Node is the instance's
	IdentityMismatch                // the Node is not the instance's
)

// anyName accepts every name in Identity.Domains.
const anyName = "*"

// Judge compares a Node with the instance that it names. The text is empty where the Node matches; else one sentence without a full stop
// says what differs or is missing.
//
// The name is the strongest of the comparisons: a kubelet can write any address and any provider id, and the API server lets it create no
// other Node than the one that its credentials name.
func (i Identity) Judge(n Claimant) (Verdict, string) {
	switch {
	case n.Instance != i.Instance:
		return IdentityMismatch, fmt.Sprintf("spec.providerID names instance %s, the NodeClaim has %s", n.Instance, i.Instance)
	case len(i.Addresses) == 0:
		return IdentityUnknown, "EC2 does not show an address of instance " + i.Instance + " yet"
	case !i.hasName(n.Name) && i.PrivateDNS == "":
		return IdentityUnknown, "EC2 does not show the private DNS name of instance " + i.Instance + " yet"
	case !i.hasName(n.Name):
		return IdentityMismatch, fmt.Sprintf("EC2 says that the private DNS name of instance %s is %s", i.Instance, i.PrivateDNS)
	case len(n.Addresses) == 0:
		return IdentityUnknown, "the Node has no address of type InternalIP yet"
	case !slices.ContainsFunc(n.Addresses, func(a string) bool { return slices.Contains(i.Addresses, a) }):
		return IdentityMismatch, fmt.Sprintf("the Node's address is %s, and EC2 says that instance %s has %s",
			shown(n.Addresses), i.Instance, shown(i.Addresses))
	}
	return IdentityMatches, ""
}

// shown writes addresses, the first few of many. A kubelet can write any text for one, so those that are none are not repeated.
func shown(addresses []string) string {
	const most = 3
	var out []string
	for _, a := range addresses[:min(len(addresses), most)] {
		if addr, err := netip.ParseAddr(a); err != nil || addr.Zone() != "" { // a zone is any text, too
			a = "(no IP address)"
		}
		out = append(out, a)
	}
	text := strings.Join(out, ", ")
	if more := len(addresses) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// hasName reports whether a Node of the instance may have the name.
func (i Identity) hasName(name string) bool {
	label, domain, _ := strings.Cut(strings.ToLower(name), ".")
	own, _, _ := strings.Cut(strings.ToLower(i.PrivateDNS), ".")
	switch {
	case name == "":
		return false
	case strings.EqualFold(name, i.PrivateDNS), strings.EqualFold(name, i.Instance), slices.Contains(i.Names, name),
		slices.Contains(i.Domains, anyName):
		return true
	case own == "" || label != own && label != strings.ToLower(i.Instance):
		return false
	}
	return domain == "" || slices.ContainsFunc(i.Domains, func(d string) bool { return strings.EqualFold(d, domain) })
}
