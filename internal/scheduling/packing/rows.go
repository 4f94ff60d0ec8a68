package packing

import (
	"cmp"
	"slices"
	"sort"

	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
)

// candidateRows has the classes that accept a node, in rows. The classes of a row have similar proportions between
// their requested resources, and are sorted by size, largest first. To fill a node, the filler compares only the
// largest class of each row that still fits.
type candidateRows struct {
	rows [][]int // numbers of classes
}

// maxOwnRows is the number of classes up to which each class gets a row of its own, so that all are compared.
const maxOwnRows = 96

// groupRows returns the classes in rows: by proportion, or one row for each class if there are few.
func (cf *classFacts) groupRows(classes []int) *candidateRows {
	cf.refreshFacts()
	candidates := &candidateRows{}
	if len(classes) <= maxOwnRows {
		candidates.rows = make([][]int, len(classes))
		for i := range classes {
			candidates.rows[i] = classes[i : i+1 : i+1]
		}
		return candidates
	}
	rowOf := slices.Repeat([]int{-1}, len(cf.proportionNumbers)) // by number of a proportion: its row
	rows, sizes := make([]int, len(classes)), []int(nil)         // by index in classes: the row; by row: its number of classes
	for i, c := range classes {
		p := cf.proportion[c]
		if rowOf[p] < 0 {
			rowOf[p], sizes = len(sizes), append(sizes, 0)
		}
		rows[i] = rowOf[p]
		sizes[rows[i]]++
	}
	backing := make([]int, len(classes)) // of all rows
	candidates.rows = make([][]int, len(sizes))
	for r, n := range sizes {
		candidates.rows[r], backing = backing[:0:n], backing[n:]
	}
	for i, c := range classes {
		candidates.rows[rows[i]] = append(candidates.rows[rows[i]], c)
	}
	for _, row := range candidates.rows {
		slices.SortStableFunc(row, func(a, b int) int { return cmp.Compare(cf.bulk[b], cf.bulk[a]) })
	}
	return candidates
}

// dropPlaced removes the classes without unplaced units, and then the empty rows. left is by class.
func (candidates *candidateRows) dropPlaced(left []int) {
	for i, row := range candidates.rows {
		candidates.rows[i] = slices.DeleteFunc(row, func(c int) bool { return left[c] == 0 })
	}
	candidates.rows = slices.DeleteFunc(candidates.rows, func(row []int) bool { return len(row) == 0 })
}

// cursor is a position in a row while one node is filled.
type cursor struct {
	row             []int   // numbers of classes
	at              int     // index in row of the class at the cursor
	left            int     // units of the class at the cursor that may still be added to the node; -1 if not computed yet
	fits            float64 // number of units that the room allows, with a fraction, even if fewer are unplaced
	score           float64 // fits × dualPrice
	rulesPassed     bool    // the host rules allow a unit; false again after a unit of the class was added
	onlyRoomMatters bool    // only room and left limit the class; false again after a unit of the class was added
	reciprocals     []quad  // classFacts.reciprocals of the class
	dualPrice       float64 // dual price of one unit
}

// classFacts has the facts about classes that filling reads most often, in separate slices for speed.
type classFacts struct {
	problem *pending.Problem
	queue   *pending.Queue

	reciprocals []quad          // by class × resource in quads: 1 / request of a unit, or unlimitedFit without a request
	quads       int             // number of quads per class
	bulk        []float64       // by class: see pending.Class.Bulk
	maxShare    []int           // by class: a quarter of the units of its whole class, the maximum on one node with filler.spreadOut
	hasPorts    []bool          // by class: whether it has host ports
	soleClass   []int           // by group of a host rule: see pending.Queue.SoleClasses
	ruleScope   []hostRuleScope // by class

	proportion        []int          // by class: the number of the proportion between its requested resources
	proportionNumbers map[string]int // by pending.Class.AppendProportion: the number of the proportion
}

// quad has the amounts of four resources; most pods request at most four.
type quad [4]float64

// Amounts in quads. unlimitedFit × minRoom is above the maximum of fitCount, so a resource that is not requested
// never limits a class.
const (
	unlimitedFit = 1e300  // the reciprocal for a resource that is not requested
	minRoom      = 1e-280 // the room for a resource of which nothing is left
)

// hostRuleScope states which pods on a node matter for the host rules of a class.
type hostRuleScope byte

const (
	anyClassCounts hostRuleScope = iota // pods of any class may matter
	ownClassCounts                      // only pods of the class itself matter
	noHostRules                         // the class has no host rules
)

// refreshFacts computes the facts of the classes that were added after the last call.
func (cf *classFacts) refreshFacts() {
	cf.quads = (len(cf.problem.Stock.Dims) + 3) / 4
	if cf.proportionNumbers == nil {
		cf.proportionNumbers = map[string]int{}
	}
	var key []byte
	for c := len(cf.bulk); c < len(cf.queue.Classes); c++ {
		class := &cf.queue.Classes[c]
		for q := range cf.quads {
			per := quad{unlimitedFit, unlimitedFit, unlimitedFit, unlimitedFit}
			for i := range min(4, len(class.Ask)-4*q) {
				if n := class.Ask[4*q+i]; n > 0 {
					per[i] = 1 / float64(n)
				}
			}
			cf.reciprocals = append(cf.reciprocals, per)
		}
		cf.bulk, cf.hasPorts = append(cf.bulk, class.Bulk), append(cf.hasPorts, len(class.Ports) > 0)
		cf.maxShare = append(cf.maxShare, max(1, (cf.queue.Classes[class.WholeClass].InitialUnits+3)/4))
		cf.ruleScope = append(cf.ruleScope, cf.hostRuleScopeOf(class))
		key = class.AppendProportion(key[:0], cf.problem.Stock.Dims)
		n, ok := cf.proportionNumbers[string(key)]
		if !ok {
			n = len(cf.proportionNumbers)
			cf.proportionNumbers[string(key)] = n
		}
		cf.proportion = append(cf.proportion, n)
		for _, m := range class.Members {
			cf.ruleScope[m.Class] = anyClassCounts // bundles also add pods of the class
		}
	}
}

// hostRuleScopeOf returns which pods on a node matter for the host rules of the class. If the groups of these rules
// concern only one whole class, only pods of the class itself matter. Pods of other parts of the whole class are never
// on the same node, because the parts are in different domains.
func (cf *classFacts) hostRuleScopeOf(c *pending.Class) hostRuleScope {
	if c.Members != nil {
		return anyClassCounts
	}
	p := cf.queue.Profile(c)
	if len(p.Host) == 0 && len(p.HostIn) == 0 {
		return noHostRules
	}
	if cf.soleClass == nil {
		cf.soleClass = cf.queue.SoleClasses()
	}
	isOwn := func(group int) bool { return cf.soleClass[group] == c.WholeClass }
	for i := range p.Host {
		if !isOwn(p.Host[i].Group) {
			return anyClassCounts
		}
	}
	for _, g := range p.HostIn {
		if !isOwn(g) {
			return anyClassCounts
		}
	}
	return ownClassCounts
}

// fitCount returns how many units with these reciprocal requests fit into the room, with a fraction, at most 1e9.
// It returns 0 if less than one unit fits.
func fitCount(reciprocals, room []quad) float64 {
	fits := 1e9
	for q := range reciprocals {
		x, y := &reciprocals[q], &room[q]
		if n := x[0] * y[0]; n < fits {
			fits = n
		}
		if n := x[1] * y[1]; n < fits {
			fits = n
		}
		if n := x[2] * y[2]; n < fits {
			fits = n
		}
		if n := x[3] * y[3]; n < fits {
			fits = n
		}
	}
	if fits < 1-1e-9 {
		return 0
	}
	return max(fits, 1) // an exact fit may be off by rounding
}

func (cf *classFacts) reciprocalsOf(class int) []quad {
	return cf.reciprocals[class*cf.quads:][:cf.quads]
}

func (k *cursor) advance() { k.at, k.left, k.rulesPassed, k.onlyRoomMatters = k.at+1, -1, false, false }

// advanceToFitting moves the cursor to the first class from its position on that fits on the node, and reports whether
// there is one. It sets the cursor's fields for that class. It skips classes with more than the given bulk. Room
// only shrinks while a node is filled, so skipped classes need no second check.
func (f *filler) advanceToFitting(k *cursor, pn *plannedNode, bulk float64) bool {
	for ; k.at < len(k.row); k.advance() {
		class := k.row[k.at]
		if f.facts.bulk[class] > bulk && len(k.row)-k.at > 8 { // a binary search of fewer classes saves little
			rest := k.row[k.at:]
			k.at += sort.Search(len(rest), func(i int) bool { return f.facts.bulk[rest[i]] <= bulk })
			k.left, k.rulesPassed, k.onlyRoomMatters = -1, false, false
			if k.at == len(k.row) {
				return false
			}
			class = k.row[k.at]
		}
		f.work.steps++
		if class+1 == f.excludedClass {
			continue
		}
		if k.left < 0 {
			k.left = f.allowance(pn, class)
		}
		if k.left == 0 {
			continue
		}
		k.reciprocals = f.facts.reciprocalsOf(class)
		if k.fits = fitCount(k.reciprocals, f.room); k.fits == 0 || f.facts.hasPorts[class] &&
			f.queue.HasPortConflict(&f.queue.Classes[class], pn.ports) {
			continue
		}
		if !f.passesHostRules(k, pn, class) {
			continue
		}
		k.dualPrice = f.prices.dualPrice[class]
		k.onlyRoomMatters = !f.facts.hasPorts[class] && (k.rulesPassed || f.facts.ruleScope[class] == noHostRules)
		k.score = k.fits * k.dualPrice
		return true
	}
	return false
}

// rulesPerStep is the number of topology rules whose check is counted as one step, like the check of a class
// without rules.
const rulesPerStep = 8

func (f *filler) passesHostRules(k *cursor, pn *plannedNode, class int) bool {
	rules := f.facts.ruleScope[class]
	if rules == noHostRules || k.rulesPassed {
		return true
	}
	p := f.queue.Profile(&f.queue.Classes[class])
	f.work.steps += (len(p.Host) + len(p.HostIn)) / rulesPerStep
	if f.hostRuleRoom(pn, class) == 0 {
		return false
	}
	k.rulesPassed = rules == ownClassCounts // holds until units of the class are added
	return true
}

// allowance returns how many units of the class may be added to the node, regardless of its room: all unplaced units.
// With spreadOut, the node must also stay within maxShare.
func (f *filler) allowance(pn *plannedNode, class int) int {
	n := f.left[class]
	if f.spreadOut {
		most := f.facts.maxShare[class]
		if f.preloaded {
			most -= pn.unitsOf(class)
		}
		n = min(n, most)
	}
	return max(n, 0)
}
