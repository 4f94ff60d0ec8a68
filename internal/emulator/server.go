// Package emulator serves a world over HTTP as EC2, IAM, STS, EKS, SSM, SQS and the price list.
//
// In: AWS API requests, in the wire formats of the services.
// Out: answers as AWS gives them; the instances that changed state.
// Never: the AWS SDK, or a decision about what the world is like: that is package world.
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

// Server serves a world. Its zero value is ready for use and serves an empty
// one. It is safe for use by several goroutines.
type Server struct {
	World *world.World     // nil: an empty one, made on first use
	Now   func() time.Time // nil: time.Now

	// OnInstance is called for every instance that changed state, in order and one at a time, with no lock held: it may
	// call the Server.
	OnInstance func(world.Instance)

	// OnAsk is called for each action of a role with policies on a resource, before it is done: with the caller, the request
	// (its keys have the tags of the resource) and whether the policies allow it. A call that affects several resources
	// is several requests. It is called with the lock held: it must not call the Server. nil disables it.
	OnAsk func(caller identity.Identity, r iampolicy.Request, isAllowed bool)

	Log *slog.Logger // one line per call; nil: silent

	// Strict refuses access keys that the world did not issue. Without it an
	// unknown key is the administrator of its account: of the account that the
	// key spells, if it is 12 digits, else of DefaultAccount.
	Strict bool

	// Assume is the name of the role, in their account, that callers of an unknown key have instead of being the
	// administrator: they need not sign, and are judged by the role's policies. Empty: none.
	Assume string

	codec    api.Codec
	once     sync.Once
	services map[string]api.Service // by name in signatures: "ec2"

	mu         sync.Mutex // guards the world and what follows
	requests   uint64
	calls      map[string]int
	throttled  map[string]int
	queue      []world.Instance
	delivering bool

	permissions map[string]map[string]int // used, by role
	mail        chan struct{}             // closed, and replaced, when a message may have arrived
}

// DefaultAccount is the account of callers whose access key names none.
const DefaultAccount = "111122223333"

// tick is how often Run looks whether something is due.
const tick = 25 * time.Millisecond

// Run lets time pass until the context ends: instances boot and end, notices are sent.
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

// Do lets f look at the world and alter it, while no request does.
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

// Throttled returns how many of the calls of each action were refused as too many: "ec2:CreateFleet" → 3.
func (s *Server) Throttled() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.throttled)
}

// AppendConsole adds text to the console output of an instance; it does nothing
// for an instance that the world does not know.
func (s *Server) AppendConsole(instanceID, text string) {
	s.Do(func(w *world.World, _ time.Time) { w.AppendConsole(instanceID, text) })
}

// Credentials returns what the instance metadata service would hand the
// instance for its role. The error says what an instance without any is missing.
func (s *Server) Credentials(instanceID string) (accessKey, secretKey, sessionToken string, err error) {
	s.Do(func(w *world.World, now time.Time) {
		var session identity.Session
		session, err = w.InstanceSession(now, instanceID)
		accessKey, secretKey, sessionToken = session.AccessKey, session.SecretKey, session.Token
	})
	return accessKey, secretKey, sessionToken, err
}

// locked runs f with the lock held, in a world that is up to date, and queues
// the instances that changed.
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
	if s.mail != nil && s.World.Mailed() {
		close(s.mail)
		s.mail = nil
	}
}

// deliver empties the queue into OnInstance. One goroutine at a time does it, so
// that the order holds; another one's changes are left to the one at work.
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

// now returns the time on the server's clock, in UTC.
func (s *Server) now() time.Time {
	if s.Now != nil {
		return s.Now().UTC()
	}
	return time.Now().UTC()
}

// logger returns the log, or one that is silent.
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
