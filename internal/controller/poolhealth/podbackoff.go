package poolhealth

import (
	"slices"
	"strings"
	"sync"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// PodBackoff records pods that are still pending although the nodes launched for them are ready and have room:
// kube-scheduler applies a rule that the plan does not know. For each pod, PodBackoff counts these nodes. It does not
// count a node that other pods have filled, for example newer pods of the same workload.
//
// After the first counted node the next one is launched at once, because a node with less capacity than planned may have
// been the cause. From the second node on the pod waits, longer each time. Otherwise one pod could launch and terminate
// nodes without end. The methods are safe for concurrent use, and accept a nil receiver, which records nothing.
type PodBackoff struct {
	mu   sync.Mutex
	Pods map[string]failedNodes // by "namespace/name"; nil is empty
}

type failedNodes struct {
	claim      string    // the claim whose node became ready last; empty after that node was counted
	created    time.Time // creation time of the claim; a pod that was created later is another pod with the same name
	times      int       // number of nodes that did not make the pod schedulable
	until      time.Time // end of the back-off
	lastUsed   time.Time // when Ready or Split last saw the pod
	isReported bool      // the back-off was reported
}

// A pod waits for podBackoffFirst after the second node that did not make it schedulable. The wait doubles with each
// further node, up to PodBackoffMax. The record of a pod that was not seen for PodBackoffLifetime is dropped.
const (
	podBackoffFirst    = time.Minute
	PodBackoffMax      = 30 * time.Minute
	PodBackoffLifetime = 2 * time.Hour
)

// Ready records at now that the node of a claim is ready for the pods that it was launched for.
func (u *PodBackoff) Ready(claim *karpv1.NodeClaim, now time.Time) {
	text := claim.Annotations[conversion.AnnotationPods]
	if u == nil || text == "" {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.Pods == nil {
		u.Pods = map[string]failedNodes{}
	}
	for id := range strings.SplitSeq(text, ",") {
		record := u.Pods[id]
		record.claim, record.created, record.lastUsed = claim.Name, claim.CreationTimestamp.Time, now
		u.Pods[id] = record
	}
}

// WaitingPod is a pod that is backed off.
type WaitingPod struct {
	Pod   cluster.Pod // the pod that waits
	Times int         // number of nodes in a row that did not make the pod schedulable
	Until time.Time   // when the next node may be launched for the pod
	IsNew bool        // the back-off was not reported yet
}

// Split returns the pods to plan at now, and the pods that are backed off. pods must be the pods that need a node,
// without pods whose launched node is not initialized yet, or was initialized just now: kube-scheduler may still bind
// these. So a ready node with room for its pod has not made the pod schedulable.
func (u *PodBackoff) Split(pods []cluster.Pod, nodes []cluster.Node, now time.Time) (planned []cluster.Pod, held []WaitingPod) {
	if u == nil {
		return pods, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.Pods) == 0 {
		return pods, nil
	}
	byClaim := make(map[string]*cluster.Node, len(nodes))
	for i, n := range nodes {
		if n.Claim != "" {
			byClaim[n.Claim] = &nodes[i]
		}
	}
	isHeld := map[string]bool{}
	for _, pod := range pods {
		record, ok := u.Pods[pod.ID()]
		if !ok || pod.Node != "" {
			continue // no node was launched for the pod, or the pod still runs on a leaving node and is not pending
		}
		if pod.Created.After(record.created) {
			delete(u.Pods, pod.ID()) // another pod with the same name
			continue
		}
		if isFilledByOthers(byClaim[record.claim], pod) {
			record.claim = "" // so that count ignores the node
		}
		record.count(now)
		if now.Before(record.until) {
			held = append(held, WaitingPod{pod, record.times, record.until, !record.isReported})
			record.isReported, isHeld[pod.ID()] = true, true
		}
		u.Pods[pod.ID()] = record
	}
	if len(held) > 0 {
		pods = slices.DeleteFunc(slices.Clone(pods), func(p cluster.Pod) bool { return isHeld[p.ID()] })
	}
	for id, record := range u.Pods {
		if now.Sub(record.lastUsed) > PodBackoffLifetime {
			delete(u.Pods, id)
		}
	}
	return pods, held
}

// isFilledByOthers reports whether the pod does not fit on the node now, but would fit without the node's other pods. It
// is false for an unknown node, and for a node that is too small.
func isFilledByOthers(node *cluster.Node, pod cluster.Pod) bool {
	if node == nil || pod.Requests.Fits(node.Allocatable.Sub(node.Requested)) {
		return false
	}
	others := resources.Amounts{}
	for _, other := range node.Pods {
		others = others.Add(other.Requests)
	}
	return pod.Requests.Fits(node.Allocatable.Sub(node.Requested.Sub(others)))
}

// count counts the node that became ready last, if it was not counted yet.
func (f *failedNodes) count(now time.Time) {
	f.lastUsed = now
	if f.claim == "" {
		return
	}
	f.claim = ""
	f.times++
	if f.times >= 2 {
		f.until = now.Add(min(PodBackoffMax, podBackoffFirst<<min(f.times-2, 10)))
		f.isReported = false
	}
}

// Message returns the text of the pod's event.
func (w WaitingPod) Message() string {
	return loop.Count(w.Times, "node") + " in a row became ready for the pod, but kube-scheduler did not bind it to any of them: kube-scheduler's events" +
		" on the pod show why; the next node is launched at " + w.Until.UTC().Format(time.TimeOnly) + " UTC at the earliest"
}
