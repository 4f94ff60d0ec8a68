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
	mu      sync.Mutex
	state   *state
	unasked []feed // the kinds that no informer was asked for yet
	told    []told
}

// told collects the objects that an informer lists first.
type told struct {
	kind string
	all  toolscache.DoneChecker // done when the state has all of it
}

// patience is how long a snapshot waits for the informers' first lists: they take
// half a second in a small cluster, some seconds in a large one.
const patience = 10 * time.Second

// follow returns the state of the cluster. The first call starts the informers and waits for their initial lists.
func (r *Reader) follow(ctx context.Context) (*state, error) {
	f := &r.follower
	if err := f.begin(ctx, r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	state, all := f.state, f.told
	f.mu.Unlock()
	patient, stop := context.WithTimeout(ctx, patience)
	defer stop()
	var late []string
	for _, one := range all {
		select {
		case <-one.all.Done():
		case <-patient.Done():
			if !toolscache.IsDone(one.all) {
				late = append(late, one.kind)
			}
		}
	}
	if len(late) > 0 {
		return nil, fmt.Errorf("the API server has not listed these kinds yet: %s;"+
			" should this last, see whether the controller may list and watch them", strings.Join(late, ", "))
	}
	f.mu.Lock()
	f.told = nil // from now on there is nothing to wait for
	f.mu.Unlock()
	return state, nil
}

// begin asks the informers that have not been asked.
func (f *follower) begin(ctx context.Context, r *Reader) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == nil {
		f.state = newState(View{Usual: r.Usual, IgnorePreferences: r.IgnorePreferences, RelaxMinValues: r.RelaxMinValues})
		f.unasked = f.state.feeds()
	}
	for len(f.unasked) > 0 {
		one := f.unasked[0]
		informer, err := r.Informers.GetInformer(ctx, one.like, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %s: %w", kubeclient.KindOf(one.like), err)
		}
		registered, err := informer.AddEventHandler(f.state.handler(one))
		if err != nil {
			return fmt.Errorf("watch %s: %w", kubeclient.KindOf(one.like), err)
		}
		f.told = append(f.told, told{kubeclient.KindOf(one.like), registered.HasSyncedChecker()})
		f.unasked = slices.Clone(f.unasked[1:])
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
