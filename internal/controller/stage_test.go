package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// runEnvironment runs once what surrounds Joiner: kubelets, kube-scheduler and the controllers of Kubernetes.
func (s *stage) runEnvironment() {
	s.t.Helper()
	s.boot()
	s.clean()
	s.replicate()
	s.schedule()
}

// boot creates the Node of each running instance once, as its kubelet does, whether or not the claim exists.
func (s *stage) boot() {
	for _, i := range s.everyInstance() {
		s.launched[i.ID] = true
		if i.State != world.Running || s.booted[i.ID] {
			continue
		}
		s.booted[i.ID] = true
		name := i.PrivateDNSName
		s.check(s.api.Create(s.t.Context(), &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
			Spec: corev1.NodeSpec{
				ProviderID: "aws:///" + i.Zone + "/" + i.ID, Taints: []corev1.Taint{karpv1.UnregisteredTaint()},
			},
			Status: corev1.NodeStatus{
				Capacity: reportedCapacity, Allocatable: reportedCapacity,
				Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: i.PrivateIP}},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		}))
	}
}

// clean does what the cloud controller manager and the pod garbage collector do: it deletes the Nodes of terminated
// instances, and the pods of deleted Nodes. The Node of a terminating instance stops being ready at once.
func (s *stage) clean() {
	states := map[string]string{}
	for _, i := range s.everyInstance() {
		states["aws:///"+i.Zone+"/"+i.ID] = i.State
	}
	exists := map[string]bool{}
	nodes := s.nodes(s.t)
	for n := range nodes {
		node := &nodes[n]
		exists[node.Name] = true
		switch state := states[node.Spec.ProviderID]; {
		case state == world.Running || node.DeletionTimestamp != nil:
		case state == world.ShuttingDown:
			node.Status.Conditions[0].Status = corev1.ConditionUnknown
			s.check(s.api.Status().Update(s.t.Context(), node))
		default:
			s.check(s.api.Delete(s.t.Context(), node))
		}
	}
	for _, pod := range s.pods() {
		if pod.Spec.NodeName != "" && !exists[pod.Spec.NodeName] {
			s.check(s.api.Delete(s.t.Context(), &pod))
		}
	}
}

// sweepTemplates deletes the launch templates of nodes, as a user might, but not those of dry runs.
func (s *stage) sweepTemplates() {
	s.Do(func(*world.World, time.Time) {
		for _, template := range s.estate.Region.LaunchTemplates.All() {
			if template.Tags["karpenter.sh/nodepool"] == "" {
				continue // it is of a dry run
			}
			_, err := s.estate.Region.LaunchTemplates.Delete(template.ID, "")
			s.check(err)
		}
	})
}

func (s *stage) replicate() {
	for n := len(s.pods()); n < s.replicas; n++ {
		s.made++
		s.addPendingPod(s.t, fmt.Sprintf("web-%d", s.made), "500m", "512Mi")
	}
}

func (s *stage) schedule() {
	for _, pod := range s.pods() {
		for _, node := range s.nodes(s.t) {
			if pod.Spec.NodeName != "" || !nodestate.IsReady(&node) || node.Spec.Unschedulable ||
				slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key != "team" }) {
				continue
			}
			pod.Spec.NodeName, pod.Status = node.Name, corev1.PodStatus{Phase: corev1.PodRunning}
			s.check(s.api.Update(s.t.Context(), &pod))
		}
	}
}

// isConverged reports whether all pods have a node, each with a ready claim and an instance, and removedClaim is gone.
func (s *stage) isConverged() bool {
	claims, pods := s.claims(s.t), s.pods()
	isUnfinished := func(c karpv1.NodeClaim) bool {
		return c.Name == s.removedClaim || c.DeletionTimestamp != nil || !c.StatusConditions().IsReady()
	}
	isWaiting := func(p corev1.Pod) bool { return p.Spec.NodeName == "" }
	return len(claims) == s.replicas && len(s.nodes(s.t)) == s.replicas && len(s.instances()) == s.replicas && len(pods) == s.replicas &&
		!slices.ContainsFunc(claims, isUnfinished) && !slices.ContainsFunc(pods, isWaiting)
}

// describe returns the state of the cluster and of AWS, as sorted lines, without the fields that differ between correct
// runs: names, times and the zone of the launch.
func (s *stage) describe() string {
	var lines []string
	addLine := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	s.describeAWS(addLine)
	s.describeNodes(addLine)
	for _, c := range s.everyClass() {
		addLine("EC2NodeClass: finalizers %v, profile %t, %s", c.Finalizers, c.Status.InstanceProfile != "", conditionsOf(c.Status.Conditions))
	}
	var pools karpv1.NodePoolList
	s.list(&pools)
	for _, p := range pools.Items {
		addLine("NodePool: %d nodes, cpu %s, %s", p.Status.Nodes, p.Status.Resources.Cpu(), conditionsOf(p.Status.Conditions))
	}
	for _, p := range s.pods() {
		addLine("Pod: bound %t, deleted %t", p.Spec.NodeName != "", p.DeletionTimestamp != nil)
	}
	var measured corev1.ConfigMapList
	s.list(&measured, client.InNamespace("kube-system"))
	for _, m := range measured.Items {
		addLine("ConfigMap %s: %s", m.Name, slices.Sorted(maps.Values(m.Data)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (s *stage) describeAWS(addLine func(string, ...any)) {
	all := s.everyInstance()
	addLine("instances launched so far: %d", len(s.launched))
	for _, i := range all {
		if i.State != world.Terminated {
			addLine("instance: %s, %s, spot %t", i.State, i.Type, i.Spot)
		}
	}
	s.Do(func(w *world.World, now time.Time) {
		for _, t := range s.estate.Region.LaunchTemplates.All() {
			addLine("launch template of %s", t.Tags["karpenter.sh/nodepool"])
		}
		for _, p := range w.Account(emulator.DefaultAccount).Profiles("/") {
			addLine("instance profile: role %q", p.Role)
		}
		if q, err := s.estate.Region.SQS.Queue(testQueue); err == nil {
			visible, hidden := q.Count(now)
			addLine("queue: %d messages", visible+hidden)
		}
	})
}

func (s *stage) describeNodes(addLine func(string, ...any)) {
	claims := map[string]int{} // by provider ID
	for _, c := range s.claims(s.t) {
		claims[c.Status.ProviderID]++
		addLine("NodeClaim: deleted %t, finalizers %v, labels %v, annotations %v, %s", c.DeletionTimestamp != nil, c.Finalizers,
			slices.Sorted(maps.Keys(c.Labels)), slices.Sorted(maps.Keys(c.Annotations)), conditionsOf(c.Status.Conditions))
	}
	for _, n := range s.nodes(s.t) {
		var taints []string
		for _, t := range n.Spec.Taints {
			taints = append(taints, t.ToString())
		}
		addLine("Node: deleted %t, claims %d, owners %d, finalizers %v, taints %v, labels %v, annotations %v", n.DeletionTimestamp != nil,
			claims[n.Spec.ProviderID], len(n.OwnerReferences), n.Finalizers, taints,
			slices.Sorted(maps.Keys(n.Labels)), slices.Sorted(maps.Keys(n.Annotations)))
	}
}

func conditionsOf(conditions []metav1.Condition) string {
	var out []string
	for _, c := range conditions {
		out = append(out, c.Type+"="+string(c.Status)+"("+c.Reason+")")
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (s *stage) list(into client.ObjectList, opts ...client.ListOption) {
	s.t.Helper()
	s.check(s.api.List(context.Background(), into, opts...))
}

func (s *stage) pods() []corev1.Pod {
	var list corev1.PodList
	s.list(&list)
	return list.Items
}

func (s *stage) everyClass() []awsv1.EC2NodeClass {
	var list awsv1.EC2NodeClassList
	s.list(&list)
	return list.Items
}

// everyInstance returns all instances that EC2 still returns, including terminated ones.
func (s *stage) everyInstance() []world.Instance {
	var out []world.Instance
	s.Do(func(*world.World, time.Time) { out = s.estate.Region.Instances.All() })
	return out
}
