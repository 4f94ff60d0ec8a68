package repair

import (
	"context"
	"strings"

	"github.com/joiner-sh/joiner/kube"
)

// doomed reads kubectl delete nodeclaim, which has instances bought anew: of what can be deleted, only that is made again by itself.
func (c command) doomed() ([]string, error) {
	if len(c.words) < 4 || c.words[2] != "nodeclaim" {
		return nil, c.byHand("of what kubectl can delete only NodeClaims can be deleted from here")
	}
	var names []string
	for _, word := range c.words[3:] {
		switch {
		case word == "--wait=false":
		case strings.HasPrefix(word, "-"):
			return nil, c.byHand("the option %s is not understood", word)
		default:
			names = append(names, word)
		}
	}
	if len(names) == 0 {
		return nil, c.byHand("it does not say what to delete")
	}
	return names, nil
}

// planDelete has the API server judge the deletion of each object. What is gone already is left out.
func (d Doors) planDelete(ctx context.Context, c command) (Change, error) {
	names, err := c.doomed()
	if err != nil {
		return Change{}, err
	}
	var all []kube.Doomed
	text := ""
	for _, name := range names {
		one, found, err := d.Kube.Doom(ctx, "nodeclaim", name)
		if err != nil {
			return Change{}, err
		}
		if found {
			all = append(all, one)
			text += "nodeclaim " + name + "\n"
		}
	}
	return Change{What: "nodeclaims, and the instances that were bought for them", Before: text, apply: func(ctx context.Context) error {
		for _, one := range all {
			if err := d.Kube.Delete(ctx, one); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}
