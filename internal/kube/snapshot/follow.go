package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// Informers returns informers, which report each object of a kind and each change. The manager's cache implements it.
type Informers interface {
	GetInformer(ctx context.Context, like client.Object, opts ...cache.InformerGetOption) (cache.Informer, error)
}

// follower keeps a state up to date. The zero value has not started.
type follower struct {
	mu        sync.Mutex
	state     *state        // nil before the start
	unwatched []feed        // the kinds that have no informer yet
	lists     []initialList // of all informers; nil when all lists are complete
}

type initialList struct {
	kind     string
	complete toolscache.DoneChecker // done when the state has all listed objects
}

// listTimeout is how long a snapshot waits for the informers' first lists. They take half a second in a small cluster,
// and some seconds in a large one.
const listTimeout = 10 * time.Second

// follow returns the state of the cluster. The first call starts the informers and waits for their initial lists.
func (r *Reader) follow(ctx context.Context) (*state, error) {
	f := &r.follower
	if err := f.startInformers(ctx, r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	state, lists := f.state, f.lists
	f.mu.Unlock()
	timeout, stop := context.WithTimeout(ctx, listTimeout)
	defer stop()
	var late []string
	for _, list := range lists {
		select {
		case <-list.complete.Done():
		case <-timeout.Done():
			if !toolscache.IsDone(list.complete) {
				late = append(late, list.kind)
			}
		}
	}
	if len(late) > 0 {
		return nil, fmt.Errorf("the API server has not listed these kinds yet: %s;"+
			" if this persists, check that the controller is allowed to list and watch them", strings.Join(late, ", "))
	}
	f.mu.Lock()
	f.lists = nil // all lists are complete
	f.mu.Unlock()
	return state, nil
}

func (f *follower) startInformers(ctx context.Context, r *Reader) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == nil {
		f.state = newState(View{DefaultSpread: r.DefaultSpread, IgnorePreferences: r.IgnorePreferences, RelaxMinValues: r.RelaxMinValues})
		f.unwatched = f.state.feeds()
	}
	for len(f.unwatched) > 0 {
		next := f.unwatched[0]
		informer, err := r.Informers.GetInformer(ctx, next.example, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %s: %w", kubeclient.KindOf(next.example), err)
		}
		registration, err := informer.AddEventHandler(f.state.handler(next))
		if err != nil {
			return fmt.Errorf("watch %s: %w", kubeclient.KindOf(next.example), err)
		}
		f.lists = append(f.lists, initialList{kubeclient.KindOf(next.example), registration.HasSyncedChecker()})
		f.unwatched = slices.Clone(f.unwatched[1:])
	}
	return nil
}

// handler returns the callbacks with which an informer updates the state through the feed.
func (s *state) handler(f feed) toolscache.ResourceEventHandler {
	// locked calls update with the lock of the state.
	locked := func(object any, update func(client.Object)) {
		if deleted, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = deleted.Obj
		}
		if o, ok := object.(client.Object); ok {
			s.mu.Lock()
			defer s.mu.Unlock()
			update(o)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { locked(o, f.put) },
		UpdateFunc: func(_, o any) { locked(o, f.put) },
		DeleteFunc: func(o any) { locked(o, f.drop) },
	}
}
