package checks

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
)

// isUnused reports whether the subject of a finding is an EC2NodeClass that no NodePool and no NodeClaim uses.
func isUnused(ix *index.Index, subject string) bool {
	name, ok := strings.CutPrefix(subject, "EC2NodeClass ")
	if _, exists := ix.Evidence.Class(name); !ok || !exists || !ix.Evidence.Pools.Known() {
		return false
	}
	return !slices.ContainsFunc(ix.Evidence.Pools.Value, func(p diagnosis.Pool) bool { return p.Class == name }) &&
		!slices.ContainsFunc(ix.Evidence.Claims.Value, func(c diagnosis.Claim) bool { return c.Class == name })
}

// blocksPods reports whether pods probably wait because of a finding: NodeClaims of its subject are not initialized, or
// the subject has no NodeClaims and pods wait. Findings of LayerFleet block no pods, because they matter only after a
// node is ready.
func blocksPods(ix *index.Index, f diagnosis.Finding) bool {
	if f.Verdict.Order() > diagnosis.Suspicious.Order() || f.Layer == diagnosis.LayerFleet {
		return false
	}
	uninitialized, all := uninitializedClaims(ix), ix.Evidence.Claims.Value
	hasWaitingPods := slices.ContainsFunc(ix.Evidence.Pods.Value,
		func(p diagnosis.Pod) bool { return p.Node == "" && !strings.HasPrefix(p.Owner, "DaemonSet/") })
	blocks := func(isOfSubject func(diagnosis.Claim) bool) bool {
		return slices.ContainsFunc(uninitialized, isOfSubject) || hasWaitingPods && !slices.ContainsFunc(all, isOfSubject)
	}
	kind, name, _ := strings.Cut(f.Subject, " ")
	switch kind {
	case "EC2NodeClass", "NodePool", "subnet":
		return f.Seen || blocks(func(c diagnosis.Claim) bool { return isAbout(ix, kind, name, c) })
	case "NodeClaim":
		return slices.ContainsFunc(uninitialized, func(c diagnosis.Claim) bool { return c.Name == name })
	case "instance":
		return f.Seen ||
			slices.ContainsFunc(uninitialized, func(c diagnosis.Claim) bool { return diagnosis.InstanceID(c.ProviderID) == name })
	case "pod":
		return slices.ContainsFunc(ix.Evidence.Pods.Value, func(p diagnosis.Pod) bool { return p.String() == name }) ||
			f.Layer == diagnosis.LayerController // the controller's pod, without which no pod gets a node
	}
	return hasWaitingPods || len(uninitialized) > 0
}

// isAbout reports whether a NodeClaim uses the EC2NodeClass, NodePool or subnet with this kind and name.
func isAbout(ix *index.Index, kind, name string, c diagnosis.Claim) bool {
	switch kind {
	case "EC2NodeClass":
		return c.Class == name
	case "NodePool":
		return c.Pool == name
	}
	class, _ := ix.Evidence.Class(c.Class)
	return slices.Contains(class.Subnets, name)
}

func uninitializedClaims(ix *index.Index) []diagnosis.Claim {
	return slices.DeleteFunc(slices.Clone(ix.Evidence.Claims.Value), func(c diagnosis.Claim) bool {
		return c.Deleting || diagnosis.FindCondition(c.Conditions, "Initialized").Status == "True"
	})
}
