package eks

import (
	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
)

type association struct {
	ClusterName    string            `json:"clusterName"`
	Namespace      string            `json:"namespace"`
	ServiceAccount string            `json:"serviceAccount"`
	RoleArn        string            `json:"roleArn"`
	AssociationArn string            `json:"associationArn"`
	AssociationID  string            `json:"associationId"`
	Tags           map[string]string `json:"tags"`
	CreatedAt      float64           `json:"createdAt"`
	ModifiedAt     float64           `json:"modifiedAt"`
}

type associationOut struct {
	Association association `json:"association"`
}

func associationOf(cluster string, p *ekscluster.PodIdentityAssociation) associationOut {
	return associationOut{Association: association{
		ClusterName: cluster, Namespace: p.Namespace, ServiceAccount: p.ServiceAccount, RoleArn: p.Role, AssociationArn: p.ARN,
		AssociationID: p.ID, Tags: nonNilMap(p.Tags), CreatedAt: api.Epoch(p.CreatedAt), ModifiedAt: api.Epoch(p.ModifiedAt),
	}}
}

type createAssociationIn struct {
	Namespace      string            `json:"namespace"`
	ServiceAccount string            `json:"serviceAccount"`
	RoleArn        string            `json:"roleArn"`
	Tags           map[string]string `json:"tags"`
}

func createPodIdentityAssociation(c *api.Call, in *createAssociationIn) (associationOut, error) {
	p, err := c.Region.EKS.CreatePodIdentityAssociation(c.Now, c.Path[0], ekscluster.PodIdentityAssociation{
		Namespace: in.Namespace, ServiceAccount: in.ServiceAccount, Role: in.RoleArn, Tags: in.Tags,
	})
	if err != nil {
		return associationOut{}, err
	}
	return associationOf(c.Path[0], p), nil
}

func describePodIdentityAssociation(c *api.Call, _ *api.None) (associationOut, error) {
	p, err := c.Region.EKS.PodIdentityAssociation(c.Path[0], c.Path[1])
	if err != nil {
		return associationOut{}, err
	}
	return associationOf(c.Path[0], p), nil
}

type updateAssociationIn struct {
	RoleArn string `json:"roleArn"`
}

func updatePodIdentityAssociation(c *api.Call, in *updateAssociationIn) (associationOut, error) {
	p, err := c.Region.EKS.UpdatePodIdentityAssociation(c.Now, c.Path[0], c.Path[1], in.RoleArn)
	if err != nil {
		return associationOut{}, err
	}
	return associationOf(c.Path[0], p), nil
}

func deletePodIdentityAssociation(c *api.Call, _ *api.None) (associationOut, error) {
	p, err := c.Region.EKS.DeletePodIdentityAssociation(c.Path[0], c.Path[1])
	if err != nil {
		return associationOut{}, err
	}
	return associationOf(c.Path[0], p), nil
}

// associationSummary is an association in the answer of ListPodIdentityAssociations, which does not include the role.
type associationSummary struct {
	ClusterName    string `json:"clusterName"`
	Namespace      string `json:"namespace"`
	ServiceAccount string `json:"serviceAccount"`
	AssociationArn string `json:"associationArn"`
	AssociationID  string `json:"associationId"`
}

type associationsOut struct {
	Associations []associationSummary `json:"associations"`
	NextToken    string               `json:"nextToken,omitempty"`
}

func listPodIdentityAssociations(c *api.Call, _ *api.None) (associationsOut, error) {
	k, err := c.Region.EKS.Cluster(c.Path[0])
	if err != nil {
		return associationsOut{}, err
	}
	byID := map[string]*ekscluster.PodIdentityAssociation{}
	var ids []string
	namespace, serviceAccount := c.Form.Get("namespace"), c.Form.Get("serviceAccount")
	for _, p := range k.Associations() {
		if (namespace == "" || namespace == p.Namespace) && (serviceAccount == "" || serviceAccount == p.ServiceAccount) {
			ids = append(ids, p.ID)
			byID[p.ID] = p
		}
	}
	ids, next, err := namesPage(c, ids)
	if err != nil {
		return associationsOut{}, err
	}
	out := associationsOut{Associations: []associationSummary{}, NextToken: next}
	for _, id := range ids {
		p := byID[id]
		out.Associations = append(out.Associations, associationSummary{
			ClusterName: k.Name, Namespace: p.Namespace, ServiceAccount: p.ServiceAccount, AssociationArn: p.ARN, AssociationID: p.ID,
		})
	}
	return out, nil
}
