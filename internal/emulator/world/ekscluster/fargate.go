package ekscluster

import (
	"maps"
	"path"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// FargateProfile selects the pods of a cluster that run on Fargate.
type FargateProfile struct {
	Name      string            // unique in the cluster
	ARN       string            // "arn:aws:eks:…:fargateprofile/demo/…"
	Role      string            // ARN of the pod execution role
	SubnetIDs []string          // subnets of the pods; none: the subnets of the cluster
	Selectors []FargateSelector // at least one; a pod must match one of them
	Status    string            // "CREATING", "ACTIVE", "DELETING"
	CreatedAt time.Time         // creation time
	Tags      map[string]string // nil: none
}

// The states of a Fargate profile.
const (
	ProfileCreating = "CREATING"
	ProfileActive   = "ACTIVE"
)

// FargateSelector selects pods by namespace and labels. In patterns, * stands for any text and ? for any character.
type FargateSelector struct {
	Namespace string            `json:"namespace"`        // pattern for the pod's namespace
	Labels    map[string]string `json:"labels,omitempty"` // key → pattern for the value; the pod must match all; nil: any pod
}

// Selects reports whether one of the profile's selectors matches a pod with the namespace and labels.
func (p *FargateProfile) Selects(namespace string, labels map[string]string) bool {
	return slices.ContainsFunc(p.Selectors, func(s FargateSelector) bool { return s.selects(namespace, labels) })
}

func (s FargateSelector) selects(namespace string, labels map[string]string) bool {
	if !matchesPattern(s.Namespace, namespace) {
		return false
	}
	for key, want := range s.Labels {
		if got, ok := labels[key]; !ok || !matchesPattern(want, got) {
			return false
		}
	}
	return true
}

// matchesPattern returns false for an invalid pattern.
func matchesPattern(pattern, text string) bool {
	ok, err := path.Match(pattern, text)
	return err == nil && ok
}

// CreateFargateProfile adds a Fargate profile. Unless p.Status is set, the profile is active after Timing.Profile. If
// the authentication mode allows access entries, it also creates an entry for a pod execution role without one.
func (s *EKS) CreateFargateProfile(now time.Time, cluster string, p FargateProfile) (*FargateProfile, error) {
	c, err := s.Cluster(cluster)
	if err != nil {
		return nil, err
	}
	if c.profiles[p.Name] != nil {
		return nil, failure.WithStatus(409, "ResourceInUseException", "FargateProfile already exists with name: %s", p.Name)
	}
	if p.Name == "" || p.Role == "" || len(p.Selectors) == 0 {
		return nil, failure.New("InvalidParameterException", "A Fargate profile needs a name, a pod execution role and at least one selector.")
	}
	if c.AuthMode != AuthConfigMap && c.entries[p.Role] == nil {
		if _, err := s.CreateAccessEntry(now, cluster, AccessEntry{Principal: p.Role, Kind: EntryFargateLinux}); err != nil {
			return nil, err
		}
	}
	p.ARN = s.site.OwnARN("eks", "fargateprofile/"+cluster+"/"+p.Name+"/"+s.site.IDs.UUID("fargate"))
	if len(p.SubnetIDs) == 0 {
		p.SubnetIDs = slices.Clone(c.SubnetIDs)
	}
	p.CreatedAt = now
	c.profiles[p.Name] = &p
	if p.Status != "" {
		return &p, nil
	}
	p.Status = ProfileActive
	if wait := s.site.Timing.Profile; wait > 0 {
		p.Status = ProfileCreating
		s.site.Due.Schedule(now.Add(wait), func(time.Time) { p.Status = ProfileActive })
	}
	return &p, nil
}

// FargateProfile returns a Fargate profile of a cluster by name.
func (s *EKS) FargateProfile(cluster, name string) (*FargateProfile, error) {
	c, err := s.Cluster(cluster)
	if err != nil {
		return nil, err
	}
	if p := c.profiles[name]; p != nil {
		return p, nil
	}
	return nil, failure.WithStatus(404, "ResourceNotFoundException", "No Fargate Profile found with name: %s.", name)
}

// FargateProfiles returns the cluster's Fargate profiles, sorted by name.
func (c *Cluster) FargateProfiles() []*FargateProfile {
	var out []*FargateProfile
	for _, n := range slices.Sorted(maps.Keys(c.profiles)) {
		out = append(out, c.profiles[n])
	}
	return out
}

// DeleteFargateProfile removes a Fargate profile.
func (s *EKS) DeleteFargateProfile(cluster, name string) (*FargateProfile, error) {
	p, err := s.FargateProfile(cluster, name)
	if err != nil {
		return nil, err
	}
	delete(s.clusters[cluster].profiles, name)
	return p, nil
}
