package lab_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Names of objects that newTestbed creates, and that pods refer to.
const (
	overheadClass = "lab-overhead" // a RuntimeClass with overhead
	urgentClass   = "lab-urgent"   // a PriorityClass whose pods are scheduled first and do not preempt others
)

func (w *randomWorld) drawPod(app int) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespaces[0].Name,
			Labels:    map[string]string{"app": fmt.Sprintf("app-%d", app), versionLabel: pick(w, "1", "2")},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "pause"}}},
	}
	if w.oneIn(4) {
		p.Namespace = w.namespaces[1].Name
	}
	if w.oneIn(5) {
		p.Spec.PriorityClassName = urgentClass
	}
	w.drawRequests(&p.Spec)
	w.drawNodeRequirements(&p.Spec)
	if w.oneIn(3) {
		p.Spec.Tolerations = w.drawTolerations()
	}
	if w.oneIn(9) {
		w.drawPort(&p.Spec)
	}
	w.drawPodRules(p, app)
	return p
}

func (w *randomWorld) drawSize() corev1.ResourceList {
	out := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(pick(w, "50m", "100m", "250m", "500m", "700m", "1", "1500m", "2")),
		corev1.ResourceMemory: resource.MustParse(pick(w, "64Mi", "128Mi", "500M", "1Gi", "2Gi", "3Gi")),
	}
	if w.oneIn(10) {
		out[corev1.ResourceEphemeralStorage] = resource.MustParse(pick(w, "1Gi", "9Gi"))
	}
	return out
}

// drawRequests gives a pod resource requests, in any of the forms that Kubernetes allows.
func (w *randomWorld) drawRequests(spec *corev1.PodSpec) {
	main := &spec.Containers[0].Resources
	main.Requests = w.drawSize()
	if w.oneIn(10) {
		main.Requests, main.Limits = nil, main.Requests // the requests default to the limits
	}
	if w.oneIn(12) {
		main.Requests, main.Limits = nil, nil
	}
	if w.oneIn(15) {
		main.Limits = corev1.ResourceList{gpuResource: resource.MustParse("1")}
	}
	if w.oneIn(6) {
		spec.InitContainers = append(spec.InitContainers, corev1.Container{Name: "init", Image: "pause",
			Resources: corev1.ResourceRequirements{Requests: w.drawSize()}})
	}
	if w.oneIn(8) {
		sidecar := corev1.Container{Name: "sidecar", Image: "pause", RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(pick(w, "100m", "300m"))}}}
		if w.oneIn(2) {
			spec.InitContainers = append(spec.InitContainers, sidecar)
		} else {
			spec.InitContainers = append([]corev1.Container{sidecar}, spec.InitContainers...)
		}
	}
	if w.oneIn(12) {
		spec.Containers = append(spec.Containers, corev1.Container{Name: "second", Image: "pause",
			Resources: corev1.ResourceRequirements{Requests: w.drawSize()}})
	}
	if len(spec.Containers) == 1 && w.oneIn(10) {
		// The API server demands at least the sum of the containers' requests.
		spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("2500m"), corev1.ResourceMemory: resource.MustParse("6500Mi"),
		}}
	}
	if w.oneIn(10) {
		spec.RuntimeClassName = new(overheadClass)
	}
}

func (w *randomWorld) drawPort(spec *corev1.PodSpec) {
	port := corev1.ContainerPort{
		ContainerPort: 8000, HostPort: int32(8080 + w.IntN(3)), Protocol: pick(w, corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP),
		HostIP: pick(w, "", "", "127.0.0.1"),
	}
	if w.oneIn(4) {
		spec.HostNetwork = true
		port.ContainerPort = port.HostPort
		port.HostIP = ""
	}
	spec.Containers[0].Ports = []corev1.ContainerPort{port}
}

func (w *randomWorld) drawTolerations() []corev1.Toleration {
	switch w.IntN(5) {
	case 0:
		return []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	case 1:
		return []corev1.Toleration{{Key: dedicatedTaint, Operator: corev1.TolerationOpEqual, Value: pick(w, worldTeams()...)}}
	case 2:
		return []corev1.Toleration{
			{Key: dedicatedTaint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
			{Key: dedicatedTaint, Operator: corev1.TolerationOpEqual, Value: "red", Effect: corev1.TaintEffectNoExecute},
		}
	}
	return []corev1.Toleration{{Key: dedicatedTaint, Operator: corev1.TolerationOpExists}}
}

// drawNodeRequirements restricts the nodes on which a pod can run. Most pods get no restriction.
func (w *randomWorld) drawNodeRequirements(spec *corev1.PodSpec) {
	if w.oneIn(8) {
		key, values := w.drawKey()
		spec.NodeSelector = map[string]string{key: pick(w, values...)}
	}
	var affinity corev1.NodeAffinity
	if w.oneIn(6) {
		var terms []corev1.NodeSelectorTerm
		for range 1 + w.IntN(3) {
			terms = append(terms, w.drawNodeSelectorTerm())
		}
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
	}
	if w.oneIn(8) {
		key, values := w.drawKey()
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: int32(1 + w.IntN(100)),
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key,
				Operator: corev1.NodeSelectorOpIn, Values: some(w, values)}}}}}
	}
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution != nil || affinity.PreferredDuringSchedulingIgnoredDuringExecution != nil {
		spec.Affinity = &corev1.Affinity{NodeAffinity: &affinity}
	}
}

// drawKey returns the key of a node label and possible values.
func (w *randomWorld) drawKey() (string, []string) {
	switch w.IntN(12) {
	case 0, 1, 2, 9, 10: // zones are the most frequent
		return catalog.LabelZone, worldZones()
	case 3:
		return catalog.LabelArch, []string{"amd64", "arm64"}
	case 4:
		return teamLabel, worldTeams()
	case 5:
		return tierLabel, []string{"front", "back"}
	case 6:
		return catalog.LabelInstanceType, []string{"m5.large", "c5.xlarge", "m6g.large", "t3.medium"}
	case 7:
		if len(w.nodes) > 0 && w.oneIn(2) {
			return corev1.LabelHostname, []string{pick(w, w.nodes...).Name}
		}
	}
	return catalog.LabelCapacityType, []string{catalog.OnDemand, catalog.Spot} // for 8, 11, and often 7
}

func (w *randomWorld) drawNodeSelectorTerm() corev1.NodeSelectorTerm {
	var out corev1.NodeSelectorTerm
	if w.oneIn(25) {
		return out // no node matches an empty term
	}
	if len(w.nodes) > 0 && w.oneIn(12) {
		out.MatchFields = []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Values: []string{pick(w, w.nodes...).Name},
			Operator: pick(w, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn)}}
	}
	for range 1 + w.IntN(2) {
		key, values := w.drawKey()
		r := corev1.NodeSelectorRequirement{Key: key, Operator: pick(w, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpIn,
			corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist)}
		switch r.Operator {
		case corev1.NodeSelectorOpIn:
			r.Values = some(w, values)
		case corev1.NodeSelectorOpNotIn:
			r.Values = []string{pick(w, values...)}
		case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		}
		if w.oneIn(8) {
			r = corev1.NodeSelectorRequirement{Key: "karpenter.k8s.aws/instance-cpu", Values: []string{pick(w, "1", "2", "3", "4")},
				Operator: pick(w, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt)}
		}
		out.MatchExpressions = append(out.MatchExpressions, r)
	}
	return out
}

// drawPodRules adds spread constraints, affinity and anti-affinity, mostly about the pods of app number app.
func (w *randomWorld) drawPodRules(p *corev1.Pod, app int) {
	if w.oneIn(3) {
		keys := []string{catalog.LabelZone, corev1.LabelHostname, pick(w, catalog.LabelCapacityType, teamLabel, catalog.LabelInstanceType)}
		w.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		for _, key := range keys[:1+w.IntN(2)] {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, w.drawSpread(app, key))
		}
	}
	hasAffinity, hasAntiAffinity := w.oneIn(7), w.oneIn(5)
	if !hasAffinity && !hasAntiAffinity {
		return
	}
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	if hasAffinity {
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{w.drawPodAffinityTerm(app)}}
	}
	if hasAntiAffinity {
		p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{w.drawPodAffinityTerm(app)}}
	}
}

func (w *randomWorld) drawSpread(app int, key string) corev1.TopologySpreadConstraint {
	s := corev1.TopologySpreadConstraint{
		MaxSkew: int32(1 + w.IntN(2)), TopologyKey: key, LabelSelector: w.drawSelector(app),
		WhenUnsatisfiable: pick(w, corev1.DoNotSchedule, corev1.DoNotSchedule, corev1.DoNotSchedule, corev1.ScheduleAnyway),
	}
	if s.WhenUnsatisfiable == corev1.DoNotSchedule && w.oneIn(4) {
		s.MinDomains = new(int32(1 + w.IntN(4)))
	}
	if w.oneIn(5) {
		s.MatchLabelKeys = []string{versionLabel}
	}
	if w.oneIn(6) {
		s.NodeAffinityPolicy = new(corev1.NodeInclusionPolicyIgnore)
	}
	if w.oneIn(5) {
		s.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor)
	}
	return s
}

// drawSelector returns a selector of the app's pods, sometimes of another app's pods or of the pods of both apps.
func (w *randomWorld) drawSelector(app int) *metav1.LabelSelector {
	other := fmt.Sprintf("app-%d", w.IntN(8))
	switch w.IntN(8) {
	case 0:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": other}}
	case 1:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{fmt.Sprintf("app-%d", app), other}}}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("app-%d", app)}}
}

// drawPodAffinityTerm returns a term about the pods of an app, or about those of a DaemonSet.
func (w *randomWorld) drawPodAffinityTerm(app int) corev1.PodAffinityTerm {
	if len(w.daemons) > 0 && w.oneIn(3) {
		// The topology key is the host name: for zones, the plan ignores the DaemonSet pods of other nodes.
		return corev1.PodAffinityTerm{
			TopologyKey: corev1.LabelHostname, NamespaceSelector: &metav1.LabelSelector{},
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"daemon": fmt.Sprint(w.IntN(len(w.daemons)))}},
		}
	}
	t := corev1.PodAffinityTerm{
		TopologyKey:   pick(w, catalog.LabelZone, catalog.LabelZone, corev1.LabelHostname, corev1.LabelHostname, teamLabel),
		LabelSelector: w.drawSelector(app),
	}
	switch w.IntN(8) {
	case 0:
		t.NamespaceSelector = &metav1.LabelSelector{}
	case 1:
		t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"side": "left"}}
	case 2:
		t.Namespaces = []string{w.namespaces[0].Name, w.namespaces[1].Name}
	}
	switch w.IntN(8) {
	case 0:
		t.MatchLabelKeys = []string{versionLabel}
	case 1:
		t.MismatchLabelKeys = []string{versionLabel}
	}
	return t
}

// drawVolume adds a volume in one zone to the pod template of a workload.
func (w *randomWorld) drawVolume(template *corev1.Pod) {
	name := fmt.Sprintf("%s-volume-%d", w.name, len(w.volumes))
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: modes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: ebsDriver, VolumeHandle: name}},
		ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: template.Namespace, Name: name},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: catalog.LabelZone, Operator: corev1.NodeSelectorOpIn,
				Values: []string{pick(w, worldZones()...)}}}}}}},
	}}
	w.volumes = append(w.volumes, v)
	w.claims = append(w.claims, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, VolumeName: name, StorageClassName: new(""),
			Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	})
	template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
}
