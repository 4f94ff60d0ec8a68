package upstream

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/bench/fleet"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// InstanceChanged passes the current state of an instance to upstream.
func (d *Disruptor) InstanceChanged(m *fleet.Instance) {
	claim := d.claimOf(m)
	d.api.mu.Lock()
	d.api.stamp(claim)
	d.api.claims[m.Name] = claim
	d.api.mu.Unlock()
	if n := m.Node(); n != nil && m.Phase == fleet.Ready {
		d.api.mu.Lock()
		known := d.api.nodes[m.Name] // a known Node is kept, because it has upstream's patches
		if known == nil {
			known = n.DeepCopy()
			d.api.stamp(known)
			d.api.nodes[m.Name] = known
		}
		d.api.mu.Unlock()
		d.keepError(d.state.UpdateNode(d.ctx, known.DeepCopy()))
	}
	d.state.UpdateNodeClaim(claim.DeepCopy())
}

// InstanceGone removes an instance's node and claim from upstream's state.
func (d *Disruptor) InstanceGone(m *fleet.Instance) {
	d.api.mu.Lock()
	delete(d.api.nodes, m.Name)
	delete(d.api.claims, m.Name)
	d.api.mu.Unlock()
	d.state.DeleteNodeClaim(m.Name)
	d.state.DeleteNode(m.Name)
}

// PodChanged updates a pod in upstream's state.
func (d *Disruptor) PodChanged(p *fleet.Pod) {
	d.api.setPod(p.Object)
	d.keepError(d.state.UpdatePod(d.ctx, p.Object.DeepCopy()))
}

// PodGone removes a pod from upstream's state.
func (d *Disruptor) PodGone(p *fleet.Pod) {
	d.api.dropPod(p.Object)
	d.state.DeletePod(client.ObjectKeyFromObject(p.Object))
}

// claimOf returns the NodeClaim that upstream's other controllers would have written for the instance in its current
// phase. The claim is first launched, then registered, initialized and consolidatable, and finally has a deletion
// timestamp.
func (d *Disruptor) claimOf(m *fleet.Instance) *v1.NodeClaim {
	d.api.mu.Lock()
	known := d.api.claims[m.Name]
	d.api.mu.Unlock()
	c := &v1.NodeClaim{}
	if known != nil {
		c = known.DeepCopy()
	} else {
		c.Name, c.UID = m.Name, types.UID("uid-claim-"+m.Name)
		c.Spec.NodeClassRef = &v1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: m.Class}
		for _, key := range []string{corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, v1.CapacityTypeLabelKey} {
			c.Spec.Requirements = append(c.Spec.Requirements,
				v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{m.Labels()[key]}})
		}
	}
	c.CreationTimestamp = metav1.NewTime(m.Created)
	if m.Phase >= fleet.Launched {
		c.Labels = m.Labels()
		c.Status.ProviderID = m.ProviderID()
		c.Status.Capacity, c.Status.Allocatable = conversion.Quantities(m.Type.Capacity), conversion.Quantities(m.Type.Allocatable)
		setTrue(c, v1.ConditionTypeLaunched)
	}
	if m.Phase >= fleet.Ready {
		c.Status.NodeName = m.Name
		setTrue(c, v1.ConditionTypeRegistered, v1.ConditionTypeInitialized, v1.ConditionTypeConsolidatable)
	}
	if m.Phase == fleet.Removing && c.DeletionTimestamp == nil {
		now := metav1.NewTime(d.fleet.Now())
		c.DeletionTimestamp = &now
	}
	return c
}

// setTrue sets status conditions to true, in the order of their names.
func setTrue(c *v1.NodeClaim, conditions ...string) {
	for _, name := range slices.Sorted(slices.Values(conditions)) {
		c.StatusConditions().SetTrue(name)
	}
}
