package remedy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/kube"
)

// tryPatch has the API server make the patch for a trial.
func (d Doors) tryPatch(ctx context.Context, p kube.Patch) (Change, error) {
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

// keepsRows makes sure that a change of aws-auth takes nobody's place in it but that of the role that it is about: the patch was written for
// what was there a while ago.
func keepsRows(before, after string) error {
	was, is := kube.ReadAuthMap(before), kube.ReadAuthMap(after)
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
			return fmt.Errorf("change aws-auth: its row for %s would be lost: it was changed since it was looked at; run this again", row.ARN)
		}
	}
	return nil
}

// nameOf is the name of a role, by which rows of one role are known however they spell the rest.
func nameOf(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }
