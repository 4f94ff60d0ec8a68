package controlplane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Stored is an object as it lies in etcd.
type Stored struct {
	Key  string // below the API server's prefix: "pods/default/web-1"
	JSON []byte // with apiVersion, kind and a UID
}

// storers is how many objects are on their way to etcd at once.
const storers = 16

// Store writes objects past the API server, which then serves them as if it had stored them: neither admission nor controllers have been asked.
// What is there under a key is replaced. It is for crowds: many times as fast as to create them one by one. Each object is written by
// itself, as watches take objects of one revision for one.
func (c *ControlPlane) Store(ctx context.Context, objects []Stored) error {
	var next atomic.Int64
	var all sync.WaitGroup
	failed := make([]error, storers)
	for k := range storers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(objects)); i = next.Add(1) - 1 {
				o := objects[i]
				if _, err := c.etcd.Server.Put(ctx, &etcdserverpb.PutRequest{Key: []byte("/registry/" + o.Key), Value: o.JSON}); err != nil {
					failed[k] = fmt.Errorf("store %s: %w", o.Key, err)
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}
