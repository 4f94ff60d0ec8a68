package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	"sigs.k8s.io/yaml"
)

// phaseLimit is the time limit for the pods of a phase to start.
const phaseLimit = 5 * time.Minute

// runPhase scales the workloads or calls do, waits for the pods, and measures until s.Hold is over.
func (r *run) runPhase(ctx context.Context, s scriptPhase) (Phase, error) {
	phaseStart := time.Now()
	before, err := r.currentCounts(ctx)
	if err != nil {
		return Phase{}, err
	}
	share := r.share
	r.expected = 0
	if s.Share > 0 {
		share = s.Share
		r.expected = max(0, r.podsAt(share)-r.podsAt(r.share))
	}
	if s.do != nil {
		err = s.do(r, ctx)
	} else {
		err = r.scale(ctx, share)
	}
	if err != nil {
		return Phase{}, err
	}
	f := Phase{Name: s.Name, Pods: pods(r.loads, r.share)}
	if f.Done, err = r.waitForPods(ctx, f.Pods); err != nil {
		return f, err
	}
	ran := time.Now()
	f.Took = ran.Sub(phaseStart)
	if err := pause(ctx, s.Hold); err != nil {
		return f, err
	}
	f.Held = time.Since(ran)
	after, err := r.currentCounts(ctx)
	if err != nil {
		return f, err
	}
	r.fill(&f, phaseStart, ran, before, after)
	f.Bound, f.Plan, err = r.plan(ctx)
	return f, err
}

// podsAt is like pods, but returns 0 for share 0, at which the workloads do not exist yet.
func (r *run) podsAt(share float64) int {
	if share == 0 {
		return 0
	}
	return pods(r.loads, share)
}

// waitForPods waits until n pods run and no pod is pending. It returns false if that takes longer than phaseLimit.
func (r *run) waitForPods(ctx context.Context, n int) (bool, error) {
	limit := time.Now().Add(phaseLimit)
	if err := pause(ctx, 3*time.Second); err != nil { // until the Deployments are processed
		return false, err
	}
	for time.Now().Before(limit) {
		s, err := r.last()
		if err != nil {
			return false, err
		}
		if s.Running == n && s.Pending == 0 {
			return true, nil
		}
		if err := pause(ctx, samplePeriod/2); err != nil {
			return false, err
		}
	}
	return false, nil
}

// counts are totals from the start of the run until the start or the end of a phase.
type counts struct {
	pods, instances int // pods and instances that were seen
	requests        int // requests to the API server
	awsCalls        int
	last            Sample // last sample
}

func (r *run) currentCounts(ctx context.Context) (counts, error) {
	requests, err := r.requests(ctx)
	calls, _ := r.lab.AWSCalls()
	r.mu.Lock()
	defer r.mu.Unlock()
	return counts{pods: len(r.pods), instances: len(r.instances), requests: requests, awsCalls: calls, last: r.samples[len(r.samples)-1]}, err
}

// fill computes the figures of a phase, except those of plan. ran is the time when all pods ran.
func (r *run) fill(f *Phase, phaseStart, ran time.Time, before, after counts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := after.last
	from, to := phaseStart.Sub(r.started), end.At
	f.Begin = from
	f.Price15, f.Price = sampleAt(r.samples, ran.Sub(r.started)+15*time.Second).Price, end.Price
	f.Paid, f.Instances = paid(r.samples, from, to), end.Instances
	f.Launched = after.instances - before.instances
	f.CPU, f.AWSCalls, f.Requests = end.CPU-before.last.CPU, after.awsCalls-before.awsCalls, after.requests-before.requests
	f.Restarted = max(0, after.pods-before.pods-r.expected)
	for _, s := range r.samples {
		if s.At >= from {
			f.Peak, f.Memory = max(f.Peak, s.Price), max(f.Memory, s.Memory)
		}
	}
	for _, i := range r.instances {
		if i.ended.After(phaseStart) && i.ended.Sub(i.launched) < shortTerm {
			f.ShortTerm++
		}
	}
	var waits []time.Duration
	for _, p := range r.pods {
		if p.created.After(phaseStart) && !p.ran.IsZero() {
			waits = append(waits, p.ran.Sub(p.created))
		}
	}
	f.Waits = waitsOf(waits)
}

// plan returns the lower bound and the price of a fresh plan for the current workloads, in dollars per hour. The prices
// are those of the emulated AWS.
func (r *run) plan(ctx context.Context) (bound, price float64, err error) {
	var manifests bytes.Buffer
	manifests.WriteString(r.Market.manifest("KarpenterNodeRole", r.lab.Cluster))
	add := func(object any) error {
		text, err := yaml.Marshal(object)
		manifests.WriteString("---\n")
		manifests.Write(text)
		return err
	}
	for _, w := range r.loads {
		if err := add(w.deployment(r.share, 0)); err != nil {
			return 0, 0, err
		}
	}
	for _, d := range daemonSets() {
		if err := add(d); err != nil {
			return 0, 0, err
		}
	}
	cmd := exec.CommandContext(ctx, r.joiner, "plan", "-f", "-", "--from", "aws", "--region", r.lab.Region, "-o", "json")
	cmd.Stdin = &manifests
	cmd.Env = append(os.Environ(), r.lab.Environment()...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		return 0, 0, fmt.Errorf("joiner plan: %w: %s", err, stderr.String())
	}
	var output struct {
		LowerBoundPerHour, PricePerHour float64
	}
	if err := json.Unmarshal(out, &output); err != nil {
		return 0, 0, fmt.Errorf("read the output of joiner plan: %w", err)
	}
	return output.LowerBoundPerHour, output.PricePerHour, nil
}

// String returns the figures in one line.
func (p Phase) String() string {
	over := 0.0
	if p.Bound > 0 {
		over = 100 * (p.Price/p.Bound - 1)
	}
	return fmt.Sprintf("%s: %d pods, $%.3f per hour (%+.1f %% of the bound), plan $%.3f, peak $%.3f, paid $%.4f, %d instances, %d launched, "+
		"%d short-lived, %d restarted, wait %.1f / %.1f s, CPU %.1f s, %d MiB", p.Name, p.Pods, p.Price, over, p.Plan, p.Peak, p.Paid,
		p.Instances, p.Launched, p.ShortTerm, p.Restarted, p.Waits.Median.Seconds(), p.Waits.Worst.Seconds(), p.CPU.Seconds(), p.Memory>>20)
}
