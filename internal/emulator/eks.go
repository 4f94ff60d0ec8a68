package emulator

import (
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// eksActions returns the actions of EKS.
func eksActions() map[string]action {
	return map[string]action{
		"CreateCluster":          op(createCluster),
		"DescribeCluster":        op(describeCluster),
		"ListClusters":           op(listClusters),
		"UpdateClusterConfig":    op(updateClusterConfig),
		"DeleteCluster":          op(deleteCluster),
		"CreateAccessEntry":      op(createAccessEntry),
		"DescribeAccessEntry":    op(describeAccessEntry),
		"ListAccessEntries":      op(listAccessEntries),
		"UpdateAccessEntry":      op(updateAccessEntry),
		"DeleteAccessEntry":      op(deleteAccessEntry),
		"CreateFargateProfile":   op(createFargateProfile),
		"DescribeFargateProfile": op(describeFargateProfile),
		"ListFargateProfiles":    op(listFargateProfiles),
		"DeleteFargateProfile":   op(deleteFargateProfile),

		"CreateAddon":   op(createAddon),
		"DescribeAddon": op(describeAddon),
		"ListAddons":    op(listAddons),
		"DeleteAddon":   op(deleteAddon),

		"CreatePodIdentityAssociation":   op(createPodIdentityAssociation),
		"DescribePodIdentityAssociation": op(describePodIdentityAssociation),
		"ListPodIdentityAssociations":    op(listPodIdentityAssociations),
		"UpdatePodIdentityAssociation":   op(updatePodIdentityAssociation),
		"DeletePodIdentityAssociation":   op(deletePodIdentityAssociation),

		"ListNodegroups": op(listNodegroups),
	}
}

// eksRoutes returns the methods and paths of the actions.
func eksRoutes() []restRoute {
	return []restRoute{
		{"POST", "clusters", "CreateCluster"},
		{"GET", "clusters", "ListClusters"},
		{"GET", "clusters/*", "DescribeCluster"},
		{"DELETE", "clusters/*", "DeleteCluster"},
		{"POST", "clusters/*/update-config", "UpdateClusterConfig"},
		{"POST", "clusters/*/access-entries", "CreateAccessEntry"},
		{"GET", "clusters/*/access-entries", "ListAccessEntries"},
		{"GET", "clusters/*/access-entries/*", "DescribeAccessEntry"},
		{"POST", "clusters/*/access-entries/*", "UpdateAccessEntry"},
		{"DELETE", "clusters/*/access-entries/*", "DeleteAccessEntry"},
		{"POST", "clusters/*/fargate-profiles", "CreateFargateProfile"},
		{"GET", "clusters/*/fargate-profiles", "ListFargateProfiles"},
		{"GET", "clusters/*/fargate-profiles/*", "DescribeFargateProfile"},
		{"DELETE", "clusters/*/fargate-profiles/*", "DeleteFargateProfile"},
		{"POST", "clusters/*/addons", "CreateAddon"},
		{"GET", "clusters/*/addons", "ListAddons"},
		{"GET", "clusters/*/addons/*", "DescribeAddon"},
		{"DELETE", "clusters/*/addons/*", "DeleteAddon"},
		{"POST", "clusters/*/pod-identity-associations", "CreatePodIdentityAssociation"},
		{"GET", "clusters/*/pod-identity-associations", "ListPodIdentityAssociations"},
		{"GET", "clusters/*/pod-identity-associations/*", "DescribePodIdentityAssociation"},
		{"POST", "clusters/*/pod-identity-associations/*", "UpdatePodIdentityAssociation"},
		{"DELETE", "clusters/*/pod-identity-associations/*", "DeletePodIdentityAssociation"},
		{"GET", "clusters/*/node-groups", "ListNodegroups"},
	}
}

// cluster is a cluster as EKS writes it.
type cluster struct {
	Name                    string            `json:"name"`
	Arn                     string            `json:"arn"`
	CreatedAt               float64           `json:"createdAt"`
	Version                 string            `json:"version"`
	PlatformVersion         string            `json:"platformVersion"`
	Endpoint                string            `json:"endpoint"`
	RoleArn                 string            `json:"roleArn"`
	ResourcesVpcConfig      vpcConfig         `json:"resourcesVpcConfig"`
	KubernetesNetworkConfig networkConfig     `json:"kubernetesNetworkConfig"`
	Identity                clusterIdentity   `json:"identity"`
	Status                  string            `json:"status"`
	CertificateAuthority    certificate       `json:"certificateAuthority"`
	Tags                    map[string]string `json:"tags"`
	AccessConfig            accessConfig      `json:"accessConfig"`
	ZonalShiftConfig        zonalShiftConfig  `json:"zonalShiftConfig"`
}

// zonalShiftConfig says whether a cluster takes part in zonal shifts.
type zonalShiftConfig struct {
	Enabled bool `json:"enabled"`
}

type vpcConfig struct {
	SubnetIds              []string `json:"subnetIds"`
	SecurityGroupIds       []string `json:"securityGroupIds"`
	ClusterSecurityGroupId string   `json:"clusterSecurityGroupId,omitempty"`
	VpcId                  string   `json:"vpcId"`
	EndpointPublicAccess   bool     `json:"endpointPublicAccess"`
	EndpointPrivateAccess  bool     `json:"endpointPrivateAccess"`
	PublicAccessCidrs      []string `json:"publicAccessCidrs"`
}

type networkConfig struct {
	ServiceIpv4Cidr string `json:"serviceIpv4Cidr,omitempty"`
	ServiceIpv6Cidr string `json:"serviceIpv6Cidr,omitempty"`
	IPFamily        string `json:"ipFamily"`
}

// familyNetwork writes a cluster's network: it is of one family, that of its services.
func familyNetwork(cidr string) networkConfig {
	if strings.Contains(cidr, ":") {
		return networkConfig{ServiceIpv6Cidr: cidr, IPFamily: "ipv6"}
	}
	return networkConfig{ServiceIpv4Cidr: cidr, IPFamily: "ipv4"}
}

type clusterIdentity struct {
	OIDC oidc `json:"oidc"`
}

type oidc struct {
	Issuer string `json:"issuer"`
}

type certificate struct {
	Data string `json:"data"`
}

type accessConfig struct {
	AuthenticationMode string `json:"authenticationMode"`
}

type clusterOut struct {
	Cluster cluster `json:"cluster"`
}

func clusterOf(c *world.Cluster) cluster {
	return cluster{
		Name: c.Name, Arn: c.ARN, CreatedAt: epoch(c.CreatedAt), Version: c.Version, PlatformVersion: "eks.1", Endpoint: c.Endpoint, RoleArn: c.RoleARN,
		ResourcesVpcConfig: vpcConfig{
			SubnetIds: full(c.SubnetIDs), SecurityGroupIds: full(c.GroupIDs), ClusterSecurityGroupId: c.GroupID, VpcId: c.VPCID,
			EndpointPublicAccess: !c.NoPublicAccess, EndpointPrivateAccess: c.PrivateAccess, PublicAccessCidrs: unrestricted(c.PublicCIDRs),
		},
		KubernetesNetworkConfig: familyNetwork(c.ServiceCIDR),
		Identity:                clusterIdentity{OIDC: oidc{Issuer: c.Issuer}}, Status: c.Status, CertificateAuthority: certificate{Data: c.CA},
		Tags: fullMap(c.Tags), AccessConfig: accessConfig{AuthenticationMode: c.AuthMode},
		ZonalShiftConfig: zonalShiftConfig{Enabled: c.ZonalShift},
	}
}

// unrestricted returns the CIDRs as EKS lists them: 0.0.0.0/0 if there is none.
func unrestricted(cidrs []string) []string {
	if len(cidrs) == 0 {
		return []string{"0.0.0.0/0"}
	}
	return cidrs
}

// full and fullMap replace nil by an empty value, which JSON writes differently.
func full(list []string) []string { return append([]string{}, list...) }

func fullMap(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

type createClusterIn struct {
	Name                    string            `json:"name"`
	Version                 string            `json:"version"`
	RoleArn                 string            `json:"roleArn"`
	ResourcesVpcConfig      vpcConfig         `json:"resourcesVpcConfig"`
	KubernetesNetworkConfig networkConfig     `json:"kubernetesNetworkConfig"`
	Tags                    map[string]string `json:"tags"`
	AccessConfig            accessConfig      `json:"accessConfig"`
}

// serviceRange is where a new cluster's services get their addresses; empty leaves it to EKS. The range of an IPv6 cluster
// cannot be chosen.
func serviceRange(n networkConfig) string {
	if n.IPFamily == "ipv6" {
		return "fd30:1c53:5f8a::/108"
	}
	return n.ServiceIpv4Cidr
}

// createCluster adds the record of a cluster. There is no control plane behind
// it: its endpoint is one that nothing answers.
func createCluster(c *call, in *createClusterIn) (clusterOut, error) {
	made := world.Cluster{
		Name: in.Name, Version: in.Version, RoleARN: in.RoleArn, SubnetIDs: in.ResourcesVpcConfig.SubnetIds, GroupIDs: in.ResourcesVpcConfig.SecurityGroupIds,
		ServiceCIDR: serviceRange(in.KubernetesNetworkConfig), Tags: in.Tags, AuthMode: in.AccessConfig.AuthenticationMode,
		Endpoint: "https://" + strings.ToUpper(in.Name) + ".gr7." + c.regionID + ".eks.amazonaws.com",
	}
	for _, id := range made.SubnetIDs {
		s := c.region.Network.Subnet(id)
		if s == nil {
			return clusterOut{}, &world.Error{Code: "InvalidParameterException", Message: "The subnet ID '" + id + "' does not exist"}
		}
		made.VPCID = s.VPCID
	}
	k, err := c.region.EKS.CreateCluster(c.now, made)
	if err != nil {
		return clusterOut{}, err
	}
	return clusterOut{Cluster: clusterOf(k)}, nil
}

func describeCluster(c *call, _ *none) (clusterOut, error) {
	k, err := c.region.EKS.Cluster(c.path[0])
	if err != nil {
		return clusterOut{}, err
	}
	return clusterOut{Cluster: clusterOf(k)}, nil
}

func deleteCluster(c *call, _ *none) (clusterOut, error) {
	k, err := c.region.EKS.DeleteCluster(c.path[0])
	if err != nil {
		return clusterOut{}, err
	}
	return clusterOut{Cluster: clusterOf(k)}, nil
}

type namesOut struct {
	Clusters  []string `json:"clusters,omitempty"`
	Entries   []string `json:"accessEntries,omitempty"`
	Profiles  []string `json:"fargateProfileNames,omitempty"`
	NextToken string   `json:"nextToken,omitempty"`
}

func listClusters(c *call, _ *none) (namesOut, error) {
	names, next, err := c.names(c.region.EKS.Clusters())
	return namesOut{Clusters: names, NextToken: next}, err
}

// names returns the page of names that the request asks for.
func (c *call) names(all []string) ([]string, string, error) {
	size := 100
	if text := c.form.Get("maxResults"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			return nil, "", &world.Error{Code: "InvalidParameterException", Message: "maxResults must be between 1 and 100"}
		}
		size = n
	}
	part, next, err := cut(all, func(s string) string { return s }, page{token: c.form.Get("nextToken"), size: size})
	if err != nil {
		return nil, "", &world.Error{Code: "InvalidParameterException", Message: "nextToken is not valid"}
	}
	return part, next, nil
}

type updateConfigIn struct {
	AccessConfig     *accessConfig     `json:"accessConfig"`
	ZonalShiftConfig *zonalShiftConfig `json:"zonalShiftConfig"`

	ResourcesVpcConfig *endpointConfig `json:"resourcesVpcConfig"`
}

// endpointConfig is what can be changed of a cluster's endpoint.
type endpointConfig struct {
	EndpointPublicAccess  *bool    `json:"endpointPublicAccess"`
	EndpointPrivateAccess *bool    `json:"endpointPrivateAccess"`
	PublicAccessCidrs     []string `json:"publicAccessCidrs"`
}

// apply changes a cluster's endpoint; what is not given stays.
func (e endpointConfig) apply(k *world.Cluster) {
	if e.EndpointPublicAccess != nil {
		k.NoPublicAccess = !*e.EndpointPublicAccess
	}
	if e.EndpointPrivateAccess != nil {
		k.PrivateAccess = *e.EndpointPrivateAccess
	}
	if e.PublicAccessCidrs != nil {
		k.PublicCIDRs = e.PublicAccessCidrs
	}
}

type updateOut struct {
	Update update `json:"update"`
}

type update struct {
	ID     string   `json:"id"`
	Status string   `json:"status"`
	Type   string   `json:"type"`
	Params []string `json:"params"`
	Errors []string `json:"errors"`
}

// updateClusterConfig changes whether the cluster takes part in zonal shifts, or the authentication mode, which only goes
// forward: CONFIG_MAP, API_AND_CONFIG_MAP, API.
func updateClusterConfig(c *call, in *updateConfigIn) (updateOut, error) {
	k, err := c.region.EKS.Cluster(c.path[0])
	if err != nil {
		return updateOut{}, err
	}
	done := func(kind string) updateOut {
		return updateOut{Update: update{ID: c.id, Status: "Successful", Type: kind, Params: []string{}, Errors: []string{}}}
	}
	if in.ZonalShiftConfig != nil {
		k.ZonalShift = in.ZonalShiftConfig.Enabled
		return done("ZonalShiftConfigUpdate"), nil
	}
	if in.ResourcesVpcConfig != nil {
		in.ResourcesVpcConfig.apply(k)
		return done("EndpointAccessUpdate"), nil
	}
	if in.AccessConfig == nil {
		return updateOut{}, &world.Error{Code: "InvalidParameterException", Message: "This emulator updates accessConfig, resourcesVpcConfig and zonalShiftConfig only."}
	}
	steps := []string{world.AuthConfigMap, world.AuthBoth, world.AuthAPI}
	from, to := indexOf(steps, k.AuthMode), indexOf(steps, in.AccessConfig.AuthenticationMode)
	if to <= from {
		return updateOut{}, &world.Error{Code: "InvalidParameterException", Message: "Unsupported authentication mode update from " + k.AuthMode + " to " + in.AccessConfig.AuthenticationMode}
	}
	k.AuthMode = steps[to]
	return done("AccessConfigUpdate"), nil
}

func indexOf(list []string, want string) int {
	for i, s := range list {
		if s == want {
			return i
		}
	}
	return -1
}
