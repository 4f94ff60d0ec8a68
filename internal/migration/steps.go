package migration

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// Steps are the commands that the user runs. Each list is in the order in which to run it.
type Steps struct {
	Over  []string `json:"over"`  // hand over to Joiner
	Check []string `json:"check"` // check that the migration is complete and that nodes are unchanged
	Back  []string `json:"back"`  // hand back to Karpenter
}

// Defaults for unknown names and replicas: those of an installation by Karpenter's guide.
const (
	defaultNamespace = "kube-system"
	defaultName      = "karpenter"
	defaultReplicas  = 2
	valuesFile       = "karpenter-values.yaml" // written by the steps
)

// StepsFor returns the commands for an installation, with the names, replicas and service account of the first of its
// controllers of Karpenter.
func StepsFor(in Installation) Steps {
	c := Controller{}
	if karpenters := in.controllersOf(Karpenter); len(karpenters) > 0 {
		c = karpenters[0]
	}
	c.Namespace, c.Name = cmp.Or(c.Namespace, defaultNamespace), cmp.Or(c.Name, defaultName)
	c.Account = cmp.Or(c.Account, defaultName)
	if c.Replicas == 0 {
		c.Replicas = defaultReplicas
	}
	namespaceFlag := []fix.Value{fix.Text("--namespace"), fix.Namespace(c.Namespace)}
	install := slices.Concat(fix.SplitWords("helm install joiner deploy/charts/joiner"), namespaceFlag,
		fix.SplitWords("--wait --values "+valuesFile+" --set serviceAccount.create=false --set"),
		joinedWord(fix.Text("serviceAccount.name="), fix.Name(c.Account)))
	for _, ref := range selfReferences() {
		if _, ok := in.valuePath(ref.path); ok {
			install = append(install, ref.flags...)
		}
	}
	scale := func(name fix.Value, replicas int) fix.Step {
		return kubectl(namespaceFlag, fix.SplitWords("scale"), joinedWord(fix.Text("deployment/"), name),
			joinedWord(fix.Text("--replicas="), fix.Number(replicas)))
	}
	waitGone := func(name fix.Value) fix.Step {
		return kubectl(namespaceFlag, fix.SplitWords("wait --for=delete pod --selector"), joinedWord(fix.Text("app.kubernetes.io/name="), name),
			fix.SplitWords("--timeout=2m"))
	}
	karpenter, joiner := fix.Name(c.Name), fix.Text("joiner")
	getValues := slices.Concat(fix.SplitWords("helm get values"), joinedWord(fix.Name(cmp.Or(c.Release, defaultName))), namespaceFlag,
		fix.SplitWords("--output yaml"))
	return Steps{
		// The pods' label has the chart's name, whatever the name of the Deployment is.
		Over: stepLines(scale(karpenter, 0), waitGone(fix.Text(defaultName)), fix.Run(getValues...).To(valuesFile), fix.Run(install...)),
		Check: []string{
			"kubectl get nodepools,ec2nodeclasses,nodeclaims",
			"kubectl get nodes --label-columns karpenter.sh/nodepool",
			"joiner doctor",
		},
		Back: stepLines(scale(joiner, 0), waitGone(joiner), scale(karpenter, c.Replicas)),
	}
}

func kubectl(words ...[]fix.Value) fix.Step {
	return fix.Run(append(fix.SplitWords("kubectl"), slices.Concat(words...)...)...)
}

// stepLines returns the steps as lines. If an identifier in any step is invalid, all lines are comments that name the
// identifier, because an incomplete list of commands would be unsafe.
func stepLines(steps ...fix.Step) []string {
	return strings.Split(fix.New("the hand-over", steps...).String(), "\n")
}
