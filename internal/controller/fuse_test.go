package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// fuse records the writes of one process to the API server and to AWS, and can end the process at one of them. If at is
// set, this write and later ones get no response, as after kill -9. After set, later writes return errCrashed. The zero
// value only records.
type fuse struct {
	at       int           // the process dies at this write, the first being 1; 0: at none
	late     bool          // the process dies after the write; otherwise before it
	dead     chan struct{} // closed when the process dies; nil if at is 0
	released chan struct{} // closed by the test when goroutines that wait for a response may end; nil if at is 0

	mu      sync.Mutex
	refuses bool     // writes are refused when left is 0
	left    int      // number of further writes that are made
	names   []string // the writes so far: "create nodeclaim", "patch nodeclaim/status", "ec2:CreateFleet"
}

// errCrashed is the error of a dead process's writes, once they return.
var errCrashed = errors.New("the process is dead")

// newFuse must be called in the synctest bubble of the process.
func newFuse(at int, late bool) *fuse {
	return &fuse{at: at, late: late, dead: make(chan struct{}), released: make(chan struct{})}
}

// write makes a write if the process lives. If at is set, it makes one write at a time.
func (f *fuse) write(name string, do func() error) error {
	f.mu.Lock()
	if f.at == 0 {
		f.names = append(f.names, name)
		isRefused := f.refuses && f.left == 0
		if f.left > 0 {
			f.left--
		}
		f.mu.Unlock()
		if isRefused {
			return errCrashed
		}
		return do()
	}
	if len(f.names) < f.at {
		f.names = append(f.names, name)
		isFatal := len(f.names) == f.at
		var err error
		if !isFatal || f.late {
			err = do()
		}
		if !isFatal {
			f.mu.Unlock()
			return err
		}
		close(f.dead)
	}
	f.mu.Unlock()
	<-f.released
	return errCrashed
}

// unlimited is larger than the number of writes of any test.
const unlimited = 1 << 30

// set restarts the count. The next left writes are made, and later ones refused. A refused write returns errCrashed
// at once, so that the test's own goroutine, which runs the loops, does not hang.
func (f *fuse) set(left int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuses, f.left, f.names = true, left, nil
}

func (f *fuse) writes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.names)
}

// isDead reports whether all further writes of the rig's process are refused.
func (r *rig) isDead() bool {
	r.fuse.mu.Lock()
	defer r.fuse.mu.Unlock()
	return r.fuse.refuses && r.fuse.left == 0
}

// restart starts a process with an empty memory, all of whose writes are made.
func (r *rig) restart(t *testing.T) {
	t.Helper()
	r.fuse.set(unlimited)
	r.ahead += 5 * time.Second
	r.start(t)
}

func (f *fuse) count(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, written := range f.names {
		if written == name {
			n++
		}
	}
	return n
}

// guard returns a client that sends its writes through the fuse.
func (f *fuse) guard(api client.WithWatch) client.WithWatch {
	name := func(verb string, o client.Object, sub string) string {
		kind := fmt.Sprintf("%T", o)
		return verb + " " + strings.ToLower(kind[strings.LastIndexByte(kind, '.')+1:]) + sub
	}
	return interceptor.NewClient(api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return f.write(name("create", o, ""), func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return f.write(name("update", o, ""), func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return f.write(name("patch", o, ""), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return f.write(name("delete", o, ""), func() error { return c.Delete(ctx, o, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteAllOfOption) error {
			return f.write(name("delete all", o, ""), func() error { return c.DeleteAllOf(ctx, o, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, x client.Object,
			opts ...client.SubResourceCreateOption) error {
			return f.write(name("create", o, "/"+sub), func() error { return c.SubResource(sub).Create(ctx, o, x, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return f.write(name("update", o, "/"+sub), func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			return f.write(name("patch", o, "/"+sub), func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
}

// fusedTransport calls the emulated AWS for one process. It uses no network, because a synctest bubble has none.
type fusedTransport struct {
	rig  *rig
	fuse *fuse
}

// RoundTrip implements http.RoundTripper.
func (l fusedTransport) RoundTrip(q *http.Request) (*http.Response, error) {
	if err := q.Context().Err(); err != nil {
		return nil, err
	}
	body := []byte{}
	if q.Body != nil {
		var err error
		if body, err = io.ReadAll(q.Body); err != nil {
			return nil, err
		}
	}
	request := q.Clone(q.Context())
	request.Body = io.NopCloser(bytes.NewReader(body))
	var response *http.Response
	send := func() error {
		var err error
		response, err = inProcess{l.rig}.RoundTrip(request)
		return err
	}
	name, isWrite := l.rig.nameOf(q, body)
	if !isWrite {
		err := send()
		return response, err
	}
	if err := l.fuse.write(name, send); err != nil {
		return nil, err
	}
	return response, nil
}

// nameOf returns the name of a call to AWS, and whether it is a write: neither a dry run nor a call that reads.
func (r *rig) nameOf(q *http.Request, body []byte) (name string, isWrite bool) {
	_, action, isJSON := strings.Cut(q.Header.Get("X-Amz-Target"), ".")
	if !isJSON {
		form, err := url.ParseQuery(string(body))
		if err != nil || form.Get("Action") == "" {
			return q.Method + " " + q.URL.Path, q.Method != http.MethodGet // EKS
		}
		action = form.Get("Action")
		if form.Get("DryRun") == "true" {
			return action, false
		}
	}
	// "AWS4-HMAC-SHA256 Credential=KEY/DATE/REGION/SERVICE/aws4_request, …"
	scope := strings.Split(q.Header.Get("Authorization"), "/")
	service := scope[max(0, min(3, len(scope)-1))]
	for _, verb := range []string{"Describe", "Get", "List"} {
		if strings.HasPrefix(action, verb) {
			return service + ":" + action, false
		}
	}
	if action == "ReceiveMessage" { // a write if it returns messages, because it hides them from later calls
		isWrite = r.hasMessages()
	} else {
		isWrite = true
	}
	return service + ":" + action, isWrite
}

func (r *rig) hasMessages() bool {
	visible := 0
	r.Do(func(_ *world.World, now time.Time) {
		if q, err := r.estate.Region.SQS.Queue(testQueue); err == nil {
			visible, _ = q.Count(now)
		}
	})
	return visible > 0
}
