package lifecycle

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Identity holds EC2's facts about an instance, which its Node must match. docs/decisions/0026 lists the required
// comparisons.
type Identity struct {
	Instance   string   // instance ID, "i-0123…"
	PrivateDNS string   // "ip-10-0-0-12.ec2.internal"; empty until EC2 returns it
	Addresses  []string // all private addresses of all network interfaces, IPv4 and IPv6; empty until EC2 returns them

	// Names are the names that the node class gives its Nodes, besides EC2's names.
	Names []string
	// Domains may replace the domain of PrivateDNS. "*" accepts any name of the Node; the addresses are still compared.
	Domains []string
}

// NodeIdentity is a Node that claims to be the Node of an instance.
type NodeIdentity struct {
	Name      string   // name of the Node
	Instance  string   // instance ID in its spec.providerID
	Addresses []string // its addresses of type InternalIP
}

// Verdict is the result of comparing a Node with its instance.
type Verdict int

// The verdicts. The zero value accepts no Node.
const (
	IdentityUnknown  Verdict = iota // EC2 or the kubelet has not yet reported a fact that the comparison needs
	IdentityMatches                 // the Node belongs to the instance
	IdentityMismatch                // the Node does not belong to the instance
)

const anyName = "*"

// Judge compares a Node with the instance that it names. The text is empty for a matching Node. Otherwise it is one
// sentence without a full stop about the difference or the missing fact.
//
// The comparison of names is the strongest. A kubelet can write any address and any provider ID, but the API server
// only lets the kubelet create the Node that its credentials name.
func (i Identity) Judge(n NodeIdentity) (Verdict, string) {
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
			formatAddresses(n.Addresses), i.Instance, formatAddresses(i.Addresses))
	}
	return IdentityMatches, ""
}

// formatAddresses formats the first three addresses for a message. A kubelet can write any text as an address, so a
// placeholder replaces text that is not an IP address.
func formatAddresses(addresses []string) string {
	const maxShown = 3
	var out []string
	for _, a := range addresses[:min(len(addresses), maxShown)] {
		if addr, err := netip.ParseAddr(a); err != nil || addr.Zone() != "" { // a zone can be any text
			a = "(no IP address)"
		}
		out = append(out, a)
	}
	text := strings.Join(out, ", ")
	if more := len(addresses) - maxShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// hasName reports whether a Node of the instance may have the name: PrivateDNS, one of Names, or a host label, alone or
// followed by one of Domains. The host labels are the first label of PrivateDNS, and the instance ID. If Domains has
// "*", any name is allowed.
func (i Identity) hasName(name string) bool {
	label, domain, _ := strings.Cut(strings.ToLower(name), ".")
	dnsLabel, _, _ := strings.Cut(strings.ToLower(i.PrivateDNS), ".")
	isHostLabel := label == dnsLabel || label == strings.ToLower(i.Instance)
	switch {
	case name == "":
		return false
	case strings.EqualFold(name, i.PrivateDNS), strings.EqualFold(name, i.Instance), slices.Contains(i.Names, name),
		slices.Contains(i.Domains, anyName):
		return true
	case dnsLabel == "" || !isHostLabel:
		return false
	}
	return domain == "" || slices.ContainsFunc(i.Domains, func(d string) bool { return strings.EqualFold(d, domain) })
}
