package eks

import (
	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

type accessEntry struct {
	ClusterName      string            `json:"clusterName"`
	PrincipalArn     string            `json:"principalArn"`
	KubernetesGroups []string          `json:"kubernetesGroups"`
	AccessEntryArn   string            `json:"accessEntryArn"`
	CreatedAt        float64           `json:"createdAt"`
	ModifiedAt       float64           `json:"modifiedAt"`
	Tags             map[string]string `json:"tags"`
	Username         string            `json:"username"`
	Type             string            `json:"type"`
}

type accessEntryOut struct {
	AccessEntry accessEntry `json:"accessEntry"`
}

func entryOf(cluster string, e *ekscluster.AccessEntry) accessEntryOut {
	return accessEntryOut{AccessEntry: accessEntry{
		ClusterName: cluster, PrincipalArn: e.Principal, KubernetesGroups: nonNil(e.Groups), AccessEntryArn: e.ARN,
		CreatedAt: api.Epoch(e.CreatedAt), ModifiedAt: api.Epoch(e.ModifiedAt), Tags: nonNilMap(e.Tags), Username: e.Username, Type: e.Kind,
	}}
}

type createEntryIn struct {
	PrincipalArn     string            `json:"principalArn"`
	KubernetesGroups []string          `json:"kubernetesGroups"`
	Tags             map[string]string `json:"tags"`
	Username         string            `json:"username"`
	Type             string            `json:"type"`
}

func createAccessEntry(c *api.Call, in *createEntryIn) (accessEntryOut, error) {
	e, err := c.Region.EKS.CreateAccessEntry(c.Now, c.Path[0], ekscluster.AccessEntry{
		Principal: in.PrincipalArn, Kind: in.Type, Groups: in.KubernetesGroups, Username: in.Username, Tags: in.Tags,
	})
	if err != nil {
		return accessEntryOut{}, err
	}
	return entryOf(c.Path[0], e), nil
}

func describeAccessEntry(c *api.Call, _ *api.None) (accessEntryOut, error) {
	e, err := c.Region.EKS.AccessEntry(c.Path[0], c.Path[1])
	if err != nil {
		return accessEntryOut{}, err
	}
	return entryOf(c.Path[0], e), nil
}

func listAccessEntries(c *api.Call, _ *api.None) (namesOut, error) {
	k, err := c.Region.EKS.Cluster(c.Path[0])
	if err != nil {
		return namesOut{}, err
	}
	var all []string
	for _, e := range k.AccessEntries() {
		all = append(all, e.Principal)
	}
	names, next, err := namesPage(c, all)
	return namesOut{Entries: names, NextToken: next}, err
}

type updateEntryIn struct {
	KubernetesGroups []string `json:"kubernetesGroups"`
	Username         string   `json:"username"`
}

func updateAccessEntry(c *api.Call, in *updateEntryIn) (accessEntryOut, error) {
	e, err := c.Region.EKS.AccessEntry(c.Path[0], c.Path[1])
	if err != nil {
		return accessEntryOut{}, err
	}
	if e.Kind != ekscluster.EntryStandard {
		return accessEntryOut{}, &failure.Error{Code: "InvalidRequestException", Message: "Access entries of type " + e.Kind +
			" cannot be updated."}
	}
	if in.KubernetesGroups != nil {
		e.Groups = in.KubernetesGroups
	}
	e.Username, e.ModifiedAt = api.Or(in.Username, e.Username), c.Now
	return entryOf(c.Path[0], e), nil
}

func deleteAccessEntry(c *api.Call, _ *api.None) (api.None, error) {
	return api.None{}, c.Region.EKS.DeleteAccessEntry(c.Path[0], c.Path[1])
}

type fargateProfile struct {
	FargateProfileName  string                       `json:"fargateProfileName"`
	FargateProfileArn   string                       `json:"fargateProfileArn"`
	ClusterName         string                       `json:"clusterName"`
	CreatedAt           float64                      `json:"createdAt"`
	PodExecutionRoleArn string                       `json:"podExecutionRoleArn"`
	Subnets             []string                     `json:"subnets"`
	Selectors           []ekscluster.FargateSelector `json:"selectors"`
	Status              string                       `json:"status"`
	Tags                map[string]string            `json:"tags"`
}

type fargateProfileOut struct {
	FargateProfile fargateProfile `json:"fargateProfile"`
}

func fargateOf(cluster string, p *ekscluster.FargateProfile) fargateProfileOut {
	return fargateProfileOut{FargateProfile: fargateProfile{
		FargateProfileName: p.Name, FargateProfileArn: p.ARN, ClusterName: cluster, CreatedAt: api.Epoch(p.CreatedAt),
		PodExecutionRoleArn: p.Role, Subnets: nonNil(p.SubnetIDs), Selectors: p.Selectors, Status: p.Status, Tags: nonNilMap(p.Tags),
	}}
}

type createFargateIn struct {
	FargateProfileName  string                       `json:"fargateProfileName"`
	PodExecutionRoleArn string                       `json:"podExecutionRoleArn"`
	Subnets             []string                     `json:"subnets"`
	Selectors           []ekscluster.FargateSelector `json:"selectors"`
	Tags                map[string]string            `json:"tags"`
}

func createFargateProfile(c *api.Call, in *createFargateIn) (fargateProfileOut, error) {
	p, err := c.Region.EKS.CreateFargateProfile(c.Now, c.Path[0], ekscluster.FargateProfile{
		Name: in.FargateProfileName, Role: in.PodExecutionRoleArn, SubnetIDs: in.Subnets, Selectors: in.Selectors, Tags: in.Tags,
	})
	if err != nil {
		return fargateProfileOut{}, err
	}
	return fargateOf(c.Path[0], p), nil
}

func describeFargateProfile(c *api.Call, _ *api.None) (fargateProfileOut, error) {
	p, err := c.Region.EKS.FargateProfile(c.Path[0], c.Path[1])
	if err != nil {
		return fargateProfileOut{}, err
	}
	return fargateOf(c.Path[0], p), nil
}

func listFargateProfiles(c *api.Call, _ *api.None) (namesOut, error) {
	k, err := c.Region.EKS.Cluster(c.Path[0])
	if err != nil {
		return namesOut{}, err
	}
	var all []string
	for _, p := range k.FargateProfiles() {
		all = append(all, p.Name)
	}
	names, next, err := namesPage(c, all)
	return namesOut{Profiles: names, NextToken: next}, err
}

func deleteFargateProfile(c *api.Call, _ *api.None) (fargateProfileOut, error) {
	p, err := c.Region.EKS.DeleteFargateProfile(c.Path[0], c.Path[1])
	if err != nil {
		return fargateProfileOut{}, err
	}
	return fargateOf(c.Path[0], p), nil
}
