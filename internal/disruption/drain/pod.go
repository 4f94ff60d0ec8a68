// Package drain selects the pods to evict next from a node that is being drained.
//
// In: the pods of the node, the deadline if there is one, and the time.
// Out: the pods to evict, the pods to delete by force, and the number of pods that must still leave.
// Never: an API call, or a pod that may stay on the node.
package drain

import (
	"time"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Pod is a pod on a node that is being drained.
type Pod struct {
	Namespace, Name string
	// UID distinguishes the pod from a later pod of the same name.
	UID string

	Daemon   bool // it belongs to a DaemonSet
	Mirror   bool // a static pod of the kubelet
	Finished bool // Succeeded or Failed
	Critical bool // priority class system-cluster-critical or system-node-critical

	// Tolerations decide whether the pod stays on a tainted node.
	Tolerations []requirements.Toleration

	// Constrained: the pod has requirements on its node besides room, labels and taints: host ports, volumes, or
	// required affinity, anti-affinity or spread.
	Constrained bool
	// Bulk is the pod's size relative to a node: see resources.Amounts.Bulk. Not negative.
	Bulk float64

	// DoNotDisrupt is the value of the annotation karpenter.sh/do-not-disrupt: "true", or a duration since Started.
	DoNotDisrupt string
	Started      time.Time // status.startTime; zero if unknown

	// Deleted is the deletionTimestamp: when the pod is killed if it is still running. Zero: not deleted.
	Deleted time.Time
	// Grace is the pod's terminationGracePeriodSeconds.
	Grace time.Duration
}

// ID returns "namespace/name".
func (p Pod) ID() string { return p.Namespace + "/" + p.Name }

// stuckAfter is how long draining waits for a deleted pod after its grace period. After that, the kubelet of the node
// will not terminate the pod any more.
const stuckAfter = time.Minute

// MustLeave reports whether draining waits for the pod. Pods that tolerate the taint of terminating nodes may stay.
// Draining does not wait for finished, static and stuck pods.
func (p Pod) MustLeave(now time.Time) bool {
	disrupted := requirements.Taint{Key: "karpenter.sh/disrupted", Effect: requirements.NoSchedule}
	return !p.Finished && !p.Mirror && !requirements.Tolerated(disrupted, p.Tolerations) && !p.isStuck(now)
}

// Protected reports whether the pod's annotation forbids eviction now. A value that is neither "true" nor a positive
// duration protects nothing. Any duration protects a pod that has not started.
func (p Pod) Protected(now time.Time) bool {
	if p.DoNotDisrupt == "true" {
		return true
	}
	d, ok := p.protection()
	return ok && (p.Started.IsZero() || now.Before(p.Started.Add(d)))
}

// ProtectedUntil returns when the pod's protection ends; zero if that is unknown or never.
func (p Pod) ProtectedUntil() time.Time {
	d, ok := p.protection()
	if !ok || p.Started.IsZero() {
		return time.Time{}
	}
	return p.Started.Add(d)
}

// protection returns how long after its start the annotation protects the pod; false if the value is not a positive
// duration.
func (p Pod) protection() (time.Duration, bool) {
	d, err := time.ParseDuration(p.DoNotDisrupt)
	return d, err == nil && d > 0
}

// hasInvalidProtection reports whether the annotation has a value other than "true", "false" and a positive duration.
func (p Pod) hasInvalidProtection() bool {
	_, ok := p.protection()
	return !ok && p.DoNotDisrupt != "" && p.DoNotDisrupt != "true" && p.DoNotDisrupt != "false"
}

func (p Pod) isStuck(now time.Time) bool {
	return !p.Deleted.IsZero() && now.Sub(p.Deleted) > stuckAfter
}

// tier returns the eviction tier of the pod: 0 for applications, 1 for DaemonSet pods, 2 for critical pods, 3 for
// critical DaemonSet pods.
func (p Pod) tier() int {
	tier := 0
	if p.Daemon {
		tier++
	}
	if p.Critical {
		tier += 2
	}
	return tier
}
