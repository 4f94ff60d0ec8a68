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
	s := &fixture{now: noon}
	s.Server = &emulator.Server{Now: func() time.Time {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.now
	}}
	srv := httptest.NewServer(s.Server)
	t.Cleanup(srv.Close)
	s.Client = interruption.New(aws.Config{Region: region, BaseEndpoint: aws.String(srv.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "secret", "")}, "demo")
	return s
}

func (s *fixture) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// createQueue creates the queue with messages that have the bodies.
func (s *fixture) createQueue(t *testing.T, bodies ...string) {
	t.Helper()
	s.Do(func(w *world.World, now time.Time) {
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
func (s *fixture) receive(t *testing.T) []interruption.Message {
	t.Helper()
	got, err := s.Receive(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestClient receives three messages and deletes two. The third is hidden, and then received again.
func TestClient(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.createQueue(t, "a", "b", "c")
	got := s.receive(t)
	if len(got) != 3 || got[0].Body != "a" || got[0].Received != 1 || !got[0].Sent.Equal(noon) {
		t.Fatalf("received %+v, want a, b and c for the first time", got)
	}
	if n, err := s.Delete(t.Context(), got[:2]); n != 2 || err != nil {
		t.Fatalf("deleted %d, %v; want 2", n, err)
	}
	if n, err := s.Delete(t.Context(), nil); n != 0 || err != nil {
		t.Fatalf("Delete of no messages: %d, %v; want 0", n, err)
	}
	if hidden := s.receive(t); len(hidden) != 0 {
		t.Errorf("received messages are not hidden: %+v", hidden)
	}
	s.advance(interruption.VisibilityTimeout + time.Second)
	if again := s.receive(t); len(again) != 1 || again[0].Body != "c" || again[0].Received != 2 {
		t.Errorf("after VisibilityTimeout received %+v, want only c, for the second time", again)
	}
	// An old receipt deletes nothing and is not an error: the message is received again.
	if _, err := s.Delete(t.Context(), got[2:]); err != nil {
		t.Error(err)
	}
	s.advance(interruption.VisibilityTimeout + time.Second)
	if again := s.receive(t); len(again) != 1 || again[0].Received != 3 {
		t.Errorf("an old receipt deleted the message: %+v", again)
	}
}

// TestClientWaits: Receive waits until a message is sent.
func TestClientWaits(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.createQueue(t)
	var got []interruption.Message
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		got, err = s.Receive(t.Context(), interruption.LongPoll)
	}()
	s.Do(func(w *world.World, now time.Time) {
		_, _ = w.Region(emulator.DefaultAccount, region).SQS.SendMessage(now, "demo", "late")
	})
	<-done
	if err != nil || len(got) != 1 || got[0].Body != "late" {
		t.Errorf("received %+v, %v; want the message \"late\"", got, err)
	}
}

// TestNoQueue: the error for a missing or deleted queue contains a fix. The queue is found after its creation.
func TestNoQueue(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	expectNoQueue := func() {
		t.Helper()
		_, err := s.Receive(t.Context(), 0)
		if e := awserr.Of(err); e == nil || e.Kind != awserr.Gone || e.Hint == "" {
			t.Fatalf("without a queue: %v, want Gone and a hint", err)
		}
	}
	expectNoQueue()
	s.createQueue(t, "a")
	if got := s.receive(t); len(got) != 1 {
		t.Fatalf("received %+v, want one message", got)
	}
	s.Do(func(w *world.World, _ time.Time) {
		_ = w.Region(emulator.DefaultAccount, region).SQS.DeleteQueue("demo")
	})
	expectNoQueue() // the client still has the URL of the deleted queue
	expectNoQueue() // the client looks up the queue
	s.createQueue(t, "b")
	if got := s.receive(t); len(got) != 1 || got[0].Body != "b" {
		t.Errorf("received %+v, want b", got)
	}
	s.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = []world.Denial{{Call: "sqs:*"}} })
	_, err := s.Receive(t.Context(), 0)
	if e := awserr.Of(err); e == nil || e.Kind != awserr.Denied || e.Hint == "" {
		t.Errorf("without permission: %v, want Denied and a hint", err)
	}
}
