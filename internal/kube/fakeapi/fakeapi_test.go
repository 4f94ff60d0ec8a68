package fakeapi_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/joiner-sh/joiner/internal/kube/fakeapi"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// TestReadsSeeWrites: after a first List has filled the cache, Get and List show each later write. The writes include a
// deletion that names only the metadata, and the removal of the last finalizer, which ends the object.
func TestReadsSeeWrites(t *testing.T) {
	ctx := t.Context()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Finalizers: []string{"test/f"}},
		Spec: corev1.PodSpec{NodeName: "m"}}
	scheme, err := kubeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fakeapi.New(t, scheme, kubeclient.Index, interceptor.Funcs{}, pod)
	check := func(step, node string, want int) {
		t.Helper()
		var pods corev1.PodList
		if err := c.List(ctx, &pods, client.MatchingFields{kubeclient.IndexPodNode: node}); err != nil || len(pods.Items) != want {
			t.Errorf("%s: List returns %d pods on node %q and error %v, want %d pods", step, len(pods.Items), node, err, want)
		}
		var got corev1.Pod
		err := c.Get(ctx, client.ObjectKeyFromObject(pod), &got)
		if apierrors.IsNotFound(err) != (want == 0) || want == 1 && (err != nil || got.Spec.NodeName != node) {
			t.Errorf("%s: Get returns a pod on node %q and error %v, want %d pods on node %q", step, got.Spec.NodeName, err, want, node)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check("at first", "m", 1)
	do(c.Get(ctx, client.ObjectKeyFromObject(pod), pod))
	pod.Spec.NodeName = "n"
	do(c.Update(ctx, pod))
	check("after Update", "n", 1)
	do(c.Delete(ctx, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}))
	check("after Delete, with a finalizer", "n", 1)
	do(c.Get(ctx, client.ObjectKeyFromObject(pod), pod))
	before := pod.DeepCopy()
	pod.Finalizers = nil
	do(c.Patch(ctx, pod, client.MergeFrom(before)))
	check("without the finalizer", "n", 0)
	do(c.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Spec: corev1.PodSpec{NodeName: "m"}}))
	check("after Create", "m", 1)
}
