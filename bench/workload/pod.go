package workload

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// namespace of all pods but those of DaemonSets.
const namespace = "default"

// labelApp is the label by which the pods of a deployment know each other.
const labelApp = "app"

// dice returns a source of numbers that are the same in every run.
func dice(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x6a6f696e6572)) }

// deployment is a template and how often it is wanted.
type deployment struct {
	name     string
	replicas int
	template corev1.PodSpec
	labels   map[string]string
}

// newDeployment returns one whose pods ask for that much and have the label app.
func newDeployment(name string, replicas int, milli, mib int64) deployment {
	return deployment{
		name: name, replicas: replicas, labels: map[string]string{labelApp: name},
		template: corev1.PodSpec{
			SchedulerName: corev1.DefaultSchedulerName,
			Containers: []corev1.Container{{
				Name: "main", Image: "example.com/main:1", Resources: asks(milli, mib),
			}},
		},
	}
}

func asks(milli, mib int64) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(milli, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(mib<<20, resource.BinarySI),
	}}
}

// pods returns the pods of the deployment. Each has everything of its own, as
// objects that come from an API server do.
func (d deployment) pods() []*corev1.Pod {
	out := make([]*corev1.Pod, 0, d.replicas)
	for i := range d.replicas {
		out = append(out, d.pod(i))
	}
	return out
}

func (d deployment) pod(i int) *corev1.Pod {
	name := fmt.Sprintf("%s-%05d", d.name, i)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Labels: clone(d.labels),
			CreationTimestamp: metav1.NewTime(Now),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: d.name, UID: types.UID("uid-" + d.name), Controller: ptr.To(true),
			}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		}}},
	}
	d.template.DeepCopyInto(&pod.Spec)
	return pod
}

func clone(labels map[string]string) map[string]string {
	out := make(map[string]string, len(labels))
	for k, v := range labels {
		out[k] = v
	}
	return out
}

// podsOf returns the pods of all deployments.
func podsOf(ds []deployment) []*corev1.Pod {
	var out []*corev1.Pod
	for _, d := range ds {
		out = append(out, d.pods()...)
	}
	return out
}

// The sizes of containers as people write them: most are small.
var (
	millis = []int64{50, 100, 100, 200, 250, 250, 300, 500, 500, 750, 1000}
	ratios = []int64{1024, 2048, 2048, 4096, 4096, 4096, 8192, 8192} // MiB of memory to a core
)

// mixed returns that many deployments of mixed sizes, with that many pods in all.
func mixed(pods, deployments int, seed uint64) []deployment {
	d := dice(seed)
	out := make([]deployment, deployments)
	for n := range out {
		replicas := pods / deployments
		if n < pods%deployments {
			replicas++
		}
		milli := millis[d.IntN(len(millis))]
		// A few MiB to and fro, so that classes are as many as deployments.
		mib := max(milli*ratios[d.IntN(len(ratios))]/1000, 64) + int64(d.IntN(128))
		out[n] = newDeployment(fmt.Sprintf("app-%04d", n), replicas, milli, mib)
	}
	return out
}

// broad returns that many deployments whose pods ask for 50 millicores to three cores and 64 MiB to 6 GiB, a third
// of them for about a tenth of that, with that many pods in all.
func broad(pods, deployments int, seed uint64) []deployment {
	d := dice(seed)
	out := mixed(pods, deployments, seed)
	for n := range out {
		milli, mib := 50*(1+d.Int64N(60)), 64*(1+d.Int64N(100))
		if d.IntN(3) == 0 {
			milli, mib = milli/10+10, mib/8
		}
		out[n] = newDeployment(out[n].name, out[n].replicas, milli, mib)
	}
	return out
}
