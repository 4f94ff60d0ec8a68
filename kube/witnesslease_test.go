package kube

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/joiner-sh/joiner/diagnosis"
)

// TestWitnessLease: of the leases of controllers that were moved, that of the last one counts.
func TestWitnessLease(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	lease := func(namespace, holder string, renewed time.Time) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: LeaseName}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: renewed}}}
	}
	w := &Witness{plain: fake.NewClientset(lease("kube-system", "new", noon), lease("karpenter", "old", noon.Add(-time.Hour)),
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "z", Name: LeaseName}})}
	got, found, err := w.Lease(t.Context(), "")
	want := diagnosis.Lease{Namespace: "kube-system", Name: LeaseName, Holder: "new", Renewed: noon, Seconds: 15}
	if diff := cmp.Diff(want, got); err != nil || !found || diff != "" {
		t.Errorf("found %t, %v:\n%s", found, err, diff)
	}
	w = &Witness{plain: fake.NewClientset()}
	if got, found, err := w.Lease(t.Context(), "mine"); err != nil || found {
		t.Errorf("there is none, and it is %+v, %v", got, err)
	}
}

// TestInstallations: of several autoscalers' Deployments that which is meant to act is looked at.
func TestInstallations(t *testing.T) {
	t.Parallel()
	deployment := func(namespace, name string, replicas int32) appsv1.Deployment {
		return appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
	}
	for name, c := range map[string]struct {
		all  []appsv1.Deployment
		want []string
	}{
		"handed over":   {[]appsv1.Deployment{deployment("karpenter", "karpenter", 0), deployment("kube-system", "coredns", 2), deployment("kube-system", "joiner", 2)}, []string{"joiner", "karpenter"}},
		"and back":      {[]appsv1.Deployment{deployment("joiner", "joiner", 0), deployment("karpenter", "karpenter", 2)}, []string{"karpenter", "joiner"}},
		"both":          {[]appsv1.Deployment{deployment("karpenter", "karpenter", 2), deployment("kube-system", "joiner", 2)}, []string{"joiner", "karpenter"}},
		"neither":       {[]appsv1.Deployment{deployment("karpenter", "karpenter", 0), deployment("kube-system", "joiner", 0)}, []string{"joiner", "karpenter"}},
		"nobody at all": {[]appsv1.Deployment{deployment("kube-system", "coredns", 2)}, nil},
	} {
		var got []string
		for _, d := range installations(c.all) {
			got = append(got, d.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestElectionArgs: settings of the lease are read from arguments, too.
func TestElectionArgs(t *testing.T) {
	t.Parallel()
	spec := corev1.PodSpec{Containers: []corev1.Container{{Command: []string{"/joiner"}, Args: []string{"controller", "--leader-election-name", "mine", "--disable-leader-election", "--cluster-name=prod"}}}}
	want := map[string]string{"LEADER_ELECTION_NAME": "mine", "DISABLE_LEADER_ELECTION": "true"}
	if diff := cmp.Diff(want, electionArgs(&spec)); diff != "" {
		t.Error(diff)
	}
	spec.Containers[0].Args = []string{"--leader-election-name=other", "--disable-leader-election=false"}
	want = map[string]string{"LEADER_ELECTION_NAME": "other", "DISABLE_LEADER_ELECTION": "false"}
	if diff := cmp.Diff(want, electionArgs(&spec)); diff != "" {
		t.Error(diff)
	}
}
