package controller

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recall is a client that caches lists until an object of the kind is written through it, as an informer does for the
// controller. The fake API server behind it encodes each object for each list, which would take nine tenths of a long test.
type recall struct {
	client.WithWatch

	mu    sync.Mutex
	lists map[reflect.Type]map[string]client.ObjectList // by kind and options
}

// List returns cached lists if it can. With UnsafeDisableDeepCopy the objects are shared, and must not be changed.
func (r *recall) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	isShared := options.UnsafeDisableDeepCopy != nil && *options.UnsafeDisableDeepCopy
	options.UnsafeDisableDeepCopy = nil
	kind, key := reflect.TypeOf(list), fmt.Sprint(options)
	known := r.lists[kind][key]
	if known == nil {
		known = reflect.New(kind.Elem()).Interface().(client.ObjectList)
		if err := r.WithWatch.List(ctx, known, opts...); err != nil {
			return err
		}
		if r.lists == nil {
			r.lists = map[reflect.Type]map[string]client.ObjectList{}
		}
		if r.lists[kind] == nil {
			r.lists[kind] = map[string]client.ObjectList{}
		}
		r.lists[kind][key] = known
	}
	if !isShared {
		known = known.DeepCopyObject().(client.ObjectList)
	}
	reflect.ValueOf(list).Elem().Set(reflect.ValueOf(known).Elem())
	return nil
}

// forget drops the lists of the object's kind.
func (r *recall) forget(object client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := reflect.TypeOf(object).Elem().Name() + "List"
	for kind := range r.lists {
		if kind.Elem().Name() == name {
			delete(r.lists, kind)
		}
	}
}

func (r *recall) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	defer r.forget(o)
	return r.WithWatch.Create(ctx, o, opts...)
}

func (r *recall) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	defer r.forget(o)
	return r.WithWatch.Update(ctx, o, opts...)
}

func (r *recall) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	defer r.forget(o)
	return r.WithWatch.Patch(ctx, o, p, opts...)
}

func (r *recall) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	defer r.forget(o)
	return r.WithWatch.Delete(ctx, o, opts...)
}

func (r *recall) Status() client.SubResourceWriter { return r.SubResource("status") }

func (r *recall) SubResource(name string) client.SubResourceClient {
	return recalled{r.WithWatch.SubResource(name), r}
}

// recalled is a subresource of a recall, for example an eviction, which deletes a pod.
type recalled struct {
	client.SubResourceClient
	r *recall
}

func (s recalled) Create(ctx context.Context, o, sub client.Object, opts ...client.SubResourceCreateOption) error {
	defer s.r.forget(o)
	return s.SubResourceClient.Create(ctx, o, sub, opts...)
}

func (s recalled) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	defer s.r.forget(o)
	return s.SubResourceClient.Update(ctx, o, opts...)
}

func (s recalled) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	defer s.r.forget(o)
	return s.SubResourceClient.Patch(ctx, o, p, opts...)
}
