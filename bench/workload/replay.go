package workload

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/bench/fleet"
)

// replayFor and replayDays define the replay of the trace. The recorded cluster had about forty pods at a time, which
// need only seven nodes. Therefore the last two hours of each of 30 days are replayed at the same time in one cluster,
// at the recorded speed. A day has 24 hours, and the last day ends with the trace.
const (
	replayFor  = 2 * time.Hour
	replayDays = 30
)

// replay returns an empty cluster with events that add and delete the trace's pods. Pods that run when the replay
// starts are added at once. Pods that run when it ends stay.
func replay(traces string) (*fleet.Fleet, error) {
	lifetimes, err := readTrace(traces)
	if err != nil {
		return nil, err
	}
	market, err := realMarket()
	if err != nil {
		return nil, err
	}
	p := pool(poolName, amd64(), onDemand())
	p.Spec.Disruption = fleetPool(onDemand()).Spec.Disruption
	f := fleet.New([]*karpv1.NodePool{p}, market)
	var end time.Duration // from the start of the trace to its end
	for _, l := range lifetimes {
		end = max(end, l.from, l.until)
	}
	for day := range replayDays {
		start := end - time.Duration(day)*24*time.Hour - replayFor // when the day's two hours start in the trace
		for _, l := range lifetimes {
			from, until := l.from-start, l.until-start
			if until <= max(from, 0) || from >= replayFor {
				continue // the pod does not run in the replayed hours, or has no run time
			}
			pod := withDay(l.pod, day)
			f.At(fleet.Start.Add(max(from, 0)), func() { f.Add(pod) })
			if until < replayFor {
				f.At(fleet.Start.Add(until), func() { f.Delete(pod.Name) })
			}
		}
	}
	return f, nil
}

// withDay returns a copy of the pod with the day in its name and UID, which makes them unique.
func withDay(pod *corev1.Pod, day int) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Name = fmt.Sprintf("%s-day-%02d", pod.Name, day)
	pod.UID = types.UID("uid-" + pod.Name)
	return pod
}
