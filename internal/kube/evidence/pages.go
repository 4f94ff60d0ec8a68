package evidence

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is how many objects one request asks for.
const pageSize = 500

// Limits of what a witness reads of one kind. A tenant may create thousands of objects, and no list of them may hide another one.
const (
	mostObjects = 20_000
	mostPods    = 100_000
)

// pages lists the objects of a kind page by page and calls take for each page, until there are no more or most were read. isCut reports
// that there were more, or that the deadline of ctx came between two pages. A witness without pages, on informers, reads all at once.
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

func readPages(ctx context.Context, api client.Reader, most int, list func() client.ObjectList,
	take func(client.ObjectList) int, options ...client.ListOption) (isCut bool, err error) {
	token, read := "", 0
	for {
		page := list()
		one := append([]client.ListOption{client.Limit(pageSize), client.Continue(token)}, options...)
		switch err := api.List(ctx, page, one...); {
		case err != nil && token != "" && (ctx.Err() != nil || apierrors.IsResourceExpired(err)):
			return true, nil // what was read until then counts
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

// cutAt says how much of a list was read; empty: all of it.
func cutAt(isCut bool, read int, what string) string {
	if !isCut {
		return ""
	}
	return fmt.Sprintf("only the first %d %s were read", read, what)
}
