package remedy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/kube/evidence"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// tryPatch returns the change that a patch would make, after a dry run on the API server. A patch of aws-auth must pass
// checkRowsKept.
func (d Clients) tryPatch(ctx context.Context, p kubeclient.Patch) (Change, error) {
	trial, err := d.Kube.DryRun(ctx, p)
	if err != nil {
		return Change{}, err
	}
	what := p.Kind + " " + p.Name
	if p.Namespace != "" {
		what = p.Kind + " " + p.Namespace + "/" + p.Name
	}
	if p.Kind == "configmap" && p.Name == "aws-auth" {
		if err := checkRowsKept(trial.Before.Data["mapRoles"], trial.After.Data["mapRoles"]); err != nil {
			return Change{}, err
		}
	}
	return Change{What: what, Before: trial.Before.Text, After: trial.After.Text,
		apply: func(ctx context.Context) error { return d.Kube.Apply(ctx, p, trial) }}, nil
}

// checkRowsKept returns an error if a role has a row in before, the mapRoles of aws-auth, and none in after: the patch
// was then written for an earlier version of the ConfigMap.
func checkRowsKept(before, after string) error {
	oldMap, newMap := evidence.ReadAuthMap(before), evidence.ReadAuthMap(after)
	if newMap.Problem != "" {
		return fmt.Errorf("change aws-auth: it could not be read afterwards: %s", newMap.Problem)
	}
	for _, row := range oldMap.Roles {
		isKept := false
		for _, newRow := range newMap.Roles {
			isSame := newRow.ARN == row.ARN && newRow.Username == row.Username && slices.Equal(newRow.Groups, row.Groups)
			isKept = isKept || isSame || nameOf(newRow.ARN) == nameOf(row.ARN)
		}
		if !isKept {
			return fmt.Errorf("change aws-auth: its row for %s would be lost, because aws-auth was changed in the meantime; run this again", row.ARN)
		}
	}
	return nil
}

// nameOf returns the name of a role. aws-auth has ARNs without path, so only the name identifies the rows of a role.
func nameOf(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }
