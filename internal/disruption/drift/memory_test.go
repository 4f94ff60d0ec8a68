package drift

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMemoryOfImages changes the history of the slot amd64. The slot arm64, without history, always keeps its image.
func TestMemoryOfImages(t *testing.T) {
	t.Parallel()
	image := func(id string) Image { return Image{ID: id, Name: "n-" + id, Slot: "amd64"} }
	arm := Image{ID: "ami-arm", Slot: "arm64"}
	bad := func(id string) BadImage { return BadImage{Image: image(id), Generation: 1, Why: "it never joined"} }
	use := func(m ImageHistory, generation int64, found ...Image) (string, int) {
		got, replaced := m.Use(append(found, arm), generation)
		if len(got) != len(found)+1 || got[len(found)] != arm {
			t.Errorf("Use returns %v, want one image per slot, the last for arm64", got)
		}
		return got[0].ID, len(replaced)
	}
	var m ImageHistory
	expect := func(step string, generation int64, found, want string, wantReplaced int) {
		t.Helper()
		if got, replaced := use(m, generation, image(found)); got != want || replaced != wantReplaced {
			t.Errorf("%s: Use(%s) returns %s with %d replaced images, want %s and %d", step, found, got, replaced, want, wantReplaced)
		}
	}
	expect("empty history", 1, "1", "1", 0)
	m = m.WithBad(bad("1"))
	expect("the only image cannot be bad", 1, "1", "1", 0)
	m = m.WithGood(image("1"))
	expect("the first is good", 1, "2", "2", 0)
	m = m.WithBad(bad("2"))
	expect("the second is bad", 1, "2", "1", 1)
	if _, replaced := m.Use([]Image{image("2")}, 1); !strings.Contains(replaced[0].String(), "it never joined") ||
		!strings.Contains(replaced[0].String(), "1 (n-1) is used again") {
		t.Errorf("the replacement is %q, want the cause and the image that is used again", replaced[0])
	}
	if got := m.SelectedImages([]Image{image("1"), arm}); got[0].ID != "2" || got[1] != arm {
		t.Errorf("SelectedImages returns %v, want image 2, then the image for arm64", got)
	}
	expect("the class has changed", 2, "2", "2", 0)
	expect("a newer image is tried", 1, "3", "3", 0)
	if pruned := m.Pruned([]Image{image("3")}, 1); len(pruned.Bad) > 0 || len(pruned.Good) != 1 {
		t.Errorf("Pruned returns %+v, want one good and no bad image", pruned)
	}
	if pruned := m.Pruned([]Image{image("2")}, 1); len(pruned.Bad) != 1 {
		t.Errorf("Pruned returns %+v, want one bad image", pruned)
	}
	was := m
	m = m.WithGood(image("2"))
	expect("the second proved good", 1, "2", "2", 0)
	if diff := cmp.Diff([]BadImage{bad("2")}, was.Bad); diff != "" {
		t.Errorf("WithGood changed the history that it was called on:\n%s", diff)
	}
	m = m.WithBad(bad("3")).WithBad(BadImage{Image: image("2"), Generation: 1}) // the good image cannot be bad
	expect("another image is bad", 1, "3", "2", 1)
}

func TestSelections(t *testing.T) {
	t.Parallel()
	selected := func(terms string, found ...string) Selections {
		return Selections{FieldGroups: {Terms: terms, Found: found}}
	}
	drifting, none := map[string]bool{FieldGroups: true}, map[string]bool{}

	was := Selections(nil).Settle(selected("t", "a", "b"), drifting)
	if was.Outside(selected("t", "a", "b"))[FieldGroups] || !was.Outside(selected("t", "a", "b", "c"))[FieldGroups] ||
		was.Outside(selected("u", "c"))[FieldGroups] {
		t.Error("Outside does not report exactly the fields with equal terms and other IDs")
	}
	if next := was.Settle(selected("t", "c"), drifting); !next.Equal(was) {
		t.Errorf("the selection of a field with drifting nodes was replaced: %v", next)
	}
	if next := was.Settle(Selections{}, none); !next.Equal(was) {
		t.Errorf("a field without a new selection was dropped: %v", next)
	}
	next := was.Settle(selected("t", "c"), none)
	if next.Outside(selected("t", "c"))[FieldGroups] || !cmp.Equal(next[FieldGroups].Past, []string{"a", "b"}) {
		t.Errorf("no node drifts: %v; want c selected, and a and b in Past", next)
	}
	edited := was.Settle(selected("u", "a", "d"), drifting)
	if edited.Outside(selected("u", "a", "d"))[FieldGroups] || !cmp.Equal(edited.EverSelected(FieldGroups), []string{"a", "d", "b"}) {
		t.Errorf("after the user changed the selector: %v; want a, d, b ever selected, and no field from Outside", edited)
	}
	if Selections(nil).EverSelected(FieldGroups) != nil {
		t.Error("EverSelected returns IDs of an unknown field")
	}
}
