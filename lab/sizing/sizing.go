// Package sizing measures what the controller needs in clusters of several sizes.
//
// In: the sizes, and the joiner program.
// Out: for each size what the real controller took of memory and of the processors, beside a real API server, as a table.
// Never: a figure that was not measured, or two labs at a time.
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

// Plan says what is measured.
type Plan struct {
	Joiner string            // path of the program
	Sizes  []Size            // in the order in which they are measured
	Rest   time.Duration     // how long the controller is watched at rest; zero: a minute
	Say    func(line string) // is told what happens
}

// Size is a cluster.
type Size struct {
	Nodes  int   // all of them the controller's; there is one more, which they are copies of
	Memory int64 // the limit that the controller is told, in MiB
}

// Pods is how many pods the cluster has.
func (s Size) Pods() int { return s.Nodes * PodsPerNode }

// Measured is what the controller took in a cluster of a size.
type Measured struct {
	Size
	Ready    time.Duration // from its start until it was ready
	StartCPU time.Duration // of the processors, from its start until it had come to rest
	RestCPU  float64       // processors, on average, at rest
	Rest     int64         // resident memory at rest, in MiB
	NewNodes int           // wanted at one moment
	NewPods  int           // on them
	Took     time.Duration // from the first of the new pods until all of them ran
	BusyCPU  time.Duration // of the processors, in that time
	Emptied  time.Duration // from the last pod of a node until the node was on its way out: the longest of some
	Peak     int64         // the most resident memory from its start to the end, in MiB
}

// Run measures every size, each in a lab of its own. With an error come those that were measured before it.
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

// settle is how long after it is ready the controller is given to come to rest.
const settle = 20 * time.Second

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

	// 1. It starts, and reads the cluster.
	m := Measured{Size: s}
	begun := time.Now()
	run, err := l.RunController(ctx, p.Joiner, "DISABLE_LEADER_ELECTION=true", fmt.Sprintf("MEMORY_LIMIT=%d", s.Memory<<20))
	if err != nil {
		return Measured{}, err
	}
	defer run.Kill()
	if err := ready(ctx, run); err != nil {
		return Measured{}, err
	}
	m.Ready = time.Since(begun)
	p.Say(fmt.Sprintf("  The controller is ready after %.1f s", m.Ready.Seconds()))
	if err := rest(ctx, settle); err != nil {
		return Measured{}, err
	}
	started, err := sampleOf(run.PID())
	if err != nil {
		return Measured{}, err
	}
	m.StartCPU = started.CPU

	// 2. Nothing happens.
	if err := rest(ctx, p.Rest); err != nil {
		return Measured{}, err
	}
	rested, err := sampleOf(run.PID())
	if err != nil {
		return Measured{}, err
	}
	m.RestCPU, m.Rest = (rested.CPU-started.CPU).Seconds()/p.Rest.Seconds(), rested.Memory>>20

	// 3. A crowd of pods wants nodes.
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

// ready waits until the controller says that it is.
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

// burst is how many nodes are wanted at one moment in a cluster of a size, and the pods on them: a fiftieth more, at least 5 nodes, at most 50.
func burst(nodes int) (more, pods int) {
	more = min(max(nodes/50, 5), 50)
	return more, more * burstPerNode
}

// rest waits.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
