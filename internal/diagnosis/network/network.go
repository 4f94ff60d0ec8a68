// Package network checks whether a kubelet reaches the API server: security groups, DNS, routes, network ACLs and free
// addresses.
//
// In: an index.Index.
// Out: findings of the checks NET.
// Never: a network call, a reading of the clock, or a verdict without evidence.
package network

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
)

// Checks returns the checks NET.
func Checks() []index.Check {
	return []index.Check{
		{ID: "NET-1", Title: "security groups allow traffic between nodes and the API server", Layer: diagnosis.LayerNetwork, Judge: judgeGroups},
		{ID: "NET-2", Title: "the API server's name is resolved in the VPC", Layer: diagnosis.LayerNetwork, Judge: judgeDNS},
		{ID: "NET-3", Title: "the public endpoint lets the nodes' addresses in", Layer: diagnosis.LayerNetwork, Judge: judgePublicCIDRs},
		{ID: "NET-4", Title: "subnets have a route out", Layer: diagnosis.LayerNetwork, Judge: judgeRoutes},
		{ID: "NET-5", Title: "subnets have free addresses", Layer: diagnosis.LayerLaunch, Judge: judgeAddresses},
		{ID: "NET-6", Title: "an interface is reserved for custom networking", Layer: diagnosis.LayerReady, Judge: judgeCustomNetworking},
		{ID: "NET-8", Title: "network ACLs let nodes reach the API server", Layer: diagnosis.LayerNetwork, Judge: judgeACLs},
		{ID: "NET-7", Title: "the API server does not answer", Layer: diagnosis.LayerNetwork, Fallback: true, Judge: judgeNoAnswer},
	}
}

const apiPort = 443

// location has the security groups and subnets that a class selects, or those of an instance that has not joined.
type location struct {
	subject string          // subject of findings: "EC2NodeClass web", "instance i-0123"
	class   diagnosis.Class // the class, or the instance's class; zero: not known
	groups  []string        // IDs of security groups
	subnets []string        // IDs of subnets
}

// locations returns the locations of all classes, and of each running instance that has a NodeClaim, has no Node, and
// has other security groups than its class.
func locations(ix *index.Index) []location {
	var out []location
	for _, c := range ix.Evidence.Classes.Value {
		out = append(out, location{"EC2NodeClass " + c.Name, c, c.Groups, c.Subnets})
	}
	for _, i := range ix.Evidence.Instances.Value {
		c, ok := ix.Evidence.Class(i.Class)
		_, isNode := ix.NodeByInstance[i.ID]
		if !i.Runs() || isNode || len(i.Groups) == 0 || ok && sameSet(c.Groups, i.Groups) || i.Claim == "" {
			continue // ID-3 and ID-4 report instances without a NodeClaim
		}
		out = append(out, location{"instance " + i.ID, c, i.Groups, []string{i.Subnet}})
	}
	return out
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func judgeGroups(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Groups.Gap("the security groups"); ok {
		return []diagnosis.Finding{gap}
	}
	if gap, ok := ix.Evidence.Classes.Gap("the EC2NodeClasses"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, l := range locations(ix) {
		groups := ix.Groups(l.groups)
		switch {
		case len(l.groups) == 0:
			out = append(out, diagnosis.Finding{
				Verdict:   diagnosis.Unknown,
				Certainty: diagnosis.Certain,
				Subject:   l.subject,
				Cause:     "its security groups are not resolved yet",
			})
		case len(groups) == 0:
			out = append(out, diagnosis.ReportBroken(l.subject, diagnosis.Certain,
				"none of its security groups %s is in the cluster's VPC", strings.Join(l.groups, ", ")).
				With(ix.Evidence.Groups.Source).Explaining(diagnosis.TimedOut))
		default:
			out = append(out, judgeSecurityGroups(ix, l, groups)...)
		}
	}
	return out
}

// judgeSecurityGroups checks the security groups of a location: egress to the API server, ingress of the cluster
// security group from the location, and ingress from the control plane to kubelets.
func judgeSecurityGroups(ix *index.Index, l location, groups []diagnosis.Group) []diagnosis.Finding {
	seen := index.Lines(ix.OccurrencesOf(l.class.Name, diagnosis.TimedOut))
	letsOut := slices.ContainsFunc(groups, func(g diagnosis.Group) bool {
		return slices.ContainsFunc(g.Out, func(r diagnosis.Rule) bool { return r.Allows(apiPort) })
	})
	if !letsOut {
		return []diagnosis.Finding{diagnosis.ReportBroken(l.subject, diagnosis.Certain,
			"the security group%s %s let%s nothing out to port %d: its instances cannot reach the API server",
			diagnosis.Plural(l.groups, "s"), strings.Join(l.groups, ", "), diagnosis.Singular(l.groups, "s"), apiPort).
			With(fmt.Sprintf("%s: %s", ix.Evidence.Groups.Source,
				rulesLine(groups))).With(seen...).Explaining(diagnosis.TimedOut, diagnosis.PullFailed, diagnosis.ServiceTimeout,
			diagnosis.NotPermitted).
			FixedBy(fix.Call("ec2", "authorize-security-group-egress", ix.RegionParam(), fix.P("--group-id", fix.Group(l.groups[0])),
				fix.P("--ip-permissions", fix.Text("IpProtocol=-1,IpRanges=[{CidrIp=0.0.0.0/0}]"))))}
	}
	cluster := ix.Groups([]string{ix.Evidence.Cluster.Value.Group})
	if !ix.Evidence.Cluster.Known() || len(cluster) == 0 {
		return []diagnosis.Finding{diagnosis.ReportFine(l.subject)}
	}
	if ix.Evidence.Cluster.Value.PrivateAccess && !allowsIngress(cluster[0], apiPort, l.groups) {
		return []diagnosis.Finding{diagnosis.ReportBroken(l.subject, diagnosis.Likely,
			"the cluster's security group %s does not let in port %d from its security group%s %s",
			cluster[0].ID, apiPort, diagnosis.Plural(l.groups, "s"), strings.Join(l.groups, ", ")).
			With(ix.Evidence.Groups.Source, "the API server's name resolves to private addresses inside the VPC").
			With(seen...).Explaining(diagnosis.TimedOut).
			FixedBy(allowIn(ix, cluster[0].ID, apiPort, l.groups[0]))}
	}
	const kubeletPort = 10250
	if !slices.ContainsFunc(groups, func(g diagnosis.Group) bool {
		return allowsIngress(g, kubeletPort, []string{ix.Evidence.Cluster.Value.Group})
	}) {
		return []diagnosis.Finding{diagnosis.ReportSuspicious(l.subject, diagnosis.Likely, "its security groups do not let the control plane reach kubelets at port %d: logs, exec and webhooks on its nodes will not work", kubeletPort).
			With(ix.Evidence.Groups.Source).FixedBy(allowIn(ix, l.groups[0], kubeletPort, ix.Evidence.Cluster.Value.Group))}
	}
	return []diagnosis.Finding{diagnosis.ReportFine(l.subject)}
}

// allowIn is the step that makes a security group let in TCP packets to a port from another security group.
func allowIn(ix *index.Index, group string, port int, from string) fix.Step {
	return fix.Call("ec2", "authorize-security-group-ingress", ix.RegionParam(), fix.P("--group-id", fix.Group(group)),
		fix.P("--protocol", fix.Text("tcp")),
		fix.P("--port", fix.Number(port)), fix.P("--source-group", fix.Group(from)))
}

// allowsIngress reports whether a security group accepts packets to a port from one of the groups in from. A rule for
// addresses or prefix lists counts too, because it is not known to which groups the addresses belong.
func allowsIngress(g diagnosis.Group, port int, from []string) bool {
	return slices.ContainsFunc(g.In, func(r diagnosis.Rule) bool {
		return r.Allows(port) && (len(r.CIDRs) > 0 || len(r.Lists) > 0 ||
			slices.ContainsFunc(r.Groups, func(id string) bool { return slices.Contains(from, id) || id == g.ID && slices.Contains(from, g.ID) }))
	})
}

func rulesLine(groups []diagnosis.Group) string {
	var out []string
	for _, g := range groups {
		var ports []string
		for _, r := range g.Out {
			ports = append(ports, fmt.Sprintf("%s %d-%d", r.Protocol, r.From, r.To))
		}
		out = append(out, g.ID+" lets out "+diagnosis.OrElse(strings.Join(ports, ", "), "nothing"))
	}
	return strings.Join(out, "; ")
}

// judgeDNS reports VPCs that do not resolve the API server's name. Only the VPC's own resolver knows the name of a
// private endpoint.
func judgeDNS(ix *index.Index) []diagnosis.Finding {
	seen := index.Lines(ix.OccurrencesOf("", diagnosis.NoSuchHost))
	if gap, ok := ix.Evidence.VPC.Gap("the DNS settings of the VPC"); ok && len(seen) == 0 {
		return []diagnosis.Finding{gap}
	}
	switchedOff := func(name string, flag fix.Param) diagnosis.Finding { // flag switches the attribute on
		return diagnosis.ReportBroken("VPC "+ix.Evidence.VPC.Value.ID, diagnosis.Certain,
			"the VPC has %s switched off, so instances cannot resolve the API server's name", name).
			With(ix.Evidence.VPC.Source).With(seen...).Explaining(diagnosis.NoSuchHost).
			FixedBy(fix.Call("ec2", "modify-vpc-attribute", ix.RegionParam(), fix.P("--vpc-id", fix.VPC(ix.Evidence.VPC.Value.ID)), flag))
	}
	switch {
	case ix.Evidence.VPC.Known() && !ix.Evidence.VPC.Value.DNSSupport:
		return []diagnosis.Finding{switchedOff("DNS support", fix.P("--enable-dns-support"))}
	case ix.Evidence.VPC.Known() && !ix.Evidence.VPC.Value.DNSHostnames && ix.Evidence.Cluster.Value.PrivateAccess &&
		!ix.Evidence.Cluster.Value.PublicAccess:
		return []diagnosis.Finding{switchedOff("DNS host names", fix.P("--enable-dns-hostnames"))}
	case len(seen) > 0:
		return []diagnosis.Finding{diagnosis.ReportBroken("", diagnosis.Likely, "instances cannot resolve a name that they need to join: the DHCP options of the VPC may name a DNS server that does not know the name").
			With(seen...).Explaining(diagnosis.NoSuchHost).
			FixedBy(amazonDNS(ix))}
	}
	return nil
}

func amazonDNS(ix *index.Index) fix.Step {
	options := fix.Call("ec2", "create-dhcp-options", ix.RegionParam(),
		fix.P("--dhcp-configurations", fix.Text("Key=domain-name-servers,Values=AmazonProvidedDNS")))
	return fix.Call("ec2", "associate-dhcp-options", ix.RegionParam(),
		fix.P("--vpc-id", fix.VPC(ix.Evidence.VPC.Value.ID).OrPlaceholder("VPC")),
		fix.PFrom("--dhcp-options-id", options,
			"DhcpOptions.DhcpOptionsId")).With("or make the DNS server in the DHCP options forward to AmazonProvidedDNS")
}

func enablePrivateAccess(ix *index.Index) fix.Step {
	return fix.Call("eks", "update-cluster-config", ix.RegionParam(), fix.P("--name", fix.ClusterName(ix.Evidence.Name)),
		fix.P("--resources-vpc-config", fix.Text("endpointPrivateAccess=true")))
}

// judgePublicCIDRs checks that a public endpoint lets in the addresses of the NAT gateways, from which nodes call it.
func judgePublicCIDRs(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Cluster.Gap("the cluster's endpoint"); ok {
		return []diagnosis.Finding{gap}
	}
	c := ix.Evidence.Cluster.Value
	if c.PrivateAccess || len(c.PublicCIDRs) == 0 || slices.Contains(c.PublicCIDRs, "0.0.0.0/0") {
		return nil
	}
	if gap, ok := ix.Evidence.NATAddresses.Gap("the addresses of the VPC's NAT gateways"); ok {
		return []diagnosis.Finding{gap}
	}
	var rejected []string
	for _, address := range ix.Evidence.NATAddresses.Value {
		if !within(address, c.PublicCIDRs) {
			rejected = append(rejected, address)
		}
	}
	if len(rejected) == 0 {
		return nil
	}
	return []diagnosis.Finding{diagnosis.ReportBroken("", diagnosis.Certain,
		"the API server's endpoint is public only and lets in only %s, but nodes call it from %s",
		strings.Join(c.PublicCIDRs, ", "), strings.Join(rejected, ", ")).
		With(ix.Evidence.Cluster.Source, ix.Evidence.NATAddresses.Source).With(index.Lines(ix.OccurrencesOf("",
		diagnosis.TimedOut))...).Explaining(diagnosis.TimedOut).
		FixedBy(enablePrivateAccess(ix))}
}

// within reports whether an address is in one of the CIDR blocks, or cannot be parsed.
func within(address string, blocks []string) bool {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return true // there is no finding about a text that is not an address
	}
	return slices.ContainsFunc(blocks, func(text string) bool {
		p, err := netip.ParsePrefix(text)
		return err == nil && p.Contains(a)
	})
}

// judgeRoutes checks that every subnet of the classes has a default route that works, or that the VPC has endpoints for
// all services that a node calls.
func judgeRoutes(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Classes.Gap("the EC2NodeClasses"); ok {
		return []diagnosis.Finding{gap}
	}
	if gap, ok := ix.Evidence.Routes.Gap("the route tables"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	done := map[string]bool{}
	for _, c := range ix.Evidence.Classes.Value {
		for _, id := range c.Subnets {
			if done[id] {
				continue
			}
			done[id] = true
			if f, ok := judgeSubnet(ix, c, id); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

// judgeSubnet judges the default route of a subnet of a class; ok is false if there is nothing to report.
func judgeSubnet(ix *index.Index, c diagnosis.Class, id string) (_ diagnosis.Finding, ok bool) {
	table, ok := RouteTableOf(ix, id)
	if !ok {
		return diagnosis.Finding{}, false
	}
	subject := "subnet " + id
	seen := index.Lines(inSubnet(ix, id, diagnosis.TimedOut, diagnosis.PullFailed, diagnosis.NoSuchHost))
	i := slices.IndexFunc(table.Routes, func(r diagnosis.Route) bool { return r.To == "0.0.0.0/0" || r.To == "::/0" })
	switch {
	case i >= 0 && table.Routes[i].Blackhole:
		return diagnosis.ReportBroken(subject, diagnosis.Certain, "the default route of subnet %s goes to %s, which is gone (blackhole)",
			id, table.Routes[i].Target).
			With(ix.Evidence.Routes.Source+": "+table.ID).With(seen...).Explaining(diagnosis.TimedOut, diagnosis.PullFailed).
			FixedBy(fix.Call("ec2", "replace-route", ThroughNAT(ix, table, id)...)), true
	case i >= 0 && strings.HasPrefix(table.Routes[i].Target, "igw-") && !getsPublicAddress(ix, c, id):
		// With a private endpoint, nodes may join without the internet: report the route only if a symptom is observed.
		return diagnosis.ReportBroken(subject, diagnosis.Certain, "subnet %s routes to an internet gateway, and its instances get no public address: they cannot reach the internet", id).
				With(ix.Evidence.Routes.Source+": "+table.ID+" → "+
					table.Routes[i].Target).With(seen...).Explaining(diagnosis.TimedOut, diagnosis.PullFailed).
				FixedBy(fix.Merge(fix.NodeClass(c.Name), fix.At(fix.Bool(true), "spec", "associatePublicIPAddress"))),
			!ix.Evidence.Cluster.Value.PrivateAccess || len(seen) > 0
	case i >= 0:
		return diagnosis.ReportFine(subject), true
	}
	lacking := LackingEndpoints(ix)
	if len(lacking) == 0 && ix.Evidence.Endpoints.Known() && ix.Evidence.Cluster.Value.PrivateAccess {
		return diagnosis.ReportFine(subject), true
	}
	f := diagnosis.ReportBroken(subject, diagnosis.Certain,
		"subnet %s has no route out: no NAT gateway, and the VPC has no endpoints for %s", id, strings.Join(lacking, ", ")).
		With(ix.Evidence.Routes.Source+": "+table.ID+
			" has no default route", ix.Evidence.Endpoints.Source).With(seen...).Explaining(diagnosis.TimedOut,
		diagnosis.PullFailed, diagnosis.NoSuchHost).
		FixedBy(fix.Call("ec2", "create-route", ThroughNAT(ix, table, id)...))
	if len(lacking) == 0 {
		f.Cause = fmt.Sprintf("subnet %s has no route out, and the API server's endpoint is not reachable from within the VPC", id)
		f = f.FixedBy(enablePrivateAccess(ix))
	}
	if gap, ok := ix.Evidence.Endpoints.Gap("the VPC's endpoints"); ok {
		f.Certainty = diagnosis.Likely
		f = f.With(gap.Cause)
	}
	return f, true
}

func inSubnet(ix *index.Index, id string, symptoms ...diagnosis.Symptom) []index.Occurrence {
	return slices.DeleteFunc(ix.OccurrencesOf("", symptoms...), func(o index.Occurrence) bool { return o.Instance.Subnet != id })
}

// RouteTableOf returns the route table of a subnet: the table that lists the subnet, or else the main table. It returns
// false if there is neither.
func RouteTableOf(ix *index.Index, subnet string) (diagnosis.RouteTable, bool) {
	i := slices.IndexFunc(ix.Evidence.Routes.Value, func(t diagnosis.RouteTable) bool { return slices.Contains(t.Subnets, subnet) })
	if i < 0 {
		i = slices.IndexFunc(ix.Evidence.Routes.Value, func(t diagnosis.RouteTable) bool { return t.Main })
	}
	if i < 0 {
		return diagnosis.RouteTable{}, false
	}
	return ix.Evidence.Routes.Value[i], true
}

// ThroughNAT returns the parameters of a call that sets a subnet's default route to a NAT gateway.
func ThroughNAT(ix *index.Index, table diagnosis.RouteTable, subnet string) []fix.Param {
	return []fix.Param{ix.RegionParam(), fix.P("--route-table-id", fix.RouteTable(table.ID)),
		fix.P("--destination-cidr-block", fix.Text(everywhere)),
		fix.P("--nat-gateway-id", fix.NAT(likelyNAT(ix, subnet)).OrPlaceholder("NAT_GATEWAY_ID"))}
}

// getsPublicAddress reports whether instances of a class get a public address in a subnet. It is also true if the
// subnet is not known.
func getsPublicAddress(ix *index.Index, c diagnosis.Class, subnet string) bool {
	if c.PublicIP != nil {
		return *c.PublicIP
	}
	i := slices.IndexFunc(ix.Evidence.Subnets.Value, func(s diagnosis.Subnet) bool { return s.ID == subnet })
	return i < 0 || ix.Evidence.Subnets.Value[i].Public
}

// LackingEndpoints returns the services without a VPC endpoint, out of those that every node calls and those in more. A
// node does not call STS to join: its token is a signed STS request, which the API server's authenticator sends.
func LackingEndpoints(ix *index.Index, more ...string) []string {
	var out []string
	for _, service := range append([]string{"ec2", "ecr.api", "ecr.dkr", "s3"}, more...) {
		if !slices.ContainsFunc(ix.Evidence.Endpoints.Value,
			func(e diagnosis.Endpoint) bool { return strings.HasSuffix(e.Service, "."+service) }) {
			out = append(out, service)
		}
	}
	return out
}

// judgeCustomNetworking checks that the controller reserves a network interface if the VPC CNI uses custom networking.
// With custom networking, pods cannot use the primary interface of a node.
func judgeCustomNetworking(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Daemons.Gap("the DaemonSets"); ok {
		return []diagnosis.Finding{gap}
	}
	if plugin, ok := ix.FindDaemonSet("aws-node"); !ok || plugin.Env["AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"] != "true" {
		return nil
	}
	reserved := ix.Evidence.Controller.Value.Settings["RESERVED_ENIS"]
	if !ix.Evidence.Controller.Known() || reserved != "" && reserved != "0" {
		return nil
	}
	return []diagnosis.Finding{diagnosis.ReportSuspicious("", diagnosis.Likely, "the VPC CNI uses custom networking, and the controller does not reserve an interface for it: nodes take more pods than they have addresses for").
		With("daemonset kube-system/aws-node: AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG=true", ix.Evidence.Controller.Source+
			": RESERVED_ENIS is not set").
		FixedBy(fix.SetEnv(ix.ControllerDeployment(), "RESERVED_ENIS", fix.Number(1)))}
}

func judgeNoAnswer(ix *index.Index) []diagnosis.Finding {
	seen := ix.OccurrencesOf("", diagnosis.TimedOut)
	if gap, ok := ix.ConsoleGap(); ok && len(seen) == 0 {
		return []diagnosis.Finding{gap}
	}
	if len(seen) == 0 {
		return nil
	}
	return []diagnosis.Finding{diagnosis.ReportBroken("", diagnosis.Possible, "the API server does not answer instances, and security groups and routes look open: a network ACL, a firewall or a proxy may be in between").
		With(index.Lines(seen)...).Explaining(diagnosis.TimedOut).
		FixedBy(fix.Call("ec2", "describe-network-acls", ix.RegionParam(),
			fix.P("--filters", fix.Join(fix.Text("Name=association.subnet-id,Values="),
				fix.Subnet(seen[0].Instance.Subnet).OrPlaceholder("SUBNET")))))}
}
