package eks

import "github.com/joiner-sh/joiner/internal/emulator/api"

// listNodegroups returns an empty list: the emulator has no managed node groups.
func listNodegroups(c *api.Call, _ *api.None) (nodegroupsOut, error) {
	if _, err := c.Region.EKS.Cluster(c.Path[0]); err != nil {
		return nodegroupsOut{}, err
	}
	return nodegroupsOut{Nodegroups: []string{}}, nil
}

type nodegroupsOut struct {
	Nodegroups []string `json:"nodegroups"`
}
