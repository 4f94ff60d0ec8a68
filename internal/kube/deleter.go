package kube

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// Doomed is an object that a person wants to delete.
type Doomed struct {
	Kind string // in lower case: "nodeclaim"
	Name string

	// Of a NodeClaim.
	ProviderID string // status.providerID
	Joined     bool   // its condition Registered is true

	uid     types.UID
	version string
	kind    schema.GroupVersionKind
}

// Doom looks at an object that is to be deleted, and has the API server judge that, without doing it. It is not found where it is gone already.
func (p *Patcher) Doom(ctx context.Context, kind, name string) (d Doomed, found bool, err error) {
	d = Doomed{Kind: kind, Name: name}
	if d.kind, err = p.client.RESTMapper().KindFor(schema.GroupVersionResource{Resource: kind}); err != nil {
		return d, false, fmt.Errorf("find the kind %s: %w", kind, err)
	}
	o := Trial{kind: d.kind}.object(Patch{Name: name})
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(o), o); apierrors.IsNotFound(err) {
		return d, false, nil
	} else if err != nil {
		return d, false, Patch{Kind: kind, Name: name}.refused("get", err)
	}
	d.uid, d.version = o.GetUID(), o.GetResourceVersion()
	d.ProviderID, d.Joined = claimStatus(o)
	return d, true, p.delete(ctx, d, client.DryRunAll)
}

// claimStatus reads the status of a NodeClaim; of another object it is empty.
func claimStatus(o *unstructured.Unstructured) (providerID string, isJoined bool) {
	providerID, _, err := unstructured.NestedString(o.Object, "status", "providerID")
	if err != nil {
		return "", false
	}
	conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	if err != nil {
		return providerID, false
	}
	return providerID, slices.ContainsFunc(conditions, func(c any) bool {
		one, ok := c.(map[string]any)
		return ok && one["type"] == karpv1.ConditionRegistered && one["status"] == string(metav1.ConditionTrue)
	})
}

// Delete deletes the object as it was read, and no other one of its name. One that is gone meanwhile is no error; one that has changed is.
func (p *Patcher) Delete(ctx context.Context, d Doomed) error { return p.delete(ctx, d) }

func (p *Patcher) delete(ctx context.Context, d Doomed, options ...client.DeleteOption) error {
	o := Trial{kind: d.kind}.object(Patch{Name: d.Name})
	err := p.client.Delete(ctx, o, append(options, client.Preconditions{UID: &d.uid, ResourceVersion: &d.version})...)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return Patch{Kind: d.Kind, Name: d.Name}.refused("delete", err)
}
