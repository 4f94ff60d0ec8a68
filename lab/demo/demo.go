// Package demo runs Joiner in a lab and shows its work live: pods are pending, nodes are launched and join, pods run,
// and empty nodes are terminated.
//
// In: a terminal or a file to print to, and the joiner program.
// Out: each event in the life of each node, as it happens, and a summary with prices.
// Never: a number that was not measured in this run.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/lab"
)

// Options configure the demo.
type Options struct {
	Out    io.Writer // receives the text of the demo
	Live   bool      // Out is a terminal
	Color  bool      // use colors
	Joiner string    // path of the joiner program; empty builds it

	// Keep is called after the demo, with the lab, its running controller and the path of the joiner program. The lab
	// closes when Keep returns. nil closes the lab at the end of the demo.
	Keep func(ctx context.Context, l *lab.Lab, controller *lab.Controller, joiner string) error
}

const waitTimeout = 3 * time.Minute

type demoRun struct {
	Options
	screen     *screen
	lab        *lab.Lab
	controller *lab.Controller
	tracker    *tracker
	joiner     string
	manifests  []string // manifests of the demo's parts so far, the input of `joiner plan`
}

// Run runs the demo. Its error names the part that failed, with evidence from the lab.
func Run(ctx context.Context, o Options) error {
	d := &demoRun{Options: o, screen: &screen{out: o.Out, live: o.Live, color: o.Color, since: time.Now()}}
	d.screen.title("Joiner's lab: a real Kubernetes control plane beside an emulated AWS")
	if err := d.screen.writeError(); err != nil {
		return err
	}
	if err := d.start(ctx); err != nil {
		return err
	}
	defer d.lab.Close()
	for _, part := range []func(context.Context) error{d.caseOne, d.mixed} {
		if err := part(ctx); err != nil {
			return d.explain(ctx, err)
		}
	}
	full := d.tracker.totals()
	if err := d.scaleToZero(ctx); err != nil {
		return d.explain(ctx, err)
	}
	d.summary(ctx, full)
	if o.Keep != nil && d.screen.writeError() == nil {
		if err := d.clear(ctx); err != nil {
			return d.explain(ctx, err)
		}
		d.screen.title("The demo's NodePools are deleted; the lab stays up. In another terminal:")
		return o.Keep(ctx, d.lab, d.controller, d.joiner)
	}
	return d.screen.writeError()
}

func (d *demoRun) start(ctx context.Context) error {
	done := func() {}
	step := func(text string) {
		done()
		done = d.screen.step(text)
	}
	var err error
	if d.lab, err = lab.Start(ctx, lab.Options{Cluster: "demo", Pace: lab.Lifelike(), Step: step}); err != nil {
		return err
	}
	step("Starting the controller")
	if d.joiner = d.Joiner; d.joiner == "" {
		d.joiner, err = lab.BuildJoiner(ctx, d.lab.Home)
	}
	if err == nil {
		d.controller, err = d.lab.RunController(ctx, d.joiner)
	}
	if err == nil {
		d.tracker, err = follow(ctx, d.lab, d.screen)
	}
	if err == nil {
		err = d.lab.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	if err != nil {
		d.lab.Close()
		return err
	}
	done()
	return nil
}

func (d *demoRun) caseOne(ctx context.Context) error {
	d.screen.title("1  Five pods select nodegroup=karpenter; the NodePool allows t2 and t3, small and medium")
	text := fill(d.lab, caseOneManifest)
	d.manifests = append(d.manifests, text)
	if err := d.lab.Apply(ctx, text); err != nil {
		return err
	}
	return d.untilRunning(ctx, 5)
}

func (d *demoRun) mixed(ctx context.Context) error {
	total := 0
	for _, k := range kinds() {
		total += int(k.pods)
	}
	d.screen.title(fmt.Sprintf("2  %d mixed pods; the NodePool allows amd64 and arm64", total))
	text, err := mixedManifest(d.lab)
	if err != nil {
		return err
	}
	d.manifests = append(d.manifests, text)
	if err := d.lab.Apply(ctx, text); err != nil {
		return err
	}
	return d.untilRunning(ctx, total+5) // with the five pods of caseOne
}

// untilRunning waits until at least the given number of pods exist and all pods run.
func (d *demoRun) untilRunning(ctx context.Context, pods int) error {
	err := d.until(ctx, func(s totals) bool { return s.pods >= pods && s.running == s.pods })
	if err != nil {
		return fmt.Errorf("wait for %d pods to run: %w", pods, err)
	}
	s := d.tracker.totals()
	d.screen.event(bold, "running", fmt.Sprintf("all %d pods, on %d nodes for $%s/h", s.running, s.nodes, s.price))
	return nil
}

func (d *demoRun) scaleToZero(ctx context.Context) error {
	d.screen.title("3  All Deployments are scaled to zero; Joiner terminates the empty nodes")
	var deployments appsv1.DeploymentList
	if err := d.lab.Client.List(ctx, &deployments); err != nil {
		return fmt.Errorf("list deployments: %w", err)
	}
	for _, deployment := range deployments.Items {
		patch := []byte(`{"spec":{"replicas":0}}`)
		if _, err := d.lab.Kube.AppsV1().Deployments(deployment.Namespace).Patch(ctx, deployment.Name, types.MergePatchType, patch,
			metav1.PatchOptions{}, "scale"); err != nil {
			return fmt.Errorf("scale %s to zero: %w", deployment.Name, err)
		}
	}
	err := d.until(ctx, func(s totals) bool { return s.pods == 0 && s.nodes+s.joining == 0 && d.aliveInstances() == 0 })
	if err != nil {
		return fmt.Errorf("wait until all nodes are terminated: %w", err)
	}
	d.screen.event(bold, "empty", "no pod, no node, no instance")
	return nil
}

// clear deletes the demo's objects. Otherwise the demo's NodePools would launch nodes for the user's pods while the lab
// stays up.
func (d *demoRun) clear(ctx context.Context) error {
	if err := d.lab.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the demo's namespace: %w", err)
	}
	for _, object := range []client.Object{&karpenterv1.NodePool{}, &awsv1.EC2NodeClass{}} {
		if err := d.lab.Client.DeleteAllOf(ctx, object); err != nil {
			return fmt.Errorf("delete the demo's NodePools and EC2NodeClasses: %w", err)
		}
	}
	err := d.until(ctx, func(totals) bool {
		var pools karpenterv1.NodePoolList
		var classes awsv1.EC2NodeClassList
		return d.lab.Client.List(ctx, &pools) == nil && d.lab.Client.List(ctx, &classes) == nil && len(pools.Items)+len(classes.Items) == 0
	})
	if err != nil {
		return fmt.Errorf("wait until the demo's NodePools and EC2NodeClasses are deleted: %w", err)
	}
	return nil
}

func (d *demoRun) aliveInstances() int {
	n := 0
	for _, i := range d.lab.Instances() {
		if i.Alive() {
			n++
		}
	}
	return n
}

// until polls the totals until wanted returns true for them. It returns an error when the lab or the controller ends,
// when the output cannot be written, or after waitTimeout.
func (d *demoRun) until(ctx context.Context, wanted func(totals) bool) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	defer d.screen.setStatus("")
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	for {
		s := d.tracker.totals()
		if wanted(s) {
			return nil
		}
		d.screen.setStatus(fmt.Sprintf("           %d of %d pods run · %d nodes ready, %d joining · $%s/h", s.running,
			s.pods, s.nodes, s.joining, s.price))
		if err := d.screen.writeError(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case err := <-d.lab.Failed():
			return err
		case <-d.controller.Done():
			return d.controller.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// explain adds the lab's evidence to an error. If Ctrl-C or a write error ended the demo, explain returns only the
// error of the context or of the write.
func (d *demoRun) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if writeErr := d.screen.writeError(); writeErr != nil {
		return writeErr
	}
	return fmt.Errorf("%w\n%s", err, d.lab.Evidence(context.WithoutCancel(ctx)))
}

// summary prints the summary. full has the totals before the Deployments were scaled to zero.
func (d *demoRun) summary(ctx context.Context, full totals) {
	d.screen.title("Summary")
	calls, byAction := d.lab.AWSCalls()
	rows := [][2]string{
		{"pods", fmt.Sprintf("%d", full.running)},
		{"nodes launched", fmt.Sprintf("%d: %s", full.launched, full.perType)},
		{"price per hour", "$" + full.price.String()},
	}
	if plan, err := d.plan(ctx); err != nil {
		rows = append(rows, [2]string{"plan, lower bound", "unknown: " + err.Error()})
	} else {
		above := func(price float64) string { return fmt.Sprintf("%+.0f %%", 100*(full.price.Dollars()/price-1)) }
		rows = append(rows,
			[2]string{"a plan for all pods", fmt.Sprintf("$%.4f (the nodes cost %s)", plan.PricePerHour, above(plan.PricePerHour))},
			[2]string{"lower bound", fmt.Sprintf("$%.4f (the nodes cost %s)", plan.LowerBoundPerHour, above(plan.LowerBoundPerHour))})
	}
	rows = append(rows, [2]string{"pods elsewhere", fmt.Sprintf("%d not on the node that was launched for them", full.elsewhere)})
	d.screen.table(append(rows,
		[2]string{"Pending to Running", fmt.Sprintf("median %s, worst %s", full.median, full.worst)},
		[2]string{"calls to AWS", fmt.Sprintf("%d, of them CreateFleet %d, TerminateInstances %d", calls,
			byAction["ec2:CreateFleet"], byAction["ec2:TerminateInstances"])},
	))
}

// pricedPlan has the prices of a plan in dollars per hour.
type pricedPlan struct {
	PricePerHour      float64 `json:"pricePerHour"`
	LowerBoundPerHour float64 `json:"lowerBoundPerHour"`
}

// plan returns the prices of `joiner plan` for the workloads of both parts.
func (d *demoRun) plan(ctx context.Context) (pricedPlan, error) {
	var plan pricedPlan
	daemons, err := daemonSets(ctx, d.lab)
	if err != nil {
		return plan, err
	}
	cmd := exec.CommandContext(ctx, d.joiner, "plan", "-f", "-", "-o", "json", "--region", d.lab.Region)
	cmd.Stdin = strings.NewReader(strings.Join(d.manifests, "---\n") + daemons)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return plan, fmt.Errorf("joiner plan: %s", strings.TrimSpace(string(exit.Stderr)))
	} else if err != nil {
		return plan, fmt.Errorf("joiner plan: %w", err)
	}
	if err := json.Unmarshal(out, &plan); err != nil {
		return plan, fmt.Errorf("parse the output of joiner plan: %w", err)
	}
	if plan.LowerBoundPerHour <= 0 {
		return plan, errors.New("joiner plan returned no lower bound")
	}
	return plan, nil
}
