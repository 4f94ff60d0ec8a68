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

// namespace is the namespace of all pods except DaemonSet pods.
const namespace = "default"

// labelApp is the label that selects the pods of a deployment.
const labelApp = "app"

// seededRandom returns a random source that yields the same numbers in every run. The second half of its seed is
// "joiner" in ASCII.
func seededRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x6a6f696e6572)) }

type deployment struct {
	name     string
	replicas int
	template corev1.PodSpec
	labels   map[string]string
}

// newDeployment returns a deployment whose pods have the given requests and the label app.
func newDeployment(name string, replicas int, milli, mib int64) deployment {
	return deployment{
		name: name, replicas: replicas, labels: map[string]string{labelApp: name},
		template: corev1.PodSpec{
			SchedulerName: corev1.DefaultSchedulerName,
			Containers: []corev1.Container{{
				Name: "main", Image: "example.com/main:1", Resources: podRequests(milli, mib),
			}},
		},
	}
}

func podRequests(milli, mib int64) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(milli, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(mib<<20, resource.BinarySI),
	}}
}

// pods returns the pods of the deployment. They share no data, like objects from an API server.
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

// clone returns a copy of labels that is never nil.
func clone(labels map[string]string) map[string]string {
	out := make(map[string]string, len(labels))
	for k, v := range labels {
		out[k] = v
	}
	return out
}

func podsOf(deployments []deployment) []*corev1.Pod {
	var out []*corev1.Pod
	for _, d := range deployments {
		out = append(out, d.pods()...)
	}
	return out
}

// millis are CPU requests of containers, in millicores; ratios are their ratios of memory to CPU. Small requests are
// frequent, as in real clusters.
var (
	millis = []int64{50, 100, 100, 200, 250, 250, 300, 500, 500, 750, 1000}
	ratios = []int64{1024, 2048, 2048, 4096, 4096, 4096, 8192, 8192} // MiB of memory per core
)

// mixedDeployments returns deployments with requests from millis and ratios, and the given total number of pods.
func mixedDeployments(pods, deployments int, seed uint64) []deployment {
	random := seededRandom(seed)
	out := make([]deployment, deployments)
	for n := range out {
		replicas := pods / deployments
		if n < pods%deployments {
			replicas++
		}
		milli := millis[random.IntN(len(millis))]
		// Up to 127 MiB more, so that nearly every deployment is a class of its own.
		mib := max(milli*ratios[random.IntN(len(ratios))]/1000, 64) + int64(random.IntN(128))
		out[n] = newDeployment(fmt.Sprintf("app-%04d", n), replicas, milli, mib)
	}
	return out
}

// broadDeployments returns deployments with the given total number of pods. Their requests are random: 50 to 3,000
// millicores and 64 to 6,400 MiB. About a third of them request only about a tenth of this CPU and an eighth of this
// memory.
func broadDeployments(pods, deployments int, seed uint64) []deployment {
	random := seededRandom(seed)
	out := mixedDeployments(pods, deployments, seed) // for their names and replicas
	for n := range out {
		milli, mib := 50*(1+random.Int64N(60)), 64*(1+random.Int64N(100))
		if random.IntN(3) == 0 {
			milli, mib = milli/10+10, mib/8
		}
		out[n] = newDeployment(out[n].name, out[n].replicas, milli, mib)
	}
	return out
}
