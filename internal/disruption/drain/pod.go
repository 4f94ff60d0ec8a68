// Package drain says which pods leave a node next.
//
// In: the pods of a node that is leaving, the deadline if there is one, and the time.
// Out: the pods to evict, those to delete by force, and those that are waited for.
// Never: a call to evict anything, or a pod that may stay where it is.
package drain

import (
	"time"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Pod is a pod on a node that is leaving.
type Pod struct {
	Namespace, Name string
	UID             string

	Daemon   bool // it belongs to a DaemonSet
	Mirror   bool // the kubelet's own, from a file on the node
	Finished bool // Succeeded or Failed
	Critical bool // of priority class system-cluster-critical or system-node-critical

	Tolerations []requirements.Toleration

	// Bulk is how much of a machine it takes: see capacity.Amounts.Bulk. Not negative.
	Bulk float64

	// DoNotDisrupt is the value of the annotation karpenter.sh/do-not-disrupt: "true", or a duration from Started on.
	DoNotDisrupt string
	Started      time.Time // status.startTime; zero when not known

	// Deleted is the deletionTimestamp: when the pod will be killed if it has not ended by then. Zero: not deleted.
	Deleted time.Time
	// Grace is the pod's terminationGracePeriodSeconds.
	Grace time.Duration
}

// ID returns "namespace/name".
func (p Pod) ID() string { return p.Namespace + "/" + p.Name }

// stuck is how long after its time a deleted pod is still waited for: its kubelet is not going to end it any more.
const stuck = time.Minute

// MustLeave reports whether the node waits for the pod. Pods that tolerate the taint of a node that leaves asked to stay
// to the end; finished and static ones, and those that nobody will end, hold nothing up.
func (p Pod) MustLeave(now time.Time) bool {
	disrupted := requirements.Taint{Key: "karpenter.sh/disrupted", Effect: requirements.NoSchedule}
	return !p.Finished && !p.Mirror && !requirements.Tolerated(disrupted, p.Tolerations) && !p.isStuck(now)
}

// Protected reports whether the pod's annotation forbids to evict it now. A value that is neither "true" nor a positive
// duration protects nothing. A pod that has not started is protected whatever the duration.
func (p Pod) Protected(now time.Time) bool {
	if p.DoNotDisrupt == "true" {
		return true
	}
	d, ok := p.protection()
	return ok && (p.Started.IsZero() || now.Before(p.Started.Add(d)))
}

// ProtectedUntil returns when the pod's protection ends; zero if that cannot be said.
func (p Pod) ProtectedUntil() time.Time {
	d, ok := p.protection()
	if !ok || p.Started.IsZero() {
		return time.Time{}
	}
	return p.Started.Add(d)
}

// protection is how long after its start the pod asks to be left alone.
func (p Pod) protection() (time.Duration, bool) {
	d, err := time.ParseDuration(p.DoNotDisrupt)
	return d, err == nil && d > 0
}

func (p Pod) misread() bool {
	_, ok := p.protection()
	return !ok && p.DoNotDisrupt != "" && p.DoNotDisrupt != "true" && p.DoNotDisrupt != "false"
}

func (p Pod) isStuck(now time.Time) bool {
	return !p.Deleted.IsZero() && now.Sub(p.Deleted) > stuck
}

// tier is the pod's turn: applications first, then their DaemonSets, then what the cluster cannot do without.
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
