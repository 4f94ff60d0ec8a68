package kube

import (
	"errors"
	"io"

	"github.com/joiner-sh/joiner/catalog"
)

// Manifests is what was read from files: the objects, and what was left out.
type Manifests struct {
	Objects
	// Skipped counts the documents of kinds that do not matter to a plan, by kind.
	Skipped map[string]int
	// Notes are sentences about what was assumed, for the user to read.
	Notes []string
}

// ReadFiles reads Kubernetes manifests, as YAML or JSON with any number of
// documents: from files, from folders with all below them (*.yaml, *.yml,
// *.json), and from stdin for "-". Workloads count as their replicas' pods.
//
// The error joins one error for each thing that is wrong, one line each, with
// file, line and what to do.
func ReadFiles(paths []string, stdin io.Reader) (Manifests, error) {
	return Manifests{}, errors.New("not built yet")
}

// Settings returns what each node class sets that a NodePool names, by name. A
// class that is not among the manifests has the settings of a class that sets nothing.
func (m Manifests) Settings() (map[string]catalog.Settings, error) {
	return nil, errors.New("not built yet")
}
