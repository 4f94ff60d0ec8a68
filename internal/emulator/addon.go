package emulator

import "github.com/joiner-sh/joiner/internal/emulator/world"

// addon is an add-on as EKS writes it.
type addon struct {
	AddonName    string            `json:"addonName"`
	ClusterName  string            `json:"clusterName"`
	Status       string            `json:"status"`
	AddonVersion string            `json:"addonVersion"`
	Health       addonHealth       `json:"health"`
	AddonArn     string            `json:"addonArn"`
	CreatedAt    float64           `json:"createdAt"`
	ModifiedAt   float64           `json:"modifiedAt"`
	Tags         map[string]string `json:"tags"`
}

// addonHealth has no issues here.
type addonHealth struct {
	Issues []string `json:"issues"`
}

type addonOut struct {
	Addon addon `json:"addon"`
}

func addonOf(cluster string, a *world.Addon) addonOut {
	return addonOut{Addon: addon{
		AddonName: a.Name, ClusterName: cluster, Status: a.Status, AddonVersion: a.Version, Health: addonHealth{Issues: []string{}},
		AddonArn: a.ARN, CreatedAt: epoch(a.CreatedAt), ModifiedAt: epoch(a.ModifiedAt), Tags: fullMap(a.Tags),
	}}
}

type createAddonIn struct {
	AddonName    string            `json:"addonName"`
	AddonVersion string            `json:"addonVersion"`
	Tags         map[string]string `json:"tags"`
}

func createAddon(c *call, in *createAddonIn) (addonOut, error) {
	a, err := c.region.EKS.CreateAddon(c.now, c.path[0], world.Addon{Name: in.AddonName, Version: in.AddonVersion, Tags: in.Tags})
	if err != nil {
		return addonOut{}, err
	}
	return addonOf(c.path[0], a), nil
}

func describeAddon(c *call, _ *none) (addonOut, error) {
	a, err := c.region.EKS.Addon(c.path[0], c.path[1])
	if err != nil {
		return addonOut{}, err
	}
	return addonOf(c.path[0], a), nil
}

type addonsOut struct {
	Addons    []string `json:"addons"`
	NextToken string   `json:"nextToken,omitempty"`
}

func listAddons(c *call, _ *none) (addonsOut, error) {
	k, err := c.region.EKS.Cluster(c.path[0])
	if err != nil {
		return addonsOut{}, err
	}
	names, next, err := c.names(k.Addons())
	return addonsOut{Addons: full(names), NextToken: next}, err
}

func deleteAddon(c *call, _ *none) (addonOut, error) {
	a, err := c.region.EKS.DeleteAddon(c.path[0], c.path[1])
	if err != nil {
		return addonOut{}, err
	}
	return addonOf(c.path[0], a), nil
}
