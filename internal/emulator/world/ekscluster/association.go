package ekscluster

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// PodIdentityAssociation gives the pods of a service account a role through EKS Pod Identity. A service account has at
// most one association.
type PodIdentityAssociation struct {
	ID             string            // "a-" and 17 letters and digits
	ARN            string            // "arn:aws:eks:…:podidentityassociation/demo/a-…"
	Namespace      string            // of the service account
	ServiceAccount string            // name; pods that use it get the role
	Role           string            // ARN
	CreatedAt      time.Time         // creation time
	ModifiedAt     time.Time         // when the role was last set
	Tags           map[string]string // nil: none
}

const podIdentityPrincipal = "pods.eks.amazonaws.com"

// CreatePodIdentityAssociation associates a service account of a cluster with a role. The role must exist and trust EKS
// Pod Identity. The namespace and the service account need not exist.
func (s *EKS) CreatePodIdentityAssociation(now time.Time, cluster string, p PodIdentityAssociation) (*PodIdentityAssociation, error) {
	c, err := s.Cluster(cluster)
	if err != nil {
		return nil, err
	}
	if p.Namespace == "" || p.ServiceAccount == "" {
		return nil, failure.New("InvalidParameterException", "An association needs a namespace and a service account.")
	}
	if old := c.AssociationOf(p.Namespace, p.ServiceAccount); old != nil {
		return nil, failure.WithStatus(409, "ResourceInUseException", "Association already exists: %s", old.ID)
	}
	if err := s.checkPodRole(p.Role); err != nil {
		return nil, err
	}
	p.ID = "a-" + strings.ToLower(s.site.IDs.Letters("association", 17))
	p.ARN = s.site.OwnARN("eks", "podidentityassociation/"+cluster+"/"+p.ID)
	p.CreatedAt, p.ModifiedAt, p.Tags = now, now, maps.Clone(p.Tags)
	if c.associations == nil {
		c.associations = map[string]*PodIdentityAssociation{}
	}
	c.associations[p.ID] = &p
	return &p, nil
}

func (s *EKS) checkPodRole(arn string) error {
	role, err := s.account.Role(identity.RoleName(arn))
	if err != nil || role.ARN != arn {
		return failure.New("InvalidParameterException", "Role provided in the request does not exist.")
	}
	if !role.TrustsService(podIdentityPrincipal, "sts:AssumeRole", "sts:TagSession") {
		return failure.New("InvalidParameterException", "Trust policy of the role provided is invalid. Follow the official documentation to resolve the issue.")
	}
	return nil
}

// PodIdentityAssociation returns an association of a cluster by its id.
func (s *EKS) PodIdentityAssociation(cluster, id string) (*PodIdentityAssociation, error) {
	c, err := s.Cluster(cluster)
	if err != nil {
		return nil, err
	}
	if p := c.associations[id]; p != nil {
		return p, nil
	}
	return nil, failure.WithStatus(404, "ResourceNotFoundException", "No association found for id: %s", id)
}

// UpdatePodIdentityAssociation changes the role of an association.
func (s *EKS) UpdatePodIdentityAssociation(now time.Time, cluster, id, role string) (*PodIdentityAssociation, error) {
	p, err := s.PodIdentityAssociation(cluster, id)
	if err != nil {
		return nil, err
	}
	if err := s.checkPodRole(role); err != nil {
		return nil, err
	}
	p.Role, p.ModifiedAt = role, now
	return p, nil
}

// DeletePodIdentityAssociation deletes an association.
func (s *EKS) DeletePodIdentityAssociation(cluster, id string) (*PodIdentityAssociation, error) {
	p, err := s.PodIdentityAssociation(cluster, id)
	if err != nil {
		return nil, err
	}
	delete(s.clusters[cluster].associations, id)
	return p, nil
}

// AssociationOf returns the association of a service account; nil if it has none.
func (c *Cluster) AssociationOf(namespace, serviceAccount string) *PodIdentityAssociation {
	for _, p := range c.associations {
		if p.Namespace == namespace && p.ServiceAccount == serviceAccount {
			return p
		}
	}
	return nil
}

// Associations returns the associations of the cluster, sorted by id.
func (c *Cluster) Associations() []*PodIdentityAssociation {
	var out []*PodIdentityAssociation
	for _, id := range slices.Sorted(maps.Keys(c.associations)) {
		out = append(out, c.associations[id])
	}
	return out
}
