package migration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Steps are commands, one each, to be run in this order.
type Steps struct {
	Over  []string `json:"over"`  // hand over to Joiner
	Check []string `json:"check"` // see that it is done, and that all is as it was
	Back  []string `json:"back"`  // hand back to Karpenter
}

// What an installation by Karpenter's guide has, where nothing else is known.
const (
	usualNamespace = "kube-system"
	usualName      = "karpenter"
	usualReplicas  = 2
	valuesFile     = "karpenter-values.yaml"
)

// StepsFor writes the commands for an installation: its names, its number of replicas, its service account.
func StepsFor(in Installation) Steps {
	c := Controller{}
	if theirs := in.of(Karpenter); len(theirs) > 0 {
		c = theirs[0]
	}
	c.Namespace, c.Name = cmp.Or(c.Namespace, usualNamespace), cmp.Or(c.Name, usualName)
	c.Account = cmp.Or(c.Account, usualName)
	if c.Replicas == 0 {
		c.Replicas = usualReplicas
	}
	space := "--namespace " + c.Namespace
	install := []string{
		"helm install joiner deploy/charts/joiner " + space, "--wait", "--values " + valuesFile,
		"--set serviceAccount.create=false", "--set serviceAccount.name=" + c.Account,
	}
	for _, own := range ownValues() {
		if _, ok := in.value(own.path); ok {
			install = append(install, own.flags)
		}
	}
	scale := func(name string, replicas int) string {
		return fmt.Sprintf("kubectl %s scale deployment/%s --replicas=%d", space, name, replicas)
	}
	gone := func(name string) string {
		return fmt.Sprintf("kubectl %s wait --for=delete pod --selector app.kubernetes.io/name=%s --timeout=2m", space, name)
	}
	return Steps{
		Over: slices.Concat([]string{scale(c.Name, 0), gone(usualName)},
			[]string{fmt.Sprintf("helm get values %s %s --output yaml > %s", cmp.Or(c.Release, usualName), space, valuesFile), strings.Join(install, " ")}),
		Check: []string{
			"kubectl get nodepools,ec2nodeclasses,nodeclaims",
			"kubectl get nodes --label-columns karpenter.sh/nodepool",
			"joiner doctor",
		},
		Back: []string{scale("joiner", 0), gone("joiner"), scale(c.Name, c.Replicas)},
	}
}
