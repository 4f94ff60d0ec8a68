package ami

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// accelerators are the words by which names and descriptions of images tell their drivers, and the label of instance types that
// have such accelerators. Names of users' own images are read likewise.
var accelerators = []struct{ word, label string }{
	{"nvidia", labelGPU}, {"gpu", labelGPU},
	{"neuron", labelAccelerator}, {"inferentia", labelAccelerator}, {"trainium", labelAccelerator},
}

// acceleratedBy is the label of the accelerators for which an image has drivers, empty for a plain image.
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

// suited has images that are told apart by nothing but their drivers chosen by them: where plain images are among those for the same
// instance types, an image with drivers is for types that have the accelerators, and the plain ones are for the others. Where there is
// no plain image, all stay as they are.
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

// add adds a requirement, and keeps them sorted.
func (i *Image) add(r requirements.Requirement) {
	i.Requirements = append(i.Requirements, r)
	slices.SortFunc(i.Requirements, func(a, b requirements.Requirement) int { return cmp.Compare(a.Key, b.Key) })
}
