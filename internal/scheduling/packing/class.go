package packing

import (
	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// class is a pod group: units with the same requests, rules and priority, any of which can replace
// any other. A unit is one pod, or the pods of one bundle.
type class struct {
	podgroup.Class     // requests of a unit; pods in the order of placement
	podsPerUnit    int // 1 or more
	initialUnits   int // number of units before the class was split into parts

	base        int        // of a part: the whole class; else the class itself
	domains     []int      // of a part: its topology domains, by key of the profile
	nodes       bitset.Set // of a part: the existing nodes in its domains; nil means all
	members     []member   // of a bundle: the members of one unit
	oneNodeOnly bool       // of a bundle: no plan can put its pods on more than one node
	preferred   bool       // of a bundle: its pods prefer to share a node but need not

	hardSet    int // the accept set without preferences, of offerings available now
	firstStage int // the first stage before the class was split; -1 if none

	// stages are the accept sets to try in order. The softest preference is dropped first, and
	// NodePools of higher weight come first.
	stages []int
	bulk   float64 // weighted size of a unit's requests; see bulkOf
}

// member is a number of units of a class in each unit of a bundle.
type member struct{ class, n int }

// units returns how many units the class has.
func (c *class) units() int { return len(c.Pods) / c.podsPerUnit }
