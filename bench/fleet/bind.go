package fleet

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// schedule binds the pending pods for which a node has room.
func (f *Fleet) schedule() {
	f.pending = slices.DeleteFunc(f.pending, func(p *Pod) bool {
		m := f.bestNode(p)
		if m == nil {
			return false
		}
		f.bindTo(p, m)
		return true
	})
}

// bestNode returns the node that kube-scheduler would choose: among the nodes with room for the pod, the one with the
// highest score. On a tie it returns the first by name. nil: no node has room.
func (f *Fleet) bestNode(p *Pod) *Instance {
	var out *Instance
	highest := -1.0
	for _, m := range f.ready {
		if m.Cordoned || !p.requests.Fits(m.free) || !matches(p.Object.Spec.NodeSelector, m) {
			continue
		}
		if s := score(p, m); s > highest+1e-9 { // a smaller difference is a rounding error
			out, highest = m, s
		}
	}
	return out
}

// score returns the sum of kube-scheduler's scores NodeResourcesFit (LeastAllocated) and
// NodeResourcesBalancedAllocation, between 0 and 2.
func score(p *Pod, m *Instance) float64 {
	allocatable := m.Type.Allocatable
	cpu := float64(m.free.CPU-p.requests.CPU) / float64(allocatable.CPU)
	memory := float64(m.free.Memory-p.requests.Memory) / float64(allocatable.Memory)
	return (cpu+memory)/2 + 1 - math.Abs(cpu-memory)/2 // half the difference is the standard deviation
}

func matches(selector map[string]string, m *Instance) bool {
	for key, value := range selector {
		if m.label(key) != value {
			return false
		}
	}
	return true
}

// label returns the value of a label that the node has from its instance type or its offering; empty for other labels.
func (m *Instance) label(key string) string {
	if value, ok := m.Type.Labels[key]; ok {
		return value
	}
	return m.Offering.Labels()[key]
}

func (f *Fleet) bindTo(p *Pod, m *Instance) {
	object := p.Object.DeepCopy()
	object.Spec.NodeName = m.Name
	object.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &metav1.Time{Time: f.now},
		Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
	}
	p.Object, p.node = object, m
	f.changes++
	m.pods[object.Name] = p
	m.free = m.free.Sub(p.requests)
	if f.Watch != nil {
		f.Watch.PodChanged(p)
	}
}
