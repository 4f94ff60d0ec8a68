// Package eks serves the actions of EKS and of zonal shifts from the emulated world.
//
// In: a call: the parameters in its path, and its body as a struct.
// Out: the answer as a struct with the names of the service's API, or the service's error.
// Never: HTTP, or a Kubernetes control plane.
package eks

import (
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// Actions returns the actions of EKS.
func Actions() map[string]api.Action {
	return map[string]api.Action{
		"CreateCluster":          api.Op(createCluster),
		"DescribeCluster":        api.Op(describeCluster),
		"ListClusters":           api.Op(listClusters),
		"UpdateClusterConfig":    api.Op(updateClusterConfig),
		"DeleteCluster":          api.Op(deleteCluster),
		"CreateAccessEntry":      api.Op(createAccessEntry),
		"DescribeAccessEntry":    api.Op(describeAccessEntry),
		"ListAccessEntries":      api.Op(listAccessEntries),
		"UpdateAccessEntry":      api.Op(updateAccessEntry),
		"DeleteAccessEntry":      api.Op(deleteAccessEntry),
		"CreateFargateProfile":   api.Op(createFargateProfile),
		"DescribeFargateProfile": api.Op(describeFargateProfile),
		"ListFargateProfiles":    api.Op(listFargateProfiles),
		"DeleteFargateProfile":   api.Op(deleteFargateProfile),

		"CreateAddon":   api.Op(createAddon),
		"DescribeAddon": api.Op(describeAddon),
		"ListAddons":    api.Op(listAddons),
		"DeleteAddon":   api.Op(deleteAddon),

		"CreatePodIdentityAssociation":   api.Op(createPodIdentityAssociation),
		"DescribePodIdentityAssociation": api.Op(describePodIdentityAssociation),
		"ListPodIdentityAssociations":    api.Op(listPodIdentityAssociations),
		"UpdatePodIdentityAssociation":   api.Op(updatePodIdentityAssociation),
		"DeletePodIdentityAssociation":   api.Op(deletePodIdentityAssociation),

		"ListNodegroups": api.Op(listNodegroups),
	}
}

// Routes returns the methods and paths of the actions. Call.Path has the part for each *: the name of the cluster, then
// the name, ARN or id of the resource in the cluster.
func Routes() []api.Route {
	return []api.Route{
		{Method: "POST", Path: "clusters", Action: "CreateCluster"},
		{Method: "GET", Path: "clusters", Action: "ListClusters"},
		{Method: "GET", Path: "clusters/*", Action: "DescribeCluster"},
		{Method: "DELETE", Path: "clusters/*", Action: "DeleteCluster"},
		{Method: "POST", Path: "clusters/*/update-config", Action: "UpdateClusterConfig"},
		{Method: "POST", Path: "clusters/*/access-entries", Action: "CreateAccessEntry"},
		{Method: "GET", Path: "clusters/*/access-entries", Action: "ListAccessEntries"},
		{Method: "GET", Path: "clusters/*/access-entries/*", Action: "DescribeAccessEntry"},
		{Method: "POST", Path: "clusters/*/access-entries/*", Action: "UpdateAccessEntry"},
		{Method: "DELETE", Path: "clusters/*/access-entries/*", Action: "DeleteAccessEntry"},
		{Method: "POST", Path: "clusters/*/fargate-profiles", Action: "CreateFargateProfile"},
		{Method: "GET", Path: "clusters/*/fargate-profiles", Action: "ListFargateProfiles"},
		{Method: "GET", Path: "clusters/*/fargate-profiles/*", Action: "DescribeFargateProfile"},
		{Method: "DELETE", Path: "clusters/*/fargate-profiles/*", Action: "DeleteFargateProfile"},
		{Method: "POST", Path: "clusters/*/addons", Action: "CreateAddon"},
		{Method: "GET", Path: "clusters/*/addons", Action: "ListAddons"},
		{Method: "GET", Path: "clusters/*/addons/*", Action: "DescribeAddon"},
		{Method: "DELETE", Path: "clusters/*/addons/*", Action: "DeleteAddon"},
		{Method: "POST", Path: "clusters/*/pod-identity-associations", Action: "CreatePodIdentityAssociation"},
		{Method: "GET", Path: "clusters/*/pod-identity-associations", Action: "ListPodIdentityAssociations"},
		{Method: "GET", Path: "clusters/*/pod-identity-associations/*", Action: "DescribePodIdentityAssociation"},
		{Method: "POST", Path: "clusters/*/pod-identity-associations/*", Action: "UpdatePodIdentityAssociation"},
		{Method: "DELETE", Path: "clusters/*/pod-identity-associations/*", Action: "DeletePodIdentityAssociation"},
		{Method: "GET", Path: "clusters/*/node-groups", Action: "ListNodegroups"},
	}
}

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

// networkConfigOf derives the IP family from the service CIDR.
func networkConfigOf(cidr string) networkConfig {
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

func clusterOf(c *ekscluster.Cluster) cluster {
	return cluster{
		Name:            c.Name,
		Arn:             c.ARN,
		CreatedAt:       api.Epoch(c.CreatedAt),
		Version:         c.Version,
		PlatformVersion: "eks.1",
		Endpoint:        c.Endpoint,
		RoleArn:         c.RoleARN,
		ResourcesVpcConfig: vpcConfig{
			SubnetIds: nonNil(c.SubnetIDs), SecurityGroupIds: nonNil(c.GroupIDs), ClusterSecurityGroupId: c.ClusterGroupID, VpcId: c.VPCID,
			EndpointPublicAccess: !c.NoPublicAccess, EndpointPrivateAccess: c.PrivateAccess, PublicAccessCidrs: publicCIDRs(c.PublicCIDRs),
		},
		KubernetesNetworkConfig: networkConfigOf(c.ServiceCIDR),
		Identity:                clusterIdentity{OIDC: oidc{Issuer: c.Issuer}},
		Status:                  c.Status,
		CertificateAuthority:    certificate{Data: c.CA},
		Tags:                    nonNilMap(c.Tags),
		AccessConfig:            accessConfig{AuthenticationMode: c.AuthMode},
		ZonalShiftConfig:        zonalShiftConfig{Enabled: c.ZonalShift},
	}
}

func publicCIDRs(cidrs []string) []string {
	if len(cidrs) == 0 {
		return []string{"0.0.0.0/0"}
	}
	return cidrs
}

// nonNil returns a copy of a list. The copy of nil is an empty list, because EKS answers [] and never null.
func nonNil(list []string) []string { return append([]string{}, list...) }

// nonNilMap returns an empty map for nil, because EKS answers {} and never null.
func nonNilMap(m map[string]string) map[string]string {
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

// serviceCIDR returns the service CIDR of a new cluster; empty: EKS's default. EKS chooses the CIDR of an IPv6 cluster;
// the emulator gives every IPv6 cluster the same CIDR.
func serviceCIDR(n networkConfig) string {
	if n.IPFamily == "ipv6" {
		return "fd30:1c53:5f8a::/108"
	}
	return n.ServiceIpv4Cidr
}

// createCluster adds a cluster without a control plane. Its endpoint does not answer.
func createCluster(c *api.Call, in *createClusterIn) (clusterOut, error) {
	requested := ekscluster.Cluster{
		Name:        in.Name,
		Version:     in.Version,
		RoleARN:     in.RoleArn,
		SubnetIDs:   in.ResourcesVpcConfig.SubnetIds,
		GroupIDs:    in.ResourcesVpcConfig.SecurityGroupIds,
		ServiceCIDR: serviceCIDR(in.KubernetesNetworkConfig),
		Tags:        in.Tags,
		AuthMode:    in.AccessConfig.AuthenticationMode,
		Endpoint:    "https://" + strings.ToUpper(in.Name) + ".gr7." + c.RegionID + ".eks.amazonaws.com",
	}
	for _, id := range requested.SubnetIDs {
		s := c.Region.Network.Subnet(id)
		if s == nil {
			return clusterOut{}, &failure.Error{Code: "InvalidParameterException", Message: "The subnet ID '" + id + "' does not exist"}
		}
		requested.VPCID = s.VPCID // the same for all subnets
	}
	k, err := c.Region.EKS.CreateCluster(c.Now, requested)
	if err != nil {
		return clusterOut{}, err
	}
	return clusterOut{Cluster: clusterOf(k)}, nil
}

func describeCluster(c *api.Call, _ *api.None) (clusterOut, error) {
	k, err := c.Region.EKS.Cluster(c.Path[0])
	if err != nil {
		return clusterOut{}, err
	}
	return clusterOut{Cluster: clusterOf(k)}, nil
}

func deleteCluster(c *api.Call, _ *api.None) (clusterOut, error) {
	k, err := c.Region.EKS.DeleteCluster(c.Path[0])
	if err != nil {
		return clusterOut{}, err
	}
	return clusterOut{Cluster: clusterOf(k)}, nil
}

// namesOut is the answer of three list actions. Each action sets one of the lists.
type namesOut struct {
	Clusters  []string `json:"clusters,omitempty"`
	Entries   []string `json:"accessEntries,omitempty"`
	Profiles  []string `json:"fargateProfileNames,omitempty"`
	NextToken string   `json:"nextToken,omitempty"`
}

func listClusters(c *api.Call, _ *api.None) (namesOut, error) {
	names, next, err := namesPage(c, c.Region.EKS.Clusters())
	return namesOut{Clusters: names, NextToken: next}, err
}

// namesPage returns the requested page of names, and the token of the next page.
func namesPage(c *api.Call, all []string) ([]string, string, error) {
	size := 100 // default and maximum
	if text := c.Form.Get("maxResults"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			return nil, "", &failure.Error{Code: "InvalidParameterException", Message: "maxResults must be between 1 and 100"}
		}
		size = n
	}
	names, next, err := api.PageOf(all, func(s string) string { return s }, api.Page{Token: c.Form.Get("nextToken"), Size: size})
	if err != nil {
		return nil, "", &failure.Error{Code: "InvalidParameterException", Message: "nextToken is not valid"}
	}
	return names, next, nil
}

type updateConfigIn struct {
	AccessConfig     *accessConfig     `json:"accessConfig"`
	ZonalShiftConfig *zonalShiftConfig `json:"zonalShiftConfig"`

	ResourcesVpcConfig *endpointConfig `json:"resourcesVpcConfig"`
}

// endpointConfig has the changes of a cluster's endpoint. A nil field changes nothing.
type endpointConfig struct {
	EndpointPublicAccess  *bool    `json:"endpointPublicAccess"`
	EndpointPrivateAccess *bool    `json:"endpointPrivateAccess"`
	PublicAccessCidrs     []string `json:"publicAccessCidrs"`
}

func (e endpointConfig) apply(k *ekscluster.Cluster) {
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

// updateClusterConfig changes the first of these settings that the request has: zonal shift, endpoint, authentication
// mode. The authentication mode can only advance in the order CONFIG_MAP, API_AND_CONFIG_MAP, API.
func updateClusterConfig(c *api.Call, in *updateConfigIn) (updateOut, error) {
	k, err := c.Region.EKS.Cluster(c.Path[0])
	if err != nil {
		return updateOut{}, err
	}
	success := func(updateType string) updateOut {
		return updateOut{Update: update{ID: c.ID, Status: "Successful", Type: updateType, Params: []string{}, Errors: []string{}}}
	}
	if in.ZonalShiftConfig != nil {
		k.ZonalShift = in.ZonalShiftConfig.Enabled
		return success("ZonalShiftConfigUpdate"), nil
	}
	if in.ResourcesVpcConfig != nil {
		in.ResourcesVpcConfig.apply(k)
		return success("EndpointAccessUpdate"), nil
	}
	if in.AccessConfig == nil {
		return updateOut{},
			&failure.Error{Code: "InvalidParameterException", Message: "This emulator updates accessConfig, resourcesVpcConfig and zonalShiftConfig only."}
	}
	modes := []string{ekscluster.AuthConfigMap, ekscluster.AuthBoth, ekscluster.AuthAPI}
	from, to := indexOf(modes, k.AuthMode), indexOf(modes, in.AccessConfig.AuthenticationMode)
	if to <= from {
		return updateOut{},
			&failure.Error{Code: "InvalidParameterException", Message: "Unsupported authentication mode update from " +
				k.AuthMode + " to " + in.AccessConfig.AuthenticationMode}
	}
	k.AuthMode = modes[to]
	return success("AccessConfigUpdate"), nil
}

// indexOf returns the position of a string in the list; -1 if the list does not have it.
func indexOf(list []string, want string) int {
	for i, s := range list {
		if s == want {
			return i
		}
	}
	return -1
}

// Permissions returns the request that IAM evaluates for a call: the call's action on the cluster in its path, or on
// "*" if the path has no cluster.
func Permissions(c *api.Call, _ any) []iampolicy.Request {
	r := iampolicy.Request{Action: c.Name(), Resource: "*"}
	if len(c.Path) > 0 {
		r.Resource = c.Region.ARN("eks", c.Caller.Account, "cluster/"+c.Path[0])
	}
	return []iampolicy.Request{r}
}
