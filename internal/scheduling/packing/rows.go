package packing

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/joiner-sh/joiner/internal/model/hashkey"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// candidateRows is the classes that a kind of node accepts, in rows of similar resource
// proportions, the larger classes first. To fill a node, only the largest class of each row that
// still fits must be compared.
type candidateRows struct {
	rows [][]int
}

// maxOwnRows is the number of classes up to which each gets a row of its own, so that all of them
// are compared.
const maxOwnRows = 96

func (pl *planner) groupRows(classes []int) *candidateRows {
	pl.refreshFacts()
	candidates := &candidateRows{}
	if len(classes) <= maxOwnRows {
		candidates.rows = make([][]int, len(classes))
		for i := range classes {
			candidates.rows[i] = classes[i : i+1 : i+1]
		}
		return candidates
	}
	number := slices.Repeat([]int{-1}, len(pl.facts.proportionNumbers)) // by proportion: its row
	of, sizes := make([]int, len(classes)), []int(nil)                  // by class its row, by row its number of classes
	for i, c := range classes {
		d := pl.facts.proportion[c]
		if number[d] < 0 {
			number[d], sizes = len(sizes), append(sizes, 0)
		}
		of[i] = number[d]
		sizes[of[i]]++
	}
	all := make([]int, len(classes))
	candidates.rows = make([][]int, len(sizes))
	for r, n := range sizes {
		candidates.rows[r], all = all[:0:n], all[n:]
	}
	for i, c := range classes {
		candidates.rows[of[i]] = append(candidates.rows[of[i]], c)
	}
	for _, row := range candidates.rows {
		slices.SortStableFunc(row, func(a, b int) int { return cmp.Compare(pl.facts.bulk[b], pl.facts.bulk[a]) })
	}
	return candidates
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

// dropPlaced removes the classes without unplaced units.
func (candidates *candidateRows) dropPlaced(left []int) {
	total := 0
	for i, row := range candidates.rows {
		candidates.rows[i] = slices.DeleteFunc(row, func(c int) bool { return left[c] == 0 })
		total += len(candidates.rows[i])
	}
	candidates.rows = slices.DeleteFunc(candidates.rows, func(row []int) bool { return len(row) == 0 })
}

// cursor is a position in a row while one node is filled.
type cursor struct {
	row             []int
	at              int
	left            int     // units of the class at the cursor that may still get onto the node
	fits            float64 // how many would fit if there were enough of them
	score           float64 // fits × dualPrice
	rulesPassed     bool    // the host rules allow some, as long as no unit of the class is added
	onlyRoomMatters bool    // only room and left limit the class, as long as no unit of it is added
	reciprocals     []quad  // classFacts.reciprocals of the class
	dualPrice       float64 // of one unit
}

// classFacts has the facts that filling reads all the time, by class, in separate slices.
type classFacts struct {
	reciprocals []quad // by class × resource in quads: 1 / request of a unit, or unlimitedFit without a request
	quads       int    // per class
	bulk        []float64
	maxShare    []int // maximum units on one node if the class is spread out
	hasPorts    []bool
	soleClass   []int // by host rule group: the only whole class that it concerns, or -1
	ruleScope   []hostRuleScope

	proportion        []int          // by class: the number of its resource proportion
	proportionNumbers map[string]int // the numbers of the proportions
}

// quad is amounts of four resources; most pods request no more.
type quad [4]float64

// A resource that is not requested fits unlimited times into the smallest room.
const (
	unlimitedFit = 1e300
	minRoom      = 1e-280
)

// hostRuleScope is which pods on a node matter for the host rules of a class.
type hostRuleScope byte

const (
	anyClassCounts hostRuleScope = iota // pods of other classes may count
	ownClassCounts                      // only pods of the class itself count
	noHostRules                         // the class has no host rules
)

// refreshFacts computes the facts of the classes that were added since.
func (pl *planner) refreshFacts() {
	pl.facts.quads = (len(pl.stock.Dims) + 3) / 4
	if pl.facts.proportionNumbers == nil {
		pl.facts.proportionNumbers = map[string]int{}
	}
	var key []byte
	for c := len(pl.facts.bulk); c < len(pl.q.classes); c++ {
		class := &pl.q.classes[c]
		for q := range pl.facts.quads {
			per := quad{unlimitedFit, unlimitedFit, unlimitedFit, unlimitedFit}
			for i := range min(4, len(class.Ask)-4*q) {
				if n := class.Ask[4*q+i]; n > 0 {
					per[i] = 1 / float64(n)
				}
			}
			pl.facts.reciprocals = append(pl.facts.reciprocals, per)
		}
		pl.facts.bulk, pl.facts.hasPorts = append(pl.facts.bulk, class.bulk), append(pl.facts.hasPorts, len(class.Ports) > 0)
		pl.facts.maxShare = append(pl.facts.maxShare, max(1, (pl.q.classes[class.base].initialUnits+3)/4))
		pl.facts.ruleScope = append(pl.facts.ruleScope, pl.hostRuleScopeOf(class))
		key = class.appendProportion(key[:0], pl.stock.Dims)
		n, ok := pl.facts.proportionNumbers[string(key)]
		if !ok {
			n = len(pl.facts.proportionNumbers)
			pl.facts.proportionNumbers[string(key)] = n
		}
		pl.facts.proportion = append(pl.facts.proportion, n)
		for _, m := range class.members {
			pl.facts.ruleScope[m.class] = anyClassCounts // bundles bring more of it
		}
	}
}

// hostRuleScopeOf returns which pods matter for the host rules of the class. A group that counts
// one profile has only one class on a node: its parts are in different domains.
func (pl *planner) hostRuleScopeOf(c *class) hostRuleScope {
	if c.members != nil {
		return anyClassCounts
	}
	p := pl.q.profile(c)
	if len(p.Host) == 0 && len(p.HostIn) == 0 {
		return noHostRules
	}
	if pl.facts.soleClass == nil {
		pl.facts.soleClass = pl.q.soleClasses()
	}
	own := func(group int) bool { return pl.facts.soleClass[group] == c.base }
	for i := range p.Host {
		if !own(p.Host[i].Group) {
			return anyClassCounts
		}
	}
	for _, g := range p.HostIn {
		if !own(g) {
			return anyClassCounts
		}
	}
	return ownClassCounts
}

// soleClasses returns, by group, the only whole class that the group concerns, or -1.
func (q *queue) soleClasses() []int {
	const none, many = -2, -1
	out := slices.Repeat([]int{none}, len(q.Book.Groups))
	note := func(group, base int) {
		if out[group] != base && out[group] != none {
			base = many
		}
		out[group] = base
	}
	for i := range q.classes {
		c := &q.classes[i]
		p := q.profile(c)
		for r := range p.Host {
			note(p.Host[r].Group, c.base)
		}
		for _, g := range p.HostIn {
			note(g, c.base)
		}
	}
	return out
}

// fitCount returns how many units with these reciprocal requests fit into the room, with fractions,
// at most 1e9. It returns 0 if not one unit fits.
func fitCount(parts, room []quad) float64 {
	fits := 1e9
	for q := range parts {
		x, y := &parts[q], &room[q]
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

// perOf returns classFacts.reciprocals of the class.
func (pl *planner) perOf(class int) []quad {
	return pl.facts.reciprocals[class*pl.facts.quads:][:pl.facts.quads]
}

// advance moves the cursor to the next class.
func (k *cursor) advance() { k.at, k.left, k.rulesPassed, k.onlyRoomMatters = k.at+1, -1, false, false }

// settle moves the cursor to the first class that fits on the node, and reports whether there is
// one. Room only shrinks while a node is filled, so skipped classes need no second check.
func (f *filler) settle(k *cursor, pn *plannedNode, bulk float64) bool {
	for ; k.at < len(k.row); k.advance() {
		class := k.row[k.at]
		if f.facts.bulk[class] > bulk && len(k.row)-k.at > 8 {
			rest := k.row[k.at:]
			k.at += sort.Search(len(rest), func(i int) bool { return f.facts.bulk[rest[i]] <= bulk })
			k.left, k.rulesPassed, k.onlyRoomMatters = -1, false, false
			if k.at == len(k.row) {
				return false
			}
			class = k.row[k.at]
		}
		f.steps++
		if class+1 == f.excludedClass {
			continue
		}
		if k.left < 0 {
			k.left = f.allowance(pn, class)
		}
		if k.left == 0 {
			continue
		}
		k.reciprocals = f.perOf(class)
		if k.fits = fitCount(k.reciprocals, f.room); k.fits == 0 || f.facts.hasPorts[class] && f.q.hasPortConflict(&f.q.classes[class], pn.ports) {
			continue
		}
		if !f.passesHostRules(k, pn, class) {
			continue
		}
		k.dualPrice = f.dualPrice[class]
		k.onlyRoomMatters = !f.facts.hasPorts[class] && (k.rulesPassed || f.facts.ruleScope[class] == noHostRules)
		k.score = k.fits * k.dualPrice
		return true
	}
	return false
}

// rulesPerStep is how many topology rules take as much work as a class without any.
const rulesPerStep = 8

// passesHostRules reports whether the host rules allow the class at the cursor on the node.
func (f *filler) passesHostRules(k *cursor, pn *plannedNode, class int) bool {
	rules := f.facts.ruleScope[class]
	if rules == noHostRules || k.rulesPassed {
		return true
	}
	p := f.q.profile(&f.q.classes[class])
	f.steps += (len(p.Host) + len(p.HostIn)) / rulesPerStep
	if f.hostRuleRoom(pn, class) == 0 {
		return false
	}
	k.rulesPassed = rules == ownClassCounts // until units of it are added
	return true
}

// allowance returns how many units of the class the node may get: the unplaced ones, and with
// spreadOut no more than the maximum share.
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

// unitsOf returns how many units of the class the node has.
func (pn *plannedNode) unitsOf(class int) int {
	for i := range pn.allocations {
		if pn.allocations[i].class == class {
			return pn.allocations[i].n
		}
	}
	return 0
}
