package writer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

func TestCreateClaims(t *testing.T) {
	t.Parallel()
	c := kubetest.FakeClient(t, interceptor.Funcs{}, kubetest.GeneralPool())
	ledger := &snapshot.Ledger{}
	w := &Writer{Client: c, Ledger: ledger, ClusterUID: "cluster-1", Now: func() time.Time { return kubetest.Noon }}
	out := w.CreateClaims(t.Context(), []packing.PlannedNode{kubetest.PlannedNode("default/a", "default/b")})
	if len(out) != 1 || out[0].Err != nil {
		t.Fatalf("the outcome is %+v, want 1 claim", out)
	}
	got := out[0].Claim
	if !strings.HasPrefix(got.Name, "general-") || len(got.Name) == len("general-") {
		t.Errorf("the name is %q, want general- and a suffix", got.Name)
	}
	if ledger.Len() != 1 {
		t.Errorf("the ledger holds %d claims, want 1", ledger.Len())
	}
	clean := got.DeepCopy()
	clean.Name, clean.UID, clean.ResourceVersion = "", "", ""
	text, err := yaml.Marshal(clean)
	if err != nil {
		t.Fatal(err)
	}
	kubetest.Golden(t, "testdata/claim.yaml", string(text))
}

// TestCreateClaimsErrors: a claim is not created if its pool has changed since the plan, or if the API server refuses.
func TestCreateClaimsErrors(t *testing.T) {
	t.Parallel()
	deleted := kubetest.GeneralPool()
	deleted.Name, deleted.DeletionTimestamp, deleted.Finalizers = "deleted", &metav1.Time{Time: kubetest.Noon}, []string{"x"}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodeclaims"}, "", errors.New("no"))
	hooks := interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if o.GetLabels()["fail"] != "" {
			return forbidden
		}
		o.SetUID(uuid.NewUUID())
		return c.Create(ctx, o, opts...)
	}}
	w := &Writer{Client: kubetest.FakeClient(t, hooks, kubetest.GeneralPool(), deleted), Ledger: &snapshot.Ledger{}}
	change := func(f func(*packing.PlannedNode)) packing.PlannedNode {
		m := kubetest.PlannedNode()
		f(&m)
		return m
	}
	out := w.CreateClaims(t.Context(), []packing.PlannedNode{
		change(func(m *packing.PlannedNode) { m.Pool = "gone" }),
		change(func(m *packing.PlannedNode) { m.Pool = "deleted" }),
		change(func(m *packing.PlannedNode) { m.NodeClass = "another" }),
		change(func(m *packing.PlannedNode) { m.Offerings = nil }),
		change(func(m *packing.PlannedNode) { m.Labels = requirements.Labels{"fail": "yes"} }), // refused by the API server
		kubetest.PlannedNode(),
	})
	want := []kubeclient.NextStep{kubeclient.Reread, kubeclient.Reread, kubeclient.Reread, kubeclient.Reread, kubeclient.ReportToUser, kubeclient.NoError}
	for i, created := range out {
		if got := kubeclient.Classify(created.Err); got != want[i] || (created.Claim == nil) != (created.Err != nil) {
			t.Errorf("planned node %d: %v (%s), want %s, and a claim only without error", i, created.Err, got, want[i])
		}
	}
	if w.Ledger.Len() != 1 {
		t.Errorf("the ledger holds %d claims, want 1", w.Ledger.Len())
	}
}

func TestPatch(t *testing.T) {
	t.Parallel()
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Finalizers: []string{"x"}}}
	var calls []string
	hooks := interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			data, _ := p.Data(o)
			calls = append(calls, string(data))
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			data, _ := p.Data(o)
			calls = append(calls, sub+" "+string(data))
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
	c := kubetest.FakeClient(t, hooks, claim)
	read := &karpv1.NodeClaim{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "c"}, read); err != nil {
		t.Fatal(err)
	}
	original := read.DeepCopy()
	w := &Writer{Client: c}

	if got, err := w.PatchClaim(t.Context(), read, func(*karpv1.NodeClaim) {}); err != nil ||
		got.ResourceVersion != read.ResourceVersion || len(calls) != 0 {
		t.Errorf("an empty change made the calls %q, error %v; want no call and no error", calls, err)
	}
	got, err := w.PatchClaim(t.Context(), read, func(c *karpv1.NodeClaim) {
		c.Labels = map[string]string{"a": "b"}
		c.Status.ProviderID = "aws:///z/i-1"
		c.StatusConditions().SetTrue(kubetest.Noon, karpv1.ConditionLaunched)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Labels["a"] != "b" || got.Status.ProviderID == "" || !got.StatusConditions().IsTrue(karpv1.ConditionLaunched) {
		t.Errorf("label, provider ID or condition is missing: %+v", got)
	}
	if diff := cmp.Diff(original, read); diff != "" {
		t.Errorf("PatchClaim has changed its argument:\n%s", diff)
	}
	if len(calls) != 2 || calls[0] != `{"metadata":{"labels":{"a":"b"}}}` ||
		!strings.HasPrefix(calls[1], "status {") || !strings.Contains(calls[1], `"resourceVersion"`) {
		t.Errorf("the calls are %q, want a patch of the label, then one of the status with a version", calls)
	}

	// read is now outdated. A patch of labels still succeeds, but not a patch of the list of finalizers.
	if _, err := w.PatchClaim(t.Context(), read, func(c *karpv1.NodeClaim) { c.Labels = map[string]string{"c": "d"} }); err != nil {
		t.Errorf("a label on a stale object: %v, want no error", err)
	}
	_, err = w.PatchClaim(t.Context(), read, func(c *karpv1.NodeClaim) { c.Finalizers = append(c.Finalizers, "y") })
	if kubeclient.Classify(err) != kubeclient.Reread {
		t.Errorf("a finalizer on a stale object: %v, want a conflict", err)
	}
}

// TestRecordsAreNotOverwritten: a client that changes or removes a record (annotation) that another client has changed
// must read the object again.
func TestRecordsAreNotOverwritten(t *testing.T) {
	t.Parallel()
	for _, key := range []string{kubeclient.AnnotationImages, kubeclient.AnnotationFailed, kubeclient.AnnotationSelected} {
		class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "c", Annotations: map[string]string{key: "[1]", "other": "a"}}}
		w := &Writer{Client: kubetest.FakeClient(t, interceptor.Funcs{}, class)}
		read := &awsv1.EC2NodeClass{}
		if err := w.Client.Get(t.Context(), client.ObjectKey{Name: "c"}, read); err != nil {
			t.Fatal(err)
		}
		if _, err := w.PatchClass(t.Context(), read, func(c *awsv1.EC2NodeClass) { c.Annotations[key] = "[1,2]" }); err != nil {
			t.Fatal(err)
		}
		_, err := w.PatchClass(t.Context(), read, func(c *awsv1.EC2NodeClass) { c.Annotations[key] = "[1,3]" })
		if kubeclient.Classify(err) != kubeclient.Reread {
			t.Errorf("%s was overwritten: %v, want a conflict", key, err)
		}
		_, err = w.PatchClass(t.Context(), read, func(c *awsv1.EC2NodeClass) { delete(c.Annotations, key) })
		if kubeclient.Classify(err) != kubeclient.Reread {
			t.Errorf("%s was removed: %v, want a conflict", key, err)
		}
		if _, err := w.PatchClass(t.Context(), read, func(c *awsv1.EC2NodeClass) { c.Annotations["other"] = "b" }); err != nil {
			t.Errorf("a change of another annotation fails: %v", err)
		}
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	r := schema.GroupResource{Group: "karpenter.sh", Resource: "nodeclaims"}
	for name, c := range map[string]struct {
		answer error
		next   kubeclient.NextStep
	}{
		"succeeds":    {nil, kubeclient.NoError},
		"gone":        {apierrors.NewNotFound(r, "c"), kubeclient.NoError},
		"another UID": {apierrors.NewConflict(r, "c", errors.New("Precondition failed")), kubeclient.NoError},
		"not allowed": {apierrors.NewForbidden(r, "c", errors.New("rbac")), kubeclient.ReportToUser},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hooks := interceptor.Funcs{Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
				var o client.DeleteOptions
				o.ApplyOptions(opts)
				if o.Preconditions == nil || *o.Preconditions.UID != "u" {
					t.Error("the call lacks the precondition UID u")
				}
				return c.answer
			}}
			w := &Writer{Client: kubetest.FakeClient(t, hooks)}
			err := w.Delete(t.Context(), &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u"}})
			if kubeclient.Classify(err) != c.next {
				t.Errorf("Delete: %v, want %s", err, c.next)
			}
			if err := w.DeletePod(t.Context(), PodRef{Namespace: "n", Name: "p", UID: "u"}, 0); kubeclient.Classify(err) != c.next {
				t.Errorf("DeletePod: %v, want %s", err, c.next)
			}
		})
	}
}

func TestEvict(t *testing.T) {
	t.Parallel()
	budget := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 429, Reason: metav1.StatusReasonTooManyRequests,
		Message: "Cannot evict pod as it would violate the pod's disruption budget.",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause,
			Message: "The disruption budget db needs 1 healthy pods"}}},
	}}
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		answer error
		want   EvictionResult
		next   kubeclient.NextStep
	}{
		"succeeds":     {nil, Evicted, kubeclient.NoError},
		"gone":         {apierrors.NewNotFound(pods, "p"), PodGone, kubeclient.NoError},
		"another pod":  {apierrors.NewConflict(pods, "p", errors.New("Precondition failed: UID in precondition: u")), PodGone, kubeclient.NoError},
		"budget":       {budget, Blocked, kubeclient.NoError},
		"two budgets":  {apierrors.NewInternalError(errors.New("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")), Blocked, kubeclient.NoError},
		"overload":     {apierrors.NewTooManyRequests("slow down", 1), EvictionFailed, kubeclient.Retry},
		"not allowed":  {apierrors.NewForbidden(pods, "p", errors.New("rbac")), EvictionFailed, kubeclient.ReportToUser},
		"server error": {apierrors.NewInternalError(errors.New("etcd")), EvictionFailed, kubeclient.Retry},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent *policyv1.Eviction
			hooks := interceptor.Funcs{SubResourceCreate: func(_ context.Context, _ client.Client, sub string, o,
				body client.Object, _ ...client.SubResourceCreateOption) error {
				if sub != "eviction" || o.GetName() != "p" {
					t.Errorf("call to %s of %s, want eviction of p", sub, o.GetName())
				}
				sent = body.(*policyv1.Eviction)
				return c.answer
			}}
			w := &Writer{Client: kubetest.FakeClient(t, hooks)}
			got, err := w.Evict(t.Context(), PodRef{Namespace: "default", Name: "p", UID: "u"})
			if got.Result != c.want || kubeclient.Classify(err) != c.next {
				t.Errorf("Evict returns %+v, %v (%s); want %s, %s", got, err, kubeclient.Classify(err), c.want, c.next)
			}
			if sent == nil || *sent.DeleteOptions.Preconditions.UID != "u" {
				t.Error("the eviction lacks the precondition UID u")
			}
			if (got.Message != "") != (c.want == Blocked) {
				t.Errorf("the message is %q, want one only if the eviction is blocked", got.Message)
			}
		})
	}
}

func TestWhatNext(t *testing.T) {
	t.Parallel()
	r := schema.GroupResource{Group: "karpenter.sh", Resource: "nodeclaims"}
	for name, c := range map[string]struct {
		err  error
		want kubeclient.NextStep
	}{
		"none":          {nil, kubeclient.NoError},
		"conflict":      {apierrors.NewConflict(r, "c", nil), kubeclient.Reread},
		"exists":        {apierrors.NewAlreadyExists(r, "c"), kubeclient.Reread},
		"gone":          {apierrors.NewNotFound(r, "c"), kubeclient.Gone},
		"invalid":       {apierrors.NewInvalid(schema.GroupKind{}, "c", nil), kubeclient.Reject},
		"bad request":   {apierrors.NewBadRequest("no"), kubeclient.Reject},
		"unauthorized":  {apierrors.NewUnauthorized("no"), kubeclient.ReportToUser},
		"overload":      {apierrors.NewTooManyRequests("no", 1), kubeclient.Retry},
		"timeout":       {apierrors.NewServerTimeout(r, "get", 1), kubeclient.Retry},
		"deadline":      {context.DeadlineExceeded, kubeclient.Retry},
		"unknown":       {errors.New("connection reset by peer"), kubeclient.Retry},
		"wrapped stale": {errors.Join(errors.New("x"), kubeclient.ErrStale), kubeclient.Reread},
	} {
		if got := kubeclient.Classify(c.err); got != c.want {
			t.Errorf("%s: Classify = %s, want %s", name, got, c.want)
		}
	}
}
