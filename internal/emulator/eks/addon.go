package eks

import (
	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
)

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

// addonHealth is the health of an add-on. The emulator reports no issues.
type addonHealth struct {
	Issues []string `json:"issues"`
}

type addonOut struct {
	Addon addon `json:"addon"`
}

func addonOf(cluster string, a *ekscluster.Addon) addonOut {
	return addonOut{Addon: addon{
		AddonName: a.Name, ClusterName: cluster, Status: a.Status, AddonVersion: a.Version, Health: addonHealth{Issues: []string{}},
		AddonArn: a.ARN, CreatedAt: api.Epoch(a.CreatedAt), ModifiedAt: api.Epoch(a.ModifiedAt), Tags: nonNilMap(a.Tags),
	}}
}

type createAddonIn struct {
	AddonName    string            `json:"addonName"`
	AddonVersion string            `json:"addonVersion"`
	Tags         map[string]string `json:"tags"`
}

func createAddon(c *api.Call, in *createAddonIn) (addonOut, error) {
	a, err := c.Region.EKS.CreateAddon(c.Now, c.Path[0], ekscluster.Addon{Name: in.AddonName, Version: in.AddonVersion, Tags: in.Tags})
	if err != nil {
		return addonOut{}, err
	}
	return addonOf(c.Path[0], a), nil
}

func describeAddon(c *api.Call, _ *api.None) (addonOut, error) {
	a, err := c.Region.EKS.Addon(c.Path[0], c.Path[1])
	if err != nil {
		return addonOut{}, err
	}
	return addonOf(c.Path[0], a), nil
}

type addonsOut struct {
	Addons    []string `json:"addons"`
	NextToken string   `json:"nextToken,omitempty"`
}

func listAddons(c *api.Call, _ *api.None) (addonsOut, error) {
	k, err := c.Region.EKS.Cluster(c.Path[0])
	if err != nil {
		return addonsOut{}, err
	}
	names, next, err := namesPage(c, k.Addons())
	return addonsOut{Addons: nonNil(names), NextToken: next}, err
}

func deleteAddon(c *api.Call, _ *api.None) (addonOut, error) {
	a, err := c.Region.EKS.DeleteAddon(c.Path[0], c.Path[1])
	if err != nil {
		return addonOut{}, err
	}
	return addonOf(c.Path[0], a), nil
}
