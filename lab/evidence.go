package lab

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// Evidence returns the state of the lab as text, for finding the cause of a failure: pods that do not run, NodeClaims,
// nodes, the console output of instances that did not join, warnings, and the ends of the relevant logs.
func (l *Lab) Evidence(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var b strings.Builder
	l.evidence.writePods(ctx, &b)
	l.evidence.writeClaims(ctx, &b)
	joined := l.evidence.writeNodes(ctx, &b)
	l.evidence.writeInstances(joined, &b)
	l.evidence.writeEvents(ctx, &b)
	for _, name := range []string{"joiner", "authenticator"} {
		fmt.Fprintf(&b, "\nend of the log of %s:\n%s", name, tail(l.Logs(name), 25))
	}
	return b.String()
}

// writePods writes the pods that do not run, at most 15 of them, and why they are not scheduled.
func (e *evidence) writePods(ctx context.Context, b *strings.Builder) {
	pods, err := e.lab.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintf(b, "\npods: %v\n", err)
		return
	}
	running, shown := 0, 0
	fmt.Fprintf(b, "\npods that do not run, of %d:\n", len(pods.Items))
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			running++
			continue
		}
		if shown++; shown > 15 {
			continue
		}
		why := ""
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				why = c.Message
			}
		}
		fmt.Fprintf(b, "    %s/%s %s node=%q deleted=%t %s\n", p.Namespace, p.Name, p.Status.Phase, p.Spec.NodeName,
			p.DeletionTimestamp != nil, why)
	}
	if shown > 15 {
		fmt.Fprintf(b, "    and %d more\n", shown-15)
	}
}

// writeClaims writes the conditions of all EC2NodeClasses and NodePools, of all NodeClaims that are not healthy, and of
// the first healthy ones, see maxHealthy.
func (e *evidence) writeClaims(ctx context.Context, b *strings.Builder) {
	var claims karpenterv1.NodeClaimList
	var classes awsv1.EC2NodeClassList
	var pools karpenterv1.NodePoolList
	for _, list := range []client.ObjectList{&claims, &classes, &pools} {
		if err := e.lab.Client.List(ctx, list); err != nil {
			fmt.Fprintf(b, "\nclaims, pools and classes: %v\n", err)
			return
		}
	}
	fmt.Fprintf(b, "\nclasses, pools and claims:\n")
	for _, c := range classes.Items {
		fmt.Fprintf(b, "    EC2NodeClass %s%s\n", c.Name, conditionsOf(c.Status.Conditions))
	}
	for _, p := range pools.Items {
		fmt.Fprintf(b, "    NodePool %s%s\n", p.Name, conditionsOf(p.Status.Conditions))
	}
	var healthy few
	for _, c := range claims.Items {
		conditions := conditionsOf(c.Status.Conditions)
		if conditions != allTrue || c.DeletionTimestamp != nil || healthy.next() {
			fmt.Fprintf(b, "    NodeClaim %s %s deleted=%t%s\n", c.Name, c.Status.ProviderID, c.DeletionTimestamp != nil, conditions)
		}
	}
	healthy.end(b)
}

// conditionsOf returns the conditions that are not True, as text; allTrue if there are none.
func conditionsOf(conditions []metav1.Condition) string {
	var b strings.Builder
	for _, c := range conditions {
		if c.Status != metav1.ConditionTrue {
			fmt.Fprintf(&b, " %s=%s(%s: %s)", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return cmp.Or(b.String(), allTrue)
}

// allTrue is what conditionsOf returns if all conditions are true.
const allTrue = " all conditions True"

// few limits how many entries of a list are written.
type few struct{ seen int }

// maxHealthy is the maximum number of entries without a problem that are written.
const maxHealthy = 25

// next counts an entry, and reports whether it is one of the first maxHealthy.
func (f *few) next() bool {
	f.seen++
	return f.seen <= maxHealthy
}

// end writes how many entries were not written.
func (f *few) end(b *strings.Builder) {
	if f.seen > maxHealthy {
		fmt.Fprintf(b, "    and %d more without a problem\n", f.seen-maxHealthy)
	}
}

// writeNodes writes the nodes, and returns the provider IDs of all.
func (e *evidence) writeNodes(ctx context.Context, b *strings.Builder) (joined map[string]bool) {
	joined = map[string]bool{}
	nodes, err := e.lab.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintf(b, "\nnodes: %v\n", err)
		return joined
	}
	fmt.Fprintf(b, "\nnodes:\n")
	var healthy few
	for _, n := range nodes.Items {
		joined[n.Spec.ProviderID] = true
		if ready(&n) && n.DeletionTimestamp == nil && len(n.Spec.Taints) == 0 && !healthy.next() {
			continue
		}
		var taints []string
		for _, t := range n.Spec.Taints {
			taints = append(taints, t.ToString())
		}
		fmt.Fprintf(b, "    %s %s ready=%t deleted=%t taints=%v\n", n.Name, n.Spec.ProviderID, ready(&n), n.DeletionTimestamp != nil, taints)
	}
	healthy.end(b)
	return joined
}

// ready reports whether a Node is Ready.
func ready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// writeInstances writes the instances, and the ends of the consoles of those that are alive and have no node. joined
// has the provider IDs of all nodes.
func (e *evidence) writeInstances(joined map[string]bool, b *strings.Builder) {
	fmt.Fprintf(b, "\ninstances:\n")
	var healthy, consoles few
	for _, i := range e.lab.Instances() {
		if i.Alive() && joined[providerID(i)] && !healthy.next() {
			continue
		}
		fmt.Fprintf(b, "    %s %s %s %s %s %s\n", i.ID, i.State, i.Type, i.Zone, i.RoleARN, i.Tags[karpenterv1.LabelNodePool])
		if !i.Alive() || joined[providerID(i)] || !consoles.next() {
			continue
		}
		fmt.Fprintf(b, "      its console ends:\n        %s\n", strings.Join(lastLines(e.lab.Console(i.ID), 12), "\n        "))
	}
	healthy.end(b)
}

// writeEvents writes the newest warning of each reason and kind of object, at most 15.
func (e *evidence) writeEvents(ctx context.Context, b *strings.Builder) {
	events, err := e.lab.Kube.CoreV1().Events("").List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintf(b, "\nevents: %v\n", err)
		return
	}
	fmt.Fprintf(b, "\nwarnings:\n")
	written := map[string]bool{}
	for _, e := range slices.Backward(events.Items) {
		line := fmt.Sprintf("    %s %s: %s: %s\n", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
		key := e.InvolvedObject.Kind + e.Reason
		if e.Type == corev1.EventTypeWarning && !written[key] && len(written) < 15 {
			written[key] = true
			b.WriteString(line)
		}
	}
}

// Instances returns every instance of the account that EC2 still lists, in its current state.
func (l *Lab) Instances() []world.Instance {
	var out []world.Instance
	l.Emulator.Do(func(w *world.World, _ time.Time) { out = w.Region(l.Account, l.Region).Instances.All() })
	return out
}

// Console returns an instance's console output.
func (l *Lab) Console(instance string) string {
	var text string
	l.Emulator.Do(func(w *world.World, _ time.Time) { text, _ = w.Region(l.Account, l.Region).Instances.Console(instance) })
	return text
}

// tail returns the last lines of a file.
func tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "    (none)\n"
	}
	return "    " + strings.Join(lastLines(string(data), lines), "\n    ") + "\n"
}

// lastLines returns the last n lines of a text, without the newlines.
func lastLines(text string, n int) []string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return all[max(0, len(all)-n):]
}
