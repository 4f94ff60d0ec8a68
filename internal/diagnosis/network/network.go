// Package network checks whether a kubelet reaches the API server: security groups, DNS, routes, network ACLs and free addresses.
//
// In: an index.Index.
// Out: findings of the checks NET.
// Never: a call, a clock, or a verdict without the evidence for it.
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
		{ID: "NET-1", Title: "security groups let nodes reach the API server, and it them", Layer: diagnosis.LayerNetwork, Judge: judgeGroups},
		{ID: "NET-2", Title: "the API server's name is resolved in the VPC", Layer: diagnosis.LayerNetwork, Judge: judgeDNS},
		{ID: "NET-3", Title: "the public endpoint lets the nodes' addresses in", Layer: diagnosis.LayerNetwork, Judge: judgePublicCIDRs},
		{ID: "NET-4", Title: "subnets have a way out", Layer: diagnosis.LayerNetwork, Judge: judgeRoutes},
		{ID: "NET-5", Title: "subnets have free addresses", Layer: diagnosis.LayerLaunch, Judge: judgeAddresses},
		{ID: "NET-6", Title: "custom networking is known to the controller", Layer: diagnosis.LayerReady, Judge: judgeCustomNetworking},
		{ID: "NET-8", Title: "network ACLs let nodes reach the API server", Layer: diagnosis.LayerNetwork, Judge: judgeACLs},
		{ID: "NET-7", Title: "the API server does not answer", Layer: diagnosis.LayerNetwork, Fallback: true, Judge: judgeNoAnswer},
	}
}

// apiPort is the port of EKS API servers.
const apiPort = 443

// place is the network location of instances of a class: what the class resolves to, or what instances that have not joined actually have.
type place struct {
	subject string
	class   diagnosis.Class
	groups  []string
	subnets []string
}

// places are the classes, and instances that have other groups than their class has now.
func places(ix *index.Index) []place {
	var out []place
	for _, c := range ix.Evidence.Classes.Value {
		out = append(out, place{"EC2NodeClass " + c.Name, c, c.Groups, c.Subnets})
	}
	for _, i := range ix.Evidence.Instances.Value {
		c, ok := ix.Evidence.Class(i.Class)
		_, isNode := ix.NodeByInstance[i.ID]
		if !i.Runs() || isNode || len(i.Groups) == 0 || ok && sameSet(c.Groups, i.Groups) || i.Claim == "" {
			continue // it has the class's location, or no NodeClaim: ID-3 and ID-4 report those
		}
		out = append(out, place{"instance " + i.ID, c, i.Groups, []string{i.Subnet}})
	}
	return out
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// judgeGroups follows the packets from the node to the API server, and from there to the kubelet.
func judgeGroups(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Groups.Gap("the security groups"); ok {
		return []diagnosis.Finding{gap}
	}
	if gap, ok := ix.Evidence.Classes.Gap("the EC2NodeClasses"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, p := range places(ix) {
		groups := ix.Groups(p.groups)
		switch {
		case len(p.groups) == 0:
			out = append(out, diagnosis.Finding{
				Verdict:   diagnosis.Unknown,
				Certainty: diagnosis.Certain,
				Subject:   p.subject,
				Cause:     "its security groups are not resolved yet",
			})
		case len(groups) == 0:
			out = append(out, diagnosis.ReportBroken(p.subject, diagnosis.Certain,
				"none of its security groups %s is in the cluster's VPC", strings.Join(p.groups, ", ")).
				With(ix.Evidence.Groups.Source).Explaining(diagnosis.TimedOut))
		default:
			out = append(out, judgeSecurityGroups(ix, p, groups)...)
		}
	}
	return out
}

func judgeSecurityGroups(ix *index.Index, p place, groups []diagnosis.Group) []diagnosis.Finding {
	sights := index.Lines(ix.OccurrencesOf(p.class.Name, diagnosis.TimedOut))
	out := slices.ContainsFunc(groups, func(g diagnosis.Group) bool {
		return slices.ContainsFunc(g.Out, func(r diagnosis.Rule) bool { return r.Lets(apiPort) })
	})
	if !out {
		return []diagnosis.Finding{diagnosis.ReportBroken(p.subject, diagnosis.Certain,
			"the security group%s %s let%s nothing out to port %d: its instances cannot reach the API server",
			diagnosis.Plural(p.groups, "s"), strings.Join(p.groups, ", "), diagnosis.Singular(p.groups, "s"), apiPort).
			With(fmt.Sprintf("%s: %s", ix.Evidence.Groups.Source,
				rulesLine(groups))).With(sights...).Explaining(diagnosis.TimedOut, diagnosis.PullFailed, diagnosis.ServiceTimeout,
			diagnosis.NotPermitted).
			FixedBy(fix.Call("ec2", "authorize-security-group-egress", ix.InRegion(), fix.P("--group-id", fix.Group(p.groups[0])),
				fix.P("--ip-permissions", fix.Text("IpProtocol=-1,IpRanges=[{CidrIp=0.0.0.0/0}]"))))}
	}
	cluster := ix.Groups([]string{ix.Evidence.Cluster.Value.Group})
	if !ix.Evidence.Cluster.Known() || len(cluster) == 0 {
		return []diagnosis.Finding{diagnosis.ReportFine(p.subject)}
	}
	if ix.Evidence.Cluster.Value.PrivateAccess && !letsIn(cluster[0], apiPort, p.groups) {
		return []diagnosis.Finding{diagnosis.ReportBroken(p.subject, diagnosis.Likely,
			"the cluster's security group %s does not let in port %d from its security group%s %s",
			cluster[0].ID, apiPort, diagnosis.Plural(p.groups, "s"), strings.Join(p.groups, ", ")).
			With(ix.Evidence.Groups.Source, "the API server's name leads to private addresses inside the VPC").
			With(sights...).Explaining(diagnosis.TimedOut).
			FixedBy(allowIn(ix, cluster[0].ID, apiPort, p.groups[0]))}
	}
	const kubelet = 10250
	if !slices.ContainsFunc(groups, func(g diagnosis.Group) bool { return letsIn(g, kubelet, []string{ix.Evidence.Cluster.Value.Group}) }) {
		return []diagnosis.Finding{diagnosis.ReportSuspicious(p.subject, diagnosis.Likely, "its security groups do not let the control plane reach kubelets at port %d: logs, exec and webhooks on its nodes will not work", kubelet).
			With(ix.Evidence.Groups.Source).FixedBy(allowIn(ix, p.groups[0], kubelet, ix.Evidence.Cluster.Value.Group))}
	}
	return []diagnosis.Finding{diagnosis.ReportFine(p.subject)}
}

func allowIn(ix *index.Index, group string, port int, from string) fix.Step {
	return fix.Call("ec2", "authorize-security-group-ingress", ix.InRegion(), fix.P("--group-id", fix.Group(group)),
		fix.P("--protocol", fix.Text("tcp")),
		fix.P("--port", fix.Number(port)), fix.P("--source-group", fix.Group(from)))
}

// letsIn reports whether a group lets in packets to a port from any of some groups, or from addresses: of those it is not known
// whose they are, so any will do.
func letsIn(g diagnosis.Group, port int, from []string) bool {
	return slices.ContainsFunc(g.In, func(r diagnosis.Rule) bool {
		return r.Lets(port) && (len(r.CIDRs) > 0 || len(r.Lists) > 0 ||
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

// judgeDNS: a private endpoint's name is known to the VPC's own resolver only.
func judgeDNS(ix *index.Index) []diagnosis.Finding {
	sights := index.Lines(ix.OccurrencesOf("", diagnosis.NoSuchHost))
	if gap, ok := ix.Evidence.VPC.Gap("the DNS settings of the VPC"); ok && len(sights) == 0 {
		return []diagnosis.Finding{gap}
	}
	attribute := func(name string, flag fix.Param) diagnosis.Finding {
		return diagnosis.ReportBroken("VPC "+ix.Evidence.VPC.Value.ID, diagnosis.Certain,
			"the VPC has %s switched off, so the API server's name is not resolved in it", name).
			With(ix.Evidence.VPC.Source).With(sights...).Explaining(diagnosis.NoSuchHost).
			FixedBy(fix.Call("ec2", "modify-vpc-attribute", ix.InRegion(), fix.P("--vpc-id", fix.VPC(ix.Evidence.VPC.Value.ID)), flag))
	}
	switch {
	case ix.Evidence.VPC.Known() && !ix.Evidence.VPC.Value.DNSSupport:
		return []diagnosis.Finding{attribute("DNS support", fix.P("--enable-dns-support"))}
	case ix.Evidence.VPC.Known() && !ix.Evidence.VPC.Value.DNSHostnames && ix.Evidence.Cluster.Value.PrivateAccess &&
		!ix.Evidence.Cluster.Value.PublicAccess:
		return []diagnosis.Finding{attribute("DNS host names", fix.P("--enable-dns-hostnames"))}
	case len(sights) > 0:
		return []diagnosis.Finding{diagnosis.ReportBroken("", diagnosis.Likely, "instances cannot resolve a name that they need to join: the DHCP options of the VPC may name a server that does not know it").
			With(sights...).Explaining(diagnosis.NoSuchHost).
			FixedBy(amazonDNS(ix))}
	}
	return nil
}

// amazonDNS is the step that has the instances of the VPC ask the resolver that AWS provides.
func amazonDNS(ix *index.Index) fix.Step {
	options := fix.Call("ec2", "create-dhcp-options", ix.InRegion(),
		fix.P("--dhcp-configurations", fix.Text("Key=domain-name-servers,Values=AmazonProvidedDNS")))
	return fix.Call("ec2", "associate-dhcp-options", ix.InRegion(), fix.P("--vpc-id", fix.VPC(ix.Evidence.VPC.Value.ID).Or("VPC")),
		fix.PFrom("--dhcp-options-id", options,
			"DhcpOptions.DhcpOptionsId")).With("or have the DNS server that it names forward to AmazonProvidedDNS")
}

// privateAccess is the step by which nodes reach the API server from within the VPC.
func privateAccess(ix *index.Index) fix.Step {
	return fix.Call("eks", "update-cluster-config", ix.InRegion(), fix.P("--name", fix.ClusterName(ix.Evidence.Name)),
		fix.P("--resources-vpc-config", fix.Text("endpointPrivateAccess=true")))
}

// judgePublicCIDRs: nodes that go to the public endpoint come from the NAT gateways' addresses.
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
	var out []string
	for _, text := range ix.Evidence.NATAddresses.Value {
		if !within(text, c.PublicCIDRs) {
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return []diagnosis.Finding{diagnosis.ReportBroken("", diagnosis.Certain,
		"the API server's endpoint is public only and lets in only %s, and nodes come from %s",
		strings.Join(c.PublicCIDRs, ", "), strings.Join(out, ", ")).
		With(ix.Evidence.Cluster.Source, ix.Evidence.NATAddresses.Source).With(index.Lines(ix.OccurrencesOf("",
		diagnosis.TimedOut))...).Explaining(diagnosis.TimedOut).
		FixedBy(privateAccess(ix))}
}

func within(address string, blocks []string) bool {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return true // not an address, so it cannot be compared
	}
	return slices.ContainsFunc(blocks, func(text string) bool {
		p, err := netip.ParsePrefix(text)
		return err == nil && p.Contains(a)
	})
}

// judgeRoutes: every subnet needs a way to AWS: a default route that works, or endpoints for all that a node calls.
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

func judgeSubnet(ix *index.Index, c diagnosis.Class, id string) (diagnosis.Finding, bool) {
	table, ok := RouteTableOf(ix, id)
	if !ok {
		return diagnosis.Finding{}, false
	}
	subject := "subnet " + id
	sights := index.Lines(inSubnet(ix, id, diagnosis.TimedOut, diagnosis.PullFailed, diagnosis.NoSuchHost))
	i := slices.IndexFunc(table.Routes, func(r diagnosis.Route) bool { return r.To == "0.0.0.0/0" || r.To == "::/0" })
	switch {
	case i >= 0 && table.Routes[i].Blackhole:
		return diagnosis.ReportBroken(subject, diagnosis.Certain, "the default route of subnet %s goes to %s, which is gone",
			id, table.Routes[i].Target).
			With(ix.Evidence.Routes.Source+": "+table.ID).With(sights...).Explaining(diagnosis.TimedOut, diagnosis.PullFailed).
			FixedBy(fix.Call("ec2", "replace-route", ThroughNAT(ix, table, id)...)), true
	case i >= 0 && strings.HasPrefix(table.Routes[i].Target, "igw-") && !publicAddress(ix, c, id):
		return diagnosis.ReportBroken(subject, diagnosis.Certain, "subnet %s leads to the internet by an internet gateway, and its instances get no public address: they cannot get out", id).
				With(ix.Evidence.Routes.Source+": "+table.ID+" → "+
					table.Routes[i].Target).With(sights...).Explaining(diagnosis.TimedOut, diagnosis.PullFailed).
				FixedBy(fix.Merge(fix.NodeClass(c.Name), fix.At(fix.Bool(true), "spec", "associatePublicIPAddress"))),
			!ix.Evidence.Cluster.Value.PrivateAccess || len(sights) > 0
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
			" has no default route", ix.Evidence.Endpoints.Source).With(sights...).Explaining(diagnosis.TimedOut,
		diagnosis.PullFailed, diagnosis.NoSuchHost).
		FixedBy(fix.Call("ec2", "create-route", ThroughNAT(ix, table, id)...))
	if len(lacking) == 0 {
		f.Cause = fmt.Sprintf("subnet %s has no route out, and the API server's endpoint is not reachable from within the VPC", id)
		f = f.FixedBy(privateAccess(ix))
	}
	if gap, ok := ix.Evidence.Endpoints.Gap("the VPC's endpoints"); ok {
		f.Certainty = diagnosis.Likely
		f = f.With(gap.Cause)
	}
	return f, true
}

// inSubnet returns the sightings of instances in a subnet.
func inSubnet(ix *index.Index, id string, signs ...diagnosis.Symptom) []index.Occurrence {
	return slices.DeleteFunc(ix.OccurrencesOf("", signs...), func(g index.Occurrence) bool { return g.Instance.Subnet != id })
}

// RouteTableOf is the route table of a subnet: its own, else the main one.
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

// ThroughNAT are the parameters of a default route through a NAT gateway.
func ThroughNAT(ix *index.Index, table diagnosis.RouteTable, subnet string) []fix.Param {
	return []fix.Param{ix.InRegion(), fix.P("--route-table-id", fix.RouteTable(table.ID)),
		fix.P("--destination-cidr-block", fix.Text(everywhere)),
		fix.P("--nat-gateway-id", fix.NAT(likelyNAT(ix, subnet)).Or("NAT_GATEWAY_ID"))}
}

func publicAddress(ix *index.Index, c diagnosis.Class, subnet string) bool {
	if c.PublicIP != nil {
		return *c.PublicIP
	}
	i := slices.IndexFunc(ix.Evidence.Subnets.Value, func(s diagnosis.Subnet) bool { return s.ID == subnet })
	return i < 0 || ix.Evidence.Subnets.Value[i].Public
}

// LackingEndpoints are the services that a node cannot do without, and that the VPC has no endpoint for.
func LackingEndpoints(ix *index.Index) []string {
	var out []string
	for _, service := range []string{"ec2", "ecr.api", "ecr.dkr", "s3", "sts"} {
		if !slices.ContainsFunc(ix.Evidence.Endpoints.Value,
			func(e diagnosis.Endpoint) bool { return strings.HasSuffix(e.Service, "."+service) }) {
			out = append(out, service)
		}
	}
	return out
}

// judgeCustomNetworking: pods in subnets of their own take an interface away from every node.
func judgeCustomNetworking(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Daemons.Gap("the DaemonSets"); ok {
		return []diagnosis.Finding{gap}
	}
	if plugin, ok := ix.FindDaemonSet("aws-node"); !ok || plugin.Env["AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"] != "true" {
		return nil
	}
	if !ix.Evidence.Controller.Known() || ix.Evidence.Controller.Value.Settings["RESERVED_ENIS"] != "" &&
		ix.Evidence.Controller.Value.Settings["RESERVED_ENIS"] != "0" {
		return nil
	}
	return []diagnosis.Finding{diagnosis.ReportSuspicious("", diagnosis.Likely, "the VPC CNI has custom networking on, and the controller does not reserve an interface for it: nodes take more pods than they have addresses for").
		With("daemonset kube-system/aws-node: AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG=true", ix.Evidence.Controller.Source+
			": RESERVED_ENIS is not set").
		FixedBy(fix.SetEnv(ix.ControllerDeployment(), "RESERVED_ENIS", fix.Number(1)))}
}

// judgeNoAnswer knows the sign only.
func judgeNoAnswer(ix *index.Index) []diagnosis.Finding {
	sights := ix.OccurrencesOf("", diagnosis.TimedOut)
	if gap, ok := ix.Consoles(); ok && len(sights) == 0 {
		return []diagnosis.Finding{gap}
	}
	if len(sights) == 0 {
		return nil
	}
	return []diagnosis.Finding{diagnosis.ReportBroken("", diagnosis.Possible, "the API server does not answer instances, and security groups and routes look open: a network ACL, a firewall or a proxy may be in between").
		With(index.Lines(sights)...).Explaining(diagnosis.TimedOut).
		FixedBy(fix.Call("ec2", "describe-network-acls", ix.InRegion(),
			fix.P("--filters", fix.Join(fix.Text("Name=association.subnet-id,Values="), fix.Subnet(sights[0].Instance.Subnet).Or("SUBNET")))))}
}
