package kube

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// server returns an API server in memory that holds these objects, gives UIDs
// as a real one does, and lets hooks stand in for single calls.
func server(t *testing.T, hooks interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	if hooks.Create == nil {
		hooks.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			o.SetUID(uuid.NewUUID())
			return c.Create(ctx, o, opts...)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(hooks).
		WithStatusSubresource(&karpv1.NodeClaim{}, &karpv1.NodePool{}, &awsv1.EC2NodeClass{}, &corev1.Node{}, &corev1.Pod{})
	index := indexer{builder}
	if err := Index(t.Context(), index); err != nil {
		t.Fatal(err)
	}
	return builder.Build()
}

// indexer gives the fake client the indexes of the cache.
type indexer struct{ builder *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, f client.IndexerFunc) error {
	i.builder.WithIndex(o, field, f)
	return nil
}

func generalPool() *karpv1.NodePool {
	grace := karpv1.Duration{Duration: time.Hour}
	return &karpv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "p1", Annotations: map[string]string{
			karpv1.AnnotationNodePoolHash: "123", karpv1.AnnotationNodePoolHashVersion: "v3", "other": "x",
		}},
		Spec: karpv1.NodePoolSpec{Template: karpv1.NodeClaimTemplate{
			ObjectMeta: karpv1.ObjectMeta{Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "y"}},
			Spec: karpv1.NodeClaimTemplateSpec{
				NodeClassRef:           &karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"},
				TerminationGracePeriod: &grace,
				ExpireAfter:            karpv1.After(48 * time.Hour),
			},
		}},
	}
}

func machine(pods ...string) packing.PlannedNode {
	return packing.PlannedNode{
		Name: "general-1", Pool: "general", NodeClass: "default",
		Requirements: []requirements.Requirement{
			{Key: "custom", Operator: requirements.In, Values: []string{"b", "a"}},
			{Key: "karpenter.k8s.aws/instance-family", Operator: requirements.Exists, MinValues: 2},
			{Key: "karpenter.sh/capacity-type", Operator: requirements.In, Values: []string{"on-demand", "spot"}},
			{Key: "kubernetes.io/arch", Operator: requirements.In, Values: []string{"amd64"}},
			{Key: "node.kubernetes.io/instance-type", Operator: requirements.Exists, MinValues: 2},
			{Key: "not-there", Operator: requirements.NotIn, Values: []string{"x"}},
			{Key: "number", Operator: requirements.Gte, Values: []string{"7"}},
			{Key: "there", Operator: requirements.Exists},
		},
		Labels:        requirements.Labels{"team": "a", "karpenter.sh/initialized": "true"},
		Taints:        []requirements.Taint{{Key: "dedicated", Value: "a", Effect: requirements.NoSchedule}},
		StartupTaints: []requirements.Taint{{Key: "cni", Effect: requirements.NoExecute}},
		Pods:          pods,
		Requests:      resources.Amounts{CPU: 1500, Memory: 3 << 30, Pods: 7}.With("nvidia.com/gpu", 1),
		Offerings: []packing.Choice{
			{InstanceType: "t3.small", Zone: "us-east-1b", CapacityType: "spot"},
			{InstanceType: "t2.small", Zone: "us-east-1a", CapacityType: "spot"},
			{InstanceType: "t3.small", Zone: "us-east-1a", CapacityType: "spot"},
		},
	}
}

func TestCreateClaims(t *testing.T) {
	t.Parallel()
	c := server(t, interceptor.Funcs{}, generalPool())
	ledger := &Ledger{}
	w := &Writer{Client: c, Ledger: ledger, ClusterUID: "cluster-1", Now: func() time.Time { return noon }}
	out := w.CreateClaims(t.Context(), []packing.PlannedNode{machine("default/a", "default/b")})
	if len(out) != 1 || out[0].Err != nil {
		t.Fatalf("outcome: %+v", out)
	}
	got := out[0].Claim
	if !strings.HasPrefix(got.Name, "general-") || len(got.Name) == len("general-") {
		t.Errorf("name %q is not made from the pool's", got.Name)
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
	golden(t, "testdata/claim.yaml", string(text))
}

func TestCreateClaimsChecksAgain(t *testing.T) {
	t.Parallel()
	deleted := generalPool()
	deleted.Name, deleted.DeletionTimestamp, deleted.Finalizers = "deleted", &metav1.Time{Time: noon}, []string{"x"}
	full := apierrors.NewForbidden(schema.GroupResource{Resource: "nodeclaims"}, "", errors.New("no"))
	hooks := interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if o.GetLabels()["fail"] != "" {
			return full
		}
		o.SetUID(uuid.NewUUID())
		return c.Create(ctx, o, opts...)
	}}
	w := &Writer{Client: server(t, hooks, generalPool(), deleted), Ledger: &Ledger{}}
	change := func(f func(*packing.PlannedNode)) packing.PlannedNode {
		m := machine()
		f(&m)
		return m
	}
	out := w.CreateClaims(t.Context(), []packing.PlannedNode{
		change(func(m *packing.PlannedNode) { m.Pool = "gone" }),
		change(func(m *packing.PlannedNode) { m.Pool = "deleted" }),
		change(func(m *packing.PlannedNode) { m.NodeClass = "another" }),
		change(func(m *packing.PlannedNode) { m.Offerings = nil }),
		change(func(m *packing.PlannedNode) { m.Labels = requirements.Labels{"fail": "yes"} }),
		machine(),
	})
	want := []Next{Reread, Reread, Reread, Reread, Tell, GoOn}
	for i, created := range out {
		if got := WhatNext(created.Err); got != want[i] || (created.Claim == nil) != (created.Err != nil) {
			t.Errorf("machine %d: %v (%s), want %s", i, created.Err, got, want[i])
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
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			data, _ := p.Data(o)
			calls = append(calls, sub+" "+string(data))
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
	c := server(t, hooks, claim)
	read := &karpv1.NodeClaim{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "c"}, read); err != nil {
		t.Fatal(err)
	}
	before := read.DeepCopy()
	w := &Writer{Client: c}

	if got, err := w.PatchClaim(t.Context(), read, func(*karpv1.NodeClaim) {}); err != nil || got.ResourceVersion != read.ResourceVersion || len(calls) != 0 {
		t.Errorf("a change of nothing made calls %q, error %v", calls, err)
	}
	got, err := w.PatchClaim(t.Context(), read, func(c *karpv1.NodeClaim) {
		c.Labels = map[string]string{"a": "b"}
		c.Status.ProviderID = "aws:///z/i-1"
		c.StatusConditions().SetTrue(noon, karpv1.ConditionLaunched)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Labels["a"] != "b" || got.Status.ProviderID == "" || !got.StatusConditions().IsTrue(karpv1.ConditionLaunched) {
		t.Errorf("not all is written: %+v", got)
	}
	if diff := cmp.Diff(before, read); diff != "" {
		t.Errorf("the object that was read is altered:\n%s", diff)
	}
	if len(calls) != 2 || calls[0] != `{"metadata":{"labels":{"a":"b"}}}` ||
		!strings.HasPrefix(calls[1], "status {") || !strings.Contains(calls[1], `"resourceVersion"`) {
		t.Errorf("calls: %q", calls)
	}

	// read is stale by now. A label goes through, a list does not.
	if _, err := w.PatchClaim(t.Context(), read, func(c *karpv1.NodeClaim) { c.Labels = map[string]string{"c": "d"} }); err != nil {
		t.Errorf("a label on a stale object: %v", err)
	}
	_, err = w.PatchClaim(t.Context(), read, func(c *karpv1.NodeClaim) { c.Finalizers = append(c.Finalizers, "y") })
	if WhatNext(err) != Reread {
		t.Errorf("a finalizer on a stale object: %v, want a conflict", err)
	}
}

// TestRecordsAreNotOverwritten: of two who add to the same record from the same reading of it, the second must read again; who takes it
// away too.
func TestRecordsAreNotOverwritten(t *testing.T) {
	t.Parallel()
	for _, key := range []string{AnnotationImages, AnnotationFailed, AnnotationSelected} {
		class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "c", Annotations: map[string]string{key: "[1]", "other": "a"}}}
		w := &Writer{Client: server(t, interceptor.Funcs{}, class)}
		read := &awsv1.EC2NodeClass{}
		if err := w.Client.Get(t.Context(), client.ObjectKey{Name: "c"}, read); err != nil {
			t.Fatal(err)
		}
		if _, err := w.PatchClass(t.Context(), read, func(c *awsv1.EC2NodeClass) { c.Annotations[key] = "[1,2]" }); err != nil {
			t.Fatal(err)
		}
		_, err := w.PatchClass(t.Context(), read, func(c *awsv1.EC2NodeClass) { c.Annotations[key] = "[1,3]" })
		if WhatNext(err) != Reread {
			t.Errorf("%s was overwritten: %v", key, err)
		}
		_, err = w.PatchClass(t.Context(), read, func(c *awsv1.EC2NodeClass) { delete(c.Annotations, key) })
		if WhatNext(err) != Reread {
			t.Errorf("%s was taken away: %v", key, err)
		}
		if _, err := w.PatchClass(t.Context(), read, func(c *awsv1.EC2NodeClass) { c.Annotations["other"] = "b" }); err != nil {
			t.Errorf("another annotation has to wait: %v", err)
		}
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	r := schema.GroupResource{Group: "karpenter.sh", Resource: "nodeclaims"}
	for name, c := range map[string]struct {
		answer error
		next   Next
	}{
		"goes":        {nil, GoOn},
		"gone":        {apierrors.NewNotFound(r, "c"), GoOn},
		"another one": {apierrors.NewConflict(r, "c", errors.New("Precondition failed")), GoOn},
		"not allowed": {apierrors.NewForbidden(r, "c", errors.New("rbac")), Tell},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hooks := interceptor.Funcs{Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
				var o client.DeleteOptions
				o.ApplyOptions(opts)
				if o.Preconditions == nil || *o.Preconditions.UID != "u" {
					t.Error("the call does not name the UID")
				}
				return c.answer
			}}
			w := &Writer{Client: server(t, hooks)}
			err := w.Delete(t.Context(), &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u"}})
			if WhatNext(err) != c.next {
				t.Errorf("Delete: %v", err)
			}
			if err := w.DeletePod(t.Context(), PodRef{Namespace: "n", Name: "p", UID: "u"}, 0); WhatNext(err) != c.next {
				t.Errorf("DeletePod: %v", err)
			}
		})
	}
}

func TestEvict(t *testing.T) {
	t.Parallel()
	budget := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 429, Reason: metav1.StatusReasonTooManyRequests, Message: "Cannot evict pod as it would violate the pod's disruption budget.",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget db needs 1 healthy pods"}}},
	}}
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		answer error
		want   EvictionResult
		next   Next
	}{
		"goes":          {nil, Evicted, GoOn},
		"gone":          {apierrors.NewNotFound(pods, "p"), PodGone, GoOn},
		"another pod":   {apierrors.NewConflict(pods, "p", errors.New("Precondition failed: UID in precondition: u")), PodGone, GoOn},
		"budget":        {budget, Blocked, GoOn},
		"two budgets":   {apierrors.NewInternalError(errors.New("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")), Blocked, GoOn},
		"overload":      {apierrors.NewTooManyRequests("slow down", 1), EvictionFailed, Retry},
		"not allowed":   {apierrors.NewForbidden(pods, "p", errors.New("rbac")), EvictionFailed, Tell},
		"server broken": {apierrors.NewInternalError(errors.New("etcd")), EvictionFailed, Retry},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent *policyv1.Eviction
			hooks := interceptor.Funcs{SubResourceCreate: func(_ context.Context, _ client.Client, sub string, o, body client.Object, _ ...client.SubResourceCreateOption) error {
				if sub != "eviction" || o.GetName() != "p" {
					t.Errorf("call to %s of %s", sub, o.GetName())
				}
				sent = body.(*policyv1.Eviction)
				return c.answer
			}}
			w := &Writer{Client: server(t, hooks)}
			got, err := w.Evict(t.Context(), PodRef{Namespace: "default", Name: "p", UID: "u"})
			if got.Result != c.want || WhatNext(err) != c.next {
				t.Errorf("%+v, %v (%s); want %s, %s", got, err, WhatNext(err), c.want, c.next)
			}
			if sent == nil || *sent.DeleteOptions.Preconditions.UID != "u" {
				t.Error("the eviction does not name the pod's UID")
			}
			if (got.Message != "") != (c.want == Blocked) {
				t.Errorf("message %q", got.Message)
			}
		})
	}
}

func TestWhatNext(t *testing.T) {
	t.Parallel()
	r := schema.GroupResource{Group: "karpenter.sh", Resource: "nodeclaims"}
	for name, c := range map[string]struct {
		err  error
		want Next
	}{
		"none":          {nil, GoOn},
		"conflict":      {apierrors.NewConflict(r, "c", nil), Reread},
		"exists":        {apierrors.NewAlreadyExists(r, "c"), Reread},
		"gone":          {apierrors.NewNotFound(r, "c"), Gone},
		"invalid":       {apierrors.NewInvalid(schema.GroupKind{}, "c", nil), Reject},
		"bad":           {apierrors.NewBadRequest("no"), Reject},
		"unauthorized":  {apierrors.NewUnauthorized("no"), Tell},
		"busy":          {apierrors.NewTooManyRequests("no", 1), Retry},
		"timeout":       {apierrors.NewServerTimeout(r, "get", 1), Retry},
		"cut off":       {context.DeadlineExceeded, Retry},
		"unknown":       {errors.New("connection reset by peer"), Retry},
		"wrapped stale": {errors.Join(errors.New("x"), errStale), Reread},
	} {
		if got := WhatNext(c.err); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestAnyValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reqs []requirements.Requirement
		want string
	}{
		"one of":           {[]requirements.Requirement{{Operator: requirements.In, Values: []string{"b", "a"}}}, "a"},
		"exists":           {[]requirements.Requirement{{Operator: requirements.Exists}}, "1"},
		"exists but not 1": {[]requirements.Requirement{{Operator: requirements.Exists}, {Operator: requirements.NotIn, Values: []string{"1", "2"}}}, "3"},
		"at least":         {[]requirements.Requirement{{Operator: requirements.Gte, Values: []string{"7"}}}, "7"},
		"below":            {[]requirements.Requirement{{Operator: requirements.Lt, Values: []string{"7"}}}, "6"},
		"absence will do":  {[]requirements.Requirement{{Operator: requirements.NotIn, Values: []string{"x"}}}, ""},
		"nothing":          {[]requirements.Requirement{{Operator: requirements.In, Values: []string{"x"}}, {Operator: requirements.In, Values: []string{"y"}}}, ""},
	} {
		all, _ := requirements.All(c.reqs...)
		if got, ok := anyValue(all[""]); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %t; want %q", name, got, ok, c.want)
		}
	}
}
