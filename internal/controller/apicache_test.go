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

// shelf caches the objects of an API server in memory, as informers do: the server decodes each object from JSON for each
// list, which takes most of the time of a test with hundreds of them. The cache is never behind.
type shelf struct {
	mu      sync.Mutex
	kinds   map[string]*shelved
	indexes map[string]client.IndexerFunc // by kind and field
}

// shelved holds the cached objects of a kind.
type shelved struct {
	objects map[client.ObjectKey]client.Object
	stale   map[client.ObjectKey]bool // objects that were written after they were read
}

// shelve puts a shelf before the rig's API server, and restarts the loops.
func (r *rig) shelve(t testing.TB) {
	t.Helper()
	s := &shelf{kinds: map[string]*shelved{}, indexes: map[string]client.IndexerFunc{}}
	if err := kubeclient.Index(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	r.api = interceptor.NewClient(r.api, interceptor.Funcs{
		Get: s.get, List: s.list,
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			defer s.written(o)
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			defer s.written(o)
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			defer s.written(o)
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			defer s.written(o)
			return c.Delete(ctx, o, opts...)
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, x client.Object,
			opts ...client.SubResourceCreateOption) error {
			defer s.written(o)
			return c.SubResource(sub).Create(ctx, o, x, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			defer s.written(o)
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			defer s.written(o)
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	r.start(t)
}

// IndexField implements client.FieldIndexer.
func (s *shelf) IndexField(_ context.Context, o client.Object, field string, extract client.IndexerFunc) error {
	s.indexes[shelfName(o)+" "+field] = extract
	return nil
}

// shelfName names a kind by an object or a list of it.
func shelfName(o any) string {
	name := reflect.TypeOf(o).Elem().Name()
	return strings.TrimSuffix(name, "List")
}

// isShelved reports whether objects of the kind are cached: the kinds with many objects.
func isShelved(name string) bool {
	return slices.Contains([]string{"NodeClaim", "Node", "Pod", "NodePool", "EC2NodeClass"}, name)
}

func (s *shelf) written(o client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kinds[shelfName(o)]; k != nil {
		k.stale[client.ObjectKeyFromObject(o)] = true
	}
}

func (s *shelf) get(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[shelfName(o)]
	if k == nil || k.stale[key] || k.objects[key] == nil {
		return c.Get(ctx, key, o, opts...)
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(k.objects[key].DeepCopyObject()).Elem())
	return nil
}

func (s *shelf) list(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	name := shelfName(list)
	if !isShelved(name) {
		return c.List(ctx, list, opts...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.read(ctx, c, list)
	if err != nil {
		return err
	}
	wanted := client.ListOptions{}
	wanted.ApplyOptions(opts)
	var found []client.Object
	for _, o := range k.objects {
		fits, err := s.fits(name, o, wanted)
		if err != nil {
			return err
		}
		if fits {
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

// read updates the objects of a kind.
func (s *shelf) read(ctx context.Context, c client.WithWatch, like client.ObjectList) (*shelved, error) {
	name := shelfName(like)
	k := s.kinds[name]
	if k == nil {
		all, ok := reflect.New(reflect.TypeOf(like).Elem()).Interface().(client.ObjectList)
		if !ok {
			return nil, fmt.Errorf("%T is no list", like)
		}
		if err := c.List(ctx, all); err != nil {
			return nil, err
		}
		k = &shelved{objects: map[client.ObjectKey]client.Object{}, stale: map[client.ObjectKey]bool{}}
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
		item := reflect.TypeOf(like).Elem()
		field, _ := item.FieldByName("Items")
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

// fits reports whether an object matches the list options.
func (s *shelf) fits(name string, o client.Object, wanted client.ListOptions) (bool, error) {
	if wanted.Namespace != "" && o.GetNamespace() != wanted.Namespace || wanted.LabelSelector != nil &&
		!wanted.LabelSelector.Matches(labels.Set(o.GetLabels())) {
		return false, nil
	}
	if wanted.FieldSelector == nil {
		return true, nil
	}
	for _, r := range wanted.FieldSelector.Requirements() {
		extract := s.indexes[name+" "+r.Field]
		if extract == nil {
			return false, fmt.Errorf("%s has no index of %s", name, r.Field)
		}
		if !slices.Contains(extract(o), r.Value) {
			return false, nil
		}
	}
	return true, nil
}
