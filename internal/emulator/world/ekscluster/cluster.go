package ekscluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// The authentication modes of an EKS cluster.
const (
	AuthConfigMap = "CONFIG_MAP"
	AuthAPI       = "API"
	AuthBoth      = "API_AND_CONFIG_MAP"
)

// Cluster is an EKS cluster as DescribeCluster returns it. Its control plane is not part of the world.
type Cluster struct {
	Name           string            // unique in the region
	ARN            string            // "arn:aws:eks:…:cluster/demo"; CreateCluster sets it
	Version        string            // "1.31"
	Endpoint       string            // "https://…"
	CA             string            // certificate of the CA, PEM in base64
	ServiceCIDR    string            // "10.100.0.0/16"; in an IPv6 cluster "fd30:1c53:5f8a::/108"
	Issuer         string            // URL of the issuer of service account tokens
	AuthMode       string            // AuthConfigMap, AuthAPI or AuthBoth
	Status         string            // "ACTIVE", "CREATING", "DELETING"
	RoleARN        string            // the cluster's role; empty: not set
	VPCID          string            // "vpc-0…"; empty: not set
	SubnetIDs      []string          // subnets of the control plane's network interfaces
	GroupIDs       []string          // additional security groups of the control plane
	ClusterGroupID string            // the cluster security group
	CreatedAt      time.Time         // when CreateCluster was called
	Tags           map[string]string // nil: none
	ZonalShift     bool              // the cluster takes part in zonal shifts

	// NoPublicAccess and PrivateAccess are settings of the endpoint. By default the endpoint has public access only.
	// PublicCIDRs are the addresses that may use the public access; none: 0.0.0.0/0.
	NoPublicAccess, PrivateAccess bool
	PublicCIDRs                   []string

	entries      map[string]*AccessEntry            // by principal
	profiles     map[string]*FargateProfile         // by name
	addons       map[string]*Addon                  // by name
	associations map[string]*PodIdentityAssociation // by id
}

// EKS has the EKS clusters of a region.
type EKS struct {
	site     *site.Site
	account  *identity.IAM
	clusters map[string]*Cluster // by name
}

// NewEKS returns the EKS of a region, without clusters. account has the roles that calls refer to.
func NewEKS(site *site.Site, account *identity.IAM) EKS {
	return EKS{site: site, account: account, clusters: map[string]*Cluster{}}
}

// The kinds of access entries.
const (
	EntryStandard     = "STANDARD"
	EntryEC2Linux     = "EC2_LINUX"
	EntryEC2Windows   = "EC2_WINDOWS"
	EntryFargateLinux = "FARGATE_LINUX"
)

// AccessEntry gives an IAM principal access to a cluster.
type AccessEntry struct {
	Principal  string            // ARN of a role or user
	ARN        string            // ARN of the entry
	Kind       string            // EntryStandard, EntryEC2Linux, EntryEC2Windows or EntryFargateLinux
	Groups     []string          // Kubernetes groups of the principal
	Username   string            // may contain {{EC2PrivateDNSName}} and {{SessionName}}
	CreatedAt  time.Time         // creation time
	ModifiedAt time.Time         // when the entry was last changed
	Tags       map[string]string // nil: none
}

// CreateCluster adds a cluster. Empty fields that EKS has a default for get the default.
func (s *EKS) CreateCluster(now time.Time, c Cluster) (*Cluster, error) {
	if s.clusters[c.Name] != nil {
		return nil, failure.WithStatus(409, "ResourceInUseException", "Cluster already exists with name: %s", c.Name)
	}
	if c.Name == "" {
		return nil, failure.New("InvalidParameterException", "The cluster name must not be empty.")
	}
	c.ARN = s.site.OwnARN("eks", "cluster/"+c.Name)
	c.Version = cmp.Or(c.Version, "1.31")
	c.AuthMode = cmp.Or(c.AuthMode, AuthConfigMap)
	c.Status = cmp.Or(c.Status, "ACTIVE")
	c.ServiceCIDR = cmp.Or(c.ServiceCIDR, "10.100.0.0/16")
	if c.Issuer == "" {
		c.Issuer = "https://oidc.eks." + s.site.Region + ".amazonaws.com/id/" + strings.ToUpper(s.site.IDs.Hex("issuer", 32))
	}
	c.CreatedAt = now
	c.entries, c.profiles = map[string]*AccessEntry{}, map[string]*FargateProfile{}
	s.clusters[c.Name] = &c
	return &c, nil
}

// Cluster returns a cluster by name. Callers may change its exported fields.
func (s *EKS) Cluster(name string) (*Cluster, error) {
	if c := s.clusters[name]; c != nil {
		return c, nil
	}
	return nil, failure.WithStatus(404, "ResourceNotFoundException", "No cluster found for name: %s.", name)
}

// Clusters returns the names of the region's clusters, sorted.
func (s *EKS) Clusters() []string { return slices.Sorted(maps.Keys(s.clusters)) }

// DeleteCluster removes a cluster.
func (s *EKS) DeleteCluster(name string) (*Cluster, error) {
	c, err := s.Cluster(name)
	if err != nil {
		return nil, err
	}
	delete(s.clusters, name)
	return c, nil
}

// CreateAccessEntry gives a principal access to a cluster. Only entries of kind STANDARD may set username and groups.
func (s *EKS) CreateAccessEntry(now time.Time, cluster string, e AccessEntry) (*AccessEntry, error) {
	c, err := s.Cluster(cluster)
	if err != nil {
		return nil, err
	}
	if c.AuthMode == AuthConfigMap {
		return nil, failure.New("InvalidRequestException", "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation.")
	}
	if !strings.HasPrefix(e.Principal, "arn:") {
		return nil, failure.New("InvalidParameterException", "The principalArn parameter format is not valid")
	}
	if c.entries[e.Principal] != nil {
		return nil, failure.WithStatus(409, "ResourceInUseException", "The specified access entry resource is already in use on this cluster.")
	}
	e.Kind = cmp.Or(e.Kind, EntryStandard)
	if err := e.complete(); err != nil {
		return nil, err
	}
	name := identity.RoleName(e.Principal)
	e.ARN = s.site.OwnARN("eks", "access-entry/"+cluster+"/role/"+s.site.Account+"/"+name+"/"+s.site.IDs.UUID("entry"))
	e.CreatedAt, e.ModifiedAt = now, now
	c.entries[e.Principal] = &e
	return &e, nil
}

// complete sets the username and the groups that the kind of the entry determines. It returns an error if the entry
// already has groups or a different username, or if its kind is unknown. Entries of kind STANDARD keep their username
// and groups.
func (e *AccessEntry) complete() error {
	setFixed := func(username string, groups ...string) error {
		if e.Username != "" && e.Username != username || len(e.Groups) > 0 {
			return failure.New("InvalidParameterException",
				"The kubernetesGroups and username parameters cannot be set for access entries of type %s", e.Kind)
		}
		e.Username, e.Groups = username, groups
		return nil
	}
	switch e.Kind {
	case EntryStandard:
		if strings.HasPrefix(e.Username, "system:") {
			return failure.New("InvalidParameterException", "The username must not begin with system:")
		}
		e.Username = cmp.Or(e.Username, e.Principal)
		return nil
	case EntryEC2Linux:
		return setFixed("system:node:{{EC2PrivateDNSName}}", "system:nodes")
	case EntryEC2Windows:
		return setFixed("system:node:{{EC2PrivateDNSName}}", "system:nodes", "eks:kube-proxy-windows")
	case EntryFargateLinux:
		return setFixed("system:node:{{SessionName}}", "system:nodes", "system:node-proxier")
	}
	return failure.New("InvalidParameterException", "The type %s of the access entry is not valid", e.Kind)
}

// AccessEntry returns the entry of a principal.
func (s *EKS) AccessEntry(cluster, principal string) (*AccessEntry, error) {
	c, err := s.Cluster(cluster)
	if err != nil {
		return nil, err
	}
	if e := c.entries[principal]; e != nil {
		return e, nil
	}
	return nil, failure.WithStatus(404, "ResourceNotFoundException",
		"The specified principalArn could not be found. You must specify a valid principalArn.")
}

// AccessEntries returns the entries of the cluster, sorted by principal.
func (c *Cluster) AccessEntries() []*AccessEntry {
	var out []*AccessEntry
	for _, p := range slices.Sorted(maps.Keys(c.entries)) {
		out = append(out, c.entries[p])
	}
	return out
}

// DeleteAccessEntry deletes the entry of a principal.
func (s *EKS) DeleteAccessEntry(cluster, principal string) error {
	if _, err := s.AccessEntry(cluster, principal); err != nil {
		return err
	}
	delete(s.clusters[cluster].entries, principal)
	return nil
}
