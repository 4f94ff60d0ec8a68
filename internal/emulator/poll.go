package emulator

import (
	"net/http"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/sqs"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// recheckInterval is the interval at which poll checks for messages that have become visible again. A new message ends
// the wait at once.
const recheckInterval = 200 * time.Millisecond

// poll implements the long polling of ReceiveMessage. answer is the answer of the first attempt. Until an answer has
// messages, poll repeats the call, for up to the requested time. It returns the last answer.
func (s *Server) poll(r *http.Request, c *api.Call, act api.Action, answer any) (any, error) {
	first, ok := answer.(sqs.ReceiveMessageOut)
	if !ok || len(first.Messages) > 0 || first.Wait() <= 0 {
		return answer, nil
	}
	deadline := time.NewTimer(first.Wait())
	defer deadline.Stop()
	ticker := time.NewTicker(recheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-r.Context().Done():
			return answer, nil
		case <-deadline.C:
			return answer, nil
		case <-ticker.C:
		case <-s.nextMessage():
		}
		var err error
		s.locked(func(w *world.World, now time.Time) {
			c.World, c.Now = w, now
			answer, err = s.run(c, act)
		})
		if out, ok := answer.(sqs.ReceiveMessageOut); err != nil || !ok || len(out.Messages) > 0 {
			return answer, err
		}
	}
}

// nextMessage returns a channel that is closed when the next message is sent.
func (s *Server) nextMessage() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.messageSent == nil {
		s.messageSent = make(chan struct{})
	}
	return s.messageSent
}
