package ami

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// accelerators maps words in the names and descriptions of AMIs, also of users' own, to the label of the instance types
// with these accelerators.
var accelerators = []struct{ word, label string }{
	{"nvidia", labelGPU}, {"gpu", labelGPU},
	{"neuron", labelAccelerator}, {"inferentia", labelAccelerator}, {"trainium", labelAccelerator},
}

// acceleratedBy returns the label of the instance types with the accelerators for which an image has drivers. It is
// empty for a plain image.
func acceleratedBy(name, description string) string {
	for _, text := range []string{name, description} {
		words := strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
		for _, a := range accelerators {
			if slices.Contains(words, a.word) {
				return a.label
			}
		}
	}
	return ""
}

// suited adds requirements to images that are for the same instance types and of which some, but not all, have drivers.
// An image with drivers is then for the types with these accelerators, and the images without drivers are for the types
// without.
func suited(images []Image) []Image {
	groups := map[string][]int{}
	for i, image := range images {
		key := fmt.Sprint(image.Requirements)
		groups[key] = append(groups[key], i)
	}
	for _, group := range groups {
		drivers := map[string]bool{}
		for _, i := range group {
			drivers[images[i].Accelerated] = true
		}
		if !drivers[""] || len(drivers) == 1 {
			continue
		}
		for _, i := range group {
			images[i].Requirements = slices.Clone(images[i].Requirements)
			for label := range drivers {
				switch {
				case label == "":
				case images[i].Accelerated == label:
					images[i].add(requirement(label, requirements.Exists))
				case images[i].Accelerated == "":
					images[i].add(requirement(label, requirements.DoesNotExist))
				}
			}
		}
	}
	return images
}

// add adds a requirement and keeps the requirements sorted.
func (i *Image) add(r requirements.Requirement) {
	i.Requirements = append(i.Requirements, r)
	slices.SortFunc(i.Requirements, func(a, b requirements.Requirement) int { return cmp.Compare(a.Key, b.Key) })
}
