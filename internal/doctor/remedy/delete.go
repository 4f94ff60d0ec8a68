package remedy

import (
	"context"
	"fmt"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// planDelete makes a dry run of the deletion of each NodeClaim. It refuses a NodeClaim that differs from the one in the
// diagnosis, and skips one that no longer exists.
func (d Clients) planDelete(ctx context.Context, k fix.Kubernetes) (Change, error) {
	var all []fix.Claim
	text := ""
	for _, c := range k.Claims {
		_, found, err := d.tryDelete(ctx, c)
		if err != nil {
			return Change{}, err
		}
		if found {
			all = append(all, c)
			text += "nodeclaim " + c.Name + "\n"
		}
	}
	return Change{What: "nodeclaims, and the instances that were launched for them", Before: text, apply: func(ctx context.Context) error {
		for _, c := range all {
			one, found, err := d.tryDelete(ctx, c) // again, because the object may have changed while the user reviewed the fix
			if err != nil {
				return err
			}
			if !found {
				continue
			}
			if err := d.Kube.Delete(ctx, one); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

// tryDelete makes a dry run of the deletion of a NodeClaim. The error says how the NodeClaim differs from the
// diagnosis.
func (d Clients) tryDelete(ctx context.Context, c fix.Claim) (one kubeclient.Deletion, found bool, err error) {
	one, found, err = d.Kube.TryDelete(ctx, "nodeclaim", c.Name)
	if err != nil || !found {
		return one, false, err
	}
	instance := one.ProviderID[strings.LastIndexByte(one.ProviderID, '/')+1:]
	switch {
	case c.Instance != "" && instance != c.Instance:
		return one, false,
			fmt.Errorf("delete nodeclaim %s: refused: its status.providerID is %q, and not instance %s of the fix", c.Name,
				one.ProviderID, c.Instance)
	case one.Joined && !c.Joined:
		return one, false, fmt.Errorf("delete nodeclaim %s: refused: its node has joined the cluster, and the fix is for a NodeClaim whose node has not", c.Name)
	}
	return one, true, nil
}
