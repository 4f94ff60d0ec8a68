package lab_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// randomWorld is a random cluster, derived from a seed, with its objects as a user would write them.
type randomWorld struct {
	*rand.Rand
	name string // name of the world; the names of its cluster-wide objects start with it

	market     catalog.Market
	class      *awsv1.EC2NodeClass
	pools      []*karpenterv1.NodePool
	namespaces []*corev1.Namespace
	nodes      []*corev1.Node
	daemons    []*appsv1.DaemonSet
	volumes    []*corev1.PersistentVolume
	claims     []*corev1.PersistentVolumeClaim // each claim refers to the volume with the same index
	running    []*corev1.Pod                   // pods that are bound to nodes
	ending     map[string]bool                 // running pods that are being deleted, as "namespace/name"
	pending    []*corev1.Pod

	mostExpensive bool // EC2 launches the most expensive offering that the plan allows; otherwise the cheapest
}

const (
	teamLabel      = "example.com/team"
	tierLabel      = "example.com/tier"
	versionLabel   = "version"
	dedicatedTaint = "example.com/dedicated"
	gpuResource    = "nvidia.com/gpu"
	ebsDriver      = "ebs.csi.aws.com"
)

func worldZones() []string { return []string{"us-east-1a", "us-east-1b", "us-east-1c"} }
func worldTeams() []string { return []string{"red", "green", "blue"} }

// draw returns the world of a seed. The world's market has a few of the offered instance types.
func draw(seed uint64, offered catalog.Catalog) *randomWorld {
	w := &randomWorld{Rand: rand.New(rand.NewPCG(seed, 36 /* arbitrary */)), name: fmt.Sprintf("w%d", seed), ending: map[string]bool{}}
	w.mostExpensive = w.oneIn(3)
	w.drawMarket(offered)
	for i := range 2 {
		w.namespaces = append(w.namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%c", w.name, 'a'+i), Labels: map[string]string{"side": pick(w, "left", "right")},
		}})
	}
	for i := range 1 + w.IntN(3) {
		w.pools = append(w.pools, w.drawPool(i))
	}
	for i := range w.IntN(5) {
		w.nodes = append(w.nodes, w.drawNode(i))
	}
	for i := range w.IntN(3) {
		w.daemons = append(w.daemons, w.drawDaemon(i))
	}
	for i := range len(w.nodes) {
		w.drawRunning(i)
	}
	for app := range 2 + w.IntN(6) {
		w.drawWorkload(app)
	}
	return w
}

func (w *randomWorld) oneIn(n int) bool { return w.IntN(n) == 0 }

func pick[T any](w *randomWorld, choices ...T) T { return choices[w.IntN(len(choices))] }

// some returns one or more of the choices, in the given order.
func some[T any](w *randomWorld, choices []T) []T {
	var out []T
	for _, c := range choices {
		if w.oneIn(2) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return []T{pick(w, choices...)}
	}
	return out
}

// drawMarket offers few and small types, so that plans need many instances. Some offerings are unavailable.
func (w *randomWorld) drawMarket(offered catalog.Catalog) {
	out := catalog.Catalog{Region: offered.Region}
	for _, t := range offered.Types {
		if !slices.Contains([]string{
			"c5.large", "c5.xlarge", "c7g.large", "g4dn.xlarge", "m5.large", "m5.xlarge", "m6g.large", "r5.large", "t3.medium", "t3.small",
		}, t.Name) {
			continue
		}
		var offerings []catalog.Offering
		for _, o := range t.Offerings {
			if slices.Contains(worldZones(), o.Zone) {
				o.Available = !w.oneIn(8)
				offerings = append(offerings, o)
			}
		}
		out.Types = append(out.Types, t.WithOfferings(offerings))
	}
	w.class = &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 1}}
	w.class.Status.Conditions = []metav1.Condition{{Type: karpenterv1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	w.market = catalog.Market{w.class.Name: out}
}

func (w *randomWorld) drawPool(i int) *karpenterv1.NodePool {
	p := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-pool-%d", w.name, i)}}
	spec := &p.Spec.Template.Spec
	spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: w.class.Name}
	// require adds a requirement: In, or sometimes NotIn.
	require := func(key string, values ...string) {
		operator := corev1.NodeSelectorOpIn
		if len(values) == 1 && w.oneIn(4) {
			operator = corev1.NodeSelectorOpNotIn
		}
		spec.Requirements = append(spec.Requirements, karpenterv1.Requirement{Key: key, Operator: operator, Values: values})
	}
	if !w.oneIn(3) {
		require(catalog.LabelCapacityType, catalog.OnDemand)
	}
	if w.oneIn(3) {
		require(catalog.LabelZone, some(w, worldZones())...)
	}
	if w.oneIn(3) {
		require(catalog.LabelArch, pick(w, "amd64", "arm64"))
	}
	if w.oneIn(4) {
		spec.Requirements = append(spec.Requirements,
			karpenterv1.Requirement{Key: teamLabel, Operator: corev1.NodeSelectorOpIn, Values: some(w, worldTeams())})
	}
	if w.oneIn(8) {
		spec.Requirements = append(spec.Requirements,
			karpenterv1.Requirement{Key: "karpenter.k8s.aws/instance-cpu", Operator: corev1.NodeSelectorOpLt, Values: []string{"4"}})
	}
	if len(spec.Requirements) == 0 {
		require(catalog.LabelOS, "linux")
		spec.Requirements[0].Operator = corev1.NodeSelectorOpIn // require may have drawn NotIn
	}
	if w.oneIn(3) {
		p.Spec.Template.Labels = map[string]string{tierLabel: pick(w, "front", "back")}
	}
	if i > 0 && w.oneIn(3) {
		spec.Taints = []corev1.Taint{w.drawTaint()}
	}
	if w.oneIn(5) {
		spec.StartupTaints = []corev1.Taint{{Key: "example.com/warming", Effect: corev1.TaintEffectNoSchedule}}
	}
	if w.oneIn(5) {
		p.Spec.Weight = new(int32(1 + w.IntN(100)))
	}
	if w.oneIn(10) {
		limited := pick(w, corev1.ResourceCPU, karpenterv1.ResourceNodes)
		p.Spec.Limits = corev1.ResourceList{limited: resource.MustParse(fmt.Sprint(1 + w.IntN(12)))}
	}
	return p
}

func (w *randomWorld) drawTaint() corev1.Taint {
	return corev1.Taint{
		Key: dedicatedTaint, Value: pick(w, worldTeams()...),
		Effect: pick(w, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute,
			corev1.TaintEffectPreferNoSchedule),
	}
}

// drawNode returns an existing node that belongs to a node group, not to a NodePool.
func (w *randomWorld) drawNode(i int) *corev1.Node {
	name := fmt.Sprintf("%s-node-%d", w.name, i)
	size := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(pick(w, "2", "3", "4")),
		corev1.ResourceMemory: resource.MustParse(pick(w, "4Gi", "8Gi")), corev1.ResourceEphemeralStorage: resource.MustParse("20Gi"),
		corev1.ResourcePods: resource.MustParse(pick(w, "12", "29")),
	}
	zone := pick(w, worldZones()...)
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, catalog.LabelOS: "linux", catalog.LabelArch: pick(w, "amd64", "amd64", "arm64"), catalog.LabelZone: zone,
		}},
		Spec:   corev1.NodeSpec{ProviderID: fmt.Sprintf("aws:///%s/i-%s-%d", zone, w.name, i)},
		Status: corev1.NodeStatus{Capacity: size, Allocatable: size},
	}
	if w.oneIn(12) {
		delete(n.Labels, catalog.LabelZone)
	}
	if w.oneIn(3) {
		n.Labels[teamLabel] = pick(w, worldTeams()...)
	}
	if w.oneIn(4) {
		n.Labels[tierLabel] = pick(w, "front", "back")
	}
	if w.oneIn(2) {
		n.Labels[catalog.LabelCapacityType] = pick(w, catalog.OnDemand, catalog.Spot)
	}
	if w.oneIn(5) {
		n.Spec.Taints = []corev1.Taint{w.drawTaint()}
	}
	n.Spec.Unschedulable = w.oneIn(5)
	return n
}

// drawDaemon returns a DaemonSet whose pods leave room for other pods on every node.
func (w *randomWorld) drawDaemon(i int) *appsv1.DaemonSet {
	labels := map[string]string{"daemon": fmt.Sprint(i)}
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespaces[0].Name, Name: fmt.Sprintf("daemon-%d", i)}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	spec := &d.Spec.Template.Spec
	spec.Containers = []corev1.Container{{Name: "main", Image: "pause", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(pick(w, "50m", "200m")), corev1.ResourceMemory: resource.MustParse(pick(w, "64Mi", "300Mi")),
	}}}}
	if w.oneIn(2) {
		spec.Tolerations = w.drawTolerations()
	}
	if w.oneIn(3) {
		w.drawNodeRequirements(spec)
	}
	if w.oneIn(3) {
		spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: int32(8080 + i), Protocol: corev1.ProtocolTCP}}
	}
	if w.oneIn(4) {
		if spec.Affinity == nil {
			spec.Affinity = &corev1.Affinity{}
		}
		spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, NamespaceSelector: &metav1.LabelSelector{},
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("app-%d", w.IntN(4))}},
		}}}
	}
	return d
}

// drawRunning adds a few small running pods on the i-th node.
func (w *randomWorld) drawRunning(i int) {
	n := w.nodes[i]
	for k := range w.IntN(5) {
		p := w.drawPod(w.IntN(8))
		p.Name = fmt.Sprintf("running-%d-%d", i, k)
		p.Spec.NodeName = n.Name
		// Remove what this node may not satisfy.
		p.Spec.TopologySpreadConstraints, p.Spec.NodeSelector, p.Spec.Volumes, p.Spec.Resources = nil, nil, nil, nil
		if a := p.Spec.Affinity; a != nil {
			a.NodeAffinity, a.PodAffinity = nil, nil
		}
		p.Spec.InitContainers = nil
		p.Spec.Containers[0].Ports = nil
		p.Spec.HostNetwork = false
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse(pick(w, "50m", "200m", "400m")),
			corev1.ResourceMemory: resource.MustParse(pick(w, "64Mi", "512Mi")),
		}}
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} // otherwise taints would evict the pod
		if w.oneIn(6) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: int32(8090 + k), Protocol: corev1.ProtocolTCP}}
		}
		w.running = append(w.running, p)
		if w.oneIn(8) {
			w.ending[idOf(p)] = true
		}
	}
}

// drawWorkload adds equal pending pods, like those of a Deployment.
func (w *randomWorld) drawWorkload(app int) {
	template := w.drawPod(app)
	if w.oneIn(10) {
		w.drawVolume(template)
	}
	for i := range 1 + w.IntN(9) {
		p := template.DeepCopy()
		p.Name = fmt.Sprintf("app-%d-%d", app, i)
		w.pending = append(w.pending, p)
	}
}
