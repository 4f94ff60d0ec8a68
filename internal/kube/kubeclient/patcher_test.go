package kubeclient

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// claimWrites are changes of a NodeClaim that happen while the user reviews a fix of this NodeClaim.
var claimWrites = []struct {
	name  string
	write func(t *testing.T, c client.Client, claim *karpv1.NodeClaim)

	refusesPatch, refusesDelete bool // after the write, Patcher.Apply or Patcher.Delete fails
}{
	{name: "only status", write: func(t *testing.T, c client.Client, claim *karpv1.NodeClaim) {
		claim.Status.ImageID = "ami-2"
		must(t, c.Status().Update(t.Context(), claim))
	}},
	{name: "an instance was launched", refusesDelete: true, write: func(t *testing.T, c client.Client, claim *karpv1.NodeClaim) {
		claim.Status.ProviderID = "aws:///us-east-1a/i-2"
		must(t, c.Status().Update(t.Context(), claim))
	}},
	{name: "the node joined", refusesDelete: true, write: func(t *testing.T, c client.Client, claim *karpv1.NodeClaim) {
		claim.Status.Conditions = append(claim.Status.Conditions,
			metav1.Condition{Type: karpv1.ConditionRegistered, Status: metav1.ConditionTrue})
		must(t, c.Status().Update(t.Context(), claim))
	}},
	{name: "a label was set", refusesPatch: true, write: func(t *testing.T, c client.Client, claim *karpv1.NodeClaim) {
		claim.Labels = map[string]string{"team": "web"}
		must(t, c.Update(t.Context(), claim))
	}},
	// The patch has the same effect on the new object.
	{name: "recreated with the same name", refusesDelete: true, write: func(t *testing.T, c client.Client, claim *karpv1.NodeClaim) {
		must(t, c.Delete(t.Context(), claim.DeepCopy()))
		claim.ResourceVersion, claim.UID = "", ""
		must(t, c.Create(t.Context(), claim))
	}},
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestPatcherToleratesControllers: a controller may write an object before the user confirms. A patch is still made if
// it makes the change that the user has reviewed. A deletion is still made if the UID, the instance and the condition
// Registered of the NodeClaim are unchanged.
func TestPatcherToleratesControllers(t *testing.T) {
	t.Parallel()
	for _, change := range claimWrites {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			t.Run("patch", func(t *testing.T) {
				t.Parallel()
				p, c := patcherOf(t)
				patch := Patch{Kind: "nodeclaim", Name: "late", Type: PatchMerge, Text: `{"metadata":{"annotations":{"fixed":"yes"}}}`}
				dryRun, err := p.DryRun(t.Context(), patch)
				must(t, err)
				change.write(t, c, claimOf(t, c))
				err = p.Apply(t.Context(), patch, dryRun)
				checkRefusal(t, err, change.refusesPatch)
				if made := claimOf(t, c).Annotations["fixed"] == "yes"; made == change.refusesPatch {
					t.Errorf("the patch was made: %v, want %v", made, !made)
				}
			})
			t.Run("delete", func(t *testing.T) {
				t.Parallel()
				p, c := patcherOf(t)
				deletion, found, err := p.DryRunDelete(t.Context(), "nodeclaim", "late")
				if err != nil || !found {
					t.Fatalf("found %v: %v; want true", found, err)
				}
				change.write(t, c, claimOf(t, c))
				checkRefusal(t, p.Delete(t.Context(), deletion), change.refusesDelete)
				err = c.Get(t.Context(), client.ObjectKey{Name: "late"}, &karpv1.NodeClaim{})
				if gone := apierrors.IsNotFound(err); gone == change.refusesDelete {
					t.Errorf("the NodeClaim was deleted: %v, want %v", gone, !gone)
				}
			})
		})
	}
}

// TestPatcherEndsWhileObjectChanges: an object that changes before each request does not cause endless retries.
func TestPatcherEndsWhileObjectChanges(t *testing.T) {
	t.Parallel()
	changeClaim := func(ctx context.Context, c client.WithWatch) error {
		var claim karpv1.NodeClaim
		if err := c.Get(ctx, client.ObjectKey{Name: "late"}, &claim); err != nil {
			return err
		}
		claim.Status.ImageID += "x"
		return c.Status().Update(ctx, &claim)
	}
	p, c := patcherWith(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := changeClaim(ctx, c); err != nil {
				return err
			}
			return c.Patch(ctx, o, patch, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if err := changeClaim(ctx, c); err != nil {
				return err
			}
			return c.Delete(ctx, o, options...)
		},
	})
	patch := Patch{Kind: "nodeclaim", Name: "late", Type: PatchMerge, Text: `{"metadata":{"annotations":{"fixed":"yes"}}}`}
	dryRun, err := p.DryRun(t.Context(), patch)
	must(t, err)
	checkRefusal(t, p.Apply(t.Context(), patch, dryRun), true)
	deletion, _, err := p.DryRunDelete(t.Context(), "nodeclaim", "late")
	must(t, err)
	checkRefusal(t, p.Delete(t.Context(), deletion), true)
	// Each request made ImageID one character longer. Apply and Delete make 4 attempts each (retry.DefaultBackoff).
	if tries := len(claimOf(t, c).Status.ImageID); tries < 8 || tries > 20 {
		t.Errorf("%d requests were made, want 8 to 20", tries)
	}
}

// checkRefusal checks that err is the error for a changed object if isRefused, and nil otherwise.
func checkRefusal(t *testing.T, err error, isRefused bool) {
	t.Helper()
	const want = "nodeclaim late has changed since it was read: run the command again"
	if isRefused != (err != nil && strings.Contains(err.Error(), want)) || !isRefused && err != nil {
		t.Errorf("got the error %v, want a refusal: %v", err, isRefused)
	}
}

func patcherOf(t *testing.T) (*Patcher, client.Client) { return patcherWith(t, interceptor.Funcs{}) }

// patcherWith returns a patcher for a cluster with one NodeClaim.
func patcherWith(t *testing.T, hooks interceptor.Funcs) (*Patcher, client.Client) {
	c := fakeServer(t, hooks, &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "late", UID: types.UID("first")}})
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(karpv1.GroupVersion.WithKind("NodeClaim"), meta.RESTScopeRoot)
	return &Patcher{client: mappedClient{c, kinds}}, c
}

type mappedClient struct {
	client.Client
	kinds meta.RESTMapper
}

func (m mappedClient) RESTMapper() meta.RESTMapper { return m.kinds }

func claimOf(t *testing.T, c client.Client) *karpv1.NodeClaim {
	t.Helper()
	var claim karpv1.NodeClaim
	must(t, c.Get(t.Context(), client.ObjectKey{Name: "late"}, &claim))
	return &claim
}
