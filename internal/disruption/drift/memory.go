package drift

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Image is an AMI that a node class selects.
type Image struct {
	ID   string `json:"id"`             // "ami-0123"
	Name string `json:"name,omitempty"` // empty if unknown
	// Slot is the condition that instance types must meet to use the image, as text. A class uses one image per slot at
	// a time.
	Slot string `json:"slot"`
}

// BadImage is an image whose nodes failed to initialize, although nodes with another image of its slot did not fail.
type BadImage struct {
	Image
	// Generation is the generation of the class when the image failed. After a change of the class, the image is tried
	// again.
	Generation int64     `json:"generation"`
	At         time.Time `json:"at"`  // when the image was found to be bad
	Why        string    `json:"why"` // one sentence
}

// ImageHistory is the history of a node class' images. It is stored on the class, so that it survives restarts. The
// zero value is empty.
type ImageHistory struct {
	Good []Image    `json:"good,omitzero"` // one per slot, sorted: the image of the last initialized node
	Bad  []BadImage `json:"bad,omitzero"`  // sorted by slot and ID
}

// ReplacedImage is an image that is selected but not used.
type ReplacedImage struct {
	Bad     BadImage // the image that is not used
	Instead Image    // the image that is used
}

// String returns the replacement as one sentence.
func (s ReplacedImage) String() string {
	return fmt.Sprintf("image %s is not used: %s; %s is used again", imageText(s.Bad.Image), s.Bad.Why, imageText(s.Instead))
}

func imageText(i Image) string {
	if i.Name == "" {
		return i.ID
	}
	return i.ID + " (" + i.Name + ")"
}

// Use returns the images to launch from, in the order of found. It replaces a bad image by the last good image of its
// slot, and returns each such replacement in replaced. Without a good image, it keeps the bad image. generation is
// that of the class.
func (m ImageHistory) Use(found []Image, generation int64) (use []Image, replaced []ReplacedImage) {
	for _, i := range found {
		bad, isBad := m.bad(i, generation)
		good, hasGood := m.GoodOf(i.Slot)
		isReplaceable := hasGood && good.ID != i.ID && !m.isBad(good, generation)
		if !isBad || !isReplaceable {
			use = append(use, i)
			continue
		}
		use = append(use, good)
		replaced = append(replaced, ReplacedImage{bad, good})
	}
	return use, replaced
}

// GoodOf returns the last good image of a slot.
func (m ImageHistory) GoodOf(slot string) (Image, bool) {
	index := slices.IndexFunc(m.Good, func(g Image) bool { return g.Slot == slot })
	if index < 0 {
		return Image{}, false
	}
	return m.Good[index], true
}

// bad returns the entry of the image in Bad for this generation of the class; false if there is none.
func (m ImageHistory) bad(i Image, generation int64) (BadImage, bool) {
	index := slices.IndexFunc(m.Bad, func(b BadImage) bool { return b.ID == i.ID && b.Slot == i.Slot && b.Generation == generation })
	if index < 0 {
		return BadImage{}, false
	}
	return m.Bad[index], true
}

func (m ImageHistory) isBad(i Image, generation int64) bool {
	_, ok := m.bad(i, generation)
	return ok
}

// WithGood returns the history after a node with the image was initialized. The image is then no longer bad.
func (m ImageHistory) WithGood(i Image) ImageHistory {
	out := ImageHistory{Good: slices.Clone(m.Good), Bad: slices.Clone(m.Bad)}
	out.Good = slices.DeleteFunc(out.Good, func(g Image) bool { return g.Slot == i.Slot })
	out.Good = append(out.Good, i)
	slices.SortFunc(out.Good, func(a, b Image) int { return cmp.Compare(a.Slot, b.Slot) })
	out.Bad = slices.DeleteFunc(out.Bad, func(b BadImage) bool { return b.ID == i.ID && b.Slot == i.Slot })
	return out
}

// WithBad returns the history after nodes of an image failed, if another image of its slot is good. Otherwise the
// history is unchanged, because the image may not be the cause. It is also unchanged if the image is already bad.
func (m ImageHistory) WithBad(b BadImage) ImageHistory {
	good, ok := m.GoodOf(b.Slot)
	if !ok || good.ID == b.ID || m.isBad(b.Image, b.Generation) {
		return m
	}
	out := ImageHistory{Good: m.Good}
	out.Bad = slices.DeleteFunc(slices.Clone(m.Bad), func(o BadImage) bool { return o.ID == b.ID && o.Slot == b.Slot })
	out.Bad = append(out.Bad, b)
	slices.SortFunc(out.Bad, func(a, b BadImage) int { return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.ID, b.ID)) })
	return out
}

// Pruned returns the history without bad images that are no longer selected, or that failed with another generation of
// the class.
func (m ImageHistory) Pruned(found []Image, generation int64) ImageHistory {
	out := ImageHistory{Good: m.Good}
	for _, b := range m.Bad {
		if b.Generation == generation && slices.ContainsFunc(found, func(i Image) bool { return i.ID == b.ID && i.Slot == b.Slot }) {
			out.Bad = append(out.Bad, b)
		}
	}
	return out
}

// SelectedImages returns the images that a class selects, given the images that it uses. It is the inverse of Use: it
// replaces the good image of a slot by the slot's bad image, if there is one.
func (m ImageHistory) SelectedImages(used []Image) []Image {
	out := slices.Clone(used)
	for i, image := range used {
		good, ok := m.GoodOf(image.Slot)
		if !ok || good.ID != image.ID {
			continue
		}
		if bad := slices.IndexFunc(m.Bad, func(b BadImage) bool { return b.Slot == image.Slot }); bad >= 0 {
			out[i] = m.Bad[bad].Image
		}
	}
	return out
}
