package replacement

import (
	"cmp"
	"slices"
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

	// FitWithin is how long nodes that come may take from joining to being fit for pods; zero: FitWithin.
	FitWithin time.Duration
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
	// Joined is since when its Node is there; zero if it is not.
	Joined time.Time
	// Why says what keeps it from being fit for pods, or why it will not join; it may be empty.
	Why string
}

// Coming is how far a node that comes has come.
type Coming int

// The states of a node that comes.
const (
	OnItsWay Coming = iota
	Ready           // it is fit for pods
	Lost            // it is gone, or going
	Doomed          // it is there, and it is known that it will not join as things are
)

// Step is what to do next.
type Step struct {
	Action Action
	Reason string    // of Undo and Wait, a few words
	Until  time.Time // of Wait: when to look again at the latest
	// Keep, of Undo, are the claims made in their place that stay although nobody needs them: those that are doomed. Who leads them gives
	// them up in time and remembers why, and until then what keeps them from joining can be mended.
	Keep []string
	// Unfit, of Undo, are the claims made in their place whose Nodes joined and did not become fit for pods in time. Nobody else says so.
	Unfit []string
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
	// FitWithin is how long a node may take from joining to being fit for pods, where nodes like it are not known to take long.
	FitWithin = 10 * time.Minute
	// BlockedFor is how long pods that cannot leave, or have no place, hold a move up before it is undone.
	BlockedFor = 30 * time.Second
)

// Next says what to do. It is total: whatever was seen, there is exactly one answer, and to do it twice does no harm.
func Next(s Seen, now time.Time) Step {
	switch {
	case s.isOver():
		return Step{Action: Over}
	case !s.Revocable():
		return onward(s)
	}
	if why := s.failed(now); why != "" {
		return Step{Action: Undo, Reason: why, Keep: s.names(isDoomed), Unfit: s.names(s.unfit(now))}
	}
	if s.any(Marked) {
		return Step{Action: Close}
	}
	if n := s.coming(); n > 0 {
		return Step{Action: Wait, Reason: strconv.Itoa(n) + " of " + strconv.Itoa(s.Wanted) + " nodes are not ready yet", Until: s.readyBy()}
	}
	if s.Blocked != "" {
		return Step{Action: Wait, Reason: s.Blocked, Until: s.BlockedSince.Add(BlockedFor)}
	}
	return Step{Action: Commit}
}

// isOver reports whether all nodes that were to go are gone, or go for another reason.
func (s Seen) isOver() bool {
	return !slices.ContainsFunc(s.Leaving, func(l Leaver) bool { return l.Is != Taken })
}

// Revocable reports whether the move could still be undone, and has something to undo: none of its nodes goes whatever comes.
func (s Seen) Revocable() bool {
	return !s.isOver() && !s.any(Committed) && !s.any(Deleted)
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
	switch lost, doomed, unfit := s.names(isLost), s.names(isDoomed), s.names(s.unfit(now)); {
	case len(lost) > 0:
		return "NodeClaim " + strings.Join(lost, ", ") + ", made in their place, did not become a node"
	case len(s.Coming) < s.Wanted:
		return strconv.Itoa(s.Wanted-len(s.Coming)) + " of " + strconv.Itoa(s.Wanted) + " NodeClaims in their place were not made"
	case len(doomed) > 0:
		return "NodeClaim " + strings.Join(doomed, ", ") + ", made in their place, does not join the cluster" + s.because(doomed[0])
	case len(unfit) > 0:
		return "NodeClaim " + strings.Join(unfit, ", ") + ", made in their place, has joined and was not fit for pods within " + s.fitWithin().String() + s.because(unfit[0])
	case s.coming() > 0 && !now.Before(s.Begun.Add(ReadyWithin)):
		return "the nodes in their place were not ready within " + ReadyWithin.String()
	case s.coming() == 0 && s.Blocked != "" && !s.BlockedSince.IsZero() && !now.Before(s.BlockedSince.Add(BlockedFor)):
		return s.Blocked
	}
	return ""
}

func isLost(c Comer) bool { return c.Is == Lost }

func isDoomed(c Comer) bool { return c.Is == Doomed }

// unfit tells who has joined and has had its time to become fit for pods.
func (s Seen) unfit(now time.Time) func(Comer) bool {
	return func(c Comer) bool {
		return c.Is == OnItsWay && !c.Joined.IsZero() && !now.Before(c.Joined.Add(s.fitWithin()))
	}
}

func (s Seen) fitWithin() time.Duration { return cmp.Or(s.FitWithin, FitWithin) }

// readyBy is when the move is undone if what comes is no further by then.
func (s Seen) readyBy() time.Time {
	by := s.Begun.Add(ReadyWithin)
	for _, c := range s.Coming {
		if fit := c.Joined.Add(s.fitWithin()); c.Is == OnItsWay && !c.Joined.IsZero() && fit.Before(by) {
			by = fit
		}
	}
	return by
}

// names are the claims of those who come that are so.
func (s Seen) names(is func(Comer) bool) []string {
	var out []string
	for _, c := range s.Coming {
		if is(c) {
			out = append(out, c.Claim)
		}
	}
	return out
}

// because is what is known of why the claim is not ready, to be added to a sentence.
func (s Seen) because(claim string) string {
	for _, c := range s.Coming {
		if c.Claim == claim && c.Why != "" {
			return ": " + c.Why
		}
	}
	return ""
}

// coming counts the nodes that are not ready yet.
func (s Seen) coming() int {
	return len(s.names(func(c Comer) bool { return c.Is == OnItsWay }))
}

func (s Seen) any(is Leaving) bool {
	for _, l := range s.Leaving {
		if l.Is == is {
			return true
		}
	}
	return false
}
