package controller

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listCache is a client that caches each list until an object of the list's kind is written through this client. This
// makes long tests ten times faster, because the fake API server encodes each object for each list.
type listCache struct {
	client.WithWatch

	mu    sync.Mutex
	lists map[reflect.Type]map[string]client.ObjectList // by type of the list, and by options
}

// List returns the cached list. If the list is not cached, List reads it from the API server. With
// UnsafeDisableDeepCopy all callers get the same objects, which they must not change.
func (l *listCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	isShared := options.UnsafeDisableDeepCopy != nil && *options.UnsafeDisableDeepCopy
	options.UnsafeDisableDeepCopy = nil
	kind, key := reflect.TypeOf(list), fmt.Sprint(options)
	cached := l.lists[kind][key]
	if cached == nil {
		cached = reflect.New(kind.Elem()).Interface().(client.ObjectList)
		if err := l.WithWatch.List(ctx, cached, opts...); err != nil {
			return err
		}
		if l.lists == nil {
			l.lists = map[reflect.Type]map[string]client.ObjectList{}
		}
		if l.lists[kind] == nil {
			l.lists[kind] = map[string]client.ObjectList{}
		}
		l.lists[kind][key] = cached
	}
	if !isShared {
		cached = cached.DeepCopyObject().(client.ObjectList)
	}
	reflect.ValueOf(list).Elem().Set(reflect.ValueOf(cached).Elem())
	return nil
}

// forget drops the lists of the object's kind.
func (l *listCache) forget(object client.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := reflect.TypeOf(object).Elem().Name() + "List"
	for kind := range l.lists {
		if kind.Elem().Name() == name {
			delete(l.lists, kind)
		}
	}
}

func (l *listCache) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	defer l.forget(o)
	return l.WithWatch.Create(ctx, o, opts...)
}

func (l *listCache) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	defer l.forget(o)
	return l.WithWatch.Update(ctx, o, opts...)
}

func (l *listCache) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	defer l.forget(o)
	return l.WithWatch.Patch(ctx, o, p, opts...)
}

func (l *listCache) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	defer l.forget(o)
	return l.WithWatch.Delete(ctx, o, opts...)
}

func (l *listCache) Status() client.SubResourceWriter { return l.SubResource("status") }

func (l *listCache) SubResource(name string) client.SubResourceClient {
	return cachedSubresource{l.WithWatch.SubResource(name), l}
}

// cachedSubresource is a subresource of a listCache. A write to it also drops the lists of its object: an eviction
// deletes a pod.
type cachedSubresource struct {
	client.SubResourceClient
	cache *listCache
}

func (s cachedSubresource) Create(ctx context.Context, o, sub client.Object, opts ...client.SubResourceCreateOption) error {
	defer s.cache.forget(o)
	return s.SubResourceClient.Create(ctx, o, sub, opts...)
}

func (s cachedSubresource) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	defer s.cache.forget(o)
	return s.SubResourceClient.Update(ctx, o, opts...)
}

func (s cachedSubresource) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	defer s.cache.forget(o)
	return s.SubResourceClient.Patch(ctx, o, p, opts...)
}
