package network

import (
	"fmt"
	"slices"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
)

const everywhere = "0.0.0.0/0"

// droppingEntry returns the entry that drops outgoing or incoming TCP packets to a port; ok is false if the packets
// pass. The addresses of peers are not known. So an allow entry for some addresses counts, and a deny entry counts only
// if it is for all addresses.
func droppingEntry(n diagnosis.ACL, outgoing bool, port int) (entry diagnosis.ACLEntry, ok bool) {
	for _, e := range n.Entries {
		// protocol -1 is all, 6 is TCP
		matches := e.Out == outgoing && (e.Protocol == "-1" || e.Protocol == "6" && e.From <= port && port <= e.To)
		switch {
		case !matches, e.Deny && e.CIDR != everywhere:
		case e.Deny:
			return e, true
		default:
			return diagnosis.ACLEntry{}, false
		}
	}
	return diagnosis.ACLEntry{}, true // the implicit last entry drops everything, even if it is not in Entries
}

// freeNumber returns the highest free rule number below limit, which is the number of the dropping entry. For limit 0,
// the implicit last entry, it returns the highest free number up to 100. If no number is free, it returns 1.
func freeNumber(n diagnosis.ACL, outgoing bool, limit int) int {
	if limit == 0 {
		limit = 101
	}
	for number := limit - 1; number > 0; number-- {
		if !slices.ContainsFunc(n.Entries, func(e diagnosis.ACLEntry) bool { return e.Out == outgoing && e.Number == number }) {
			return number
		}
	}
	return 1
}

// aclOf returns the network ACL of a subnet: the ACL that lists the subnet, or else the default ACL. ok is false if
// there is neither.
func aclOf(ix *index.Index, subnet string) (n diagnosis.ACL, ok bool) {
	i := slices.IndexFunc(ix.Evidence.ACLs.Value, func(n diagnosis.ACL) bool { return slices.Contains(n.Subnets, subnet) })
	if i < 0 {
		i = slices.IndexFunc(ix.Evidence.ACLs.Value, func(n diagnosis.ACL) bool { return n.Default })
	}
	if i < 0 {
		return diagnosis.ACL{}, false
	}
	return ix.Evidence.ACLs.Value[i], true
}

// judgeACLs reports network ACLs that drop requests to the API server's port or the answers, which arrive at an
// ephemeral port.
func judgeACLs(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Classes.Gap("the EC2NodeClasses"); ok {
		return []diagnosis.Finding{gap}
	}
	if gap, ok := ix.Evidence.ACLs.Gap("the network ACLs"); ok {
		return []diagnosis.Finding{gap}
	}
	const ephemeral = 40000 // an example: Linux uses the ports 32768 to 60999
	var out []diagnosis.Finding
	done := map[string]bool{}
	for _, c := range ix.Evidence.Classes.Value {
		for _, id := range c.Subnets {
			n, ok := aclOf(ix, id)
			if !ok || done[id] {
				continue
			}
			done[id] = true
			f := diagnosis.ReportBroken("subnet "+id, diagnosis.Certain,
				"").With(ix.Evidence.ACLs.Source+": "+
				n.ID).With(index.Lines(inSubnet(ix, id, diagnosis.TimedOut,
				diagnosis.PullFailed))...).Explaining(diagnosis.TimedOut, diagnosis.PullFailed, diagnosis.ServiceTimeout)
			if e, drops := droppingEntry(n, true, apiPort); drops {
				f.Cause = fmt.Sprintf("the network ACL %s of subnet %s lets nothing out to port %d: instances cannot reach the API server", n.ID, id, apiPort)
				out = append(out, f.FixedBy(allowPackets(ix, n, e, true, apiPort, apiPort)))
			} else if e, drops := droppingEntry(n, false, ephemeral); drops {
				f.Cause = fmt.Sprintf("the network ACL %s of subnet %s lets no answers in: answers arrive at the ports 1024 to 65535, which the ACL closes", n.ID, id)
				out = append(out, f.FixedBy(allowPackets(ix, n, e, false, 1024, 65535)))
			}
		}
	}
	return out
}

// allowPackets is the step that adds an entry that allows packets to a range of ports, both ends included. dropping is
// the entry that drops the packets; the new entry has a lower number.
func allowPackets(ix *index.Index, n diagnosis.ACL, dropping diagnosis.ACLEntry, outgoing bool, from, to int) fix.Step {
	direction := fix.P("--ingress")
	if outgoing {
		direction = fix.P("--egress")
	}
	return fix.Call("ec2", "create-network-acl-entry", ix.RegionParam(), fix.P("--network-acl-id", fix.ACL(n.ID)), direction,
		fix.P("--rule-number", fix.Number(freeNumber(n, outgoing, dropping.Number))), fix.P("--protocol", fix.Number(6)),
		fix.P("--port-range", fix.Join(fix.Text("From="), fix.Number(from), fix.Text(",To="), fix.Number(to))),
		fix.P("--cidr-block", fix.Text(everywhere)), fix.P("--rule-action", fix.Text("allow")))
}
