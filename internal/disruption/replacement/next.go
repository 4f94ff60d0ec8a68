package replacement

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Seen is the observed state of a move.
type Seen struct {
	Begun   time.Time
	Wanted  int // claims that are to be made in place of the nodes that go
	Leaving []Leaver
	Coming  []Comer

	// Blocked is the pod that could not be evicted now, or has no ready node, and why; empty if there is none. It counts only when all
	// replacements are ready.
	Blocked string
	// BlockedSince is since when; zero if not blocked.
	BlockedSince time.Time
	// Off is why the move is not wanted any more: a pool was paused, the price changed; empty if it still is.
	Off string

	// FitWithin is how long a replacement may take from joining to being initialized; zero: the constant FitWithin.
	FitWithin time.Duration
}

// Leaver is a node that goes.
type Leaver struct {
	Claim string
	Is    Leaving
}

// Leaving is how far a node that goes has come.
type Leaving int

// The states of a candidate, in order.
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
	// Why is what keeps it from being initialized, or why it will not join; may be empty.
	Why string
}

// Coming is how far a node that comes has come.
type Coming int

// The states of a replacement.
const (
	OnItsWay Coming = iota
	Ready           // it is fit for pods
	Lost            // it is gone, or going
	Doomed          // it is there, and it is known that it will not join as things are
)

// Step is the next step of a move.
type Step struct {
	Action Action
	Reason string    // of Undo and Wait
	Until  time.Time // of Wait: when to check again at the latest
	// Keep, of Undo, are the replacement NodeClaims that will not join and stay although the move does not need them. Their controller deletes
	// them in time and records why; until then a user can fix the cause.
	Keep []string
	// Unfit, of Undo, are the replacement NodeClaims whose Nodes registered and were not initialized in time. Nothing else reports them.
	Unfit []string
}

// Action is the kind of a step: a closed set.
type Action string

// The actions.
const (
	Wait   Action = "Wait"
	Close  Action = "Close"  // keep new pods off the nodes that go
	Commit Action = "Commit" // write on the claims that their nodes go
	Delete Action = "Delete" // delete the claims
	Undo   Action = "Undo"   // uncordon the nodes, terminate the replacements, remove the marks
	Over   Action = "Over"   // nothing is left to do
)

// Limits of a move.
const (
	// ReadyWithin is how long all replacements together may take to be initialized: as long as their NodeClaims may take to launch, register
	// and initialize, and not less. A failed NodeClaim is deleted by its own controller, which reports why and thereby ends the move. A move
	// that ended before would hide the reason, and be tried again and again.
	ReadyWithin = 35 * time.Minute
	// FitWithin is how long a node may take from registration to initialization, unless nodes like it are known to take longer.
	FitWithin = 10 * time.Minute
	// BlockedFor is how long blocked pods may delay a move before it is undone.
	BlockedFor = 30 * time.Second
)

// Next returns the next step. It returns exactly one step for any state, and every step may be repeated.
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

// Revocable reports whether the move can be undone: it is not done, and no candidate is committed or deleted.
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

// failed returns why the move cannot be completed; empty if it can.
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

// unfit selects the replacements that have joined and have had their time to become ready for pods.
func (s Seen) unfit(now time.Time) func(Comer) bool {
	return func(c Comer) bool {
		return c.Is == OnItsWay && !c.Joined.IsZero() && !now.Before(c.Joined.Add(s.fitWithin()))
	}
}

func (s Seen) fitWithin() time.Duration { return cmp.Or(s.FitWithin, FitWithin) }

// readyBy returns when the move is undone if its replacements make no progress.
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

// because returns the known reason why the NodeClaim is not ready, as a suffix of a sentence.
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
