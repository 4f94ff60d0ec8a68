package snapshot

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// nodeView is a node of the snapshot under construction. It is computed from a claim, a Node, or both.
type nodeView struct {
	value cluster.Node
	claim *karpv1.NodeClaim // nil for a node that Joiner did not launch
	node  *corev1.Node      // nil before the kubelet has created it

	// isTerminating means that the node's pods need another node, and that the pool's usage no longer includes the
	// node's capacity. A cordoned node is not terminating.
	isTerminating bool
	// maxCapacity is the largest capacity that the node may get. The pool's usage includes it.
	maxCapacity resources.Amounts

	planPeriod     planPeriod // the plan period of the claim
	hasMovablePods bool       // bound pods would need another node if this node terminated

	residents  residents                      // the pods that stay on the node, by kind
	daemonSets []types.NamespacedName         // the DaemonSets that have a pod on the node
	attached   map[conversion.Attachment]bool // the volumes that the node's pods use
}

// pair is a claim with its Node; one of the two may be nil.
type pair struct {
	claim *karpv1.NodeClaim
	node  *corev1.Node
	// isUnaccepted means that the Node has the provider ID of a claim but is not registered with the claim. No pod is
	// planned onto such a Node.
	isUnaccepted bool
}

// pairsOf pairs claims with the Nodes that they were registered with. A claim without a Node, or a Node without a
// claim, is a pair by itself. The result is in no particular order.
func pairsOf(claims []*karpv1.NodeClaim, nodes []*corev1.Node) []pair {
	byName := make(map[string]*corev1.Node, len(nodes))
	for _, n := range nodes {
		byName[n.Name] = n
	}
	claimed := make(map[string]bool, len(claims)) // provider IDs
	for _, c := range claims {
		if c.Status.ProviderID != "" {
			claimed[c.Status.ProviderID] = true
		}
	}
	nodeOf := func(c *karpv1.NodeClaim) *corev1.Node {
		n := byName[c.Status.NodeName]
		// A Node without a provider ID is accepted: manifests may omit the ID, and a Node can lose it.
		if n != nil && n.Spec.ProviderID == "" || IsNodeOf(c, n) {
			return n
		}
		return nil
	}
	// Two claims with one Node are a mistake of the user; the oldest claim gets the Node.
	claimOf := make(map[*corev1.Node]*karpv1.NodeClaim, len(claims))
	for _, c := range claims {
		n := nodeOf(c)
		if old := claimOf[n]; n != nil && (old == nil || byAge(c, old) < 0) {
			claimOf[n] = c
		}
	}
	out := make([]pair, 0, len(claims)+len(nodes))
	for _, c := range claims {
		n := nodeOf(c)
		if claimOf[n] != c {
			n = nil
		}
		out = append(out, pair{claim: c, node: n})
	}
	for _, n := range nodes {
		if claimOf[n] == nil {
			out = append(out, pair{node: n, isUnaccepted: claimed[n.Spec.ProviderID]})
		}
	}
	return out
}

// view returns the pair as a node without pods. csiNodes, by Node name, limit the node's volumes.
func (p pair) view(csiNodes map[string]*storagev1.CSINode, market catalog.Market) nodeView {
	var v nodeView
	switch {
	case p.isUnaccepted:
		v = unacceptedView(p.node)
	case p.claim == nil:
		v = foreignView(p.node)
	default:
		v = claimView(p.claim, p.node, market)
	}
	v.limitVolumes(csiNodes[v.value.Name], market)
	return v
}

// foreignView returns the view of a Node without a claim: a node of a node group, a Fargate node, or a node whose claim
// is unknown.
func foreignView(n *corev1.Node) nodeView {
	v := nodeView{node: n, isTerminating: n.DeletionTimestamp != nil || isDisrupted(n.Spec.Taints)}
	v.value = cluster.Node{
		Name:        n.Name,
		ProviderID:  n.Spec.ProviderID,
		Pool:        n.Labels[karpv1.LabelNodePool],
		NodeClass:   n.Labels[awsv1.LabelNodeClass],
		Labels:      withHostname(n.Labels, n.Name),
		Taints:      withCordon(conversion.Taints(n.Spec.Taints), n),
		Capacity:    conversion.Amounts(n.Status.Capacity),
		Allocatable: allocatableOf(n),
		Joined:      true,
		Initialized: true,
		Leaving:     v.isTerminating,
		Created:     n.CreationTimestamp.Time,
	}
	v.maxCapacity = v.value.Capacity
	return v
}

// unacceptedView returns the view of a Node that has a claim's provider ID and is not registered with the claim: the
// Node has just joined, or will never be accepted. The claim is a separate node of the snapshot. No pod is planned onto
// the Node.
func unacceptedView(n *corev1.Node) nodeView {
	v := foreignView(n)
	v.value.Pool, v.value.NodeClass = "", ""
	if cordon := cluster.CordonTaint(); !slices.Contains(v.value.Taints, cordon) {
		v.value.Taints = slices.Insert(slices.Clone(v.value.Taints), 0, cordon)
	}
	return v
}

// allocatableOf returns what the Node reports as allocatable, or its capacity if it reports nothing.
func allocatableOf(n *corev1.Node) resources.Amounts {
	if len(n.Status.Allocatable) == 0 {
		return conversion.Amounts(n.Status.Capacity)
	}
	return conversion.Amounts(n.Status.Allocatable)
}

// claimView returns the view of a claim, with its Node if there is one. Labels and taints come from the claim until the
// Node is registered, then from the Node. Until the Node is initialized, resources that the kubelet does not report
// yet, mostly devices, come from the claim, and temporary taints are left out.
func claimView(c *karpv1.NodeClaim, n *corev1.Node, market catalog.Market) nodeView {
	v := nodeView{claim: c, node: n, isTerminating: c.DeletionTimestamp != nil, planPeriod: planPeriodOf(c)}
	v.value = cluster.Node{
		Name:       c.Name,
		Claim:      c.Name,
		ProviderID: c.Status.ProviderID,
		Pool:       c.Labels[karpv1.LabelNodePool],
		NodeClass:  kubeclient.ClassName(c.Spec.NodeClassRef),
		Created:    c.CreationTimestamp.Time,
	}
	out := &v.value
	if n == nil || n.Labels[karpv1.LabelRegistered] != "true" {
		setFromClaim(&v, market)
		if n != nil {
			out.Capacity = filled(conversion.Amounts(n.Status.Capacity), out.Capacity)
			out.Allocatable = filled(allocatableOf(n), out.Allocatable)
			v.isTerminating = v.isTerminating || n.DeletionTimestamp != nil
			v.maxCapacity = out.Capacity
		}
		// A registered Node that was deleted does not come back; its claim is deleted next.
		out.Leaving = v.isTerminating || n == nil && c.StatusConditions().IsTrue(karpv1.ConditionRegistered)
		return v
	}
	out.Name, out.Joined = n.Name, true
	out.Initialized = n.Labels[karpv1.LabelInitialized] == "true"
	out.Labels = withHostname(n.Labels, n.Name)
	out.Taints = conversion.Taints(n.Spec.Taints)
	out.Capacity, out.Allocatable = conversion.Amounts(n.Status.Capacity), allocatableOf(n)
	if !out.Initialized {
		out.Taints = lastingTaints(n.Spec.Taints, c.Spec.StartupTaints)
		out.Capacity = filled(out.Capacity, conversion.Amounts(c.Status.Capacity))
		out.Allocatable = filled(out.Allocatable, conversion.Amounts(c.Status.Allocatable))
	}
	if isCordon := func(t requirements.Taint) bool { return t == cluster.CordonTaint() }; conversion.IsCordonedForPods(n) {
		out.Taints = slices.DeleteFunc(out.Taints, isCordon) // Joiner removes its own cordon soon
	} else {
		out.Taints = withCordon(out.Taints, n)
	}
	v.maxCapacity = out.Capacity
	v.isTerminating = v.isTerminating || n.DeletionTimestamp != nil || isDisrupted(n.Spec.Taints)
	out.Leaving = v.isTerminating
	return v
}

// setFromClaim sets taints, labels and sizes of a node that is not registered yet to the values that its claim has.
func setFromClaim(v *nodeView, market catalog.Market) {
	c, out := v.claim, &v.value
	out.Taints = conversion.Taints(c.Spec.Taints)
	if c.Status.ProviderID != "" {
		out.Labels = withHostname(c.Labels, c.Name)
		out.Capacity, out.Allocatable = conversion.Amounts(c.Status.Capacity), conversion.Amounts(c.Status.Allocatable)
		v.maxCapacity = out.Capacity
		return
	}
	setUnlaunched(v, market)
}

// setUnlaunched sets labels and sizes of a claim without an instance from the instance types that the claim lists. For
// each resource it takes the smallest amount among the types, but at least the claim's requests.
func setUnlaunched(v *nodeView, market catalog.Market) {
	c, out := v.claim, &v.value
	requests := conversion.RequestAmounts(c.Spec.Resources.Requests)
	types := offeredTypes(c, market)
	out.Labels = expectedLabels(c, types)
	out.Capacity, out.Allocatable, v.maxCapacity = requests, requests, requests
	for i, t := range types {
		if i == 0 {
			out.Capacity, out.Allocatable = t.Capacity, t.Allocatable
		}
		out.Capacity, out.Allocatable = minAmounts(out.Capacity, t.Capacity), minAmounts(out.Allocatable, t.Allocatable)
		v.maxCapacity = v.maxCapacity.Max(t.Capacity)
	}
	out.Capacity, out.Allocatable = out.Capacity.Max(requests), out.Allocatable.Max(requests)
}

func minAmounts(a, b resources.Amounts) resources.Amounts {
	return a.Times(-1).Max(b.Times(-1)).Times(-1)
}

// offeredTypes returns the types that the claim lists and the market knows, in the order of the claim.
func offeredTypes(c *karpv1.NodeClaim, market catalog.Market) []*catalog.Type {
	types := market.Types(kubeclient.ClassName(c.Spec.NodeClassRef), c.Labels[karpv1.LabelNodePool])
	var out []*catalog.Type
	for _, r := range c.Spec.Requirements {
		if r.Key != catalog.LabelInstanceType || r.Operator != corev1.NodeSelectorOpIn {
			continue
		}
		for _, name := range r.Values {
			if i, ok := slices.BinarySearchFunc(types, name, byTypeName); ok {
				out = append(out, &types[i])
			}
		}
	}
	return out
}

func byTypeName(t catalog.Type, name string) int { return strings.Compare(t.Name, name) }

// expectedLabels returns the labels that the node of a claim without an instance will probably have.
func expectedLabels(c *karpv1.NodeClaim, types []*catalog.Type) requirements.Labels {
	out := requirements.Labels{}
	if len(types) > 0 {
		maps.Copy(out, types[0].Labels)
	}
	for _, r := range c.Spec.Requirements {
		// Take the first value: types are listed cheapest first.
		if key := conversion.StableKey(r.Key); r.Operator == corev1.NodeSelectorOpIn && len(r.Values) > 0 && out[key] == "" {
			out[key] = r.Values[0]
		}
	}
	maps.Copy(out, c.Labels)
	return withHostname(out, c.Name)
}

// withHostname returns the labels with kubernetes.io/hostname, which the kubelet will set; name is its value if the
// label is missing.
func withHostname(labels requirements.Labels, name string) requirements.Labels {
	if labels[corev1.LabelHostname] != "" {
		return labels
	}
	out := make(requirements.Labels, len(labels)+1)
	maps.Copy(out, labels)
	out[corev1.LabelHostname] = name
	return out
}

// filled returns a, with every missing or zero amount taken from b.
func filled(a, b resources.Amounts) resources.Amounts {
	for _, name := range b.Names() {
		if a.Of(name) == 0 {
			a = a.With(name, b.Of(name))
		}
	}
	return a
}

func isDisrupted(taints []corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == karpv1.TaintDisrupted })
}

// withCordon returns the taints with cluster.CordonTaint first if the node is cordoned. spec.unschedulable is enough,
// as for kube-scheduler: the node controller adds the taint later.
func withCordon(taints []requirements.Taint, n *corev1.Node) []requirements.Taint {
	cordon := cluster.CordonTaint()
	if !n.Spec.Unschedulable && !slices.Contains(taints, cordon) {
		return taints
	}
	others := slices.DeleteFunc(taints, func(t requirements.Taint) bool { return t == cordon })
	return slices.Insert(others, 0, cordon)
}

// lastingTaints returns the taints that are not expected to be removed while the node becomes ready.
func lastingTaints(taints, startup []corev1.Taint) []requirements.Taint {
	var lasting []corev1.Taint
	for i := range taints {
		t := &taints[i]
		isStartup := slices.ContainsFunc(startup, func(s corev1.Taint) bool { return s.MatchTaint(t) })
		if !isStartup && !IsEphemeral(t) {
			lasting = append(lasting, *t)
		}
	}
	return conversion.Taints(lasting)
}

// IsEphemeral reports whether Kubernetes, the cloud provider or Joiner puts the taint on new nodes only for a while.
func IsEphemeral(t *corev1.Taint) bool {
	switch t.Key {
	case corev1.TaintNodeNotReady:
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	case corev1.TaintNodeUnreachable:
		return t.Effect == corev1.TaintEffectNoSchedule
	case "node.cloudprovider.kubernetes.io/uninitialized":
		return t.Effect == corev1.TaintEffectNoSchedule && t.Value == "true"
	case karpv1.TaintUnregistered:
		return t.Effect == corev1.TaintEffectNoExecute
	case conversion.TaintNominations:
		return true
	}
	return strings.HasPrefix(t.Key, "readiness.k8s.io/")
}

// addUsage counts the pod's requests, volumes and host ports on the node. A volume that several pods of the node use is
// counted once.
func (n *nodeView) addUsage(b *builder, pod *corev1.Pod, requests resources.Amounts, ports []cluster.HostPort) {
	if all := b.references.Volumes.Attachments(pod); len(all) > 0 {
		added := slices.DeleteFunc(slices.Clone(all), func(a conversion.Attachment) bool { return n.attached[a] })
		if n.attached == nil {
			n.attached = map[conversion.Attachment]bool{}
		}
		for _, a := range added {
			n.attached[a] = true
		}
		requests = conversion.AddAttachments(requests, all, added)
	}
	n.value.Requested = n.value.Requested.Add(requests)
	n.value.HostPorts = conversion.MergeHostPorts(n.value.HostPorts, ports)
}

// limitVolumes sets the node's attach limits to those that its CSI drivers report. If the EBS driver of a new node has
// not reported yet, limitVolumes takes the known limit of the instance type.
func (n *nodeView) limitVolumes(csiNode *storagev1.CSINode, market catalog.Market) {
	v, reported := &n.value, conversion.AttachLimits(csiNode)
	for _, e := range reported.Extended {
		v.Allocatable = v.Allocatable.With(e.Name, e.Value)
	}
	if v.Claim == "" || v.Initialized || reported.Of(conversion.AttachablePrefix+conversion.DriverEBS) != 0 {
		return
	}
	if limit := knownAttachLimit(n, market); limit > 0 {
		v.Allocatable = v.Allocatable.With(conversion.AttachablePrefix+conversion.DriverEBS, limit)
	}
}

// knownAttachLimit returns how many volumes the node's instance type can attach. For a claim without an instance, it
// returns the lowest number among the types that the claim lists. 0 means unknown.
func knownAttachLimit(n *nodeView, market catalog.Market) int64 {
	if n.value.ProviderID == "" {
		lowest := int64(0)
		for i, t := range offeredTypes(n.claim, market) {
			if i == 0 || t.Volumes < lowest {
				lowest = t.Volumes
			}
		}
		return lowest
	}
	types := market[n.value.NodeClass].Types
	i, ok := slices.BinarySearchFunc(types, n.value.Labels[catalog.LabelInstanceType], byTypeName)
	if !ok {
		return 0
	}
	return types[i].Volumes
}
