package repair

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/kube"
)

// patch reads kubectl patch, in the forms that fixes have: kubectl [-n NAMESPACE] patch KIND NAME|KIND/NAME --type TYPE -p PATCH.
func (c command) patch() (kube.Patch, error) {
	var out kube.Patch
	var names []string
	rest := c.words[1:]
	for len(rest) > 0 {
		word := rest[0]
		rest = rest[1:]
		if !strings.HasPrefix(word, "-") {
			names = append(names, word)
			continue
		}
		if len(rest) == 0 {
			return out, c.byHand("the option %s is not understood", word)
		}
		switch word {
		case "-n", "--namespace":
			out.Namespace = rest[0]
		case "--type":
			out.Type = rest[0]
		case "-p", "--patch":
			out.Text = rest[0]
		default:
			return out, c.byHand("the option %s is not understood", word)
		}
		rest = rest[1:]
	}
	if len(names) == 2 {
		kind, name, ok := strings.Cut(names[1], "/")
		if !ok {
			return out, c.byHand("it does not say what to patch")
		}
		names = []string{names[0], kind, name}
	}
	switch {
	case len(names) == 0 || names[0] != "patch":
		return out, c.byHand("of kubectl only patch can be made from here")
	case len(names) != 3:
		return out, c.byHand("it does not say what to patch")
	case !slices.Contains([]string{kube.PatchMerge, kube.PatchJSON}, out.Type) || out.Text == "":
		return out, c.byHand("it is neither a merge patch nor a JSON patch")
	}
	out.Kind, out.Name = names[1], names[2]
	return out, nil
}

// planPatch has the API server make the patch for a trial.
func (d Doors) planPatch(ctx context.Context, c command) (Change, error) {
	p, err := c.patch()
	if err != nil {
		return Change{}, err
	}
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
