package workload

import (
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

var nodeTypes = []string{"m5.4xlarge", "c5.4xlarge", "r5.4xlarge", "m6i.8xlarge", "m5.2xlarge"}

// nodes returns n nodes that were created a day before Now, of the instance types nodeTypes, spread over all zones.
func nodes(n int, market catalog.Market) ([]*corev1.Node, error) {
	var found []catalog.Type
	for _, name := range nodeTypes {
		for _, t := range market[className].Types {
			if t.Name == name {
				found = append(found, t)
			}
		}
	}
	if len(found) != len(nodeTypes) {
		return nil, fmt.Errorf("make nodes: the market lacks one of %s", strings.Join(nodeTypes, ", "))
	}
	out := make([]*corev1.Node, n)
	for i := range out {
		t := found[i%len(found)]
		out[i] = node(fmt.Sprintf("node-%04d", i), t, t.Offerings[i/len(found)%len(t.Offerings)])
	}
	return out, nil
}

// node returns an initialized node of the NodePool poolName, created a day before Now.
func node(name string, t catalog.Type, o catalog.Offering) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname: name, karpv1.LabelNodePool: poolName, awsv1.LabelNodeClass: className,
		karpv1.LabelRegistered: "true", karpv1.LabelInitialized: "true",
	}
	maps.Copy(labels, t.Labels)
	maps.Copy(labels, o.Labels())
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-" + name), Labels: labels, CreationTimestamp: metav1.NewTime(Now.AddDate(0, 0, -1)),
		},
		Spec: corev1.NodeSpec{ProviderID: "aws:///" + o.Zone + "/i-" + name},
		Status: corev1.NodeStatus{
			Capacity: conversion.Quantities(t.Capacity), Allocatable: conversion.Quantities(t.Allocatable),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// bind binds each pod to the next node with room. If apart is true, the node must have no other pod of the same
// deployment. bind returns the bound pods, and leaves out those for which no node has room.
func bind(pods []*corev1.Pod, nodes []*corev1.Node, apart bool) []*corev1.Pod {
	room := make([]resources.Amounts, len(nodes))
	for i, n := range nodes {
		room[i] = conversion.Amounts(n.Status.Allocatable)
	}
	hasPod := map[string]bool{} // by number of the node and name of the deployment
	var out []*corev1.Pod
	next := 0 // number of the node at which the search for the next pod starts
	for _, p := range pods {
		requests := conversion.Requests(p)
		for offset := range nodes {
			i := (next + offset) % len(nodes)
			key := fmt.Sprint(i, p.Labels[labelApp])
			if apart && hasPod[key] || !requests.Fits(room[i]) {
				continue
			}
			hasPod[key] = true
			room[i] = room[i].Sub(requests)
			p.Spec.NodeName = nodes[i].Name
			p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &metav1.Time{Time: Now.AddDate(0, 0, -1)}}
			out, next = append(out, p), i+1
			break
		}
	}
	return out
}

// daemonSets returns the DaemonSets of a typical cluster, one of which runs only on nodes with local disks.
func daemonSets() []*appsv1.DaemonSet {
	var out []*appsv1.DaemonSet
	for _, d := range []struct {
		name       string
		milli, mib int64
	}{
		{"network", 50, 64}, {"proxy", 100, 64}, {"volumes", 30, 120}, {"metrics", 100, 180}, {"logs", 200, 400}, {"disks", 250, 512},
	} {
		source := newDeployment(d.name, 0, d.milli, d.mib)
		set := &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: d.name, UID: types.UID("uid-" + d.name)},
			Spec: appsv1.DaemonSetSpec{
				Selector: source.podSelector(),
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: source.labels}, Spec: source.template},
			},
		}
		set.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		if d.name == "disks" {
			set.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: catalog.LabelLocalNVMe, Operator: corev1.NodeSelectorOpExists}},
				}}},
			}}
		}
		out = append(out, set)
	}
	return out
}
