package snapshot

import (
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// TestEachChangeIsSeen takes a snapshot, makes one change, and takes a second snapshot. The second must differ from the
// first, and must equal Objects.Snapshot of the changed objects.
func TestEachChangeIsSeen(t *testing.T) {
	t.Parallel()
	defaults, err := conversion.ReadDefaultSpread(defaultSpread)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range smallClusterChanges() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(View{DefaultSpread: defaults})
			w.send(smallCluster())
			w.view.Market = marketWithCPU(2000)
			before := w.state.snapshot(w.view.Now, w.view.Market, nil)
			inLedger := change(w)
			got := w.state.snapshot(w.view.Now, w.view.Market, inLedger)
			if want := w.objects(inLedger).Snapshot(w.view); !reflect.DeepEqual(got, want) {
				t.Errorf("the snapshot of the state differs from that of its objects (-want +got):\n%s",
					snapshotDiff(want, got))
			}
			if got.Taken = before.Taken; reflect.DeepEqual(got, before) {
				t.Error("the change does not affect the snapshot")
			}
		})
	}
}

// edit changes a copy of the object, and sends the copy to the state. name is "namespace/name".
func edit[T client.Object](w *stateTester, name string, change func(T)) {
	var like T
	key := kubeclient.KindOf(like) + " " + name
	o := w.all[key].DeepCopyObject().(T)
	change(o)
	w.all[key] = o
	w.feeds[reflect.TypeOf(o)].put(o)
}

// drop deletes the object. name is "namespace/name".
func drop[T client.Object](w *stateTester, name string) {
	var like T
	key := kubeclient.KindOf(like) + " " + name
	w.feeds[reflect.TypeOf(like)].drop(w.all[key])
	delete(w.all, key)
}

// change makes one change. It returns the claims of the ledger that the informers do not have yet.
type change = func(*stateTester) []*karpv1.NodeClaim

// smallClusterChanges returns changes of smallCluster, by name.
func smallClusterChanges() map[string]change {
	out := map[string]change{
		"the protection of a pod expires": func(w *stateTester) []*karpv1.NodeClaim {
			w.view.Now = kubetest.Noon.Add(2 * time.Minute)
			return nil
		},
		"the plan period of a claim ends": func(w *stateTester) []*karpv1.NodeClaim {
			w.view.Now = kubetest.Noon.Add(bindTimeout + time.Second)
			return nil
		},
		"a type is larger": func(w *stateTester) []*karpv1.NodeClaim {
			w.view.Market = marketWithCPU(4000)
			return nil
		},
		"a type is larger for one pool": func(w *stateTester) []*karpv1.NodeClaim {
			c := w.view.Market["default"]
			c.Pools = map[string][]catalog.Type{"general": marketWithCPU(4000)["default"].Types}
			w.view.Market = catalog.Market{"default": c}
			return nil
		},
		"the ledger has a claim": func(*stateTester) []*karpv1.NodeClaim { return []*karpv1.NodeClaim{unlaunchedClaim("late")} },
		"a claim is recreated and is the younger of two with one Node": func(w *stateTester) []*karpv1.NodeClaim {
			edit(w, "/k0", func(c *karpv1.NodeClaim) { c.UID, c.CreationTimestamp.Time = "k0-again", kubetest.Noon })
			return nil
		},
	}
	for name, apply := range objectChanges() {
		out[name] = func(w *stateTester) []*karpv1.NodeClaim {
			apply(w)
			return nil
		}
	}
	return out
}

func objectChanges() map[string]func(*stateTester) {
	return map[string]func(*stateTester){
		"a pod is bound":                 func(w *stateTester) { edit(w, "a/web-1", func(p *corev1.Pod) { p.Spec.NodeName = "n0" }) },
		"a pod is bound to another node": func(w *stateTester) { edit(w, "a/web-0", func(p *corev1.Pod) { p.Spec.NodeName = "n2" }) },
		"a pod ends":                     func(w *stateTester) { edit(w, "a/web-0", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }) },
		"a pod is gone":                  func(w *stateTester) { drop[*corev1.Pod](w, "a/web-0") },
		"a pending pod is gone":          func(w *stateTester) { drop[*corev1.Pod](w, "a/web-1") },
		"a node is tainted": func(w *stateTester) {
			edit(w, "/n0", func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: karpv1.TaintDisrupted, Effect: corev1.TaintEffectNoSchedule}}
			})
		},
		"a node has another instance": func(w *stateTester) {
			edit(w, "/n0", func(n *corev1.Node) { n.Spec.ProviderID = "aws:///us-east-1a/i-9" })
		},
		"a node is gone": func(w *stateTester) { drop[*corev1.Node](w, "/n0") },
		"a claim gets an instance": func(w *stateTester) {
			edit(w, "/k2", func(c *karpv1.NodeClaim) { c.Status.ProviderID = "aws:///us-east-1a/i-7" })
		},
		"a claim has the provider ID of a Node that is not registered with it": func(w *stateTester) {
			edit(w, "/k2", func(c *karpv1.NodeClaim) { c.Status.ProviderID = "aws:///us-east-1a/i-2" })
		},
		"a claim is registered with a Node": func(w *stateTester) { edit(w, "/k3", func(c *karpv1.NodeClaim) { c.Status.NodeName = "n3" }) },
		"a claim is gone":                   func(w *stateTester) { drop[*karpv1.NodeClaim](w, "/k2") },
		"a claim was created for another pod": func(w *stateTester) {
			edit(w, "/k2", func(c *karpv1.NodeClaim) { c.Annotations[conversion.AnnotationPods] = "a/disk-1" })
		},
		"a volume claim is bound": func(w *stateTester) {
			edit(w, "a/c1", func(c *corev1.PersistentVolumeClaim) {
				c.Spec.VolumeName, c.Annotations = "v1", map[string]string{conversion.AnnotationBound: "yes"}
			})
		},
		"a volume claim is gone": func(w *stateTester) { drop[*corev1.PersistentVolumeClaim](w, "a/c1") },
		"a volume claim is for one pod": func(w *stateTester) {
			edit(w, "a/c1", func(c *corev1.PersistentVolumeClaim) {
				c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
			})
		},
		"the single user of a volume claim is gone": func(w *stateTester) { drop[*corev1.Pod](w, "a/single-0") },
		"a volume is in another zone": func(w *stateTester) {
			edit(w, "/v0", func(v *corev1.PersistentVolume) { v.Labels[catalog.LabelZone] = "us-east-1b" })
		},
		"a volume is gone": func(w *stateTester) { drop[*corev1.PersistentVolume](w, "/v0") },
		"a storage class is for a zone": func(w *stateTester) {
			edit(w, "/s0", func(c *storagev1.StorageClass) {
				c.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
					{Key: catalog.LabelZone, Values: []string{"us-east-1a"}}}}}
			})
		},
		"a storage class is gone": func(w *stateTester) { drop[*storagev1.StorageClass](w, "/s0") },
		"a node takes more volumes": func(w *stateTester) {
			edit(w, "/n0", func(n *storagev1.CSINode) { n.Spec.Drivers[0].Allocatable.Count = ptr.To(int32(9)) })
		},
		"a node limits another driver": func(w *stateTester) {
			edit(w, "/n0", func(n *storagev1.CSINode) { n.Spec.Drivers[0].Name = "fs.example.com" })
		},
		"a node's drivers are not known": func(w *stateTester) { drop[*storagev1.CSINode](w, "/n0") },
		"a namespace has other labels": func(w *stateTester) {
			edit(w, "/b",
				func(n *corev1.Namespace) { n.Labels = map[string]string{"team": "x"} })
		},
		"a namespace is gone": func(w *stateTester) { drop[*corev1.Namespace](w, "/a") },
		"a budget allows nothing": func(w *stateTester) {
			edit(w, "a/b0", func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(0)) })
		},
		"a DaemonSet requests more": func(w *stateTester) {
			edit(w, "kube-system/d0", func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Containers[0] = kubetest.Container("70m", "70Mi") })
		},
		"a DaemonSet is gone":              func(w *stateTester) { drop[*appsv1.DaemonSet](w, "kube-system/d1") },
		"a DaemonSet's newest pod is gone": func(w *stateTester) { drop[*corev1.Pod](w, "kube-system/d1-new") },
		"a pool has a limit": func(w *stateTester) {
			edit(w, "/general", func(p *karpv1.NodePool) { p.Spec.Limits = corev1.ResourceList{"cpu": resource.MustParse("8")} })
		},
		"a node class is gone": func(w *stateTester) { drop[*awsv1.EC2NodeClass](w, "/default") },
		"a Service does not select a pod any more": func(w *stateTester) {
			edit(w, "a/svc", func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "none"} })
		},
		"a Service selects one pod more": func(w *stateTester) {
			edit(w, "a/idle", func(s *corev1.Service) { s.Spec.Selector = map[string]string{"tier": "front"} })
		},
		"a Service is gone": func(w *stateTester) { drop[*corev1.Service](w, "a/svc") },
		"a ReplicaSet has another selector": func(w *stateTester) {
			edit(w, "a/web-1", func(r *appsv1.ReplicaSet) { r.Spec.Selector.MatchLabels["tier"] = "x" })
		},
		"a ReplicaSet is gone": func(w *stateTester) { drop[*appsv1.ReplicaSet](w, "a/web-1") },
		"a StatefulSet has another selector": func(w *stateTester) {
			edit(w, "a/disk", func(r *appsv1.StatefulSet) { r.Spec.Selector.MatchLabels["tier"] = "x" })
		},
		"a StatefulSet is gone": func(w *stateTester) { drop[*appsv1.StatefulSet](w, "a/disk") },
		"a ReplicationController has another selector": func(w *stateTester) {
			edit(w, "a/old", func(r *corev1.ReplicationController) { r.Spec.Selector["tier"] = "x" })
		},
		"a ReplicationController is gone": func(w *stateTester) { drop[*corev1.ReplicationController](w, "a/old") },
	}
}

// smallCluster returns a small cluster whose objects depend on each other, so that each change has an effect.
func smallCluster() Objects {
	podOn := func(name, node string, more func(*corev1.Pod)) *corev1.Pod {
		pod := kubetest.PendingPod(name)
		pod.Namespace, pod.Spec.NodeName = "a", node
		pod.OwnerReferences[0].Kind, pod.OwnerReferences[0].Name = "ReplicaSet", "web-1"
		if more != nil {
			more(pod)
		}
		return pod
	}
	ownedBy := func(kind, name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.OwnerReferences = owner(kind, name) }
	}
	using := func(claim string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = owner("StatefulSet", "disk")
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
		}
	}
	daemon := func(name string, age time.Duration, cpu string) *corev1.Pod {
		return podOn(name, "n0", func(p *corev1.Pod) {
			p.Namespace, p.OwnerReferences = "kube-system", owner("DaemonSet", "d1")
			p.CreationTimestamp.Time = kubetest.Noon.Add(-age)
			p.Spec.Containers = []corev1.Container{kubetest.Container(cpu, "32Mi")}
		})
	}
	o := Objects{
		Pods: []*corev1.Pod{
			podOn("web-0", "n0", nil), podOn("web-1", "", nil), podOn("disk-0", "n0", using("c0")), podOn("disk-1", "", using("c1")),
			podOn("disk-2", "", using("c1")), podOn("single-0", "n2", using("c2")), podOn("single-1", "", using("c2")),
			podOn("free-0", "n2", using("fs")), podOn("old-0", "", ownedBy("ReplicationController", "old")),
			// n1 is being deleted.
			podOn("leaves", "n1", nil), podOn("stays", "n1", func(p *corev1.Pod) {
				p.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "1m"}
				p.Status.StartTime = &metav1.Time{Time: kubetest.Noon}
			}),
			// far avoids the pods of namespaces without the label team.
			podOn("far", "", func(p *corev1.Pod) {
				p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
						TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{},
						NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
							{Key: "team", Operator: metav1.LabelSelectorOpDoesNotExist}}},
					}}}}
			}),
			podOn("served", "", func(p *corev1.Pod) {
				p.OwnerReferences, p.Labels = owner("Job", "once"), map[string]string{"app": "shop", "tier": "front"}
			}),
			podOn("awaited", "", nil), podOn("settled", "", nil), // planned for k2 and k4
			daemon("d1-old", 2*time.Hour, "10m"), daemon("d1-new", time.Hour, "20m"),
		},
		Pools:   []*karpv1.NodePool{kubetest.GeneralPool()},
		Classes: []*awsv1.EC2NodeClass{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}},
		Budgets: []*policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b0"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				Selector: &metav1.LabelSelector{}, MaxUnavailable: ptr.To(intstr.FromInt32(1))}}},
		Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}},
		DaemonSets: uniformCluster(0, 0, 0).DaemonSets[:2],
	}
	o.DaemonSets[0].Name, o.DaemonSets[0].UID = "d0", "d0"
	o.DaemonSets[1].Name, o.DaemonSets[1].UID = "d1", types.UID("u1-kube-system"+"d1") // as in owner
	addSmallClusterNodes(&o)
	addSmallClusterVolumes(&o)
	addSmallClusterGroups(&o)
	return o
}

// addSmallClusterNodes adds the Nodes n0 with the claim k0; n1, which is being deleted, with the claim k1; n2 without a
// claim; n3 without a claim and without a provider ID. It also adds claims without a Node: k2 without an instance, k3
// with an instance, and k4, which has just become ready. k5 is a second claim for n0.
func addSmallClusterNodes(o *Objects) {
	for i, id := range []string{"aws:///us-east-1a/i-0", "aws:///us-east-1a/i-1", "aws:///us-east-1a/i-2", ""} {
		n := uniformCluster(0, 1, 0).Nodes[0]
		n.Name, n.Spec.ProviderID = "n"+string(rune('0'+i)), id
		n.Labels[corev1.LabelHostname] = n.Name
		o.Nodes = append(o.Nodes, n)
	}
	o.Nodes[1].DeletionTimestamp = &metav1.Time{Time: kubetest.Noon}
	claim := func(name, id string) *karpv1.NodeClaim {
		c := unlaunchedClaim(name)
		c.Status.ProviderID, c.CreationTimestamp.Time = id, kubetest.Noon.Add(-time.Hour)
		return c
	}
	ready := claim("k4", "aws:///us-east-1a/i-4")
	ready.CreationTimestamp.Time = kubetest.Noon
	ready.Annotations = map[string]string{conversion.AnnotationPods: "a/settled"}
	ready.StatusConditions().SetTrue(kubetest.Noon, karpv1.ConditionInitialized)
	second := claim("k5", o.Nodes[0].Spec.ProviderID)
	second.Status.NodeName = "n0"
	second.CreationTimestamp.Time = kubetest.Noon.Add(-time.Minute)
	o.Claims = []*karpv1.NodeClaim{
		claim("k0", o.Nodes[0].Spec.ProviderID), claim("k1", o.Nodes[1].Spec.ProviderID), unlaunchedClaim("k2"),
		claim("k3", "aws:///us-east-1a/i-gone"), ready, second,
	}
	o.Claims[0].Status.NodeName, o.Claims[1].Status.NodeName = "n0", "n1"
	o.Claims[2].Annotations = map[string]string{conversion.AnnotationPods: "a/awaited"}
}

func unlaunchedClaim(name string) *karpv1.NodeClaim {
	c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
		Labels: map[string]string{karpv1.LabelNodePool: "general"}}}
	c.CreationTimestamp.Time = kubetest.Noon
	c.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
	c.Spec.Requirements = karpv1.Requirements{{Key: catalog.LabelInstanceType, Operator: corev1.NodeSelectorOpIn,
		Values: []string{"c7g.large"}}}
	return c
}

// marketWithCPU returns a market of one type with this allocatable CPU, in millicores.
func marketWithCPU(cpu int64) catalog.Market {
	return catalog.Market{"default": {Types: []catalog.Type{{
		Name: "c7g.large", Labels: map[string]string{catalog.LabelInstanceType: "c7g.large"},
		Capacity: resources.Amounts{CPU: 4000, Memory: 8 << 30, Pods: 29}, Allocatable: resources.Amounts{CPU: cpu, Memory: 3 << 30, Pods: 29},
	}}}}
}

func addSmallClusterVolumes(o *Objects) {
	volumeClaim := func(name, class string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name},
			Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{mode}}}
	}
	bound := volumeClaim("c0", "s0", corev1.ReadWriteOnce)
	bound.Spec.VolumeName, bound.Annotations = "v0", map[string]string{conversion.AnnotationBound: "yes"}
	o.VolumeClaims = []*corev1.PersistentVolumeClaim{
		bound, volumeClaim("c1", "s0", corev1.ReadWriteMany), volumeClaim("c2", "s0", corev1.ReadWriteOncePod),
		volumeClaim("fs", "s1", corev1.ReadWriteMany),
	}
	for _, name := range []string{"v0", "v1"} {
		o.Volumes = append(o.Volumes, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{catalog.LabelZone: "us-east-1a"}},
			Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: conversion.DriverEBS, VolumeHandle: name}}},
		})
	}
	for name, driver := range map[string]string{"s0": conversion.DriverEBS, "s1": "fs.example.com"} {
		o.StorageClasses = append(o.StorageClasses, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: driver,
			VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)})
	}
	o.CSINodes = []*storagev1.CSINode{{ObjectMeta: metav1.ObjectMeta{Name: "n0"},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: conversion.DriverEBS, Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To(int32(5))}}}}}}
}

func addSmallClusterGroups(o *Objects) {
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "a", Name: name} }
	web := func() *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	}
	o.Groups = conversion.Groups{
		Services: []*corev1.Service{
			{ObjectMeta: in("svc"), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "shop"}}},
			{ObjectMeta: in("idle"), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "other"}}},
		},
		Controllers: []*corev1.ReplicationController{{ObjectMeta: in("old"),
			Spec: corev1.ReplicationControllerSpec{Selector: map[string]string{"app": "web", "tier": "y"}}}},
		ReplicaSets:  []*appsv1.ReplicaSet{{ObjectMeta: in("web-1"), Spec: appsv1.ReplicaSetSpec{Selector: web()}}},
		StatefulSets: []*appsv1.StatefulSet{{ObjectMeta: in("disk"), Spec: appsv1.StatefulSetSpec{Selector: web()}}},
	}
}
