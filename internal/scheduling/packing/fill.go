package packing

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
)

// filler fills existing and new nodes with pods of the unplaced classes. A unit of a class is one pod, or the pods of
// one bundle.
type filler struct {
	sol     *solution
	problem *pending.Problem
	queue   *pending.Queue
	facts   *classFacts
	prices  *pricer
	work    *work

	scoreRatio        float64  // minimum score of a class relative to the best score; 0 means minScoreRatio
	onExisting        bool     // the filler fills existing nodes
	strictPreferences bool     // on existing nodes, preferences about hosts are rules
	spreadOut         bool     // no node gets more than classFacts.maxShare units of a class
	refinesNodes      bool     // refine each node after it was filled
	excludedClass     int      // a class that must not be added to the node, plus one; 0 for none
	left              []int    // by class: units that the filler may still place
	cursors           []cursor // while a node is filled: the position in each row of candidates
	room              []quad   // free room of the node
	bestScore         float64  // the best score of the cursors
	allocationIndex   []int32  // by class, while a node is filled: its index in the allocations, plus one
	preloaded         bool     // the node had pods before it was filled
}

func newFiller(sol *solution, left []int) filler {
	return filler{sol: sol, problem: sol.problem, queue: sol.queue, facts: sol.facts, prices: sol.prices, work: sol.work, left: left}
}

// minScoreRatio is the minimum score of a class, relative to the best score. Among classes above it, the
// highest dual price decides, so large pods are placed first and small pods fill the gaps.
const minScoreRatio = 0.95

// fill adds pods of the candidate classes to the node, aiming at the highest total dual price of its pods. It returns
// the total dual price of the added pods.
//
// The score of a class is the total dual price of its units if this class alone filled the remaining room. fill
// repeatedly takes a class: of those with a score close to the highest, the one with the highest dual price. While
// other rows of candidates are left, it adds only half of the units that fit, so that the next class can use the
// remaining room. All candidates must accept the node. fill does not change left.
func (f *filler) fill(pn *plannedNode, candidates *candidateRows) float64 {
	f.cursors, f.preloaded = f.cursors[:0], len(pn.allocations) > 0
	for _, row := range candidates.rows {
		f.cursors = append(f.cursors, cursor{row: row, left: -1})
	}
	f.work.steps += len(candidates.rows) * max(1, f.facts.quads/2)
	f.allocationIndex = slices.Grow(f.allocationIndex, len(f.queue.Classes))[:len(f.queue.Classes)]
	for i := range pn.allocations {
		f.allocationIndex[pn.allocations[i].class] = int32(i + 1)
	}
	value := 0.0
	for f.scoreRows(pn) {
		value += f.addFromRow(pn, &f.cursors[f.bestCursor()])
	}
	for i := range pn.allocations {
		f.allocationIndex[pn.allocations[i].class] = 0
	}
	pn.value += value
	return value
}

// addFromRow adds a batch of units of the class at the cursor. If the class has too few units, units of similar
// classes that follow in the row complete the batch. It returns the total dual price of the added units.
func (f *filler) addFromRow(pn *plannedNode, k *cursor) float64 {
	value := 0.0
	firstBulk := f.facts.bulk[k.row[k.at]]
	for want := f.batchSize(k); want > 0; {
		class := k.row[k.at]
		n := f.addable(pn, k, want)
		if n > 0 {
			f.addIndexed(pn, class, n)
			k.left, k.rulesPassed, k.onlyRoomMatters = k.left-n, false, false
			want -= n
			value += float64(n) * f.prices.dualPrice[class]
		}
		if want == 0 {
			break
		}
		k.advance()
		f.cacheRoom(pn)
		if !f.advanceToFitting(k, pn, firstBulk) || f.facts.bulk[k.row[k.at]] < bulkSimilarity*firstBulk {
			break
		}
	}
	return value
}

// bulkSimilarity is the minimum bulk of a class that completes a batch of another class, relative to the
// bulk of that other class.
const bulkSimilarity = 0.7

// batchSize returns how many units of the class at the cursor to add at once: half of the units that fit, or all of
// them if there is no other row.
func (f *filler) batchSize(k *cursor) int {
	n := int(min(k.fits, 1e6))
	if len(f.cursors) > 1 {
		n = max(1, n/2)
	}
	return n
}

// maxRefinedClasses is the maximum number of classes on a node that is refined. On nodes with
// more classes a gap is a small part of the node.
const maxRefinedClasses = 12

// refine increases the total dual price of the pods on a node that was filled. It first fills the node again with
// other values of scoreRatio, then swaps units of one class after the other for units of other classes. empty is the
// node before it was filled.
func (f *filler) refine(pn *plannedNode, empty plannedNode, candidates *candidateRows) {
	if len(pn.allocations) > maxRefinedClasses {
		return
	}
	for _, f.scoreRatio = range [...]float64{0.8, 0.99} {
		try := empty.clone()
		if f.fill(&try, candidates); try.value > pn.value {
			*pn = try
		}
	}
	f.scoreRatio = 0
	for len(pn.allocations) <= maxRefinedClasses && f.trySwaps(pn, empty, candidates) {
	}
}

// trySwaps tries, for each class on the node, to replace one unit or all units by units of other classes. It keeps the
// first result with a higher value, and reports whether it found such a result.
func (f *filler) trySwaps(pn *plannedNode, empty plannedNode, candidates *candidateRows) bool {
	for _, a := range pn.allocations {
		for i, removed := range [2]int{1, a.n} {
			if i > 0 && removed == 1 {
				continue
			}
			if try := f.refill(pn, empty, a.class, removed, candidates); try.value > pn.value*(1+1e-9) {
				*pn = try
				return true
			}
		}
	}
	return false
}

// refill returns the node without the given number of units of a class, and filled again with other classes.
func (f *filler) refill(pn *plannedNode, empty plannedNode, class, removed int, candidates *candidateRows) plannedNode {
	try := empty.clone()
	for _, a := range pn.allocations {
		n := a.n
		if a.class == class {
			n -= removed
		}
		if n > 0 {
			f.add(&try, a.class, n)
			try.value += float64(n) * f.prices.dualPrice[a.class]
			f.left[a.class] -= n
		}
	}
	kept := slices.Clone(try.allocations)
	f.excludedClass = class + 1
	f.fill(&try, candidates)
	f.excludedClass = 0
	for _, a := range kept {
		f.left[a.class] += a.n
	}
	return try
}

// scoreRows moves each cursor to the largest class of its row that still fits, and computes the score of that class. It
// drops the rows without such a class, and reports whether any row is left.
func (f *filler) scoreRows(pn *plannedNode) bool {
	bulk := f.problem.BulkOf(pn.free)
	f.cacheRoom(pn)
	f.bestScore = 0
	kept := 0
	for i := range f.cursors {
		k := &f.cursors[i]
		if k.onlyRoomMatters && k.left > 0 {
			k.fits = fitCount(k.reciprocals, f.room)
			k.score = k.fits * k.dualPrice
			f.work.steps++
		}
		if (!k.onlyRoomMatters || k.left == 0 || k.fits == 0) && !f.advanceToFitting(k, pn, bulk) {
			continue
		}
		if k.score > f.bestScore {
			f.bestScore = k.score
		}
		if kept < i {
			f.cursors[kept] = *k
		}
		kept++
	}
	f.cursors = f.cursors[:kept]
	return kept > 0
}

func (f *filler) cacheRoom(pn *plannedNode) {
	f.room = f.room[:0]
	for q := range f.facts.quads {
		room := quad{minRoom, minRoom, minRoom, minRoom}
		for i := range min(4, len(pn.free)-4*q) {
			room[i] = max(float64(pn.free[4*q+i]), minRoom)
		}
		f.room = append(f.room, room)
	}
}

// bestCursor returns the index of the cursor to continue with. Of the cursors with a score close to the best, it is the
// one whose class has the highest dual price.
func (f *filler) bestCursor() int {
	enough := cmp.Or(f.scoreRatio, minScoreRatio) * f.bestScore
	best, value := 0, -1.0
	for i := range f.cursors {
		if k := &f.cursors[i]; k.score >= enough && k.dualPrice > value {
			best, value = i, k.dualPrice
		}
	}
	return best
}

// addable returns how many of n units of the class at the cursor can be added, at most one if they have host
// ports. If minValues would be violated, it tries half as many, and so on.
func (f *filler) addable(pn *plannedNode, k *cursor, n int) int {
	class := k.row[k.at]
	c := &f.queue.Classes[class]
	n = c.Ask.FitCount(pn.free, min(n, k.left, f.hostRuleRoom(pn, class)))
	if len(c.Ports) > 0 {
		n = min(n, 1)
	}
	for n > 0 && pn.offer >= 0 && !f.keepsMinValuesWith(pn, class, n) {
		n /= 2
	}
	return n
}

func (f *filler) add(pn *plannedNode, class, n int) {
	f.consume(pn, class, n)
	for i := range pn.allocations {
		if a := &pn.allocations[i]; a.class == class {
			a.n += n
			return
		}
	}
	pn.allocations = append(pn.allocations, allocation{class: class, n: n, acceptSet: f.queue.CurrentSet(class)})
}

// addIndexed does the same as add for a node that is being filled: it finds the allocation by allocationIndex.
func (f *filler) addIndexed(pn *plannedNode, class, n int) {
	f.consume(pn, class, n)
	if i := f.allocationIndex[class]; i > 0 {
		pn.allocations[i-1].n += n
		return
	}
	pn.allocations = append(pn.allocations, allocation{class: class, n: n, acceptSet: f.queue.CurrentSet(class)})
	f.allocationIndex[class] = int32(len(pn.allocations))
}

// consume subtracts the requests of n units from the free room of the node, and adds their host ports and host counts
// to the node.
func (f *filler) consume(pn *plannedNode, class, n int) {
	c := &f.queue.Classes[class]
	if p := f.queue.Profile(c); len(p.Host)+len(p.HostIn) >= rulesPerStep {
		f.work.steps += (len(p.Host) + len(p.HostIn)) / rulesPerStep
	}
	pn.free.SubtractTimes(c.Ask, n)
	pn.ports = append(pn.ports, c.PortLists...)
	f.queue.AddToHostCounts(&pn.host, c, n)
}
