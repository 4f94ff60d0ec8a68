package packing

import (
	"strings"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// class is a number of units that ask for the same thing: any one can take the
// place of any other. A unit is a pod, or several that must be on one machine (bundle).
type class struct {
	podgroup.Class     // of a unit; its pods are in order, the first ones are placed first
	unit           int // pods per unit, 1 or more
	all            int // how many units there were at first, before parts were made of it

	base    int        // the class that this is a part of; itself for a whole one
	cell    []int      // of a part: its domains, by key of the profile
	nodes   bitset.Set // of a part: the nodes that are in its domains; nil: all
	members []member   // of a bundle: what a unit is made of
	forced  bool       // of a bundle: no plan could put its pods on more than one machine
	wished  bool       // of a bundle: its pods would rather be together, and need not

	hard  int // the accept set that no preference narrows, of what can be had now
	first int // the first of the stages that it had before parts were made of it

	// stages are the accept sets to try one after the other: preferences are
	// given up softest first, heavier pools go first.
	stages []int
	bulk   float64 // of what a unit asks for, to compare by
}

// member is a number of units of a class in each unit of a bundle.
type member struct{ class, n int }

// units returns how many units the class has.
func (c *class) units() int { return len(c.Pods) / c.unit }

// queue is the pods that need a place, as classes.
type queue struct {
	*podgroup.Queue
	classes []class // by priority, then the larger first; parts and bundles come after the whole ones
	guests  *existing.Guests
}

func newQueue(pods *podgroup.Queue) *queue {
	q := &queue{Queue: pods}
	for c, of := range pods.Classes {
		q.classes = append(q.classes, class{Class: of, unit: 1, base: c, all: len(of.Pods)})
	}
	return q
}

// accept notes what the classes accept.
func (q *queue) accept(a *offering.Acceptance) {
	for i := range q.classes {
		c := &q.classes[i]
		c.hard, c.first = a.Hard[c.Sig], -1
		c.stages = a.Stages(&c.Class)
		if len(c.stages) > 0 {
			c.first = c.stages[0]
		}
	}
}

// profile returns what pods of the class ask of the places of others.
func (q *queue) profile(c *class) *topology.Profile { return &q.Book.Profiles[c.Profile] }

// devices names the resources that the class asks for beyond those that every machine has.
func (c *class) devices(dims resources.Dimensions) string {
	var names []string
	for r, name := range dims {
		if c.Ask[r] > 0 && !isCommon(name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// isCommon reports whether every machine has some of the resource.
func isCommon(name string) bool {
	switch name {
	case resources.CPU, resources.Memory, resources.EphemeralStorage, resources.Pods:
		return true
	}
	return strings.HasPrefix(name, resources.AttachableVolumes)
}
