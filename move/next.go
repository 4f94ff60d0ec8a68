package move

import (
	"strconv"
	"strings"
	"time"
)

// Seen is what was seen of one move.
type Seen struct {
	Begun   time.Time
	Wanted  int // claims that are to be made in place of the nodes that go
	Leaving []Leaver
	Coming  []Comer

	// Blocked says which pod could not leave now, or has no place that is ready, and why; empty if all could. It counts
	// only when all that is to come is ready.
	Blocked string
	// BlockedSince is since when; zero if they are not.
	BlockedSince time.Time
	// Off says why the move is not wanted any more: a pool was paused, the price changed; empty if it still is.
	Off string
}

// Leaver is a node that goes.
type Leaver struct {
	Claim string
	Is    Leaving
}

// Leaving is how far a node that goes has come.
type Leaving int

// The states of a node that goes, in their order.
const (
	Marked    Leaving = iota // its claim bears the move
	Closed                   // and its Node takes no new pods
	Committed                // its claim says that it goes, whatever comes
	Deleted                  // its claim is being deleted because of the move
	Taken                    // it is gone, or is being deleted for another reason
)

// Comer is a node that comes.
type Comer struct {
	Claim string
	Is    Coming
}

// Coming is how far a node that comes has come.
type Coming int

// The states of a node that comes.
const (
	OnItsWay Coming = iota
	Ready           // it is fit for pods
	Lost            // it is gone, or going
)

// Step is what to do next.
type Step struct {
	Action Action
	Reason string    // of Undo and Wait, a few words
	Until  time.Time // of Wait: when to look again at the latest
}

// Action is one of a closed set.
type Action string

// The actions.
const (
	Wait   Action = "Wait"
	Close  Action = "Close"  // keep new pods off the nodes that go
	Commit Action = "Commit" // write on the claims that their nodes go
	Delete Action = "Delete" // delete the claims
	Undo   Action = "Undo"   // open the nodes again, give back what came, take the marks off
	Over   Action = "Over"   // nothing is left to do
)

// Limits of a move.
const (
	// ReadyWithin is how long all nodes that come may take to be ready: as long as their claims may take to be bought, to register and to
	// become fit for pods. It must not be less. A claim that comes to nothing is given up by who leads it, who says why, and ends the
	// move with that; a move that ended before would hide it, and be tried again for ever.
	ReadyWithin = 35 * time.Minute
	// BlockedFor is how long pods that cannot leave, or have no place, hold a move up before it is undone.
	BlockedFor = 30 * time.Second
)

// Next says what to do. It is total: whatever was seen, there is exactly one answer, and to do it twice does no harm.
func Next(s Seen, now time.Time) Step {
	here, isSworn := 0, false
	for _, l := range s.Leaving {
		if l.Is != Taken {
			here++
		}
		isSworn = isSworn || l.Is == Committed || l.Is == Deleted
	}
	switch {
	case here == 0:
		return Step{Action: Over}
	case isSworn:
		return onward(s)
	}
	if why := s.failed(now); why != "" {
		return Step{Action: Undo, Reason: why}
	}
	if s.any(Marked) {
		return Step{Action: Close}
	}
	if n := s.coming(); n > 0 {
		return Step{Action: Wait, Reason: strconv.Itoa(n) + " of " + strconv.Itoa(s.Wanted) + " nodes are not ready yet", Until: s.Begun.Add(ReadyWithin)}
	}
	if s.Blocked != "" {
		return Step{Action: Wait, Reason: s.Blocked, Until: s.BlockedSince.Add(BlockedFor)}
	}
	return Step{Action: Commit}
}

// onward takes a move that cannot be undone any more to its end.
func onward(s Seen) Step {
	switch {
	case s.any(Marked), s.any(Closed):
		return Step{Action: Commit}
	case s.any(Committed):
		return Step{Action: Delete}
	}
	return Step{Action: Over}
}

// failed says why the move cannot come to its end, empty if it still can.
func (s Seen) failed(now time.Time) string {
	if s.Off != "" {
		return s.Off
	}
	var lost []string
	for _, c := range s.Coming {
		if c.Is == Lost {
			lost = append(lost, c.Claim)
		}
	}
	switch {
	case len(lost) > 0:
		return "NodeClaim " + strings.Join(lost, ", ") + ", made in their place, did not become a node"
	case len(s.Coming) < s.Wanted:
		return strconv.Itoa(s.Wanted-len(s.Coming)) + " of " + strconv.Itoa(s.Wanted) + " NodeClaims in their place were not made"
	case s.coming() > 0 && !now.Before(s.Begun.Add(ReadyWithin)):
		return "the nodes in their place were not ready within " + ReadyWithin.String()
	case s.coming() == 0 && s.Blocked != "" && !s.BlockedSince.IsZero() && !now.Before(s.BlockedSince.Add(BlockedFor)):
		return s.Blocked
	}
	return ""
}

// coming counts the nodes that are not ready yet.
func (s Seen) coming() int {
	n := 0
	for _, c := range s.Coming {
		if c.Is == OnItsWay {
			n++
		}
	}
	return n
}

func (s Seen) any(is Leaving) bool {
	for _, l := range s.Leaving {
		if l.Is == is {
			return true
		}
	}
	return false
}
