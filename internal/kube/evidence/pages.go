package evidence

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is the number of objects per request.
const pageSize = 500

// Limits on the objects read of one kind. A tenant may create thousands of objects, and must not be able to hide others
// with them.
const (
	mostObjects = 20_000
	mostPods    = 100_000
)

// pages lists the objects of a kind page by page, until the end or until most objects were read. It calls take for each
// page; take returns the number of objects in the page. isCut reports that there are more objects, or that the deadline
// of ctx passed between two pages. A witness that reads from informers (without plain) reads all objects at once.
func (w *Witness) pages(ctx context.Context, most int, list func() client.ObjectList, take func(client.ObjectList) int,
	options ...client.ListOption) (isCut bool, err error) {
	if w.plain == nil {
		all := list()
		if err := w.live.List(ctx, all, options...); err != nil {
			return false, err
		}
		take(all)
		return false, nil
	}
	return readPages(ctx, w.live, most, list, take, options...)
}

// readPages is pages for a client of the API server.
func readPages(ctx context.Context, api client.Reader, most int, list func() client.ObjectList,
	take func(client.ObjectList) int, options ...client.ListOption) (isCut bool, err error) {
	token, read := "", 0
	for {
		page := list()
		one := append([]client.ListOption{client.Limit(pageSize), client.Continue(token)}, options...)
		switch err := api.List(ctx, page, one...); {
		case err != nil && token != "" && (ctx.Err() != nil || apierrors.IsResourceExpired(err)):
			return true, nil // return the objects that were read
		case err != nil:
			return false, err
		}
		read += take(page)
		if token = page.GetContinue(); token == "" {
			return false, nil
		}
		if read >= most {
			return true, nil
		}
	}
}

// cutAt says how many objects of a list were read; empty if all.
func cutAt(isCut bool, read int, what string) string {
	if !isCut {
		return ""
	}
	return fmt.Sprintf("only the first %d %s were read", read, what)
}
