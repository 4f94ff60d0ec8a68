package ami

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// accelerators maps words in the names and descriptions of AMIs to the label of the instance types with these
// accelerators.
var accelerators = []struct{ word, label string }{
	{"nvidia", labelGPU}, {"gpu", labelGPU},
	{"neuron", labelAccelerator}, {"inferentia", labelAccelerator}, {"trainium", labelAccelerator},
}

// driverLabel returns the label of the instance types whose accelerators an image has drivers for. It is empty for an
// image without drivers.
func driverLabel(name, description string) string {
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

// separateByDrivers adds requirements to images with equal requirements if some of them have drivers and some have
// none. An image with drivers is then only for the instance types with these accelerators, and an image without drivers
// only for the types without them.
func separateByDrivers(images []Image) []Image {
	groups := map[string][]int{} // indexes of images with equal requirements
	for i, image := range images {
		key := fmt.Sprint(image.Requirements)
		groups[key] = append(groups[key], i)
	}
	for _, group := range groups {
		labels := map[string]bool{} // the DriverLabels of the group
		for _, i := range group {
			labels[images[i].DriverLabel] = true
		}
		if !labels[""] || len(labels) == 1 {
			continue
		}
		for _, i := range group {
			images[i].Requirements = slices.Clone(images[i].Requirements)
			for label := range labels {
				switch {
				case label == "":
				case images[i].DriverLabel == label:
					images[i].add(requirement(label, requirements.Exists))
				case images[i].DriverLabel == "":
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
