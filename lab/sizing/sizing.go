// Package sizing measures the controller's memory and CPU usage in clusters of several sizes.
//
// In: the sizes, and the joiner program.
// Out: for each size the memory and CPU usage of the real controller, beside a real API server, as a table.
// Never: a number that was not measured, or two labs at the same time.
package sizing

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/lab/process"
)

// PodsPerNode is how many pods each node of a cluster has.
const PodsPerNode = 30

// Plan describes the measurements.
type Plan struct {
	Joiner   string            // path of the joiner program
	Sizes    []Size            // in the order of measurement
	IdleTime time.Duration     // how long to measure the idle controller; zero: one minute
	Say      func(line string) // receives progress lines
}

// Size is the size of a cluster.
type Size struct {
	Nodes          int   // number of nodes, without the first node of testCluster
	MemoryLimitMiB int64 // memory limit of the controller
}

// Pods returns the number of pods on these nodes.
func (s Size) Pods() int { return s.Nodes * PodsPerNode }

// Result has the measured values of one cluster size.
type Result struct {
	Size
	StartTime   time.Duration // from the controller's start until it was ready
	StartCPU    time.Duration // the controller's CPU time from its start until it was idle
	IdleCPU     float64       // average CPU usage while idle, in cores
	IdleMiB     int64         // resident memory at the end of the idle period
	NewNodes    int           // number of new nodes that the burst of pods needs
	NewPods     int           // number of pods of the burst
	BurstTime   time.Duration // from the creation of the burst until all its pods ran
	BurstCPU    time.Duration // the controller's CPU time during the burst
	RemovalTime time.Duration // longest time from the deletion of a node's last pod until its NodeClaim was being deleted
	PeakMiB     int64         // maximum resident memory from the controller's start to the end
}

// Run measures every size, each in its own lab. After an error it also returns the results of earlier sizes.
func Run(ctx context.Context, p Plan) ([]Result, error) {
	if p.IdleTime == 0 {
		p.IdleTime = time.Minute
	}
	var out []Result
	for _, s := range p.Sizes {
		m, err := p.measure(ctx, s)
		if err != nil {
			return out, fmt.Errorf("measure %d nodes: %w", s.Nodes, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// settleTime is how long to wait after the controller is ready. Then the controller counts as idle.
const settleTime = 20 * time.Second

func (p Plan) measure(ctx context.Context, s Size) (Result, error) {
	p.Say(fmt.Sprintf("%d nodes, %d pods", s.Nodes, s.Pods()))
	l, err := lab.Start(ctx, lab.Options{Cluster: "sizing", TokenCache: time.Hour, Step: func(text string) { p.Say("  " + text) }})
	if err != nil {
		return Result{}, err
	}
	defer l.Close()
	c := &testCluster{lab: l, say: p.Say}
	if err := c.build(ctx, p.Joiner, s.Nodes); err != nil {
		return Result{}, err
	}
	stop := c.keepLeases(ctx)
	defer stop()

	// 1. The controller starts and reads the cluster.
	m := Result{Size: s}
	started := time.Now()
	run, err := l.RunController(ctx, p.Joiner, "DISABLE_LEADER_ELECTION=true", fmt.Sprintf("MEMORY_LIMIT=%d", s.MemoryLimitMiB<<20))
	if err != nil {
		return Result{}, err
	}
	defer run.Kill()
	if err := waitReady(ctx, run); err != nil {
		return Result{}, err
	}
	m.StartTime = time.Since(started)
	p.Say(fmt.Sprintf("  The controller is ready after %.1f s", m.StartTime.Seconds()))
	if err := sleep(ctx, settleTime); err != nil {
		return Result{}, err
	}
	afterStart, err := process.UsageOf(run.PID())
	if err != nil {
		return Result{}, err
	}
	m.StartCPU = afterStart.CPU

	// 2. The controller is idle.
	if err := sleep(ctx, p.IdleTime); err != nil {
		return Result{}, err
	}
	idle, err := process.UsageOf(run.PID())
	if err != nil {
		return Result{}, err
	}
	m.IdleCPU, m.IdleMiB = (idle.CPU-afterStart.CPU).Seconds()/p.IdleTime.Seconds(), idle.Memory>>20

	// 3. Many pods are created at the same time, and need new nodes.
	m.NewNodes, m.NewPods = burstSize(s.Nodes)
	if m.BurstTime, err = c.runBurst(ctx, m.NewPods, m.NewNodes); err != nil {
		return Result{}, err
	}
	afterBurst, err := process.UsageOf(run.PID())
	if err != nil {
		return Result{}, err
	}
	m.BurstCPU = afterBurst.CPU - idle.CPU

	// 4. Nodes become empty.
	if m.RemovalTime, err = c.emptyNodes(ctx); err != nil {
		return Result{}, err
	}
	last, err := process.UsageOf(run.PID())
	if err != nil {
		return Result{}, err
	}
	m.PeakMiB = last.Peak >> 20
	p.Say("  " + m.String())
	if err := run.Err(); err != nil {
		return Result{}, err
	}
	return m, nil
}

func waitReady(ctx context.Context, c *lab.Controller) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := c.Err(); err != nil {
			return false, err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Probes+"/readyz", nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return false, nil // retry: the controller does not listen yet
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
}

// burstSize returns the number of new nodes that the burst needs, and the number of pods in the burst. The number of
// new nodes is 2 % of the number of nodes, at least 5 and at most 50.
func burstSize(nodes int) (newNodes, pods int) {
	newNodes = min(max(nodes/50, 5), 50)
	return newNodes, newNodes * burstPerNode
}

// sleep waits for d. It returns an error if the context ends first.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
