package world

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/network"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Setup describes the resources that CreateClusterResources creates in a region of an account.
type Setup struct {
	Account string // 12 digits
	Region  string // "us-east-1"

	// Cluster is the cluster's name in the tags of subnets and security groups, "karpenter.sh/discovery" and
	// "kubernetes.io/cluster/<name>", as the documentation of Karpenter and EKS recommends. CreateClusterResources does
	// not create the cluster, because its endpoint is not part of the world: see EKS.CreateCluster.
	Cluster string

	IPv6 bool // VPC and subnets have IPv6 blocks in addition to IPv4

	Zones []site.Zone   // nil: the zones a, b and c of the region
	Stock []OfferedType // instance types to add to the region's market
}

// SetupFrom returns a setup with the instance types that a table has for a region, in the three zones that offer the
// most types. Zone names differ between AWS accounts. SetupFrom names the zones a, b and c, in the order of their ids.
func SetupFrom(t catalog.Table, account, region, cluster string) (Setup, error) {
	market, err := t.Region(region)
	if err != nil {
		return Setup{}, fmt.Errorf("set up region %s: %w", region, err)
	}
	s := Setup{Account: account, Region: region, Cluster: cluster, Zones: bestZones(t, market)}
	for _, f := range t.Types() {
		offeredType := OfferedType{Facts: f, OnDemand: market.OnDemand[f.Name], Spot: market.SpotTypical[f.Name], Zones: []string{}}
		for _, offered := range market.ZonesOf(f.Name) {
			for _, z := range s.Zones {
				if z.ID == offered.ID {
					offeredType.Zones = append(offeredType.Zones, z.Name)
				}
			}
		}
		if len(offeredType.Zones) > 0 {
			s.Stock = append(s.Stock, offeredType)
		}
	}
	return s, nil
}

// bestZones returns the three zones that offer the most types, renamed to a, b and c.
func bestZones(t catalog.Table, market catalog.Region) []site.Zone {
	types := map[string]int{} // number of offered types, by zone id
	for _, f := range t.Types() {
		for _, z := range market.ZonesOf(f.Name) {
			types[z.ID]++
		}
	}
	zones := slices.Clone(market.Zones)
	slices.SortFunc(zones, func(a, b site.Zone) int { return cmp.Or(types[b.ID]-types[a.ID], cmp.Compare(a.ID, b.ID)) })
	zones = zones[:min(3, len(zones))]
	slices.SortFunc(zones, func(a, b site.Zone) int { return cmp.Compare(a.ID, b.ID) })
	for i := range zones {
		zones[i].Name = market.Name + string(rune('a'+i))
	}
	return zones
}

// ClusterResources has resources that CreateClusterResources has created.
type ClusterResources struct {
	Region         *Region                // the region of the resources
	VPC            *network.VPC           // 10.0.0.0/16
	PrivateSubnets []*network.Subnet      // one for each zone, with room for 8,187 addresses
	PublicSubnets  []*network.Subnet      // one for each zone
	NodeSG         *network.SecurityGroup // for the nodes; tagged for discovery
	ClusterSG      *network.SecurityGroup // the cluster security group, which EKS creates
}

// New returns a world with one region that is ready for a cluster: see CreateClusterResources.
func New(now time.Time, s Setup) (*World, ClusterResources, error) {
	w := &World{}
	e, err := w.CreateClusterResources(now, s)
	return w, e, err
}

// CreateClusterResources creates the resources that a cluster needs in a region of an account:
//
//   - a VPC with route tables, and a private and a public subnet in each zone;
//   - security groups;
//   - the EKS images for Kubernetes 1.28 to 1.36, and the SSM parameters that refer to the images.
func (w *World) CreateClusterResources(now time.Time, s Setup) (ClusterResources, error) {
	r := w.Region(s.Account, s.Region)
	if len(s.Zones) > 0 {
		r.site.Zones = s.Zones
	}
	w.Market(s.Region).Offer(s.Stock...)
	e := ClusterResources{Region: r}
	if err := r.createNetwork(s, &e); err != nil {
		return ClusterResources{}, err
	}
	if err := r.createSecurityGroups(s, &e); err != nil {
		return ClusterResources{}, err
	}
	return e, r.createImages(now)
}

func (r *Region) createNetwork(s Setup, e *ClusterResources) error {
	tags := func(name string, more map[string]string) map[string]string {
		return site.WithTags(more, map[string]string{"Name": s.Cluster + "/" + name, "kubernetes.io/cluster/" + s.Cluster: "shared"}, nil)
	}
	var err error
	if e.VPC, err = r.Network.CreateVPC("10.0.0.0/16", tags("VPC", nil)); err != nil {
		return err
	}
	var private, public []string
	for i, z := range r.site.Zones {
		// Private subnets begin at 10.0.32.0, above the public ones.
		cidr := "10.0." + strconv.Itoa(32*(i+1)) + ".0/19"
		sub, err := r.Network.CreateSubnet(e.VPC.ID, z.Name, cidr, tags("SubnetPrivate-"+z.Name, map[string]string{
			"karpenter.sh/discovery": s.Cluster, "kubernetes.io/role/internal-elb": "1",
		}))
		if err != nil {
			return err
		}
		e.PrivateSubnets = append(e.PrivateSubnets, sub)
		private = append(private, sub.ID)

		cidr = "10.0." + strconv.Itoa(4*i) + ".0/22"
		sub, err = r.Network.CreateSubnet(e.VPC.ID, z.Name, cidr, tags("SubnetPublic-"+z.Name, map[string]string{"kubernetes.io/role/elb": "1"}))
		if err != nil {
			return err
		}
		sub.Public = true
		e.PublicSubnets = append(e.PublicSubnets, sub)
		public = append(public, sub.ID)
	}
	if s.IPv6 {
		r.Network.EnableIPv6(e.VPC)
	}
	local := network.Route{Destination: "10.0.0.0/16", Target: "local"}
	r.Network.CreateRouteTable(network.RouteTable{VPCID: e.VPC.ID, Main: true, Routes: []network.Route{local}})
	r.Network.CreateRouteTable(network.RouteTable{
		VPCID: e.VPC.ID, SubnetIDs: private, Tags: tags("PrivateRouteTable", nil),
		Routes: []network.Route{local, {Destination: "0.0.0.0/0", Target: r.site.IDs.New("nat")}},
	})
	r.Network.CreateRouteTable(network.RouteTable{
		VPCID: e.VPC.ID, SubnetIDs: public, Tags: tags("PublicRouteTable", nil),
		Routes: []network.Route{local, {Destination: "0.0.0.0/0", Target: r.site.IDs.New("igw")}},
	})
	return nil
}

// createSecurityGroups lets the members of the cluster's and the nodes' groups exchange all traffic.
func (r *Region) createSecurityGroups(s Setup, e *ClusterResources) error {
	var err error
	owned := map[string]string{"kubernetes.io/cluster/" + s.Cluster: "owned"}
	e.ClusterSG, err = r.Network.CreateSecurityGroup(e.VPC.ID, "eks-cluster-sg-"+s.Cluster, "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, as well as any managed workloads.",
		site.WithTags(owned, map[string]string{"aws:eks:cluster-name": s.Cluster, "Name": "eks-cluster-sg-" + s.Cluster}, nil))
	if err != nil {
		return err
	}
	e.NodeSG, err = r.Network.CreateSecurityGroup(e.VPC.ID, s.Cluster+"-node", "Communication between all nodes in the cluster",
		site.WithTags(owned, map[string]string{"karpenter.sh/discovery": s.Cluster, "Name": s.Cluster + "-node"}, nil))
	if err != nil {
		return err
	}
	members := []network.Rule{{Protocol: "-1", From: -1, To: -1, Groups: []string{e.ClusterSG.ID, e.NodeSG.ID}}}
	e.ClusterSG.Ingress, e.NodeSG.Ingress = members, members
	_, err = r.Network.CreateSecurityGroup(e.VPC.ID, "default", "default VPC security group", nil)
	return err
}
