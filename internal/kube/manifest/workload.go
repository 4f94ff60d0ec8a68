package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// workload is an object that creates pods from a template.
type workload struct {
	object   client.Object
	kind     string // kind of the object, such as "Deployment"; empty for an object that creates no pods
	replicas int    // number of pods that the object runs now
	first    int    // number at the end of the first pod's name
	template *corev1.PodTemplateSpec
	volumes  []corev1.PersistentVolumeClaim // volume claim templates of a StatefulSet
}

func workloadOf(object client.Object) workload {
	w := workload{object: object, first: 1}
	switch v := object.(type) {
	case *appsv1.Deployment:
		w.kind, w.template, w.replicas = "Deployment", &v.Spec.Template, int(ptr.Deref(v.Spec.Replicas, 1))
	case *appsv1.ReplicaSet:
		w.kind, w.template, w.replicas = "ReplicaSet", &v.Spec.Template, int(ptr.Deref(v.Spec.Replicas, 1))
	case *appsv1.StatefulSet:
		w.kind, w.template, w.replicas = "StatefulSet", &v.Spec.Template, int(ptr.Deref(v.Spec.Replicas, 1))
		w.volumes, w.first = v.Spec.VolumeClaimTemplates, 0
		if v.Spec.Ordinals != nil {
			w.first = int(v.Spec.Ordinals.Start)
		}
	case *batchv1.Job:
		w.kind, w.template, w.replicas = "Job", &v.Spec.Template, parallelPods(&v.Spec)
		if isJobDone(v) {
			w.replicas = 0
		}
	case *batchv1.CronJob:
		w.kind, w.template, w.replicas = "CronJob", &v.Spec.JobTemplate.Spec.Template, parallelPods(&v.Spec.JobTemplate.Spec)
		if ptr.Deref(v.Spec.Suspend, false) {
			w.replicas = 0
		}
	}
	w.replicas = min(max(w.replicas, 0), maxReplicas)
	return w
}

func parallelPods(spec *batchv1.JobSpec) int {
	if ptr.Deref(spec.Suspend, false) {
		return 0
	}
	n := int(ptr.Deref(spec.Parallelism, 1))
	if spec.Completions != nil {
		n = min(n, int(*spec.Completions))
	}
	return n
}

func isJobDone(job *batchv1.Job) bool {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// createPods creates the pods of each workload, unless the manifests contain pods of the workload, directly or through
// its ReplicaSets or Jobs.
func (d *Decoder) createPods() {
	hasPods := d.ownersWithPods()
	usedNames := map[string]bool{}
	for _, p := range d.objects.Pods {
		usedNames[p.Namespace+"/"+p.Name] = true
	}
	sameName := map[string]int{} // number of workloads by namespace/name; the pods of several must get different names
	for _, w := range d.workloads {
		sameName[w.object.GetNamespace()+"/"+w.object.GetName()]++
	}
	// Pods of the manifests get their names first, so that generated pods do not take these names.
	for _, p := range d.objects.Pods {
		if p.Name == "" {
			p.Name = uniqueName(usedNames, p.Namespace, strings.TrimSuffix(p.GenerateName, "-")+"-1")
		}
	}
	for _, w := range d.workloads {
		if hasPods[conversion.OwnerKey(w.object.GetNamespace(), w.kind, w.object.GetName())] || d.createdByDeployment(w) {
			continue
		}
		base := w.object.GetName()
		// The pod names of a StatefulSet are fixed; those of other workloads are arbitrary.
		if w.kind != "StatefulSet" && sameName[w.object.GetNamespace()+"/"+base] > 1 {
			base += "-" + strings.ToLower(w.kind)
		}
		d.makePods(w, base, usedNames)
	}
	d.noteSuspended()
	d.noteMissing()
}

func (d *Decoder) noteSuspended() {
	for _, w := range d.workloads {
		var suspended *bool
		switch v := w.object.(type) {
		case *batchv1.Job:
			suspended = v.Spec.Suspend
		case *batchv1.CronJob:
			suspended = v.Spec.Suspend
		}
		if ptr.Deref(suspended, false) {
			d.notes = append(d.notes, identity(w.kind, w.object)+" is suspended; its pods are left out")
		}
	}
}

// noteMissing adds notes about objects that are referenced but not among the manifests.
func (d *Decoder) noteMissing() {
	nodes, classes := map[string]bool{}, map[string]bool{}
	for _, n := range d.objects.Nodes {
		nodes[n.Name] = true
	}
	for _, c := range d.objects.Classes {
		classes[c.Name] = true
	}
	elsewhere := 0 // pods on nodes that are not among the manifests
	for _, p := range d.objects.Pods {
		if p.Spec.NodeName != "" && !nodes[p.Spec.NodeName] && !conversion.IsFinished(p) {
			elsewhere++
		}
	}
	switch {
	case elsewhere == 1:
		d.notes = append(d.notes, "1 pod runs on a node that is not among the manifests; it is left out")
	case elsewhere > 1:
		d.notes = append(d.notes, fmt.Sprintf("%d pods run on nodes that are not among the manifests; they are left out", elsewhere))
	}
	for _, p := range d.objects.Pools {
		if conversion.UnusableByIntentReason(p) != "" {
			continue // nothing is planned for the pool
		}
		if name := kubeclient.ClassName(p.Spec.Template.Spec.NodeClassRef); !classes[name] {
			d.notes = append(d.notes, fmt.Sprintf(
				"NodePool %s: EC2NodeClass %s is not among the manifests%s; default settings are assumed", p.Name, name, didYouMean(name, classes)))
		}
	}
}

func didYouMean(name string, names map[string]bool) string {
	if near := suggest.Nearest(name, slices.Collect(maps.Keys(names))); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}

// ownersWithPods returns the owners that have pods among the manifests, and the CronJobs that have a Job among them, by
// conversion.OwnerKey.
func (d *Decoder) ownersWithPods() map[string]bool {
	out := map[string]bool{}
	for _, p := range d.objects.Pods {
		ref := metav1.GetControllerOfNoCopy(p)
		if ref == nil {
			continue
		}
		out[conversion.OwnerKey(p.Namespace, ref.Kind, ref.Name)] = true
		// The ReplicaSet may not be among the manifests, but its name contains the name of the Deployment.
		if hash := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; ref.Kind == "ReplicaSet" && hash != "" {
			if name, ok := strings.CutSuffix(ref.Name, "-"+hash); ok {
				out[conversion.OwnerKey(p.Namespace, "Deployment", name)] = true
			}
		}
	}
	for _, w := range d.workloads {
		ref := metav1.GetControllerOfNoCopy(w.object)
		namespace := w.object.GetNamespace()
		switch {
		case ref == nil:
		case out[conversion.OwnerKey(namespace, w.kind, w.object.GetName())], w.kind == "Job":
			// If a Job of a CronJob is among the manifests, only the pods of the Job are created.
			out[conversion.OwnerKey(namespace, ref.Kind, ref.Name)] = true
		}
	}
	return out
}

// createdByDeployment reports whether w is a ReplicaSet whose Deployment is among the manifests. The pods are then
// created for the Deployment.
func (d *Decoder) createdByDeployment(w workload) bool {
	ref := metav1.GetControllerOfNoCopy(w.object)
	if ref == nil || w.kind != "ReplicaSet" {
		return false
	}
	_, ok := d.Seen[fmt.Sprintf("%s %s/%s", ref.Kind, w.object.GetNamespace(), ref.Name)]
	return ok
}

// makePods creates the pods of the workload, with names that begin with base.
func (d *Decoder) makePods(w workload, base string, usedNames map[string]bool) {
	if w.replicas == 0 {
		return
	}
	namespace := w.object.GetNamespace()
	template := conversion.PodFromTemplate(w.template, metav1.ObjectMeta{
		Namespace:         namespace,
		CreationTimestamp: w.object.GetCreationTimestamp(),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: w.object.GetObjectKind().GroupVersionKind().GroupVersion().String(),
			Kind:       w.kind, Name: w.object.GetName(), UID: w.object.GetUID(), Controller: ptr.To(true),
		}},
	})
	for i := range w.replicas {
		pod := *template // the copies share their pointers; the shared values are never changed
		pod.Name = uniqueName(usedNames, namespace, fmt.Sprintf("%s-%d", base, w.first+i))
		if len(w.volumes) > 0 {
			d.makeVolumes(w, &pod)
		}
		d.objects.Pods = append(d.objects.Pods, &pod)
	}
}

// makeVolumes adds the volume claims that a StatefulSet creates for the pod.
func (d *Decoder) makeVolumes(w workload, pod *corev1.Pod) {
	volumes := append([]corev1.Volume{}, pod.Spec.Volumes...)
	for i := range w.volumes {
		claim := w.volumes[i].DeepCopy()
		name := claim.Name + "-" + pod.Name
		volumes = append(volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
		id := fmt.Sprintf("PersistentVolumeClaim %s/%s", pod.Namespace, name)
		if _, ok := d.Seen[id]; ok {
			continue // the manifests contain the claim
		}
		claim.Namespace, claim.Name = pod.Namespace, name
		d.objects.VolumeClaims = append(d.objects.VolumeClaims, claim)
	}
	pod.Spec.Volumes = volumes
}

// uniqueName returns name, with a number appended if another pod of the namespace already has the name. It adds the
// result to usedNames.
func uniqueName(usedNames map[string]bool, namespace, name string) string {
	out := name
	for i := 2; usedNames[namespace+"/"+out]; i++ {
		out = fmt.Sprintf("%s-%d", name, i)
	}
	usedNames[namespace+"/"+out] = true
	return out
}
