package controller

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// apiCache caches the objects of a fake API server in memory, as informers do. Without it, the server decodes each object
// from JSON for each list, which takes most of the time of a test with hundreds of objects. The cache is always current.
type apiCache struct {
	mu      sync.Mutex
	kinds   map[string]*cachedObjects
	indexes map[string]client.IndexerFunc // by "kind field"
}

type cachedObjects struct {
	objects map[client.ObjectKey]client.Object
	stale   map[client.ObjectKey]bool // objects that were written after they were read
}

// cacheAPI puts an apiCache before the rig's API server, and restarts the loops.
func (r *rig) cacheAPI(t testing.TB) {
	t.Helper()
	s := &apiCache{kinds: map[string]*cachedObjects{}, indexes: map[string]client.IndexerFunc{}}
	if err := kubeclient.Index(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	r.api = interceptor.NewClient(r.api, interceptor.Funcs{
		Get: s.get, List: s.list,
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			defer s.markStale(o)
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			defer s.markStale(o)
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			defer s.markStale(o)
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			defer s.markStale(o)
			return c.Delete(ctx, o, opts...)
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, x client.Object,
			opts ...client.SubResourceCreateOption) error {
			defer s.markStale(o)
			return c.SubResource(sub).Create(ctx, o, x, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			defer s.markStale(o)
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			defer s.markStale(o)
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	r.start(t)
}

// IndexField implements client.FieldIndexer.
func (s *apiCache) IndexField(_ context.Context, o client.Object, field string, extract client.IndexerFunc) error {
	s.indexes[cachedKind(o)+" "+field] = extract
	return nil
}

// cachedKind returns the kind of an object, or of the objects of a list: "Pod" for a Pod and for a PodList.
func cachedKind(o any) string {
	name := reflect.TypeOf(o).Elem().Name()
	return strings.TrimSuffix(name, "List")
}

// isCached reports whether lists of the kind come from the cache, which is so for the kinds with many objects.
func isCached(kind string) bool {
	return slices.Contains([]string{"NodeClaim", "Node", "Pod", "NodePool", "EC2NodeClass"}, kind)
}

// markStale records that an object was written, so that it is read again.
func (s *apiCache) markStale(o client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kinds[cachedKind(o)]; k != nil {
		k.stale[client.ObjectKeyFromObject(o)] = true
	}
}

// get serves a Get from the cache if the object is there and current.
func (s *apiCache) get(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[cachedKind(o)]
	if k == nil || k.stale[key] || k.objects[key] == nil {
		return c.Get(ctx, key, o, opts...)
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(k.objects[key].DeepCopyObject()).Elem())
	return nil
}

// list serves a List from the cache if the kind is cached.
func (s *apiCache) list(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	kind := cachedKind(list)
	if !isCached(kind) {
		return c.List(ctx, list, opts...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.refresh(ctx, c, list)
	if err != nil {
		return err
	}
	wanted := client.ListOptions{}
	wanted.ApplyOptions(opts)
	var found []client.Object
	for _, o := range k.objects {
		isMatch, err := s.matches(kind, o, wanted)
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
	return apimeta.SetList(list, out)
}

// refresh reads all objects of a kind the first time, and after that only those that were written since. It returns the
// cached objects. like is a list of the kind.
func (s *apiCache) refresh(ctx context.Context, c client.WithWatch, like client.ObjectList) (*cachedObjects, error) {
	name := cachedKind(like)
	k := s.kinds[name]
	if k == nil {
		all, ok := reflect.New(reflect.TypeOf(like).Elem()).Interface().(client.ObjectList)
		if !ok {
			return nil, fmt.Errorf("%T is no list", like)
		}
		if err := c.List(ctx, all); err != nil {
			return nil, err
		}
		k = &cachedObjects{objects: map[client.ObjectKey]client.Object{}, stale: map[client.ObjectKey]bool{}}
		err := apimeta.EachListItem(all, func(o runtime.Object) error {
			object, ok := o.(client.Object)
			if !ok {
				return fmt.Errorf("%T is no object", o)
			}
			k.objects[client.ObjectKeyFromObject(object)] = object
			return nil
		})
		s.kinds[name] = k
		return k, err
	}
	for key := range k.stale {
		field, _ := reflect.TypeOf(like).Elem().FieldByName("Items")
		fresh, ok := reflect.New(field.Type.Elem()).Interface().(client.Object)
		if !ok {
			return nil, fmt.Errorf("%T has no objects", like)
		}
		delete(k.objects, key)
		switch err := c.Get(ctx, key, fresh); {
		case err == nil:
			k.objects[key] = fresh
		case client.IgnoreNotFound(err) != nil:
			return nil, err
		}
	}
	clear(k.stale)
	return k, nil
}

func (s *apiCache) matches(kind string, o client.Object, wanted client.ListOptions) (bool, error) {
	if wanted.Namespace != "" && o.GetNamespace() != wanted.Namespace || wanted.LabelSelector != nil &&
		!wanted.LabelSelector.Matches(labels.Set(o.GetLabels())) {
		return false, nil
	}
	if wanted.FieldSelector == nil {
		return true, nil
	}
	for _, r := range wanted.FieldSelector.Requirements() {
		extract := s.indexes[kind+" "+r.Field]
		if extract == nil {
			return false, fmt.Errorf("%s has no index of %s", kind, r.Field)
		}
		if !slices.Contains(extract(o), r.Value) {
			return false, nil
		}
	}
	return true, nil
}
