package disruption

import "time"

// Sentence returns why the node stays, without a full stop. If the stay has an end, Sentence adds the time of the end.
func (s Stay) Sentence() string {
	text := s.why()
	if !s.Until.IsZero() {
		text += ", until " + s.Until.UTC().Format(time.RFC3339)
	}
	return text
}

func (s Stay) why() string {
	switch s.Cause {
	case Expected:
		return "pending pods are planned onto it"
	case DoNotDisrupt:
		return "it is kept because of " + s.Detail
	case Never:
		return "consolidateAfter of its NodePool is Never"
	case TooSoon:
		return "pods came or left within consolidateAfter (" + s.Detail + ")"
	case BudgetExhausted:
		return "as many nodes of its NodePool are terminating or not ready as the budget allows (" + s.Detail + ")"
	case Paused:
		return "voluntary disruption is paused by " + s.Detail
	case Invalid:
		return "its NodePool has an invalid setting: " + s.Detail
	case Unready:
		return "the Node is not ready"
	case OnlyEmpty:
		return "the consolidationPolicy of its NodePool allows only empty nodes, and it has pods"
	case TooYoung:
		return "it is younger than the minimum lifetime of its NodePool (" + s.Detail + ")"
	case Held:
		return "a move of the node was aborted: " + s.Detail
	case WorthItsPrice:
		return "its pods would not cost less elsewhere, or not enough less to be worth moving them"
	case Blocked, InWaves, MovedOften, Looping:
		return s.Detail
	case Undecided, Leaving, NotInitialized:
	}
	return string(s.Cause) + " " + s.Detail
}

// Causes returns the causes for which the controller writes a condition: all except Undecided, Leaving and
// NotInitialized.
func Causes() []Cause {
	return []Cause{
		Blocked, BudgetExhausted, Expected, Held, InWaves, Invalid, DoNotDisrupt, Looping, MovedOften, Never, OnlyEmpty, Paused, TooSoon,
		TooYoung, Unready, WorthItsPrice,
	}
}

// IsOnlyForSaving reports whether the cause prevents only disruption that saves money. Other causes also prevent
// replacement for drift.
func (c Cause) IsOnlyForSaving() bool {
	switch c {
	case Expected, Never, OnlyEmpty, TooSoon, WorthItsPrice:
		return true
	default:
	}
	return false
}
