package pending

import (
	"math"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/hashkey"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// Class has interchangeable units, with the same requests, rules and priority. A unit is one pod, or the pods of one
// bundle.
type Class struct {
	podgroup.Class     // requests of a unit; pods in the order of placement
	PodsPerUnit    int // 1 or more
	InitialUnits   int // number of units before the class was split into parts

	WholeClass  int        // for a part: number of its whole class; else number of the class itself
	Domains     []int      // for a part: its topology domains, by key of the profile
	Nodes       bitset.Set // existing nodes: those in a part's domains, or those that all members of a bundle accept; nil means all
	Members     []Member   // for a bundle: the members of one unit
	OneNodeOnly bool       // for a bundle: no plan can put its pods on more than one node
	Preferred   bool       // for a bundle: its pods prefer to share a node but need not

	HardSet    int // number of the accept set if preferences are ignored: only offerings that are available now
	FirstStage int // number of the accept set of the first stage before the class was split; -1 if none

	// Stages are the numbers of the accept sets to try, in order. From stage to stage, the preference of the lowest
	// weight is dropped. NodePools of higher weight come first.
	Stages []int
	Bulk   float64 // weighted size of a unit's requests; see Problem.BulkOf
}

// Member is a number of units of a class in each unit of a bundle.
type Member struct {
	Class int // number of the class
	N     int // units of the class in each unit of the bundle; 1 or more
}

// Units returns how many units the class has in Pods, placed or not.
func (c *Class) Units() int { return len(c.Pods) / c.PodsPerUnit }

// MinimalPrice returns the lower limit for the dual price of a unit, in billionths of a dollar per hour. It is above 0
// so that units that cost nothing are placed too, largest first: 1,000 cores or 4,000 GiB of memory get one billionth.
func (c *Class) MinimalPrice() float64 {
	return (float64(c.Amounts.CPU) + float64(c.Amounts.Memory)/(4<<20) + 1) * 1e-6
}

// AppendProportion appends a key of the proportions between the class's requested resources to b. Each amount is
// divided by the amount of the first resource, and rounded down to a step of half an octave (a factor of √2). For the
// number of pods, a step is four octaves, because nodes rarely reach their maximum of pods.
func (c *Class) AppendProportion(b []byte, dims resources.Dimensions) []byte {
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

// AcceptedNodes returns the existing nodes that pods of the class accept.
func (c *Class) AcceptedNodes(rooms *existing.Rooms) bitset.Set {
	if c.Nodes == nil {
		return rooms.Accepted[c.Sig]
	}
	return rooms.Accepted[c.Sig].Intersection(c.Nodes)
}
