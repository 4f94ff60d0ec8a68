package replacement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MoveState is the observed state of a move.
type MoveState struct {
	// Started is when the move started.
	Started time.Time
	// ReplacementCount is the number of NodeClaims that the move creates.
	ReplacementCount int
	// Candidates are the nodes that the move removes.
	Candidates []Candidate
	// Replacements are the launched nodes whose NodeClaims exist.
	Replacements []Replacement

	// Blocked names a pod that could not be evicted now, or that has no ready node to go to, with the reason; empty if
	// there is none. It counts only when all replacements are ready.
	Blocked string
	// BlockedSince is when the move became blocked; zero if not blocked.
	BlockedSince time.Time
	// Obsolete is the reason why the move is no longer needed, for example a paused pool or a changed price; empty if
	// the move is still needed.
	Obsolete string

	// InitializationTimeout is how long a replacement may take from joining to being initialized; zero means
	// DefaultInitializationTimeout.
	InitializationTimeout time.Duration
}

// Candidate is a node that a move removes.
type Candidate struct {
	// Claim is the name of its NodeClaim.
	Claim string
	// State is its progress.
	State CandidateState
}

// CandidateState is the progress of a candidate.
type CandidateState int

// The states of a candidate, in order.
const (
	Marked    CandidateState = iota // its NodeClaim has the move's annotation
	Closed                          // its Node is also cordoned, or does not exist
	Committed                       // the annotation says that it is removed in any case
	Deleted                         // its NodeClaim is being deleted because of the move
	Gone                            // its NodeClaim does not exist, or is being deleted for another reason
)

// Replacement is a node that a move launches.
type Replacement struct {
	// Claim is the name of its NodeClaim.
	Claim string
	// State is its progress.
	State Progress
	// Joined is when its Node registered; zero if it has not.
	Joined time.Time
	// Why is the reason why the replacement is not initialized, or why it will not join; may be empty.
	Why string
}

// Progress is the progress of a replacement.
type Progress int

// The states of a replacement.
const (
	Launching   Progress = iota // it is not initialized yet
	Ready                       // it is initialized
	Lost                        // the NodeClaim was deleted, or is being deleted
	WillNotJoin                 // the NodeClaim exists, and a diagnosis says that it will not join
)

// Step is the next step of a move.
type Step struct {
	Action Action    // what to do
	Reason string    // only for Undo and Wait
	Until  time.Time // only for Wait: when to check again at the latest
	// Keep, only for Undo, are the replacement NodeClaims that will not join. They stay although the move does not need
	// them. The NodeClaim controller deletes them after their timeout and records the reason; until then a user can fix
	// the cause.
	Keep []string
	// NotInitialized, only for Undo, are the replacement NodeClaims whose Nodes registered but were not initialized in
	// time. Only the caller of Next reports them.
	NotInitialized []string
}

// Action is the kind of a step. The set of actions is closed.
type Action string

// The actions.
const (
	Wait   Action = "Wait"   // nothing until Step.Until, or until a change
	Close  Action = "Close"  // keep new pods off the candidates
	Commit Action = "Commit" // mark the candidates' NodeClaims as committed
	Delete Action = "Delete" // delete the NodeClaims of the candidates
	Undo   Action = "Undo"   // uncordon the candidates, terminate the replacements, remove the annotations
	Done   Action = "Over"   // nothing is left to do
)

// Limits of a move.
const (
	// ReadyWithin is the time limit for all replacements together to be initialized. It is longer than a NodeClaim may
	// take to launch (5 min), register (15) and initialize (10). The NodeClaim controller deletes a failed NodeClaim and
	// reports the reason, which ends the move. A move that ended earlier would hide the reason, and would be tried
	// again and again.
	ReadyWithin = 35 * time.Minute
	// DefaultInitializationTimeout is the time limit from registration to initialization of a node, unless similar
	// nodes are known to take longer.
	DefaultInitializationTimeout = 10 * time.Minute
	// BlockedFor is how long blocked pods may delay a move before the move is undone.
	BlockedFor = 30 * time.Second
)

// Next returns the next step. It returns exactly one step for any state. Every step is idempotent.
func Next(s MoveState, now time.Time) Step {
	switch {
	case s.isDone():
		return Step{Action: Done}
	case !s.Revocable():
		return stepAfterCommit(s)
	}
	if why := s.failure(now); why != "" {
		return Step{Action: Undo, Reason: why, Keep: s.names(willNotJoin), NotInitialized: s.names(s.isOverdue(now))}
	}
	if s.anyIn(Marked) {
		return Step{Action: Close}
	}
	if n := s.launching(); n > 0 {
		reason := fmt.Sprintf("%d of %d nodes are not ready yet", n, s.ReplacementCount)
		return Step{Action: Wait, Reason: reason, Until: s.readyBy()}
	}
	if s.Blocked != "" {
		return Step{Action: Wait, Reason: s.Blocked, Until: s.BlockedSince.Add(BlockedFor)}
	}
	return Step{Action: Commit}
}

func (s MoveState) isDone() bool {
	return !slices.ContainsFunc(s.Candidates, func(c Candidate) bool { return c.State != Gone })
}

// Revocable reports whether the move can be undone: it is not done, and no candidate is committed or deleted.
func (s MoveState) Revocable() bool {
	return !s.isDone() && !s.anyIn(Committed) && !s.anyIn(Deleted)
}

func stepAfterCommit(s MoveState) Step {
	switch {
	case s.anyIn(Marked), s.anyIn(Closed):
		return Step{Action: Commit}
	case s.anyIn(Committed):
		return Step{Action: Delete}
	}
	return Step{Action: Done}
}

// failure returns why the move must be undone; empty if it can continue.
func (s MoveState) failure(now time.Time) string {
	if s.Obsolete != "" {
		return s.Obsolete
	}
	switch lost, notJoining, overdue := s.names(isLost), s.names(willNotJoin), s.names(s.isOverdue(now)); {
	case len(lost) > 0:
		return "replacement NodeClaim " + strings.Join(lost, ", ") + " did not become a node"
	case len(s.Replacements) < s.ReplacementCount:
		return fmt.Sprintf("%d of %d replacement NodeClaims were not created", s.ReplacementCount-len(s.Replacements), s.ReplacementCount)
	case len(notJoining) > 0:
		return "replacement NodeClaim " + strings.Join(notJoining, ", ") + " does not join the cluster" + s.because(notJoining[0])
	case len(overdue) > 0:
		return "replacement NodeClaim " + strings.Join(overdue, ", ") +
			" has joined but was not ready for pods within " + s.initializationTimeout().String() + s.because(overdue[0])
	case s.launching() > 0 && !now.Before(s.Started.Add(ReadyWithin)):
		return "the replacement nodes were not ready within " + ReadyWithin.String()
	case s.launching() == 0 && s.Blocked != "" && !s.BlockedSince.IsZero() && !now.Before(s.BlockedSince.Add(BlockedFor)):
		return s.Blocked
	}
	return ""
}

func isLost(c Replacement) bool { return c.State == Lost }

func willNotJoin(c Replacement) bool { return c.State == WillNotJoin }

// isOverdue returns a function that selects the replacements that have joined but were not initialized in time.
func (s MoveState) isOverdue(now time.Time) func(Replacement) bool {
	return func(c Replacement) bool {
		return c.State == Launching && !c.Joined.IsZero() && !now.Before(c.Joined.Add(s.initializationTimeout()))
	}
}

func (s MoveState) initializationTimeout() time.Duration {
	return cmp.Or(s.InitializationTimeout, DefaultInitializationTimeout)
}

// readyBy returns when the move is undone if none of its launching replacements makes progress.
func (s MoveState) readyBy() time.Time {
	deadline := s.Started.Add(ReadyWithin)
	for _, c := range s.Replacements {
		if end := c.Joined.Add(s.initializationTimeout()); c.State == Launching && !c.Joined.IsZero() && end.Before(deadline) {
			deadline = end
		}
	}
	return deadline
}

func (s MoveState) names(matches func(Replacement) bool) []string {
	var out []string
	for _, c := range s.Replacements {
		if matches(c) {
			out = append(out, c.Claim)
		}
	}
	return out
}

// because returns ": " and the reason why the NodeClaim is not ready; empty if the reason is unknown.
func (s MoveState) because(claim string) string {
	for _, c := range s.Replacements {
		if c.Claim == claim && c.Why != "" {
			return ": " + c.Why
		}
	}
	return ""
}

// launching returns the number of replacements that exist, but are not initialized yet.
func (s MoveState) launching() int {
	return len(s.names(func(c Replacement) bool { return c.State == Launching }))
}

func (s MoveState) anyIn(state CandidateState) bool {
	for _, c := range s.Candidates {
		if c.State == state {
			return true
		}
	}
	return false
}
