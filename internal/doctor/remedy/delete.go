package remedy

import (
	"context"
	"fmt"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// planDelete returns the change that deletes the NodeClaims in k, after a dry run of each deletion. It returns an error
// if a NodeClaim differs from the one in the diagnosis, and skips a NodeClaim that no longer exists.
func (d Clients) planDelete(ctx context.Context, k fix.Kubernetes) (Change, error) {
	var existing []fix.Claim
	before := ""
	for _, c := range k.Claims {
		_, found, err := d.tryDelete(ctx, c)
		if err != nil {
			return Change{}, err
		}
		if found {
			existing = append(existing, c)
			before += "nodeclaim " + c.Name + "\n"
		}
	}
	const what = "nodeclaims, and the instances that were launched for them"
	return Change{What: what, Before: before, apply: func(ctx context.Context) error {
		for _, c := range existing {
			deletion, found, err := d.tryDelete(ctx, c) // again, because the NodeClaim may have changed during the review
			if err != nil {
				return err
			}
			if !found {
				continue
			}
			if err := d.Kube.Delete(ctx, deletion); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

// tryDelete makes a dry run of the deletion of a NodeClaim. found is false if the NodeClaim does not exist. The error
// says how the NodeClaim differs from the one in the diagnosis.
func (d Clients) tryDelete(ctx context.Context, c fix.Claim) (deletion kubeclient.Deletion, found bool, err error) {
	deletion, found, err = d.Kube.DryRunDelete(ctx, "nodeclaim", c.Name)
	if err != nil || !found {
		return deletion, false, err
	}
	instance := deletion.ProviderID[strings.LastIndexByte(deletion.ProviderID, '/')+1:]
	switch {
	case c.Instance != "" && instance != c.Instance:
		return deletion, false,
			fmt.Errorf("delete nodeclaim %s: refused: its status.providerID is %q, and not instance %s of the fix", c.Name,
				deletion.ProviderID, c.Instance)
	case deletion.Joined && !c.Joined:
		return deletion, false, fmt.Errorf("delete nodeclaim %s: refused: its node has joined the cluster, and the fix is for a NodeClaim whose node has not", c.Name)
	}
	return deletion, true, nil
}
