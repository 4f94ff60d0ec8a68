package nodeclass

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/diagnosis/index"
)

// Usage counts how often a candidate value is used: by nodes that joined, and by classes.
type Usage struct{ Nodes, Classes int }

// MostUsed returns the candidates that most nodes use, or on a tie most classes, sorted.
func MostUsed(all map[string]Usage) []string {
	var out []string
	var most Usage
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch w := all[name]; cmp.Or(cmp.Compare(w.Nodes, most.Nodes), cmp.Compare(w.Classes, most.Classes)) {
		case 1:
			most, out = w, []string{name}
		case 0:
			out = append(out, name)
		}
	}
	return out
}

// NodesOf returns the number of ready nodes of a class.
func NodesOf(ix *index.Index, class string) int {
	n := 0
	for _, i := range ix.Evidence.Instances.Value {
		if node, isNode := ix.NodeByInstance[i.ID]; isNode && node.Ready && i.Class == class {
			n++
		}
	}
	return n
}
