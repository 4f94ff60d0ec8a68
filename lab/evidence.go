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

// Evidence returns the state of the lab as text, for finding the cause of a failure:
//
//   - pods that do not run, NodeClaims, nodes and instances
//   - the console output of instances that did not join
//   - warnings, and the ends of the logs of joiner and the authenticator
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

// writePods writes at most maxPods of the pods that do not run, and why they are not scheduled.
func (e *evidence) writePods(ctx context.Context, b *strings.Builder) {
	pods, err := e.lab.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintf(b, "\npods: %v\n", err)
		return
	}
	const maxPods = 15
	notRunning := 0
	fmt.Fprintf(b, "\npods that do not run, of %d:\n", len(pods.Items))
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			continue
		}
		if notRunning++; notRunning > maxPods {
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
	if notRunning > maxPods {
		fmt.Fprintf(b, "    and %d more\n", notRunning-maxPods)
	}
}

// writeClaims writes the conditions of all EC2NodeClasses, NodePools and NodeClaims. Of the NodeClaims without a
// problem, it writes only the first maxEntries.
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
	var healthy entryLimit
	for _, c := range claims.Items {
		conditions := conditionsOf(c.Status.Conditions)
		if conditions != allTrue || c.DeletionTimestamp != nil || healthy.admit() {
			fmt.Fprintf(b, "    NodeClaim %s %s deleted=%t%s\n", c.Name, c.Status.ProviderID, c.DeletionTimestamp != nil, conditions)
		}
	}
	healthy.writeRest(b)
}

// conditionsOf returns the conditions that are not True, as text, or allTrue if all are True.
func conditionsOf(conditions []metav1.Condition) string {
	var b strings.Builder
	for _, c := range conditions {
		if c.Status != metav1.ConditionTrue {
			fmt.Fprintf(&b, " %s=%s(%s: %s)", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return cmp.Or(b.String(), allTrue)
}

// allTrue is the text of conditionsOf for conditions that are all True.
const allTrue = " all conditions True"

// entryLimit admits the first maxEntries entries of a list.
type entryLimit struct{ seen int }

const maxEntries = 25

// admit counts an entry, and reports whether the caller writes it.
func (e *entryLimit) admit() bool {
	e.seen++
	return e.seen <= maxEntries
}

// writeRest writes how many entries were not admitted. The caller must have counted only entries without a problem.
func (e *entryLimit) writeRest(b *strings.Builder) {
	if e.seen > maxEntries {
		fmt.Fprintf(b, "    and %d more without a problem\n", e.seen-maxEntries)
	}
}

// writeNodes writes the nodes, but only the first maxEntries of those without a problem. It returns the provider IDs of
// all nodes.
func (e *evidence) writeNodes(ctx context.Context, b *strings.Builder) (joined map[string]bool) {
	joined = map[string]bool{}
	nodes, err := e.lab.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintf(b, "\nnodes: %v\n", err)
		return joined
	}
	fmt.Fprintf(b, "\nnodes:\n")
	var healthy entryLimit
	for _, n := range nodes.Items {
		joined[n.Spec.ProviderID] = true
		if isReady(&n) && n.DeletionTimestamp == nil && len(n.Spec.Taints) == 0 && !healthy.admit() {
			continue
		}
		var taints []string
		for _, t := range n.Spec.Taints {
			taints = append(taints, t.ToString())
		}
		fmt.Fprintf(b, "    %s %s ready=%t deleted=%t taints=%v\n", n.Name, n.Spec.ProviderID, isReady(&n), n.DeletionTimestamp != nil, taints)
	}
	healthy.writeRest(b)
	return joined
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// writeInstances writes the instances, but at most maxEntries of those that are alive and have a node. For at most
// maxEntries instances that are alive without a node, it also writes the end of the console output. joined has the
// provider IDs of all nodes.
func (e *evidence) writeInstances(joined map[string]bool, b *strings.Builder) {
	fmt.Fprintf(b, "\ninstances:\n")
	var healthy, consoles entryLimit
	for _, i := range e.lab.Instances() {
		if i.Alive() && joined[providerID(i)] && !healthy.admit() {
			continue
		}
		fmt.Fprintf(b, "    %s %s %s %s %s %s\n", i.ID, i.State, i.Type, i.Zone, i.RoleARN, i.Tags[karpenterv1.LabelNodePool])
		if !i.Alive() || joined[providerID(i)] || !consoles.admit() {
			continue
		}
		fmt.Fprintf(b, "      its console ends:\n        %s\n", strings.Join(lastLines(e.lab.Console(i.ID), 12), "\n        "))
	}
	healthy.writeRest(b)
}

// writeEvents writes one warning for each combination of reason and kind of object, at most 15 warnings.
func (e *evidence) writeEvents(ctx context.Context, b *strings.Builder) {
	events, err := e.lab.Kube.CoreV1().Events("").List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintf(b, "\nevents: %v\n", err)
		return
	}
	fmt.Fprintf(b, "\nwarnings:\n")
	written := map[string]bool{}
	for _, event := range slices.Backward(events.Items) {
		object := event.InvolvedObject
		line := fmt.Sprintf("    %s %s: %s: %s\n", object.Kind, object.Name, event.Reason, event.Message)
		key := object.Kind + event.Reason
		if event.Type == corev1.EventTypeWarning && !written[key] && len(written) < 15 {
			written[key] = true
			b.WriteString(line)
		}
	}
}

// Instances returns the instances of the lab's account and region that EC2 still lists, also terminated ones.
func (l *Lab) Instances() []world.Instance {
	var out []world.Instance
	l.Emulator.Do(func(w *world.World, _ time.Time) { out = w.Region(l.Account, l.Region).Instances.All() })
	return out
}

// Console returns the console output of the instance with an ID.
func (l *Lab) Console(id string) string {
	var text string
	l.Emulator.Do(func(w *world.World, _ time.Time) { text, _ = w.Region(l.Account, l.Region).Instances.Console(id) })
	return text
}

// tail returns the last n lines of a file, indented.
func tail(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "    (none)\n"
	}
	return "    " + strings.Join(lastLines(string(data), n), "\n    ") + "\n"
}

func lastLines(text string, n int) []string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return all[max(0, len(all)-n):]
}
