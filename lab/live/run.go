package live

import (
	"context"
	"fmt"
	"time"

	"github.com/joiner-sh/joiner/lab"
)

// Side is the controller of a run.
type Side string

// The sides.
const (
	Joiner   Side = "joiner"
	Upstream Side = "upstream" // Karpenter's own program
)

// Spec describes one run.
type Spec struct {
	Side   Side
	Script string // name of a load script, see scripts
	Mix    Mix
	Market Market
	Seed   uint64        // of the workloads, the boot times and the reclaimed instances
	Boots  lab.BootTimes // how boot times vary between instances
}

// Programs has the paths of the programs.
type Programs struct {
	Joiner   string // controller, and `joiner plan` for the lower bound
	Upstream string // Karpenter's controller
}

// Result has the figures of one run.
type Result struct {
	Spec
	Phases  []Phase
	Samples []Sample
	Log     string `json:"-"` // the last maxLogLines lines of the controller's log
}

const maxLogLines = 20000

// Run starts a lab and the controller, plays the script, and measures. log receives progress lines.
func Run(ctx context.Context, p Programs, s Spec, log func(string)) (Result, error) {
	script, ok := scripts()[s.Script]
	if !ok {
		return Result{}, fmt.Errorf("there is no script %q", s.Script)
	}
	pace := lab.Lifelike()
	pace.Boots, pace.Seed = s.Boots, s.Seed
	l, err := lab.Start(ctx, lab.Options{Cluster: "lab", Pace: pace})
	if err != nil {
		return Result{}, err
	}
	defer l.Close()
	if err := l.Apply(ctx, s.Market.manifest(lab.NodeRole, l.Cluster)); err != nil {
		return Result{}, err
	}
	r := &run{Spec: s, lab: l, joiner: p.Joiner, log: log, loads: workloads(s.Mix, s.Seed)}
	for _, d := range daemonSets() {
		if err := l.Client.Create(ctx, d); err != nil {
			return Result{}, fmt.Errorf("create daemonset %s: %w", d.Name, err)
		}
	}
	if err := r.startController(ctx, p); err != nil {
		return Result{}, err
	}
	if err := r.observe(ctx); err != nil {
		return Result{}, err
	}
	for _, phase := range script {
		f, err := r.runPhase(ctx, phase)
		if err != nil {
			return r.result(), fmt.Errorf("phase %s: %w", phase.Name, err)
		}
		log(f.String())
		r.phases = append(r.phases, f)
	}
	return r.result(), nil
}

// settings returns environment variables for the controller, the same on both sides.
func settings() []string {
	return []string{"KUBE_CLIENT_QPS=200", "KUBE_CLIENT_BURST=300", "GOMEMLIMIT=900MiB", "BIND_ADDRESS=127.0.0.1"}
}

func (r *run) startController(ctx context.Context, p Programs) error {
	start, path := r.lab.RunController, p.Joiner
	if r.Side == Upstream {
		start, path = r.lab.RunKarpenter, p.Upstream
	}
	c, err := start(ctx, path, settings()...)
	if err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	r.controller = c
	return nil
}

// settleTime is the time between the first sample and the script.
const settleTime = 8 * time.Second
