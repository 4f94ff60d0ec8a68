package diagnosis

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

func networkChecks() []Check {
	return []Check{
		{ID: "NET-1", Title: "security groups let nodes reach the API server, and it them", Layer: LayerNetwork, judge: judgeGroups},
		{ID: "NET-2", Title: "the API server's name is resolved in the VPC", Layer: LayerNetwork, judge: judgeDNS},
		{ID: "NET-3", Title: "the public endpoint lets the nodes' addresses in", Layer: LayerNetwork, judge: judgePublicCIDRs},
		{ID: "NET-4", Title: "subnets have a way out", Layer: LayerNetwork, judge: judgeRoutes},
		{ID: "NET-5", Title: "subnets have free addresses", Layer: LayerLaunch, judge: judgeAddresses},
		{ID: "NET-6", Title: "custom networking is known to the controller", Layer: LayerReady, judge: judgeCustomNetworking},
		{ID: "NET-8", Title: "network ACLs let nodes reach the API server", Layer: LayerNetwork, judge: judgeACLs},
		{ID: "NET-7", Title: "the API server does not answer", Layer: LayerNetwork, Fallback: true, judge: judgeNoAnswer},
	}
}

// apiPort is the port of EKS API servers.
const apiPort = 443

// place is the network location of instances of a class: what the class resolves to, or what instances that have not joined actually have.
type place struct {
	subject string
	class   Class
	groups  []string
	subnets []string
}

// places are the classes, and instances that have other groups than their class has now.
func (d *desk) places() []place {
	var out []place
	for _, c := range d.Classes.Value {
		out = append(out, place{"EC2NodeClass " + c.Name, c, c.Groups, c.Subnets})
	}
	for _, i := range d.Instances.Value {
		c, ok := d.class(i.Class)
		_, isNode := d.joined[i.ID]
		if !i.runs() || isNode || len(i.Groups) == 0 || ok && sameSet(c.Groups, i.Groups) || i.Claim == "" {
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
func judgeGroups(d *desk) []Finding {
	if gap, ok := d.Groups.gap("the security groups"); ok {
		return []Finding{gap}
	}
	if gap, ok := d.Classes.gap("the EC2NodeClasses"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, p := range d.places() {
		groups := d.groups(p.groups)
		switch {
		case len(p.groups) == 0:
			out = append(out, Finding{Verdict: Unknown, Certainty: Certain, Subject: p.subject, Cause: "its security groups are not resolved yet"})
		case len(groups) == 0:
			out = append(out, broken(p.subject, Certain, "none of its security groups %s is in the cluster's VPC", strings.Join(p.groups, ", ")).
				with(d.Groups.Source).explaining(TimedOut))
		default:
			out = append(out, d.judgeWay(p, groups)...)
		}
	}
	return out
}

func (d *desk) groups(ids []string) []Group {
	return slices.DeleteFunc(slices.Clone(d.Groups.Value), func(g Group) bool { return !slices.Contains(ids, g.ID) })
}

func (d *desk) judgeWay(p place, groups []Group) []Finding {
	sights := lines(d.of(p.class.Name, TimedOut))
	out := slices.ContainsFunc(groups, func(g Group) bool {
		return slices.ContainsFunc(g.Out, func(r Rule) bool { return r.lets(apiPort) })
	})
	if !out {
		return []Finding{broken(p.subject, Certain, "the security group%s %s let%s nothing out to port %d: its instances cannot reach the API server",
			plural(p.groups, "s"), strings.Join(p.groups, ", "), singular(p.groups, "s"), apiPort).
			with(fmt.Sprintf("%s: %s", d.Groups.Source, rulesLine(groups))).with(sights...).explaining(TimedOut, PullFailed, ServiceTimeout, NotPermitted).
			mend(fix.Call("ec2", "authorize-security-group-egress", d.inRegion(), fix.P("--group-id", fix.Group(p.groups[0])),
				fix.P("--ip-permissions", fix.Text("IpProtocol=-1,IpRanges=[{CidrIp=0.0.0.0/0}]"))))}
	}
	cluster := d.groups([]string{d.Cluster.Value.Group})
	if !d.Cluster.Known() || len(cluster) == 0 {
		return []Finding{fine(p.subject)}
	}
	if d.Cluster.Value.PrivateAccess && !letsIn(cluster[0], apiPort, p.groups) {
		return []Finding{broken(p.subject, Likely, "the cluster's security group %s does not let in port %d from its security group%s %s",
			cluster[0].ID, apiPort, plural(p.groups, "s"), strings.Join(p.groups, ", ")).
			with(d.Groups.Source, "the API server's name leads to private addresses inside the VPC").with(sights...).explaining(TimedOut).
			mend(d.allowIn(cluster[0].ID, apiPort, p.groups[0]))}
	}
	const kubelet = 10250
	if !slices.ContainsFunc(groups, func(g Group) bool { return letsIn(g, kubelet, []string{d.Cluster.Value.Group}) }) {
		return []Finding{suspicious(p.subject, Likely, "its security groups do not let the control plane reach kubelets at port %d: logs, exec and webhooks on its nodes will not work", kubelet).
			with(d.Groups.Source).mend(d.allowIn(p.groups[0], kubelet, d.Cluster.Value.Group))}
	}
	return []Finding{fine(p.subject)}
}

func (d *desk) allowIn(group string, port int, from string) fix.Step {
	return fix.Call("ec2", "authorize-security-group-ingress", d.inRegion(), fix.P("--group-id", fix.Group(group)), fix.P("--protocol", fix.Text("tcp")),
		fix.P("--port", fix.Number(port)), fix.P("--source-group", fix.Group(from)))
}

// letsIn reports whether a group lets in packets to a port from any of some groups, or from addresses: of those it is not known
// whose they are, so any will do.
func letsIn(g Group, port int, from []string) bool {
	return slices.ContainsFunc(g.In, func(r Rule) bool {
		return r.lets(port) && (len(r.CIDRs) > 0 || len(r.Lists) > 0 ||
			slices.ContainsFunc(r.Groups, func(id string) bool { return slices.Contains(from, id) || id == g.ID && slices.Contains(from, g.ID) }))
	})
}

func rulesLine(groups []Group) string {
	var out []string
	for _, g := range groups {
		var ports []string
		for _, r := range g.Out {
			ports = append(ports, fmt.Sprintf("%s %d-%d", r.Protocol, r.From, r.To))
		}
		out = append(out, g.ID+" lets out "+orElse(strings.Join(ports, ", "), "nothing"))
	}
	return strings.Join(out, "; ")
}

func plural(list []string, s string) string {
	if len(list) == 1 {
		return ""
	}
	return s
}

func singular(list []string, s string) string {
	if len(list) == 1 {
		return s
	}
	return ""
}

// judgeDNS: a private endpoint's name is known to the VPC's own resolver only.
func judgeDNS(d *desk) []Finding {
	sights := lines(d.of("", NoSuchHost))
	if gap, ok := d.VPC.gap("the DNS settings of the VPC"); ok && len(sights) == 0 {
		return []Finding{gap}
	}
	attribute := func(name string, flag fix.Param) Finding {
		return broken("VPC "+d.VPC.Value.ID, Certain, "the VPC has %s switched off, so the API server's name is not resolved in it", name).
			with(d.VPC.Source).with(sights...).explaining(NoSuchHost).
			mend(fix.Call("ec2", "modify-vpc-attribute", d.inRegion(), fix.P("--vpc-id", fix.VPC(d.VPC.Value.ID)), flag))
	}
	switch {
	case d.VPC.Known() && !d.VPC.Value.DNSSupport:
		return []Finding{attribute("DNS support", fix.P("--enable-dns-support"))}
	case d.VPC.Known() && !d.VPC.Value.DNSHostnames && d.Cluster.Value.PrivateAccess && !d.Cluster.Value.PublicAccess:
		return []Finding{attribute("DNS host names", fix.P("--enable-dns-hostnames"))}
	case len(sights) > 0:
		return []Finding{broken("", Likely, "instances cannot resolve a name that they need to join: the DHCP options of the VPC may name a server that does not know it").
			with(sights...).explaining(NoSuchHost).
			mend(d.amazonDNS())}
	}
	return nil
}

// amazonDNS is the step that has the instances of the VPC ask the resolver that AWS provides.
func (d *desk) amazonDNS() fix.Step {
	options := fix.Call("ec2", "create-dhcp-options", d.inRegion(), fix.P("--dhcp-configurations", fix.Text("Key=domain-name-servers,Values=AmazonProvidedDNS")))
	return fix.Call("ec2", "associate-dhcp-options", d.inRegion(), fix.P("--vpc-id", fix.VPC(d.VPC.Value.ID).Or("VPC")),
		fix.PFrom("--dhcp-options-id", options, "DhcpOptions.DhcpOptionsId")).With("or have the DNS server that it names forward to AmazonProvidedDNS")
}

// privateAccess is the step by which nodes reach the API server from within the VPC.
func (d *desk) privateAccess() fix.Step {
	return fix.Call("eks", "update-cluster-config", d.inRegion(), fix.P("--name", fix.ClusterName(d.Name)), fix.P("--resources-vpc-config", fix.Text("endpointPrivateAccess=true")))
}

// judgePublicCIDRs: nodes that go to the public endpoint come from the NAT gateways' addresses.
func judgePublicCIDRs(d *desk) []Finding {
	if gap, ok := d.Cluster.gap("the cluster's endpoint"); ok {
		return []Finding{gap}
	}
	c := d.Cluster.Value
	if c.PrivateAccess || len(c.PublicCIDRs) == 0 || slices.Contains(c.PublicCIDRs, "0.0.0.0/0") {
		return nil
	}
	if gap, ok := d.NATAddresses.gap("the addresses of the VPC's NAT gateways"); ok {
		return []Finding{gap}
	}
	var out []string
	for _, text := range d.NATAddresses.Value {
		if !within(text, c.PublicCIDRs) {
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return []Finding{broken("", Certain, "the API server's endpoint is public only and lets in only %s, and nodes come from %s",
		strings.Join(c.PublicCIDRs, ", "), strings.Join(out, ", ")).
		with(d.Cluster.Source, d.NATAddresses.Source).with(lines(d.of("", TimedOut))...).explaining(TimedOut).
		mend(d.privateAccess())}
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
func judgeRoutes(d *desk) []Finding {
	if gap, ok := d.Classes.gap("the EC2NodeClasses"); ok {
		return []Finding{gap}
	}
	if gap, ok := d.Routes.gap("the route tables"); ok {
		return []Finding{gap}
	}
	var out []Finding
	done := map[string]bool{}
	for _, c := range d.Classes.Value {
		for _, id := range c.Subnets {
			if done[id] {
				continue
			}
			done[id] = true
			if f, ok := d.judgeSubnet(c, id); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

func (d *desk) judgeSubnet(c Class, id string) (Finding, bool) {
	table, ok := d.table(id)
	if !ok {
		return Finding{}, false
	}
	subject := "subnet " + id
	sights := lines(d.inSubnet(id, TimedOut, PullFailed, NoSuchHost))
	i := slices.IndexFunc(table.Routes, func(r Route) bool { return r.To == "0.0.0.0/0" || r.To == "::/0" })
	switch {
	case i >= 0 && table.Routes[i].Blackhole:
		return broken(subject, Certain, "the default route of subnet %s goes to %s, which is gone", id, table.Routes[i].Target).
			with(d.Routes.Source+": "+table.ID).with(sights...).explaining(TimedOut, PullFailed).
			mend(fix.Call("ec2", "replace-route", d.throughNAT(table, id)...)), true
	case i >= 0 && strings.HasPrefix(table.Routes[i].Target, "igw-") && !d.publicAddress(c, id):
		return broken(subject, Certain, "subnet %s leads to the internet by an internet gateway, and its instances get no public address: they cannot get out", id).
			with(d.Routes.Source+": "+table.ID+" → "+table.Routes[i].Target).with(sights...).explaining(TimedOut, PullFailed).
			mend(fix.Merge(fix.NodeClass(c.Name), fix.At(fix.Bool(true), "spec", "associatePublicIPAddress"))), !d.Cluster.Value.PrivateAccess || len(sights) > 0
	case i >= 0:
		return fine(subject), true
	}
	lacking := d.lackingEndpoints()
	if len(lacking) == 0 && d.Endpoints.Known() && d.Cluster.Value.PrivateAccess {
		return fine(subject), true
	}
	f := broken(subject, Certain, "subnet %s has no route out: no NAT gateway, and the VPC has no endpoints for %s", id, strings.Join(lacking, ", ")).
		with(d.Routes.Source+": "+table.ID+" has no default route", d.Endpoints.Source).with(sights...).explaining(TimedOut, PullFailed, NoSuchHost).
		mend(fix.Call("ec2", "create-route", d.throughNAT(table, id)...))
	if len(lacking) == 0 {
		f.Cause = fmt.Sprintf("subnet %s has no route out, and the API server's endpoint is not reachable from within the VPC", id)
		f = f.mend(d.privateAccess())
	}
	if gap, ok := d.Endpoints.gap("the VPC's endpoints"); ok {
		f.Certainty = Likely
		f = f.with(gap.Cause)
	}
	return f, true
}

// inSubnet returns the sightings of instances in a subnet.
func (d *desk) inSubnet(id string, signs ...Sign) []sighting {
	return slices.DeleteFunc(d.of("", signs...), func(g sighting) bool { return g.instance.Subnet != id })
}

// table is the route table of a subnet: its own, else the main one.
func (d *desk) table(subnet string) (RouteTable, bool) {
	i := slices.IndexFunc(d.Routes.Value, func(t RouteTable) bool { return slices.Contains(t.Subnets, subnet) })
	if i < 0 {
		i = slices.IndexFunc(d.Routes.Value, func(t RouteTable) bool { return t.Main })
	}
	if i < 0 {
		return RouteTable{}, false
	}
	return d.Routes.Value[i], true
}

// throughNAT are the parameters of a default route through a NAT gateway.
func (d *desk) throughNAT(table RouteTable, subnet string) []fix.Param {
	return []fix.Param{d.inRegion(), fix.P("--route-table-id", fix.RouteTable(table.ID)), fix.P("--destination-cidr-block", fix.Text(everywhere)),
		fix.P("--nat-gateway-id", fix.NAT(d.likelyNAT(subnet)).Or("NAT_GATEWAY_ID"))}
}

func (d *desk) publicAddress(c Class, subnet string) bool {
	if c.PublicIP != nil {
		return *c.PublicIP
	}
	i := slices.IndexFunc(d.Subnets.Value, func(s Subnet) bool { return s.ID == subnet })
	return i < 0 || d.Subnets.Value[i].Public
}

// lackingEndpoints are the services that a node cannot do without, and that the VPC has no endpoint for.
func (d *desk) lackingEndpoints() []string {
	var out []string
	for _, service := range []string{"ec2", "ecr.api", "ecr.dkr", "s3", "sts"} {
		if !slices.ContainsFunc(d.Endpoints.Value, func(e Endpoint) bool { return strings.HasSuffix(e.Service, "."+service) }) {
			out = append(out, service)
		}
	}
	return out
}

// judgeCustomNetworking: pods in subnets of their own take an interface away from every node.
func judgeCustomNetworking(d *desk) []Finding {
	if gap, ok := d.Daemons.gap("the DaemonSets"); ok {
		return []Finding{gap}
	}
	if plugin, ok := d.daemon("aws-node"); !ok || plugin.Env["AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"] != "true" {
		return nil
	}
	if !d.Controller.Known() || d.Controller.Value.Settings["RESERVED_ENIS"] != "" && d.Controller.Value.Settings["RESERVED_ENIS"] != "0" {
		return nil
	}
	return []Finding{suspicious("", Likely, "the VPC CNI has custom networking on, and the controller does not reserve an interface for it: nodes take more pods than they have addresses for").
		with("daemonset kube-system/aws-node: AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG=true", d.Controller.Source+": RESERVED_ENIS is not set").
		mend(fix.SetEnv(d.controllerDeployment(), "RESERVED_ENIS", fix.Number(1)))}
}

// judgeNoAnswer knows the sign only.
func judgeNoAnswer(d *desk) []Finding {
	sights := d.of("", TimedOut)
	if gap, ok := d.consoles(); ok && len(sights) == 0 {
		return []Finding{gap}
	}
	if len(sights) == 0 {
		return nil
	}
	return []Finding{broken("", Possible, "the API server does not answer instances, and security groups and routes look open: a network ACL, a firewall or a proxy may be in between").
		with(lines(sights)...).explaining(TimedOut).
		mend(fix.Call("ec2", "describe-network-acls", d.inRegion(),
			fix.P("--filters", fix.Join(fix.Text("Name=association.subnet-id,Values="), fix.Subnet(sights[0].instance.Subnet).Or("SUBNET")))))}
}
