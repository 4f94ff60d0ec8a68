package lab_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/lab/faults"
)

// TestFaultsAreUndone checks that `lab fault --undo NAME` undoes everything that `lab fault NAME` does, for faults that
// change roles, access entries, aws-auth, instance profiles, policies and images.
func TestFaultsAreUndone(t *testing.T) {
	l := parallelLab(t, lab.Options{Cluster: "undone"})
	restartController(t, l, faults.Settings()...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if err := faults.Serve(ctx, l); err != nil {
		t.Fatal(err)
	}
	before := labState(t, l)
	for _, name := range []string{"role-without-policies", "entry-of-wrong-type", "row-with-path", "profile-without-role",
		"role-denies-tags", "image-not-ready", "label-of-other-case"} {
		if _, err := faults.Request(t.Context(), l.Home, name, false); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if slices.Equal(labState(t, l), before) {
			t.Errorf("%s: the fault changes nothing that labState lists", name)
		}
		if printed, err := faults.Request(t.Context(), l.Home, name, true); err != nil || !strings.Contains(printed, name+" is undone") {
			t.Errorf("--undo %s prints %q, error %v; want a report of the undo", name, printed, err)
		}
		within(t, l, time.Minute, name+" to be undone", func(context.Context) (bool, error) {
			return slices.Equal(labState(t, l), before), nil
		})
		if after := labState(t, l); !slices.Equal(after, before) {
			t.Errorf("after the undo of %s, the state is\n%s\nwant\n%s", name, strings.Join(after, "\n"), strings.Join(before, "\n"))
		}
	}
}

// labState lists what the faults of TestFaultsAreUndone create or change: roles with their policies, instance profiles,
// the cluster's authentication mode and access entries, the account's images, instances that are not terminated,
// aws-auth, and the pods of the namespace default.
func labState(t *testing.T, l *lab.Lab) (out []string) {
	t.Helper()
	var err error
	l.Emulator.Do(func(w *world.World, _ time.Time) {
		account := w.Account(l.Account)
		for _, r := range account.Roles("") {
			out = append(out, "role "+r.Name+" "+strings.Join(slices.Sorted(slices.Values(r.Policies)), ","))
		}
		for _, p := range account.Profiles("") {
			out = append(out, "profile "+p.Name+" "+p.Role)
		}
		var c *ekscluster.Cluster
		if c, err = l.Estate.Region.EKS.Cluster(l.Cluster); err != nil {
			return
		}
		out = append(out, "mode "+c.AuthMode)
		for _, e := range c.AccessEntries() {
			out = append(out, "entry "+e.Principal+" "+e.Kind)
		}
		for _, i := range l.Estate.Region.Images.All() {
			if i.OwnerID == l.Account {
				out = append(out, "image "+i.Name)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range l.Instances() {
		if i.Alive() {
			out = append(out, "instance "+i.ID)
		}
	}
	auth, err := l.Kube.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(t.Context(), "aws-auth", metav1.GetOptions{})
	if err == nil {
		out = append(out, "aws-auth "+auth.Data["mapRoles"])
	}
	pods, err := l.Kube.CoreV1().Pods(corev1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		out = append(out, "pod "+p.Name)
	}
	slices.Sort(out)
	return out
}
