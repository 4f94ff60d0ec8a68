package conversion

import (
	"bytes"
	"encoding/json"
	"slices"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// BootstrapNode returns the inputs for the user data of a claim's instance. The instance has the given capacity type
// and room for the given number of pods. Cluster and ImageName stay empty, because claim and class do not contain them.
func BootstrapNode(claim *karpv1.NodeClaim, class *awsv1.EC2NodeClass, capacityType string, pods int64) bootstrap.Node {
	n := bootstrap.Node{
		Family:  class.Spec.ResolvedAMIFamily(),
		Kubelet: kubeletOf(class.Spec.Kubelet, pods),
		Labels:  requirements.Labels{karpv1.LabelCapacityType: capacityType},
	}
	for key, value := range claim.Labels {
		n.Labels[key] = value
	}
	n.Taints = Taints(slices.Concat(claim.Spec.Taints, claim.Spec.StartupTaints))
	if class.Spec.UserData != nil {
		n.UserData = *class.Spec.UserData
	}
	if class.Spec.InstanceStorePolicy != nil {
		n.InstanceStore = string(*class.Spec.InstanceStorePolicy)
	}
	return n
}

// BootstrapNodeOfPool is like BootstrapNode for a NodeClaim that pool would get with the given offering. pool may be
// nil.
func BootstrapNodeOfPool(pool *karpv1.NodePool, class *awsv1.EC2NodeClass, offering packing.Choice, pods int64) (bootstrap.Node, error) {
	claim := &karpv1.NodeClaim{}
	if pool != nil {
		v := PoolValue(pool)
		var err error
		claim, err = ClaimFor(packing.PlannedNode{
			Pool: v.Name, NodeClass: v.NodeClass, Labels: v.Labels, Taints: v.Taints, StartupTaints: v.StartupTaints,
			Requirements: v.Requirements, Offerings: []packing.Choice{offering},
		}, pool)
		if err != nil {
			return bootstrap.Node{}, err
		}
	}
	return BootstrapNode(claim, class, offering.CapacityType, pods), nil
}

// ImageFor returns the first image in the class's status whose requirements accept the labels of the instance type;
// false if no image does.
func ImageFor(class *awsv1.EC2NodeClass, labels requirements.Labels) (awsv1.AMI, bool) {
	for _, image := range class.Status.AMIs {
		var reqs []requirements.Requirement
		for _, r := range image.Requirements {
			reqs = append(reqs, requirements.Requirement{Key: r.Key, Operator: requirements.Operator(r.Operator), Values: r.Values})
		}
		if accepted, invalid := requirements.All(reqs...); invalid == nil && accepted.Accepts(labels) {
			return image, true
		}
	}
	return awsv1.AMI{}, false
}

// kubeletOf converts spec.kubelet for the user data. pods is the pod limit of the node.
func kubeletOf(k *awsv1.KubeletConfiguration, pods int64) bootstrap.Kubelet {
	out := bootstrap.Kubelet{MaxPods: &pods}
	if k == nil {
		return out
	}
	out.ClusterDNS = k.ClusterDNS
	out.PodsPerCore = toInt64(k.PodsPerCore)
	out.SystemReserved, out.KubeReserved = k.SystemReserved, k.KubeReserved
	out.EvictionHard, out.EvictionSoft = k.EvictionHard, k.EvictionSoft
	out.EvictionSoftGracePeriod = k.EvictionSoftGracePeriod
	out.EvictionMaxPodGracePeriod = toInt64(k.EvictionMaxPodGracePeriod)
	out.ImageGCHighThresholdPercent = toInt64(k.ImageGCHighThresholdPercent)
	out.ImageGCLowThresholdPercent = toInt64(k.ImageGCLowThresholdPercent)
	out.CPUCFSQuota = k.CPUCFSQuota
	for name, value := range k.More {
		if out.More == nil {
			out.More = map[string]string{}
		}
		out.More[name] = canonicalJSON(value.Raw)
	}
	return out
}

// canonicalJSON returns the JSON without blanks and with sorted keys, so that equal settings make equal user data.
func canonicalJSON(data []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return string(data) // package bootstrap reports the error
	}
	out, err := json.Marshal(value)
	if err != nil {
		return string(data)
	}
	return string(out)
}

func toInt64(n *int32) *int64 {
	if n == nil {
		return nil
	}
	wide := int64(*n)
	return &wide
}
