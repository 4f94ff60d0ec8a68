package emulator

import "github.com/joiner-sh/joiner/internal/emulator/world"

// association is an association of EKS Pod Identity as EKS writes it, in full.
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

func associationOf(cluster string, p *world.PodIdentityAssociation) associationOut {
	return associationOut{Association: association{
		ClusterName: cluster, Namespace: p.Namespace, ServiceAccount: p.ServiceAccount, RoleArn: p.Role, AssociationArn: p.ARN,
		AssociationID: p.ID, Tags: fullMap(p.Tags), CreatedAt: epoch(p.CreatedAt), ModifiedAt: epoch(p.ModifiedAt),
	}}
}

type createAssociationIn struct {
	Namespace      string            `json:"namespace"`
	ServiceAccount string            `json:"serviceAccount"`
	RoleArn        string            `json:"roleArn"`
	Tags           map[string]string `json:"tags"`
}

func createPodIdentityAssociation(c *call, in *createAssociationIn) (associationOut, error) {
	p, err := c.region.EKS.CreatePodIdentityAssociation(c.now, c.path[0], world.PodIdentityAssociation{
		Namespace: in.Namespace, ServiceAccount: in.ServiceAccount, Role: in.RoleArn, Tags: in.Tags,
	})
	if err != nil {
		return associationOut{}, err
	}
	return associationOf(c.path[0], p), nil
}

func describePodIdentityAssociation(c *call, _ *none) (associationOut, error) {
	p, err := c.region.EKS.PodIdentityAssociation(c.path[0], c.path[1])
	if err != nil {
		return associationOut{}, err
	}
	return associationOf(c.path[0], p), nil
}

type updateAssociationIn struct {
	RoleArn string `json:"roleArn"`
}

func updatePodIdentityAssociation(c *call, in *updateAssociationIn) (associationOut, error) {
	p, err := c.region.EKS.UpdatePodIdentityAssociation(c.now, c.path[0], c.path[1], in.RoleArn)
	if err != nil {
		return associationOut{}, err
	}
	return associationOf(c.path[0], p), nil
}

func deletePodIdentityAssociation(c *call, _ *none) (associationOut, error) {
	p, err := c.region.EKS.DeletePodIdentityAssociation(c.path[0], c.path[1])
	if err != nil {
		return associationOut{}, err
	}
	return associationOf(c.path[0], p), nil
}

// associationSummary is an association as a list has it: its role stands in the description alone.
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

// listPodIdentityAssociations lists which service accounts have a role, all or those of a namespace, or of one name.
func listPodIdentityAssociations(c *call, _ *none) (associationsOut, error) {
	k, err := c.region.EKS.Cluster(c.path[0])
	if err != nil {
		return associationsOut{}, err
	}
	found := map[string]*world.PodIdentityAssociation{}
	var ids []string
	namespace, account := c.form.Get("namespace"), c.form.Get("serviceAccount")
	for _, p := range k.Associations() {
		if (namespace == "" || namespace == p.Namespace) && (account == "" || account == p.ServiceAccount) {
			ids = append(ids, p.ID)
			found[p.ID] = p
		}
	}
	ids, next, err := c.names(ids)
	if err != nil {
		return associationsOut{}, err
	}
	out := associationsOut{Associations: []associationSummary{}, NextToken: next}
	for _, id := range ids {
		p := found[id]
		out.Associations = append(out.Associations, associationSummary{
			ClusterName: k.Name, Namespace: p.Namespace, ServiceAccount: p.ServiceAccount, AssociationArn: p.ARN, AssociationID: p.ID,
		})
	}
	return out, nil
}
