package migration

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// Steps are the commands that the user runs, each list in its order.
type Steps struct {
	Over  []string `json:"over"`  // hand over to Joiner
	Check []string `json:"check"` // check that the migration is complete and that nodes are unchanged
	Back  []string `json:"back"`  // hand back to Karpenter
}

// Names of an installation by Karpenter's guide, used if the actual names are unknown.
const (
	usualNamespace = "kube-system"
	usualName      = "karpenter"
	usualReplicas  = 2
	valuesFile     = "karpenter-values.yaml"
)

// StepsFor returns the commands for an installation, with the names, replicas and service account of its first
// controller of Karpenter.
func StepsFor(in Installation) Steps {
	c := Controller{}
	if karpenters := in.of(Karpenter); len(karpenters) > 0 {
		c = karpenters[0]
	}
	c.Namespace, c.Name = cmp.Or(c.Namespace, usualNamespace), cmp.Or(c.Name, usualName)
	c.Account = cmp.Or(c.Account, usualName)
	if c.Replicas == 0 {
		c.Replicas = usualReplicas
	}
	space := []fix.Value{fix.Text("--namespace"), fix.Namespace(c.Namespace)}
	install := slices.Concat(fix.Words("helm install joiner deploy/charts/joiner"), space,
		fix.Words("--wait --values "+valuesFile+" --set serviceAccount.create=false --set"),
		one(fix.Text("serviceAccount.name="), fix.Name(c.Account)))
	for _, own := range ownValues() {
		if _, ok := in.value(own.path); ok {
			install = append(install, own.flags...)
		}
	}
	scale := func(name fix.Value, replicas int) fix.Step {
		return kubectl(space, fix.Words("scale"), one(fix.Text("deployment/"), name), one(fix.Text("--replicas="), fix.Number(replicas)))
	}
	waitGone := func(name fix.Value) fix.Step {
		return kubectl(space, fix.Words("wait --for=delete pod --selector"), one(fix.Text("app.kubernetes.io/name="), name),
			fix.Words("--timeout=2m"))
	}
	karpenter, joiner := fix.Name(c.Name), fix.Text("joiner")
	values := slices.Concat(fix.Words("helm get values"), one(fix.Name(cmp.Or(c.Release, usualName))), space, fix.Words("--output yaml"))
	return Steps{
		Over: printed(scale(karpenter, 0), waitGone(fix.Text(usualName)), fix.Run(values...).To(valuesFile), fix.Run(install...)),
		Check: []string{
			"kubectl get nodepools,ec2nodeclasses,nodeclaims",
			"kubectl get nodes --label-columns karpenter.sh/nodepool",
			"joiner doctor",
		},
		Back: printed(scale(joiner, 0), waitGone(joiner), scale(karpenter, c.Replicas)),
	}
}

// kubectl returns a step that runs kubectl with these words.
func kubectl(words ...[]fix.Value) fix.Step {
	return fix.Run(append(fix.Words("kubectl"), slices.Concat(words...)...)...)
}

// printed returns steps as lines. If an identifier in them is invalid, the lines are only comments that name it,
// because an incomplete list of commands would be unsafe.
func printed(steps ...fix.Step) []string {
	return strings.Split(fix.Of("the hand-over", steps...).String(), "\n")
}
