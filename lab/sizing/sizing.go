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
)

// PodsPerNode is how many pods each node of a cluster has.
const PodsPerNode = 30

// Plan describes the measurement.
type Plan struct {
	Joiner string            // path of the joiner program
	Sizes  []Size            // in the order of measurement
	Rest   time.Duration     // how long to measure the idle controller; zero: a minute
	Say    func(line string) // receives progress lines
}

// Size is the size of a cluster.
type Size struct {
	Nodes  int   // number of copied nodes; the first node, which they are copies of, is not counted
	Memory int64 // the controller's memory limit, in MiB
}

// Pods returns the number of pods in the cluster.
func (s Size) Pods() int { return s.Nodes * PodsPerNode }

// Measured is the result for one cluster size.
type Measured struct {
	Size
	Ready    time.Duration // from the controller's start until it was ready
	StartCPU time.Duration // the controller's CPU time from its start until it was idle
	RestCPU  float64       // average CPU usage while idle, in cores
	Rest     int64         // resident memory at the end of the idle period, in MiB
	NewNodes int           // number of new nodes that the burst of pods needs
	NewPods  int           // number of pods of the burst
	Took     time.Duration // from the creation of the burst until all its pods ran
	BusyCPU  time.Duration // CPU time in that period
	Emptied  time.Duration // from the deletion of a node's last pod until its NodeClaim was being deleted: the longest of several
	Peak     int64         // maximum resident memory from the controller's start to the end, in MiB
}

// Run measures every size, each in its own lab. After an error it also returns the sizes that were measured before.
func Run(ctx context.Context, p Plan) ([]Measured, error) {
	if p.Rest == 0 {
		p.Rest = time.Minute
	}
	var out []Measured
	for _, s := range p.Sizes {
		m, err := p.measure(ctx, s)
		if err != nil {
			return out, fmt.Errorf("measure %d nodes: %w", s.Nodes, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// settle is the time in which the controller must become idle after it is ready.
const settle = 20 * time.Second

// measure measures one size in a new lab.
func (p Plan) measure(ctx context.Context, s Size) (Measured, error) {
	p.Say(fmt.Sprintf("%d nodes, %d pods", s.Nodes, s.Pods()))
	l, err := lab.Start(ctx, lab.Options{Cluster: "sizing", TokenCache: time.Hour, Step: func(text string) { p.Say("  " + text) }})
	if err != nil {
		return Measured{}, err
	}
	defer l.Close()
	c := &crowd{lab: l, say: p.Say}
	if err := c.grow(ctx, p.Joiner, s.Nodes); err != nil {
		return Measured{}, err
	}
	stop := c.keepLeases(ctx)
	defer stop()

	// 1. The controller starts, and reads the cluster.
	m := Measured{Size: s}
	began := time.Now()
	run, err := l.RunController(ctx, p.Joiner, "DISABLE_LEADER_ELECTION=true", fmt.Sprintf("MEMORY_LIMIT=%d", s.Memory<<20))
	if err != nil {
		return Measured{}, err
	}
	defer run.Kill()
	if err := ready(ctx, run); err != nil {
		return Measured{}, err
	}
	m.Ready = time.Since(began)
	p.Say(fmt.Sprintf("  The controller is ready after %.1f s", m.Ready.Seconds()))
	if err := rest(ctx, settle); err != nil {
		return Measured{}, err
	}
	started, err := sampleOf(run.PID())
	if err != nil {
		return Measured{}, err
	}
	m.StartCPU = started.CPU

	// 2. The controller is idle.
	if err := rest(ctx, p.Rest); err != nil {
		return Measured{}, err
	}
	rested, err := sampleOf(run.PID())
	if err != nil {
		return Measured{}, err
	}
	m.RestCPU, m.Rest = (rested.CPU-started.CPU).Seconds()/p.Rest.Seconds(), rested.Memory>>20

	// 3. Many pods are created at the same time, and need new nodes.
	m.NewNodes, m.NewPods = burst(s.Nodes)
	if m.Took, err = c.burst(ctx, m.NewPods, m.NewNodes); err != nil {
		return Measured{}, err
	}
	busy, err := sampleOf(run.PID())
	if err != nil {
		return Measured{}, err
	}
	m.BusyCPU = busy.CPU - rested.CPU

	// 4. Nodes become empty.
	if m.Emptied, err = c.empty(ctx); err != nil {
		return Measured{}, err
	}
	last, err := sampleOf(run.PID())
	if err != nil {
		return Measured{}, err
	}
	m.Peak = last.Peak >> 20
	p.Say("  " + m.String())
	if err := run.Err(); err != nil {
		return Measured{}, err
	}
	return m, nil
}

// ready waits until the controller's readiness probe succeeds.
func ready(ctx context.Context, c *lab.Controller) error {
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
			return false, nil // not yet
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
}

// burst returns the number of new nodes for the burst of pods, and the number of these pods. The burst needs 2 % of the
// nodes, at least 5 and at most 50.
func burst(nodes int) (more, pods int) {
	more = min(max(nodes/50, 5), 50)
	return more, more * burstPerNode
}

// rest waits for d. It returns an error if the context ends first.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
