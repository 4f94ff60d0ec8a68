// Package fakeapi provides an API server in memory for tests.
//
// In: a scheme, indexes and objects.
// Out: a client of the server.
// Never: code of the product; only tests import it.
package fakeapi

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/uuid"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	karpv1alpha1 "github.com/joiner-sh/joiner/api/karpenter/v1alpha1"
)

// New returns a client of an in-memory API server with these objects, and with the indexes that index registers. hooks
// replace single calls; a call inside a hook goes to the server. Without a hook, Create sets a UID, as API servers do.
//
// The server is controller-runtime's fake client. It keeps no managed fields, because their update takes most of the
// time of a write. Reads go through an apiCache.
func New(t testing.TB, scheme *runtime.Scheme, index func(context.Context, client.FieldIndexer) error, hooks interceptor.Funcs,
	objects ...client.Object) client.WithWatch {
	t.Helper()
	if hooks.Create == nil {
		hooks.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			o.SetUID(uuid.NewUUID())
			return c.Create(ctx, o, opts...)
		}
	}
	cache := &apiCache{scheme: scheme, indexes: map[indexKey]client.IndexerFunc{}, kinds: map[schema.GroupVersionResource]objectsByKey{},
		stale: map[schema.GroupVersionResource]map[client.ObjectKey]bool{}}
	if err := index(t.Context(), cache); err != nil {
		t.Fatal(err)
	}
	server := fake.NewClientBuilder().WithScheme(scheme).
		WithObjectTracker(&tracker{
			ObjectTracker: clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder()),
			cache:         cache,
		}).
		WithStatusSubresource(&karpv1.NodeClaim{}, &karpv1.NodePool{}, &karpv1alpha1.NodeOverlay{}, &awsv1.EC2NodeClass{}).
		WithObjects(objects...).Build()
	return interceptor.NewClient(interceptor.NewClient(server, interceptor.Funcs{
		Get: cache.get, List: cache.list, SubResourceCreate: createSubResource}), hooks)
}

// tracker stores the objects of the fake API server, and marks the written objects as stale in the cache.
type tracker struct {
	clienttesting.ObjectTracker
	cache *apiCache
}

func (t *tracker) Create(r schema.GroupVersionResource, o runtime.Object, namespace string, opts ...metav1.CreateOptions) error {
	defer t.cache.markWritten(r, o)
	return t.ObjectTracker.Create(r, o, namespace, opts...)
}

func (t *tracker) Update(r schema.GroupVersionResource, o runtime.Object, namespace string, opts ...metav1.UpdateOptions) error {
	defer t.cache.markWritten(r, o)
	return t.ObjectTracker.Update(r, o, namespace, opts...)
}

func (t *tracker) Patch(r schema.GroupVersionResource, o runtime.Object, namespace string, opts ...metav1.PatchOptions) error {
	defer t.cache.markWritten(r, o)
	return t.ObjectTracker.Patch(r, o, namespace, opts...)
}

func (t *tracker) Delete(r schema.GroupVersionResource, namespace, name string, opts ...metav1.DeleteOptions) error {
	defer t.cache.markStale(r, client.ObjectKey{Namespace: namespace, Name: name})
	return t.ObjectTracker.Delete(r, namespace, name, opts...)
}

// apiCache caches the objects of a fake API server in memory, as informers do. Without it, the server encodes and decodes
// all objects of a kind as JSON for each list. Every read sees all earlier writes.
type apiCache struct {
	scheme  *runtime.Scheme
	indexes map[indexKey]client.IndexerFunc

	mu    sync.Mutex                                   // held while the server is read
	kinds map[schema.GroupVersionResource]objectsByKey // the kinds that were listed

	// A write holds a lock of the server, which a read may wait for; so a write must not wait for mu.
	staleMu sync.Mutex
	stale   map[schema.GroupVersionResource]map[client.ObjectKey]bool // objects that were written after they were read
}

type objectsByKey map[client.ObjectKey]client.Object

type indexKey struct {
	resource schema.GroupVersionResource
	field    string
}

// IndexField implements client.FieldIndexer.
func (c *apiCache) IndexField(_ context.Context, o client.Object, field string, extract client.IndexerFunc) error {
	resource, _, err := c.resourceOf(o)
	if err != nil {
		return err
	}
	c.indexes[indexKey{resource, field}] = extract
	return nil
}

// resourceOf returns the resource and the kind of an object, or of the objects of a list.
func (c *apiCache) resourceOf(o runtime.Object) (schema.GroupVersionResource, schema.GroupVersionKind, error) {
	kind, err := apiutil.GVKForObject(o, c.scheme)
	if err != nil {
		return schema.GroupVersionResource{}, kind, err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return resource, kind, nil
}

// isTyped reports whether the object, or list, has a Go type of its own. Only such objects are read from the cache.
func isTyped(o runtime.Object) bool {
	switch o.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return false
	}
	return true
}

func (c *apiCache) markWritten(r schema.GroupVersionResource, o runtime.Object) {
	if written, err := meta.Accessor(o); err == nil {
		c.markStale(r, client.ObjectKey{Namespace: written.GetNamespace(), Name: written.GetName()})
	}
}

func (c *apiCache) markStale(r schema.GroupVersionResource, key client.ObjectKey) {
	c.staleMu.Lock()
	defer c.staleMu.Unlock()
	if c.stale[r] == nil {
		c.stale[r] = map[client.ObjectKey]bool{}
	}
	c.stale[r][key] = true
}

func (c *apiCache) isStale(r schema.GroupVersionResource, key client.ObjectKey) bool {
	c.staleMu.Lock()
	defer c.staleMu.Unlock()
	return c.stale[r][key]
}

// takeStale returns the stale objects of a kind, and counts them as current from now on.
func (c *apiCache) takeStale(r schema.GroupVersionResource) map[client.ObjectKey]bool {
	c.staleMu.Lock()
	defer c.staleMu.Unlock()
	stale := c.stale[r]
	delete(c.stale, r)
	return stale
}

func (c *apiCache) get(ctx context.Context, server client.WithWatch, key client.ObjectKey, o client.Object,
	opts ...client.GetOption) error {
	if !isTyped(o) {
		return server.Get(ctx, key, o, opts...)
	}
	resource, _, err := c.resourceOf(o)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cached := c.kinds[resource][key]
	if cached == nil || c.isStale(resource, key) {
		return server.Get(ctx, key, o, opts...)
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(cached.DeepCopyObject()).Elem())
	return nil
}

func (c *apiCache) list(ctx context.Context, server client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	if !isTyped(list) {
		return server.List(ctx, list, opts...)
	}
	resource, kind, err := c.resourceOf(list)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cached, err := c.refresh(ctx, server, resource, kind)
	if err != nil {
		return err
	}
	wanted := client.ListOptions{}
	wanted.ApplyOptions(opts)
	var found []client.Object
	for _, o := range cached {
		isMatch, err := c.matches(resource, o, wanted)
		if err != nil {
			return err
		}
		if isMatch {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b client.Object) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	out := make([]runtime.Object, 0, len(found))
	for _, o := range found {
		out = append(out, o.DeepCopyObject())
	}
	return meta.SetList(list, out)
}

// refresh reads all objects of a kind the first time, and after that only those that were written since.
func (c *apiCache) refresh(ctx context.Context, server client.WithWatch, r schema.GroupVersionResource,
	kind schema.GroupVersionKind) (objectsByKey, error) {
	stale := c.takeStale(r)
	cached := c.kinds[r]
	if cached == nil {
		all, err := c.readAll(ctx, server, kind)
		if err == nil {
			c.kinds[r] = all
		}
		return all, err
	}
	for key := range stale {
		made, err := c.scheme.New(kind)
		if err != nil {
			return nil, err
		}
		fresh, ok := made.(client.Object)
		if !ok {
			return nil, fmt.Errorf("%T is no object", made)
		}
		delete(cached, key)
		switch err := server.Get(ctx, key, fresh); {
		case err == nil:
			cached[key] = fresh
		case client.IgnoreNotFound(err) != nil:
			delete(c.kinds, r)
			return nil, err
		}
	}
	return cached, nil
}

func (c *apiCache) readAll(ctx context.Context, server client.WithWatch, kind schema.GroupVersionKind) (objectsByKey, error) {
	made, err := c.scheme.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err != nil {
		return nil, err
	}
	all, ok := made.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is no list", made)
	}
	if err := server.List(ctx, all); err != nil {
		return nil, err
	}
	out := objectsByKey{}
	return out, meta.EachListItem(all, func(o runtime.Object) error {
		object, ok := o.(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", o)
		}
		out[client.ObjectKeyFromObject(object)] = object
		return nil
	})
}

func (c *apiCache) matches(r schema.GroupVersionResource, o client.Object, wanted client.ListOptions) (bool, error) {
	if wanted.Namespace != "" && o.GetNamespace() != wanted.Namespace || wanted.LabelSelector != nil &&
		!wanted.LabelSelector.Matches(labels.Set(o.GetLabels())) {
		return false, nil
	}
	if wanted.FieldSelector == nil {
		return true, nil
	}
	for _, term := range wanted.FieldSelector.Requirements() {
		extract := c.indexes[indexKey{r, term.Field}]
		if extract == nil {
			return false, fmt.Errorf("%s has no index of %s", r.Resource, term.Field)
		}
		if !slices.Contains(extract(o), term.Value) {
			return false, nil
		}
	}
	return true, nil
}
