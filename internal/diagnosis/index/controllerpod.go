package index

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// WaitingPods returns the controller's own pods that are not ready, without pods that have succeeded.
func (ix *Index) WaitingPods() []diagnosis.ControllerPod {
	return slices.DeleteFunc(slices.Clone(ix.Evidence.Controller.Value.Pods),
		func(p diagnosis.ControllerPod) bool { return p.Ready || p.Phase == "Succeeded" })
}

// PodMessage returns the first message of a pod that contains the text, ignoring case; empty if there is none. A long
// message is shortened.
func PodMessage(p diagnosis.ControllerPod, text string) string {
	for _, m := range p.Messages {
		if strings.Contains(strings.ToLower(m), strings.ToLower(text)) {
			return diagnosis.Shorten(m)
		}
	}
	return ""
}
