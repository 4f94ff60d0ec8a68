// Package index indexes the evidence for the checks of all subjects: the symptoms of instances, the Node of an
// instance, and statements about launches.
//
// In: diagnosis.Evidence.
// Out: an Index, which no check changes, and the type Check.
// Never: a network call, a reading of the clock, or a verdict without evidence.
package index

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// Index is the evidence with lookup tables that several checks use.
type Index struct {
	// Evidence is the evidence. If the NodeClaims are known, they determine the NodeClaim and EC2NodeClass of each
	// instance; otherwise its tags do (see diagnosis.WithClaims).
	Evidence       diagnosis.Evidence
	Occurrences    []Occurrence              // on running instances of this cluster without a ready Node; in order of instances
	NodeByInstance map[string]diagnosis.Node // by instance ID: see diagnosis.NodesByInstance
}

// New indexes evidence. It changes nothing that the evidence refers to.
func New(e diagnosis.Evidence) *Index {
	ix := &Index{Evidence: e}
	if e.Claims.Known() {
		ix.Evidence.Instances.Value = diagnosis.WithClaims(e.Instances.Value, e.Claims.Value)
	}
	ix.NodeByInstance = diagnosis.NodesByInstance(e, ix.Evidence.Instances.Value)
	for _, i := range ix.Evidence.Instances.Value {
		node, isNode := ix.NodeByInstance[i.ID]
		if !i.Runs() || isNode && node.Ready || ix.IsForeign(i) {
			continue
		}
		for _, r := range diagnosis.ReadConsole(i.Console.Value) {
			ix.Occurrences = append(ix.Occurrences, Occurrence{r, i})
		}
	}
	return ix
}

// IsForeign reports whether the instance does not belong to this cluster: it is tagged with another cluster's UID, or
// no NodeClaim has its provider ID. Failures of such an instance are not judged.
func (ix *Index) IsForeign(i diagnosis.Instance) bool {
	hasOtherUID := i.UID != "" && ix.Evidence.Identity.Known() && i.UID != ix.Evidence.Identity.Value.UID
	return hasOtherUID || ix.Evidence.Claims.Known() && i.Claim == ""
}

// HasSymptom reports whether any console shows the symptom.
func (ix *Index) HasSymptom(s diagnosis.Symptom) bool {
	return slices.ContainsFunc(ix.Occurrences, func(o Occurrence) bool { return o.Symptom == s })
}

// OccurrencesOf returns the occurrences of some symptoms, at most one for each instance and symptom. If class is not
// empty, only instances of that EC2NodeClass count, and instances whose EC2NodeClass is not known.
func (ix *Index) OccurrencesOf(class string, symptoms ...diagnosis.Symptom) []Occurrence {
	var out []Occurrence
	for _, o := range ix.Occurrences {
		if slices.Contains(symptoms, o.Symptom) && (class == "" || o.Instance.Class == class || o.Instance.Class == "") {
			out = append(out, o)
		}
	}
	return out
}

// ConsoleGap returns the Unknown finding of a check that needs the consoles of instances that have not joined. ok is
// false if reading none of them was denied or failed.
func (ix *Index) ConsoleGap() (gap diagnosis.Finding, ok bool) {
	if gap, ok := ix.Evidence.Instances.Gap("the consoles of instances"); ok {
		return gap, true
	}
	for _, i := range ix.Evidence.Instances.Value {
		if _, isNode := ix.NodeByInstance[i.ID]; i.Runs() && !isNode && !ix.IsForeign(i) && i.Console.Value == "" &&
			(i.Console.Is(diagnosis.Denied) || i.Console.Is(diagnosis.Failed)) {
			return i.Console.Gap("the console of instance " + i.ID)
		}
	}
	return diagnosis.Finding{}, false
}

// Lines returns the first three occurrences as lines of evidence.
func Lines(occurrences []Occurrence) []string {
	var out []string
	for _, o := range occurrences {
		out = append(out, o.String())
		if len(out) == 3 {
			break
		}
	}
	return out
}

// isEventOver reports whether the problem of an event is over. Kubernetes keeps events for an hour, even if their
// objects have recovered or were deleted.
func (ix *Index) isEventOver(v diagnosis.Event) bool {
	hasRecovered := func(all []diagnosis.Condition, conditionType string) bool { // the condition became true after the event
		c := diagnosis.FindCondition(all, conditionType)
		return c.Status == "True" && !c.Since.Before(v.Last) && !v.Last.IsZero()
	}
	switch v.Kind {
	case "NodeClaim":
		i := slices.IndexFunc(ix.Evidence.Claims.Value, func(c diagnosis.Claim) bool { return c.Name == v.Name })
		// UnregisteredTaintMissing comes after the launch, perhaps in the same second, so Launched=True does not end
		// its problem.
		isAboutLaunch := v.Reason != "UnregisteredTaintMissing"
		return ix.Evidence.Claims.Known() && (i < 0 || isAboutLaunch && hasRecovered(ix.Evidence.Claims.Value[i].Conditions, "Launched"))
	case "EC2NodeClass":
		c, ok := ix.Evidence.Class(v.Name)
		return ix.Evidence.Classes.Known() && (!ok || hasRecovered(c.Conditions, "Ready"))
	case "NodePool":
		i := slices.IndexFunc(ix.Evidence.Pools.Value, func(p diagnosis.Pool) bool { return p.Name == v.Name })
		return ix.Evidence.Pools.Known() && (i < 0 || hasRecovered(ix.Evidence.Pools.Value[i].Conditions, "Ready"))
	case "Pod":
		return ix.Evidence.Pods.Known() &&
			!slices.ContainsFunc(ix.Evidence.Pods.Value, func(p diagnosis.Pod) bool { return p.String() == v.Name })
	}
	return false
}

// NodeOf returns the Node of a NodeClaim's instance.
func (ix *Index) NodeOf(c diagnosis.Claim) (diagnosis.Node, bool) {
	n, ok := ix.NodeByInstance[diagnosis.InstanceID(c.ProviderID)]
	return n, ok
}

// IsOfSystem reports whether the pod is in a namespace that no tenant can write to: kube-system, or the controller's.
func (ix *Index) IsOfSystem(p diagnosis.Pod) bool {
	return p.Namespace == diagnosis.SystemNamespace || p.Namespace != "" && p.Namespace == ix.Evidence.Controller.Value.Namespace
}

// daemonSetNamespaces returns the namespaces besides kube-system where administrators install DaemonSets: by name of
// the DaemonSet, and for device plug-ins by "device-plugin".
func daemonSetNamespaces() map[string][]string {
	return map[string][]string{"cilium": {"cilium"}, "calico-node": {"calico-system"}, "kube-flannel-ds": {"kube-flannel"},
		"device-plugin": {"gpu-operator", "nvidia-device-plugin", "kube-amd-gpu"}}
}

// IsDevicePlugin reports whether a DaemonSet has the name of a device plug-in and is in a namespace where
// administrators install it.
func IsDevicePlugin(namespace, name string) bool {
	const plugin = "device-plugin"
	return strings.Contains(name, plugin) &&
		(namespace == diagnosis.SystemNamespace || slices.Contains(daemonSetNamespaces()[plugin], namespace))
}

// FindDaemonSet returns the first DaemonSet that has one of the names and is in a namespace where administrators
// install it. Other namespaces are ignored, because a tenant may create a DaemonSet with the same name.
func (ix *Index) FindDaemonSet(names ...string) (diagnosis.DaemonSet, bool) {
	i := slices.IndexFunc(ix.Evidence.Daemons.Value, func(s diagnosis.DaemonSet) bool {
		return slices.Contains(names, s.Name) &&
			(s.Namespace == diagnosis.SystemNamespace || slices.Contains(daemonSetNamespaces()[s.Name], s.Namespace))
	})
	if i < 0 {
		return diagnosis.DaemonSet{}, false
	}
	return ix.Evidence.Daemons.Value[i], true
}

// Occurrence is a symptom on the console of an instance without a ready Node.
type Occurrence struct {
	diagnosis.ConsoleSymptom
	Instance diagnosis.Instance // the instance whose console shows the symptom
}

// String returns the occurrence as a line of evidence.
func (o Occurrence) String() string {
	return "console of " + o.Instance.ID + ": " + diagnosis.Shorten(o.Line)
}

// Groups returns the security groups with these IDs.
func (ix *Index) Groups(ids []string) []diagnosis.Group {
	return slices.DeleteFunc(slices.Clone(ix.Evidence.Groups.Value), func(g diagnosis.Group) bool { return !slices.Contains(ids, g.ID) })
}
