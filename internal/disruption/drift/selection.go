package drift

import (
	"maps"
	"slices"
)

// Selection is what a selector of a node class was seen to find.
type Selection struct {
	Terms string   `json:"terms"`         // a hash of the selector
	Found []string `json:"found"`         // ids, sorted
	Past  []string `json:"past,omitzero"` // ids that it found before the user changed it, sorted
}

// Selections are those of a class by field. They are what tells a change of the user's from one that somebody made in AWS, to
// a tag for instance: the first changes the terms, the second only what they find.
type Selections map[string]Selection

// mostPast bounds how many ids of former times are remembered.
const mostPast = 20

// Outside returns the fields whose selectors find others than they were seen to find, although the user has not changed them.
func (was Selections) Outside(is Selections) map[string]bool {
	out := map[string]bool{}
	for field, now := range is {
		before, known := was[field]
		if known && before.Terms == now.Terms && !slices.Equal(before.Found, now.Found) {
			out[field] = true
		}
	}
	return out
}

// Settle returns what is to be remembered from now on. A selector that the user has changed counts anew. What somebody else
// has changed counts as settled when no node drifts by it any more; drifting are the fields by which some still do, or may. What is
// not known now stays as it was.
func (was Selections) Settle(is Selections, drifting map[string]bool) Selections {
	out := maps.Clone(was)
	if out == nil {
		out = Selections{}
	}
	for field, now := range is {
		before, known := was[field]
		switch {
		case !known:
			out[field] = Selection{Terms: now.Terms, Found: sorted(now.Found)}
		case before.Terms != now.Terms || !drifting[field]:
			past := without(append(slices.Clone(before.Past), before.Found...), now.Found)
			past = slices.Compact(past)
			out[field] = Selection{Terms: now.Terms, Found: sorted(now.Found), Past: past[max(0, len(past)-mostPast):]}
		default:
			out[field] = before
		}
	}
	return out
}

// Ever returns all that the selector of a field has found, as far as it is remembered; nil if nothing is.
func (was Selections) Ever(field string) []string {
	s, known := was[field]
	if !known {
		return nil
	}
	out := append([]string{}, s.Found...)
	return append(out, s.Past...)
}

// Equal reports whether both remember the same.
func (was Selections) Equal(other Selections) bool {
	return maps.EqualFunc(was, other, func(a, b Selection) bool {
		return a.Terms == b.Terms && slices.Equal(a.Found, b.Found) && slices.Equal(a.Past, b.Past)
	})
}
