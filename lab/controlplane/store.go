package controlplane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// EtcdObject is an object in the format of etcd.
type EtcdObject struct {
	Key  string // key without the prefix /registry/: "pods/default/web-1"
	JSON []byte // the object, with apiVersion, kind and a UID
}

const storeWorkers = 16

// Store writes objects directly to etcd; the API server then serves them. The writes bypass admission, and Store
// overwrites existing keys. Store is for large numbers of objects: it is many times faster than creating them one by
// one. Each object is a separate transaction, because watches expect one object per revision.
func (c *ControlPlane) Store(ctx context.Context, objects []EtcdObject) error {
	var next atomic.Int64
	var workers sync.WaitGroup
	errs := make([]error, storeWorkers)
	for k := range storeWorkers {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(objects)); i = next.Add(1) - 1 {
				o := objects[i]
				if _, err := c.etcd.Server.Put(ctx, &etcdserverpb.PutRequest{Key: []byte("/registry/" + o.Key), Value: o.JSON}); err != nil {
					errs[k] = fmt.Errorf("store %s: %w", o.Key, err)
					return
				}
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}
