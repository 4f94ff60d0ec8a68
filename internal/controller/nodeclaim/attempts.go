package nodeclaim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-sh/joiner/internal/aws/ec2"
)

// Attempt is what this process knows of the launches tried for one NodeClaim.
type Attempt struct {
	// number is part of EC2's client token. It is increased when EC2 has definitely refused to launch an instance.
	number int
	// Request is what was sent to EC2 with this number. It is repeated unchanged until EC2 answers: the same token with the same
	// contents has the same answer. Nil: nothing was sent yet, or EC2 refused the contents.
	Request *ec2.LaunchRequest
	// clean is true if no launch of this claim can have created an instance that this process does not know of.
	clean bool

	asked     time.Time // when EC2 last answered or failed to answer; zero: no request was sent
	answered  time.Time // when EC2 first answered, or last throttled the request; zero: never
	shortage  bool
	notBefore time.Time
	doubt     time.Time // since when EC2 reports that the number was used with other contents; zero: it does not
	tries     int       // consecutive failures
}

// attempts has the attempts of all claims. Its methods may be called concurrently for different claims.
type attempts struct {
	mu      sync.Mutex
	byClaim map[types.UID]*Attempt
}

// of returns a copy of the claim's attempt; the zero attempt if none is known.
func (a *attempts) of(claim types.UID) Attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.byClaim[claim]; ok {
		return *known
	}
	return Attempt{}
}

func (a *attempts) set(claim types.UID, to Attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byClaim == nil {
		a.byClaim = map[types.UID]*Attempt{}
	}
	a.byClaim[claim] = &to
}

func (a *attempts) forget(claim types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byClaim, claim)
}
