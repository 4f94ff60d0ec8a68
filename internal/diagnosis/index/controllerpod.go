package index

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// WaitingPods returns the controller's pods that are not ready, without pods that have succeeded.
func (ix *Index) WaitingPods() []diagnosis.ControllerPod {
	return slices.DeleteFunc(slices.Clone(ix.Evidence.Controller.Value.Pods),
		func(p diagnosis.ControllerPod) bool { return p.Ready || p.Phase == "Succeeded" })
}

// PodMessage returns the first message of a pod that contains all words, ignoring case; empty if there is none.
func PodMessage(p diagnosis.ControllerPod, words ...string) string {
	for _, m := range p.Messages {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(strings.ToLower(m), strings.ToLower(w)) }) {
			return diagnosis.Quote(m)
		}
	}
	return ""
}
