package diagnosis

import (
	"fmt"
	"slices"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// ACL is a network ACL. It is stateless: it filters each packet by itself.
type ACL struct {
	ID      string     `json:"id"`
	Default bool       `json:"default,omitempty"` // of the subnets that no other one names
	Subnets []string   `json:"subnets,omitempty"`
	Entries []ACLEntry `json:"entries,omitempty"` // by number
}

// ACLEntry allows or denies packets; the first entry that matches decides.
type ACLEntry struct {
	Number   int    `json:"number"`
	Out      bool   `json:"out,omitempty"` // of what leaves the subnets
	Deny     bool   `json:"deny,omitempty"`
	Protocol string `json:"protocol"` // "6" is TCP, "-1" all
	CIDR     string `json:"cidr,omitempty"`
	From     int    `json:"from,omitempty"`
	To       int    `json:"to,omitempty"`
}

// everywhere is the CIDR of all IPv4 addresses.
const everywhere = "0.0.0.0/0"

// dropper returns the entry that drops TCP packets to a port, outbound or inbound; ok is false if they pass. An entry for some addresses only
// is taken to allow packets, never to stop them, because the addresses of peers are not known.
func (n ACL) dropper(out bool, port int) (entry ACLEntry, ok bool) {
	for _, e := range n.Entries {
		fits := e.Out == out && (e.Protocol == "-1" || e.Protocol == "6" && e.From <= port && port <= e.To)
		switch {
		case !fits, e.Deny && e.CIDR != everywhere:
		case e.Deny:
			return e, true
		default:
			return ACLEntry{}, false
		}
	}
	return ACLEntry{}, true // the implicit last entry drops everything, listed or not
}

// freeNumber returns the highest free rule number below that of an entry.
func (n ACL) freeNumber(out bool, below int) int {
	if below == 0 {
		below = 101
	}
	for number := below - 1; number > 0; number-- {
		if !slices.ContainsFunc(n.Entries, func(e ACLEntry) bool { return e.Out == out && e.Number == number }) {
			return number
		}
	}
	return 1
}

// acl is the network ACL of a subnet.
func (d *desk) acl(subnet string) (ACL, bool) {
	i := slices.IndexFunc(d.ACLs.Value, func(n ACL) bool { return slices.Contains(n.Subnets, subnet) })
	if i < 0 {
		i = slices.IndexFunc(d.ACLs.Value, func(n ACL) bool { return n.Default })
	}
	if i < 0 {
		return ACL{}, false
	}
	return d.ACLs.Value[i], true
}

// judgeACLs: requests go out to port 443, and their answers come in to a port that the kernel chose.
func judgeACLs(d *desk) []Finding {
	if gap, ok := d.Classes.gap("the EC2NodeClasses"); ok {
		return []Finding{gap}
	}
	if gap, ok := d.ACLs.gap("the network ACLs"); ok {
		return []Finding{gap}
	}
	const chosen = 40000 // an ephemeral port of Linux: 32768 to 60999
	var out []Finding
	done := map[string]bool{}
	for _, c := range d.Classes.Value {
		for _, id := range c.Subnets {
			n, ok := d.acl(id)
			if !ok || done[id] {
				continue
			}
			done[id] = true
			f := broken("subnet "+id, Certain, "").with(d.ACLs.Source+": "+n.ID).with(lines(d.inSubnet(id, TimedOut, PullFailed))...).explaining(TimedOut, PullFailed, ServiceTimeout)
			if e, drops := n.dropper(true, apiPort); drops {
				f.Cause = fmt.Sprintf("the network ACL %s of subnet %s lets nothing out to port %d: instances cannot reach the API server", n.ID, id, apiPort)
				out = append(out, f.mend(d.letThrough(n, e, true, apiPort, apiPort)))
			} else if e, drops := n.dropper(false, chosen); drops {
				f.Cause = fmt.Sprintf("the network ACL %s of subnet %s lets no answers in: they come to the ports 1024 to 65535, which are closed", n.ID, id)
				out = append(out, f.mend(d.letThrough(n, e, false, 1024, 65535)))
			}
		}
	}
	return out
}

// letThrough is the step that lets packets through before the entry that drops them.
func (d *desk) letThrough(n ACL, dropper ACLEntry, out bool, from, to int) fix.Step {
	direction := fix.P("--ingress")
	if out {
		direction = fix.P("--egress")
	}
	return fix.Call("ec2", "create-network-acl-entry", d.inRegion(), fix.P("--network-acl-id", fix.ACL(n.ID)), direction,
		fix.P("--rule-number", fix.Number(n.freeNumber(out, dropper.Number))), fix.P("--protocol", fix.Number(6)),
		fix.P("--port-range", fix.Join(fix.Text("From="), fix.Number(from), fix.Text(",To="), fix.Number(to))),
		fix.P("--cidr-block", fix.Text(everywhere)), fix.P("--rule-action", fix.Text("allow")))
}
