package remedy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/kube/evidence"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// tryPatch makes a dry run of the patch.
func (d Clients) tryPatch(ctx context.Context, p kubeclient.Patch) (Change, error) {
	trial, err := d.Kube.Try(ctx, p)
	if err != nil {
		return Change{}, err
	}
	what := p.Kind + " " + p.Name
	if p.Namespace != "" {
		what = p.Kind + " " + p.Namespace + "/" + p.Name
	}
	if p.Kind == "configmap" && p.Name == "aws-auth" {
		if err := keepsRows(trial.Before.Data["mapRoles"], trial.After.Data["mapRoles"]); err != nil {
			return Change{}, err
		}
	}
	return Change{What: what, Before: trial.Before.Text, After: trial.After.Text,
		apply: func(ctx context.Context) error { return d.Kube.Apply(ctx, p, trial) }}, nil
}

// keepsRows returns an error if a change of aws-auth would remove rows of other roles, because the patch was written
// for an earlier version of the ConfigMap.
func keepsRows(before, after string) error {
	was, is := evidence.ReadAuthMap(before), evidence.ReadAuthMap(after)
	if is.Problem != "" {
		return fmt.Errorf("change aws-auth: it could not be read afterwards: %s", is.Problem)
	}
	for _, row := range was.Roles {
		kept := false
		for _, other := range is.Roles {
			same := other.ARN == row.ARN && other.Username == row.Username && slices.Equal(other.Groups, row.Groups)
			kept = kept || same || nameOf(other.ARN) == nameOf(row.ARN)
		}
		if !kept {
			return fmt.Errorf("change aws-auth: its row for %s would be lost, because aws-auth was changed in the meantime; run this again", row.ARN)
		}
	}
	return nil
}

// nameOf returns the name of a role, which identifies its rows.
func nameOf(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }
