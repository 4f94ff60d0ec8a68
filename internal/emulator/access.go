package emulator

import "github.com/joiner-sh/joiner/internal/emulator/world"

// accessEntry is an access entry as EKS writes it.
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

func entryOf(cluster string, e *world.AccessEntry) accessEntryOut {
	return accessEntryOut{AccessEntry: accessEntry{
		ClusterName: cluster, PrincipalArn: e.Principal, KubernetesGroups: full(e.Groups), AccessEntryArn: e.ARN,
		CreatedAt: epoch(e.CreatedAt), ModifiedAt: epoch(e.ModifiedAt), Tags: fullMap(e.Tags), Username: e.Username, Type: e.Kind,
	}}
}

type createEntryIn struct {
	PrincipalArn     string            `json:"principalArn"`
	KubernetesGroups []string          `json:"kubernetesGroups"`
	Tags             map[string]string `json:"tags"`
	Username         string            `json:"username"`
	Type             string            `json:"type"`
}

func createAccessEntry(c *call, in *createEntryIn) (accessEntryOut, error) {
	e, err := c.region.EKS.CreateAccessEntry(c.now, c.path[0], world.AccessEntry{
		Principal: in.PrincipalArn, Kind: in.Type, Groups: in.KubernetesGroups, Username: in.Username, Tags: in.Tags,
	})
	if err != nil {
		return accessEntryOut{}, err
	}
	return entryOf(c.path[0], e), nil
}

func describeAccessEntry(c *call, _ *none) (accessEntryOut, error) {
	e, err := c.region.EKS.AccessEntry(c.path[0], c.path[1])
	if err != nil {
		return accessEntryOut{}, err
	}
	return entryOf(c.path[0], e), nil
}

func listAccessEntries(c *call, _ *none) (namesOut, error) {
	k, err := c.region.EKS.Cluster(c.path[0])
	if err != nil {
		return namesOut{}, err
	}
	var all []string
	for _, e := range k.AccessEntries() {
		all = append(all, e.Principal)
	}
	names, next, err := c.names(all)
	return namesOut{Entries: names, NextToken: next}, err
}

type updateEntryIn struct {
	KubernetesGroups []string `json:"kubernetesGroups"`
	Username         string   `json:"username"`
}

// updateAccessEntry changes groups and username of an entry of type STANDARD.
func updateAccessEntry(c *call, in *updateEntryIn) (accessEntryOut, error) {
	e, err := c.region.EKS.AccessEntry(c.path[0], c.path[1])
	if err != nil {
		return accessEntryOut{}, err
	}
	if e.Kind != world.EntryStandard {
		return accessEntryOut{}, &world.Error{Code: "InvalidRequestException", Message: "Access entries of type " + e.Kind + " cannot be updated."}
	}
	if in.KubernetesGroups != nil {
		e.Groups = in.KubernetesGroups
	}
	e.Username, e.ModifiedAt = or(in.Username, e.Username), c.now
	return entryOf(c.path[0], e), nil
}

func deleteAccessEntry(c *call, _ *none) (none, error) {
	return none{}, c.region.EKS.DeleteAccessEntry(c.path[0], c.path[1])
}

// fargateProfile is a Fargate profile as EKS writes it.
type fargateProfile struct {
	FargateProfileName  string                  `json:"fargateProfileName"`
	FargateProfileArn   string                  `json:"fargateProfileArn"`
	ClusterName         string                  `json:"clusterName"`
	CreatedAt           float64                 `json:"createdAt"`
	PodExecutionRoleArn string                  `json:"podExecutionRoleArn"`
	Subnets             []string                `json:"subnets"`
	Selectors           []world.FargateSelector `json:"selectors"`
	Status              string                  `json:"status"`
	Tags                map[string]string       `json:"tags"`
}

type fargateProfileOut struct {
	FargateProfile fargateProfile `json:"fargateProfile"`
}

func fargateOf(cluster string, p *world.FargateProfile) fargateProfileOut {
	return fargateProfileOut{FargateProfile: fargateProfile{
		FargateProfileName: p.Name, FargateProfileArn: p.ARN, ClusterName: cluster, CreatedAt: epoch(p.CreatedAt),
		PodExecutionRoleArn: p.Role, Subnets: full(p.SubnetIDs), Selectors: p.Selectors, Status: p.Status, Tags: fullMap(p.Tags),
	}}
}

type createFargateIn struct {
	FargateProfileName  string                  `json:"fargateProfileName"`
	PodExecutionRoleArn string                  `json:"podExecutionRoleArn"`
	Subnets             []string                `json:"subnets"`
	Selectors           []world.FargateSelector `json:"selectors"`
	Tags                map[string]string       `json:"tags"`
}

func createFargateProfile(c *call, in *createFargateIn) (fargateProfileOut, error) {
	p, err := c.region.EKS.CreateFargateProfile(c.now, c.path[0], world.FargateProfile{
		Name: in.FargateProfileName, Role: in.PodExecutionRoleArn, SubnetIDs: in.Subnets, Selectors: in.Selectors, Tags: in.Tags,
	})
	if err != nil {
		return fargateProfileOut{}, err
	}
	return fargateOf(c.path[0], p), nil
}

func describeFargateProfile(c *call, _ *none) (fargateProfileOut, error) {
	p, err := c.region.EKS.FargateProfile(c.path[0], c.path[1])
	if err != nil {
		return fargateProfileOut{}, err
	}
	return fargateOf(c.path[0], p), nil
}

func listFargateProfiles(c *call, _ *none) (namesOut, error) {
	k, err := c.region.EKS.Cluster(c.path[0])
	if err != nil {
		return namesOut{}, err
	}
	var all []string
	for _, p := range k.FargateProfiles() {
		all = append(all, p.Name)
	}
	names, next, err := c.names(all)
	return namesOut{Profiles: names, NextToken: next}, err
}

func deleteFargateProfile(c *call, _ *none) (fargateProfileOut, error) {
	p, err := c.region.EKS.DeleteFargateProfile(c.path[0], c.path[1])
	if err != nil {
		return fargateProfileOut{}, err
	}
	return fargateOf(c.path[0], p), nil
}
