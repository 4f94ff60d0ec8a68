package packing

import (
	"math"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/hashkey"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
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

// minimalPrice is the dual price of pods that cost nothing, so that they are placed too, the larger
// first. A thousand cores get a billionth of a dollar.
func (c *class) minimalPrice() float64 {
	return (float64(c.Amounts.CPU) + float64(c.Amounts.Memory)/(4<<20) + 1) * 1e-6
}

// appendProportion appends the proportion of the class's requests, in steps of half an octave. The
// number of pods counts in steps of four octaves, because nodes rarely reach their maximum.
func (c *class) appendProportion(b []byte, dims resources.Dimensions) []byte {
	first := 0.0
	for r, n := range c.Ask {
		switch {
		case n <= 0:
			b = append(b, 0)
		case first == 0:
			first = float64(n)
			b = append(b, 1)
		default:
			steps := 2.0
			if dims[r] == resources.Pods {
				steps = 0.25
			}
			b = hashkey.Int(append(b, 2), int(math.Floor(steps*math.Log2(float64(n)/first)))*8+r)
		}
	}
	return b
}

// acceptedNodes returns those of the existing nodes that pods of the class accept.
func (c *class) acceptedNodes(rooms *existing.Rooms) bitset.Set {
	if c.nodes == nil {
		return rooms.Hard[c.Sig]
	}
	return rooms.Hard[c.Sig].Both(c.nodes)
}
