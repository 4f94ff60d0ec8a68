package drift

import (
	"maps"
	"slices"
)

// Selection is the result of a selector of a node class.
type Selection struct {
	Terms string   `json:"terms"`         // a hash of the selector
	Found []string `json:"found"`         // selected IDs, sorted
	Past  []string `json:"past,omitzero"` // IDs that were selected before and are not in Found, sorted; at most mostPast
}

// Selections are the selections of a class, by field. They distinguish a change by the user from a change in AWS, such
// as a tag. A change by the user changes Terms; a change in AWS changes only Found.
type Selections map[string]Selection

// mostPast limits how many former IDs are remembered.
const mostPast = 20

// Outside returns the fields whose selectors select other IDs than before, although the user has not changed the
// selectors.
func (was Selections) Outside(next Selections) map[string]bool {
	out := map[string]bool{}
	for field, selection := range next {
		before, known := was[field]
		if known && before.Terms == selection.Terms && !slices.Equal(before.Found, selection.Found) {
			out[field] = true
		}
	}
	return out
}

// Settle returns the selections to remember. If the user has changed a selector, its new selection is remembered. A
// changed result of the same selector is remembered only when no node drifts because of it. drifting has the fields for
// which a node drifts or may drift. A field that is not in next stays unchanged.
func (was Selections) Settle(next Selections, drifting map[string]bool) Selections {
	out := maps.Clone(was)
	if out == nil {
		out = Selections{}
	}
	for field, selection := range next {
		before, known := was[field]
		switch {
		case !known:
			out[field] = Selection{Terms: selection.Terms, Found: sorted(selection.Found)}
		case before.Terms != selection.Terms || !drifting[field]:
			past := without(append(slices.Clone(before.Past), before.Found...), selection.Found)
			past = slices.Compact(past)
			out[field] = Selection{Terms: selection.Terms, Found: sorted(selection.Found), Past: past[max(0, len(past)-mostPast):]}
		default:
			out[field] = before
		}
	}
	return out
}

// EverSelected returns all remembered IDs that the selector of a field has selected; nil if unknown.
func (was Selections) EverSelected(field string) []string {
	s, known := was[field]
	if !known {
		return nil
	}
	out := append([]string{}, s.Found...)
	return append(out, s.Past...)
}

// Equal reports whether both have the same selections for the same fields.
func (was Selections) Equal(other Selections) bool {
	return maps.EqualFunc(was, other, func(a, b Selection) bool {
		return a.Terms == b.Terms && slices.Equal(a.Found, b.Found) && slices.Equal(a.Past, b.Past)
	})
}
