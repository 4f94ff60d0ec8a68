package ekscluster

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// Addon is an EKS add-on of a cluster. The workloads of the add-on are not emulated.
type Addon struct {
	Name       string            // "eks-pod-identity-agent"
	ARN        string            // "arn:aws:eks:…:addon/demo/…"
	Version    string            // "v1.3.10-eksbuild.1"; empty: the default version
	Status     string            // "ACTIVE"
	CreatedAt  time.Time         // when CreateAddon was called
	ModifiedAt time.Time         // equal to CreatedAt, because add-ons cannot be changed
	Tags       map[string]string // nil: none
}

func addonVersions() map[string]string {
	return map[string]string{
		"aws-ebs-csi-driver":     "v1.48.0-eksbuild.1",
		"coredns":                "v1.12.1-eksbuild.2",
		"eks-pod-identity-agent": "v1.3.8-eksbuild.2",
		"kube-proxy":             "v1.34.0-eksbuild.2",
		"vpc-cni":                "v1.20.1-eksbuild.3",
	}
}

// CreateAddon installs an add-on, which is active at once.
func (s *EKS) CreateAddon(now time.Time, cluster string, a Addon) (*Addon, error) {
	c, err := s.Cluster(cluster)
	if err != nil {
		return nil, err
	}
	defaultVersion, ok := addonVersions()[a.Name]
	if !ok {
		return nil, failure.New("InvalidParameterException", "Addon %s specified is not supported in %s kubernetes version", a.Name, c.Version)
	}
	if c.addons[a.Name] != nil {
		return nil, failure.WithStatus(409, "ResourceInUseException", "Addon already exists.")
	}
	a.ARN = s.site.OwnARN("eks", "addon/"+cluster+"/"+a.Name+"/"+s.site.IDs.UUID("addon"))
	a.Version, a.Status = cmp.Or(a.Version, defaultVersion), "ACTIVE"
	a.CreatedAt, a.ModifiedAt, a.Tags = now, now, maps.Clone(a.Tags)
	if c.addons == nil {
		c.addons = map[string]*Addon{}
	}
	c.addons[a.Name] = &a
	return &a, nil
}

// Addon returns an add-on of a cluster by name.
func (s *EKS) Addon(cluster, name string) (*Addon, error) {
	c, err := s.Cluster(cluster)
	if err != nil {
		return nil, err
	}
	if a := c.addons[name]; a != nil {
		return a, nil
	}
	return nil, failure.WithStatus(404, "ResourceNotFoundException", "No addon: %s found in cluster: %s", name, cluster)
}

// Addons returns the names of the cluster's add-ons, sorted.
func (c *Cluster) Addons() []string { return slices.Sorted(maps.Keys(c.addons)) }

// DeleteAddon removes an add-on.
func (s *EKS) DeleteAddon(cluster, name string) (*Addon, error) {
	a, err := s.Addon(cluster, name)
	if err != nil {
		return nil, err
	}
	delete(s.clusters[cluster].addons, name)
	return a, nil
}
