package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-sh/joiner/internal/aws/ec2"
)

// attempt is what this process knows of the launches tried for one claim.
type attempt struct {
	// number goes up when EC2 has answered for good that it sold nothing.
	number int
	// request is what EC2 was asked for with this number, and is asked again until it has answered: the same
	// question has the same answer. Nil: not asked yet, or refused as it was.
	request *ec2.LaunchRequest
	// clean: no launch of this claim can have bought a machine that we do not know of.
	clean bool

	asked     time.Time // when EC2 answered last, or failed to; zero: it was not asked
	answered  time.Time // when it first answered, or last said that it gets too many calls; zero: never
	shortage  bool
	notBefore time.Time
	doubt     time.Time // since when EC2 says that the number was used with other contents; zero: it does not
	tries     int       // failures in a row
}

// attempts are those of all claims. Its methods may be called at the same time, for different claims.
type attempts struct {
	mu      sync.Mutex
	byClaim map[types.UID]*attempt
}

// of returns a copy of what is known; the zero attempt if nothing is.
func (a *attempts) of(claim types.UID) attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.byClaim[claim]; ok {
		return *known
	}
	return attempt{}
}

func (a *attempts) set(claim types.UID, to attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byClaim == nil {
		a.byClaim = map[types.UID]*attempt{}
	}
	a.byClaim[claim] = &to
}

func (a *attempts) forget(claim types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byClaim, claim)
}
