package nodeclaim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-sh/joiner/internal/aws/ec2"
)

// Attempt is what this process knows about the launches that it tried for one NodeClaim.
type Attempt struct {
	// number is part of EC2's client token. It increases each time EC2 has definitely refused to launch an instance.
	number int
	// Request is the launch request that was sent with this number. It is repeated unchanged until EC2 answers, because
	// EC2 launches only one instance for the same token and contents. Nil: no request was sent yet, or EC2 refused its
	// contents.
	Request *ec2.LaunchRequest
	// clean is true if this process knows every instance that a launch for this claim can have created.
	clean bool

	requestEnded time.Time // when the last request ended, with or without an answer of EC2; zero: no request was sent
	timeoutFrom  time.Time // start of LaunchTimeout: when the first request ended, or the last throttled one; zero: not started
	shortage     bool      // EC2 has reported insufficient capacity
	notBefore    time.Time // earliest time of the next launch; zero: now
	doubtSince   time.Time // since when EC2 reports that the token was used with other contents; zero: no such report
	failures     int       // consecutive failures
}

// attempts holds the attempts by UID of the claim. Its methods may be called concurrently for different claims.
type attempts struct {
	mu      sync.Mutex
	byClaim map[types.UID]*Attempt
}

// of returns a copy of the claim's attempt, or the zero Attempt if there is none.
func (a *attempts) of(claim types.UID) Attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.byClaim[claim]; ok {
		return *known
	}
	return Attempt{}
}

func (a *attempts) set(claim types.UID, attempt Attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byClaim == nil {
		a.byClaim = map[types.UID]*Attempt{}
	}
	a.byClaim[claim] = &attempt
}

func (a *attempts) forget(claim types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byClaim, claim)
}
