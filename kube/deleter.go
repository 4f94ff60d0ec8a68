package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Doomed is an object that a person wants to delete.
type Doomed struct {
	Kind string // in lower case: "nodeclaim"
	Name string

	uid  types.UID
	kind schema.GroupVersionKind
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
	d.uid = o.GetUID()
	return d, true, p.delete(ctx, d, client.DryRunAll)
}

// Delete deletes the object that was looked at, and no other one of its name. One that is gone meanwhile is no error.
func (p *Patcher) Delete(ctx context.Context, d Doomed) error { return p.delete(ctx, d) }

func (p *Patcher) delete(ctx context.Context, d Doomed, options ...client.DeleteOption) error {
	o := Trial{kind: d.kind}.object(Patch{Name: d.Name})
	err := p.client.Delete(ctx, o, append(options, client.Preconditions{UID: &d.uid})...)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return Patch{Kind: d.Kind, Name: d.Name}.refused("delete", err)
}
