package evidence

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const pageSize = 500 // objects per request

// Limits on the objects read of one kind. A tenant may create thousands of objects, and must not hide the objects of
// other tenants with them.
const (
	maxObjects = 20_000
	maxPods    = 100_000
)

// pages lists the objects of a kind page by page, until the end or until limit objects were read. list returns an empty
// list. take is called for each page and returns the number of its objects. isCut reports whether more objects may
// exist: if limit was reached, or if a page after the first could not be read before the deadline of ctx or the expiry
// of its token. A Reader of informers (clientset is nil) reads all objects at once.
func (r *Reader) pages(ctx context.Context, limit int, list func() client.ObjectList, take func(client.ObjectList) int,
	options ...client.ListOption) (isCut bool, err error) {
	if r.clientset == nil {
		all := list()
		if err := r.objects.List(ctx, all, options...); err != nil {
			return false, err
		}
		take(all)
		return false, nil
	}
	return readPages(ctx, r.objects, limit, list, take, options...)
}

// readPages does the work of pages for a client of the API server.
func readPages(ctx context.Context, api client.Reader, limit int, list func() client.ObjectList,
	take func(client.ObjectList) int, options ...client.ListOption) (isCut bool, err error) {
	token, read := "", 0
	for {
		page := list()
		pageOptions := append([]client.ListOption{client.Limit(pageSize), client.Continue(token)}, options...)
		switch err := api.List(ctx, page, pageOptions...); {
		case err != nil && token != "" && (ctx.Err() != nil || apierrors.IsResourceExpired(err)):
			return true, nil // the caller uses the objects that were read
		case err != nil:
			return false, err
		}
		read += take(page)
		if token = page.GetContinue(); token == "" {
			return false, nil
		}
		if read >= limit {
			return true, nil
		}
	}
}

// cutNote says how many objects of a list were read; it is empty if all were read.
func cutNote(isCut bool, read int, kinds string) string {
	if !isCut {
		return ""
	}
	return fmt.Sprintf("only the first %d %s were read", read, kinds)
}
