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

// Informers report each object of a kind and each change. The manager's cache implements it.
type Informers interface {
	GetInformer(ctx context.Context, like client.Object, opts ...cache.InformerGetOption) (cache.Informer, error)
}

// follower keeps a state up to date. The zero value has not started.
type follower struct {
	mu        sync.Mutex
	state     *state        // nil before the start
	unwatched []feed        // the kinds that have no informer yet
	lists     []initialList // lists of informers that may be incomplete
}

// initialList is the first list of an informer.
type initialList struct {
	kind string
	all  toolscache.DoneChecker // done when the state has all listed objects
}

// listTimeout is how long a snapshot waits for the informers' first lists. They take half a second in a small cluster,
// and some seconds in a large one.
const listTimeout = 10 * time.Second

// follow returns the state of the cluster. The first call starts the informers and waits for their initial lists.
func (r *Reader) follow(ctx context.Context) (*state, error) {
	f := &r.follower
	if err := f.begin(ctx, r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	state, all := f.state, f.lists
	f.mu.Unlock()
	waiting, stop := context.WithTimeout(ctx, listTimeout)
	defer stop()
	var late []string
	for _, one := range all {
		select {
		case <-one.all.Done():
		case <-waiting.Done():
			if !toolscache.IsDone(one.all) {
				late = append(late, one.kind)
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

// begin starts the informers of all kinds that have none yet.
func (f *follower) begin(ctx context.Context, r *Reader) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == nil {
		f.state = newState(View{Usual: r.Usual, IgnorePreferences: r.IgnorePreferences, RelaxMinValues: r.RelaxMinValues})
		f.unwatched = f.state.feeds()
	}
	for len(f.unwatched) > 0 {
		one := f.unwatched[0]
		informer, err := r.Informers.GetInformer(ctx, one.example, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %s: %w", kubeclient.KindOf(one.example), err)
		}
		registered, err := informer.AddEventHandler(f.state.handler(one))
		if err != nil {
			return fmt.Errorf("watch %s: %w", kubeclient.KindOf(one.example), err)
		}
		f.lists = append(f.lists, initialList{kubeclient.KindOf(one.example), registered.HasSyncedChecker()})
		f.unwatched = slices.Clone(f.unwatched[1:])
	}
	return nil
}

// handler returns the callbacks of an informer for the feed.
func (s *state) handler(f feed) toolscache.ResourceEventHandler {
	note := func(object any, then func(client.Object)) {
		if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if o, ok := object.(client.Object); ok {
			s.mu.Lock()
			defer s.mu.Unlock()
			then(o)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { note(o, f.put) },
		UpdateFunc: func(_, o any) { note(o, f.put) },
		DeleteFunc: func(o any) { note(o, f.drop) },
	}
}
