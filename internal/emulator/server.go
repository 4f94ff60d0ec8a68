// Package emulator serves a world over HTTP as EC2, IAM, STS, EKS, zonal shift, SSM, SQS, KMS, Service Quotas, AWS
// Organizations and the price list.
//
// In: AWS API requests, in the wire formats of the services.
// Out: answers in AWS's wire formats; the instances that changed state.
// Never: the AWS SDK, or the state and the rules of AWS (package world has them).
package emulator

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// Server serves a world. The zero value is ready for use and serves an empty world. It is safe for concurrent use.
type Server struct {
	World *world.World     // the world that is served; nil: an empty world, created on first use
	Now   func() time.Time // the clock; nil: time.Now

	// OnInstance is called after every state change of an instance, in order and one call at a time. It may call the
	// Server. nil disables it.
	OnInstance func(world.Instance)

	// OnVerdict is called whenever the policies of a restricted role are evaluated, before the action is executed.
	// r.Keys include the tags of the resource. A call that affects several resources has one request for each.
	// OnVerdict must not call the Server, because the lock is held. nil disables it.
	OnVerdict func(caller identity.Identity, r iampolicy.Request, isAllowed bool)

	Log *slog.Logger // one line per call; nil disables it

	// Strict rejects access keys that the world did not issue. If it is false, such a key identifies an account: a key
	// of 12 digits is the account's number; any other key means DefaultAccount.
	Strict bool

	// UnknownKeyRole is the name of the role of a caller with an unknown access key, in the account that the key
	// identifies; empty: the caller is the administrator. The signature is not verified.
	UnknownKeyRole string

	codec    api.Codec
	once     sync.Once
	services map[string]api.Service // by name in signatures: "ec2"

	mu         sync.Mutex       // guards the world and the fields below
	requests   uint64           // number of requests
	calls      map[string]int   // number of calls: see Calls
	throttled  map[string]int   // number of throttled calls: see Throttled
	queue      []world.Instance // instances that changed state, for deliver
	delivering bool             // a goroutine is calling OnInstance

	permissions map[string]map[string]int // number of uses of each permission, by role
	messageSent chan struct{}             // closed when a message is sent; nil until a receiver waits
}

// DefaultAccount is the account of callers whose access key is unknown and is not an account number.
const DefaultAccount = "111122223333"

const tick = 25 * time.Millisecond

// Run advances the world until the context ends: instances change state, interruption messages are sent.
func (s *Server) Run(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		s.Do(func(*world.World, time.Time) {})
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Do calls f with exclusive access to the world. f may change the world, and must not call the Server.
func (s *Server) Do(f func(w *world.World, now time.Time)) {
	s.locked(f)
	s.deliver()
}

// Calls returns how many calls of each action were served: "ec2:CreateFleet" → 12.
func (s *Server) Calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// Throttled returns how many calls of each action were throttled: "ec2:CreateFleet" → 3.
func (s *Server) Throttled() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.throttled)
}

// AppendConsole adds text to the console output of an instance. It does nothing if the instance does not exist.
func (s *Server) AppendConsole(instanceID, text string) {
	s.Do(func(w *world.World, _ time.Time) { w.AppendConsole(instanceID, text) })
}

// Credentials returns the credentials that the instance metadata service returns to the instance. The error describes
// why the instance has none.
func (s *Server) Credentials(instanceID string) (accessKey, secretKey, sessionToken string, err error) {
	s.Do(func(w *world.World, now time.Time) {
		var session identity.Session
		session, err = w.InstanceSession(now, instanceID)
		accessKey, secretKey, sessionToken = session.AccessKey, session.SecretKey, session.Token
	})
	return accessKey, secretKey, sessionToken, err
}

// locked advances the world to the current time, runs f with the lock held, and queues the instances that changed state
// for deliver.
func (s *Server) locked(f func(w *world.World, now time.Time)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.World == nil {
		s.World = &world.World{}
	}
	now := s.now()
	s.World.Advance(now)
	f(s.World, now)
	s.World.Advance(now)
	s.queue = append(s.queue, s.World.Changes()...)
	if s.messageSent != nil && s.World.MessageSent() {
		close(s.messageSent)
		s.messageSent = nil
	}
}

// deliver calls OnInstance for the queued instances. To keep their order, only one goroutine delivers at a time. It
// also delivers the instances that other goroutines queue meanwhile.
func (s *Server) deliver() {
	for {
		s.mu.Lock()
		batch := s.queue
		if s.delivering || len(batch) == 0 {
			s.mu.Unlock()
			return
		}
		s.queue = nil
		s.delivering = true
		s.mu.Unlock()

		if s.OnInstance != nil {
			for _, i := range batch {
				s.OnInstance(i)
			}
		}

		s.mu.Lock()
		s.delivering = false
		s.mu.Unlock()
	}
}

func (s *Server) now() time.Time {
	if s.Now != nil {
		return s.Now().UTC()
	}
	return time.Now().UTC()
}

func (s *Server) logger() *slog.Logger {
	if s.Log != nil {
		return s.Log
	}
	return slog.New(slog.DiscardHandler)
}

// ServeHTTP answers one AWS API call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.serve(w, r)
	s.deliver()
}
