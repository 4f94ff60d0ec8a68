package controller

import (
	"slices"
	"strings"
	"sync"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Unhelped remembers the pods that nodes were bought for, and that are pending although the nodes are ready and have room:
// kube-scheduler sees something that the plan does not. A node that other pods have filled meanwhile, as alike ones do that
// came later, has helped those, and is not held against anybody. What such a node turned out to have may have been the cause, so
// the next one is bought at once; from the second in vain on, the pod waits, longer each time. Otherwise one pod could buy
// and give back nodes for ever. Its methods may be called at the same time, and on nil, which remembers nothing.
type Unhelped struct {
	mu   sync.Mutex
	pods map[string]vain // by "namespace/name"
}

// vain is what was bought for one pod.
type vain struct {
	claim   string    // whose node became ready last, empty once it is counted
	bought  time.Time // when that claim was made: a younger pod is another one of the name
	times   int       // how many did not help
	until   time.Time // the pod waits until then
	touched time.Time
	isTold  bool // that it waits
}

// How long a pod waits after the second node that did not help it, and at most; and how long nobody has to have seen a
// pod for it to be forgotten.
const (
	unhelpedFirst = time.Minute
	unhelpedMost  = 30 * time.Minute
	unhelpedLife  = 2 * time.Hour
)

// Ready notes at now that the node of a claim is ready for the pods that it was bought for.
func (u *Unhelped) Ready(claim *karpv1.NodeClaim, now time.Time) {
	text := claim.Annotations[kube.AnnotationPods]
	if u == nil || text == "" {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pods == nil {
		u.pods = map[string]vain{}
	}
	for id := range strings.SplitSeq(text, ",") {
		v := u.pods[id]
		v.claim, v.bought, v.touched = claim.Name, claim.CreationTimestamp.Time, now
		u.pods[id] = v
	}
}

// waiting is a pod that waits, and why.
type waiting struct {
	pod    cluster.Pod
	times  int
	until  time.Time
	isNews bool
}

// Sort returns the pods that are to be planned at now and those that wait. The pods are those that need a node: one that a
// node on its way, or one just ready, was bought for is not among them. So whoever has a ready node here, among the nodes
// of the moment, and still would fit there, was not helped.
func (u *Unhelped) Sort(pods []cluster.Pod, nodes []cluster.Node, now time.Time) (planned []cluster.Pod, held []waiting) {
	if u == nil {
		return pods, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.pods) == 0 {
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
		v, ok := u.pods[pod.ID()]
		if !ok || pod.Node != "" {
			continue // or it still runs on a node that leaves, and waits for nothing yet
		}
		if pod.Created.After(v.bought) {
			delete(u.pods, pod.ID())
			continue
		}
		if isTaken(byClaim[v.claim], pod) {
			v.claim = ""
		}
		v.count(now)
		if now.Before(v.until) {
			held = append(held, waiting{pod, v.times, v.until, !v.isTold})
			v.isTold, isHeld[pod.ID()] = true, true
		}
		u.pods[pod.ID()] = v
	}
	if len(held) > 0 {
		pods = slices.DeleteFunc(slices.Clone(pods), func(p cluster.Pod) bool { return isHeld[p.ID()] })
	}
	for id, v := range u.pods {
		if now.Sub(v.touched) > unhelpedLife {
			delete(u.pods, id)
		}
	}
	return pods, held
}

// isTaken reports whether a pod would fit onto a node if other pods had not come there first. A node that is too small, or
// not known, was not taken.
func isTaken(node *cluster.Node, pod cluster.Pod) bool {
	if node == nil || pod.Requests.Fits(node.Allocatable.Sub(node.Requested)) {
		return false
	}
	others := resources.Amounts{}
	for _, other := range node.Pods {
		others = others.Add(other.Requests)
	}
	return pod.Requests.Fits(node.Allocatable.Sub(node.Requested.Sub(others)))
}

// count counts the node that became ready last, once.
func (v *vain) count(now time.Time) {
	v.touched = now
	if v.claim == "" {
		return
	}
	v.claim = ""
	v.times++
	if v.times >= 2 {
		v.until = now.Add(min(unhelpedMost, unhelpedFirst<<min(v.times-2, 10)))
		v.isTold = false
	}
}

// message tells the pod's owner what is known.
func (w waiting) message() string {
	return count(w.times, "node") + " in a row became ready for the pod, and kube-scheduler did not bind it to any of them: its own events" +
		" on the pod say why; the next node is bought at " + w.until.UTC().Format(time.TimeOnly) + " UTC at the earliest"
}
