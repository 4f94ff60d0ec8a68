package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/cli/output"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/manifest"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// notesOn returns notes about the assumptions of a plan for these objects. If isLive is true, the objects are from a
// cluster. Otherwise they are from manifests, which may lack some objects.
func notesOn(o snapshot.Objects, isLive bool) []string {
	if isLive {
		return slices.Concat(gatedPodNotes(o.Pods), schedulerNotes(o.Pods, conversion.Provisionable), transientTaintNotes(o.Pools))
	}
	return slices.Concat(gatedPodNotes(o.Pods), schedulerNotes(o.Pods, isPlannable), missingVolumeNotes(o), staticPoolNotes(o.Pools),
		transientTaintNotes(o.Pools))
}

// transientTaintNotes returns notes about NodePool taints that a component probably removes when a node is ready. Such
// a taint belongs in startupTaints. If it is in taints, neither the plan nor the controller launches nodes of the pool
// for pods that do not tolerate the taint.
func transientTaintNotes(pools []*karpv1.NodePool) []string {
	var out []string
	for _, p := range pools {
		for _, t := range p.Spec.Template.Spec.Taints {
			taint := requirements.Taint{Key: t.Key, Value: t.Value, Effect: requirements.Effect(t.Effect)}
			if taint.IsTransient() && taint.Effect != requirements.PreferNoSchedule {
				out = append(out, fmt.Sprintf("NodePool %s: taint %s looks like one that a DaemonSet removes once the node is ready. "+
					"Move the taint from spec.template.spec.taints to startupTaints: until then, no node of this pool is launched "+
					"for pods that do not tolerate it", p.Name, taint))
			}
		}
	}
	return out
}

// staticPoolNotes returns notes about static NodePools, whose number of nodes does not depend on pods.
func staticPoolNotes(pools []*karpv1.NodePool) []string {
	var out []string
	for _, p := range pools {
		if n := p.Spec.Replicas; n != nil {
			out = append(out,
				fmt.Sprintf("left out: NodePool %s is kept at %s (spec.replicas) by the controller, for any number of pods",
					p.Name, output.Count(int(*n), "node")))
		}
	}
	return out
}

// gatedPodNotes returns notes about pods that are not planned because of their scheduling gates.
func gatedPodNotes(pods []*corev1.Pod) []string {
	byGate := map[string][]string{}
	for _, p := range pods {
		if len(p.Spec.SchedulingGates) > 0 && p.Spec.NodeName == "" && p.DeletionTimestamp == nil && !conversion.IsFinished(p) {
			gate := p.Spec.SchedulingGates[0].Name
			byGate[gate] = append(byGate[gate], p.Namespace+"/"+p.Name)
		}
	}
	var out []string
	for _, gate := range slices.Sorted(maps.Keys(byGate)) {
		out = append(out, fmt.Sprintf("%s left out: held by scheduling gate %s (%s)",
			output.Count(len(byGate[gate]), "pod"), gate, firstAndCount(byGate[gate])))
	}
	return out
}

// fargateScheduler is the scheduler of pods that run on Fargate. Snapshots do not include such pods.
const fargateScheduler = "fargate-scheduler"

// schedulerNotes returns notes about pods that name a scheduler other than kube-scheduler. It considers only pods for
// which isPlanned is true.
func schedulerNotes(pods []*corev1.Pod, isPlanned func(*corev1.Pod) bool) []string {
	byScheduler := map[string][]string{}
	for _, p := range pods {
		if name := p.Spec.SchedulerName; name != "" && name != corev1.DefaultSchedulerName && isPlanned(p) {
			byScheduler[name] = append(byScheduler[name], p.Namespace+"/"+p.Name)
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(byScheduler)) {
		podsText := fmt.Sprintf("%s (%s)", output.Count(len(byScheduler[name]), "pod"), firstAndCount(byScheduler[name]))
		if name == fargateScheduler {
			out = append(out, "left out, because Fargate runs them: "+podsText)
			continue
		}
		out = append(out, fmt.Sprintf("planned as kube-scheduler would place them, though their schedulerName is %s: %s", name, podsText))
	}
	return out
}

// missingVolumeNotes returns a note about the PersistentVolumeClaims that planned pods use and the manifests lack.
func missingVolumeNotes(o snapshot.Objects) []string {
	given, missing := map[string]bool{}, map[string]bool{}
	for _, c := range o.VolumeClaims {
		given[c.Namespace+"/"+c.Name] = true
	}
	for _, p := range o.Pods {
		for i := range p.Spec.Volumes {
			source := p.Spec.Volumes[i].PersistentVolumeClaim
			if source == nil || !isPlannable(p) {
				continue
			}
			if id := p.Namespace + "/" + source.ClaimName; !given[id] {
				missing[id] = true
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(missing))
	return []string{fmt.Sprintf("%s not among the manifests (%s); the plan assumes that such a volume can be in any zone",
		output.Count(len(names), "volume claim"), firstAndCount(names))}
}

// overReservedNotes returns notes about EC2NodeClasses that reserve so much of a resource that no instance type has any
// left for pods.
func overReservedNotes(classes map[string]classInput, market catalog.Market) []string {
	var out []string
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		settings := classes[class].settings
		for _, name := range []string{resources.CPU, resources.Memory, resources.EphemeralStorage} {
			var reservations []string
			for _, field := range []struct {
				name   string
				values map[string]int64
			}{{"systemReserved", settings.SystemReserved}, {"kubeReserved", settings.KubeReserved}} {
				if v := field.values[name]; v > 0 {
					reservations = append(reservations, fmt.Sprintf("spec.kubelet.%s.%s (%s)", field.name, name, resources.Format(name, v)))
				}
			}
			types := market[class].Types
			isLeft := func(t catalog.Type) bool { return t.Allocatable.Of(name) > 0 }
			if len(reservations) > 0 && len(types) > 0 && !slices.ContainsFunc(types, isLeft) {
				out = append(out, fmt.Sprintf("EC2NodeClass %s: with %s, no instance type has any %s left for pods; reserve less", class,
					strings.Join(reservations, " and "), name))
			}
		}
	}
	return out
}

// isPlannable reports whether a plan includes a pod of a manifest: the pod is not bound, not gated and not finished.
func isPlannable(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && len(p.Spec.SchedulingGates) == 0 && !conversion.IsFinished(p)
}

// firstAndCount returns the first name in alphabetical order, and the number of further names.
func firstAndCount(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%s and %d more", slices.Min(names), len(names)-1)
}

// overlayKind is the key of NodeOverlays in manifest.Manifests.Skipped.
const overlayKind = "NodeOverlay.karpenter.sh"

// skippedObjectNotes returns notes about the objects of the manifests that the plan ignores.
func skippedObjectNotes(m manifest.Manifests) []string {
	var out []string
	if len(m.Unknown) > 0 {
		out = append(out, "not understood; if any of them creates pods, those pods are NOT planned: "+byKind(m.Unknown))
	}
	remaining := maps.Clone(m.Skipped)
	if n := remaining[overlayKind]; n > 0 {
		delete(remaining, overlayKind)
		out = append(out, "left out, although they count in a cluster whose controller has the feature gate NodeOverlay: "+
			output.Count(n, "NodeOverlay"))
	}
	if len(remaining) > 0 {
		out = append(out, "left out, because they do not affect a plan: "+byKind(remaining))
	}
	return out
}

// byKind returns the number of objects of each kind as text: "2 ConfigMap, 1 Secret".
func byKind(counts map[string]int) string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(out, ", ")
}
