package interruption_test

import (
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/interruption"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

const region = "us-east-1"

// fixture is an emulated AWS with a clock, and a client for the queue "demo".
type fixture struct {
	*emulator.Server
	*interruption.Client

	mu  sync.Mutex
	now time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	b := &fixture{now: noon}
	b.Server = &emulator.Server{Now: func() time.Time {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.now
	}}
	srv := httptest.NewServer(b.Server)
	t.Cleanup(srv.Close)
	b.Client = interruption.New(aws.Config{Region: region, BaseEndpoint: aws.String(srv.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "secret", "")}, "demo")
	return b
}

func (b *fixture) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// createQueue creates the queue with messages that have the bodies.
func (b *fixture) createQueue(t *testing.T, bodies ...string) {
	t.Helper()
	b.Do(func(w *world.World, now time.Time) {
		r := w.Region(emulator.DefaultAccount, region)
		if _, err := r.SQS.CreateQueue(now, "demo", nil); err != nil {
			t.Fatal(err)
		}
		for _, body := range bodies {
			if _, err := r.SQS.SendMessage(now, "demo", body); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// receive returns the messages that are in the queue, without waiting.
func (b *fixture) receive(t *testing.T) []interruption.Message {
	t.Helper()
	got, err := b.Receive(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestClient receives three messages and deletes two. The third is hidden, and then received again.
func TestClient(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.createQueue(t, "a", "b", "c")
	got := b.receive(t)
	if len(got) != 3 || got[0].Body != "a" || got[0].Received != 1 || !got[0].Sent.Equal(noon) {
		t.Fatalf("received %+v, want a, b and c for the first time", got)
	}
	if n, err := b.Delete(t.Context(), got[:2]); n != 2 || err != nil {
		t.Fatalf("deleted %d, %v; want 2", n, err)
	}
	if n, err := b.Delete(t.Context(), nil); n != 0 || err != nil {
		t.Fatalf("deleted %d of none, %v; want 0", n, err)
	}
	if hidden := b.receive(t); len(hidden) != 0 {
		t.Errorf("received messages are not hidden: %+v", hidden)
	}
	b.advance(interruption.VisibilityTimeout + time.Second)
	if again := b.receive(t); len(again) != 1 || again[0].Body != "c" || again[0].Received != 2 {
		t.Errorf("after VisibilityTimeout received %+v, want only c, for the second time", again)
	}
	// An old receipt deletes nothing and is not an error: the message is received again.
	if _, err := b.Delete(t.Context(), got[2:]); err != nil {
		t.Error(err)
	}
	b.advance(interruption.VisibilityTimeout + time.Second)
	if again := b.receive(t); len(again) != 1 || again[0].Received != 3 {
		t.Errorf("an old receipt deleted the message: %+v", again)
	}
}

// TestClientWaits: Receive returns a message as soon as it is sent.
func TestClientWaits(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.createQueue(t)
	var got []interruption.Message
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		got, err = b.Receive(t.Context(), interruption.LongPoll)
	}()
	b.Do(func(w *world.World, now time.Time) {
		_, _ = w.Region(emulator.DefaultAccount, region).SQS.SendMessage(now, "demo", "late")
	})
	<-done
	if err != nil || len(got) != 1 || got[0].Body != "late" {
		t.Errorf("received %+v, %v; want the message late", got, err)
	}
}

// TestNoQueue: the error for a missing or deleted queue contains a fix. The queue is found after its creation.
func TestNoQueue(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	expectNoQueue := func() {
		t.Helper()
		_, err := b.Receive(t.Context(), 0)
		if e := awserr.Of(err); e == nil || e.Kind != awserr.Gone || e.Hint == "" {
			t.Fatalf("without a queue: %v, want Gone and a hint", err)
		}
	}
	expectNoQueue()
	b.createQueue(t, "a")
	if got := b.receive(t); len(got) != 1 {
		t.Fatalf("received %+v, want one message", got)
	}
	b.Do(func(w *world.World, _ time.Time) {
		_ = w.Region(emulator.DefaultAccount, region).SQS.DeleteQueue("demo")
	})
	expectNoQueue()
	expectNoQueue()
	b.createQueue(t, "b")
	if got := b.receive(t); len(got) != 1 || got[0].Body != "b" {
		t.Errorf("received %+v, want b", got)
	}
	b.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = []world.Denial{{Call: "sqs:*"}} })
	_, err := b.Receive(t.Context(), 0)
	if e := awserr.Of(err); e == nil || e.Kind != awserr.Denied || e.Hint == "" {
		t.Errorf("without permission: %v, want Denied and a hint", err)
	}
}
