package nodeclass

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/diagnosis/index"
)

// A fix may need a value that the broken object lacks, such as a role. The fix then uses the value that the largest
// number of ready nodes have, or on a tie the largest number of other EC2NodeClasses. On a further tie, the user
// chooses.

// Usage counts the uses of a value, such as a role.
type Usage struct {
	Nodes   int // ready nodes that have the value
	Classes int // EC2NodeClasses that have the value
}

// MostUsed returns the values that the largest number of nodes have, or on a tie the largest number of EC2NodeClasses.
// The result is sorted; it has several values on a further tie.
func MostUsed(usageByValue map[string]Usage) []string {
	var out []string
	var most Usage
	for _, value := range slices.Sorted(maps.Keys(usageByValue)) {
		switch u := usageByValue[value]; cmp.Or(cmp.Compare(u.Nodes, most.Nodes), cmp.Compare(u.Classes, most.Classes)) {
		case 1:
			most, out = u, []string{value}
		case 0:
			out = append(out, value)
		}
	}
	return out
}

// CountReadyNodes returns the number of ready nodes of a class.
func CountReadyNodes(ix *index.Index, class string) int {
	n := 0
	for _, i := range ix.Evidence.Instances.Value {
		if node, isNode := ix.NodeByInstance[i.ID]; isNode && node.Ready && i.Class == class {
			n++
		}
	}
	return n
}
