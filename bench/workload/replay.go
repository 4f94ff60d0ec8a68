package workload

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/bench/fleet"
)

// The replay of the trace: the cluster that it was taken of had some forty pods at a time, for which seven nodes are enough. So the
// last hours of many of its days come to one cluster together, at their own pace.
const (
	replayFor  = 2 * time.Hour
	replayDays = 30
)

// replay is an empty cluster to which the trace's pods come, and from which they go. Those that run when the replay begins come
// at once, those that run when it ends stay.
func replay(traces string) (*fleet.Fleet, error) {
	lives, err := openbLives(traces)
	if err != nil {
		return nil, err
	}
	market, err := realMarket()
	if err != nil {
		return nil, err
	}
	p := pool(poolName, intel(), onDemand())
	p.Spec.Disruption = fleetPool(onDemand()).Spec.Disruption
	f := fleet.New([]*karpv1.NodePool{p}, market)
	var end time.Duration // of the trace
	for _, l := range lives {
		end = max(end, l.from, l.until)
	}
	for day := range replayDays {
		begins := end - time.Duration(day)*24*time.Hour - replayFor
		for _, l := range lives {
			from, until := l.from-begins, l.until-begins
			if until <= max(from, 0) || from >= replayFor {
				continue // it is of another time, or ended at once
			}
			pod := ofDay(l.pod, day)
			f.At(fleet.Start.Add(max(from, 0)), func() { f.Add(pod) })
			if until < replayFor {
				f.At(fleet.Start.Add(until), func() { f.Delete(pod.Name) })
			}
		}
	}
	return f, nil
}

// ofDay is the pod as one of that day, beside those of others.
func ofDay(pod *corev1.Pod, day int) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Name = fmt.Sprintf("%s-day-%02d", pod.Name, day)
	pod.UID = types.UID("uid-" + pod.Name)
	return pod
}
