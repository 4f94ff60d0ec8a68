package lowerbound

import (
	"cmp"
	"math"
	"slices"
)

// knapsack finds the whole pods with the highest total dual price that fit on one node of a kind. The dual price of a
// pod is its worth.
//
// At the rates of the relaxation, the price of the whole room plus all possible profits (worth minus payment) is an
// upper bound. The pods on a node are worth less than this bound for three reasons: unused room, unused profits, and
// pods whose worth is below their payment. The search branches over the classes, highest payment first. It backtracks
// when the pods so far and the pods that may still follow are worth at most the target.
type knapsack struct {
	*part
	kind      *kind
	relaxed   relaxation
	dualPrice []float64
	used      []int // by group: pods on the node

	order []int       // positions in kind.classes of the classes that the best solution may have
	least [][]float64 // by position in order, by resource: the minimum request of the classes from there to the end
	after *table      // upper bounds of what the following classes can add

	podNumbers      []int32   // pods on the node, by position in kind.classes
	left            []float64 // by resource: free room of the node
	value           float64   // worth of the pods on the node
	best            []int32   // the best solution, as in podNumbers
	most            float64   // worth of the best solution
	target          float64   // worth that a solution must exceed
	unfinishedBound float64   // upper bound of the branches that the search did not finish
	nodes           int       // number of visited search nodes
	limit           int       // maximum number of visited search nodes
	tried           int       // amounts that greedy has read or written: a measure of its work
}

const (
	maxPlanes        = 30   // maximum number of cutting planes of a relaxation
	maxSearchNodes   = 2000 // maximum number of search nodes for one instance
	wholeTolerance   = 5e-4 // accepted distance of the found pods from the best pods, as a part of the instance's price
	searchSkipExcess = 0.02 // no search for better pods or proofs if the found pods are worth threshold × (1 + searchSkipExcess)
	proofTolerance   = 4e-3 // accepted distance of the proved bound from the found pods, as a part of the instance's price
)

// maxWorth returns an upper bound of the sum of the dual prices of the pods on one node of the kind. If the bound
// exceeds threshold, maxWorth also returns nodes whose pods are worth more than threshold. These are whole pods, or
// fractions of pods if the search found no proof for whole pods within its limit.
func (g *generation) maxWorth(k *kind, dualPrice []float64, threshold float64) (float64, [][]podCount) {
	relaxed := g.relax(k, dualPrice, threshold, maxPlanes)
	g.steps += relaxed.steps
	proved := relaxed.most
	if proved <= threshold {
		return proved, nil
	}
	m := knapsack{part: g.part, kind: k, relaxed: relaxed, dualPrice: dualPrice, used: g.used, limit: g.nodeLimit}
	m.podNumbers, m.left = make([]int32, len(k.classes)), slices.Clone(k.room)
	found := m.greedy(threshold)
	m.target = max(threshold, m.most+wholeTolerance*k.price)
	pods := 0
	for _, n := range m.best {
		pods += int(n)
	}
	if before := m.most; proved > m.target && pods <= maxTablePods && m.most < threshold*(1+searchSkipExcess) {
		m.arrange(proved-m.target, pods)
		m.search(0, m.profits())
		proved = min(proved, max(m.target, m.unfinishedBound))
		if m.most > before {
			found = append(found, m.podCounts(m.best))
		}
		g.steps += m.after.steps + m.nodes*len(k.room)*4 // a search node costs about 4 numbers for each resource
	}
	if proved > max(m.most, threshold)+proofTolerance*k.price && m.most < threshold*(1+searchSkipExcess) {
		found = append(found, m.fractionalPods())
	}
	g.steps += m.tried
	return proved, found
}

// podCounts returns the pods on a node. pods has their numbers by position in kind.classes.
func (m *knapsack) podCounts(pods []int32) (out []podCount) {
	for i, n := range pods {
		if n > 0 {
			out = append(out, podCount{class: m.kind.classes[i], n: float64(n)})
		}
	}
	return out
}

func (m *knapsack) fractionalPods() (out []podCount) {
	for i, n := range m.relaxed.pods {
		if n > 0 {
			out = append(out, podCount{class: m.kind.classes[i], n: n})
		}
	}
	return out
}

const (
	maxStartClasses = 200 // maximum number of classes with which greedy starts a node
	maxFoundNodes   = 20  // maximum number of nodes that greedy returns
	maxStartLoss    = 0.2 // maximum loss (payment minus worth) of a pod with which greedy starts a node, as a share of its payment
)

// greedy searches for whole pods of high worth, and sets best and most. It fills the room of the node with pods,
// those with the highest ratio of profit to payment first. It starts from the pods of the relaxation rounded down,
// from one pod of each class, and from as many pods of each class as possible. It returns the nodes whose worth
// exceeds threshold, at most maxFoundNodes, best first.
func (m *knapsack) greedy(threshold float64) [][]podCount {
	order, ratio := m.byRatio()
	var found []contents
	finish := func() {
		for _, i := range order {
			m.put(i, math.MaxInt32)
		}
		if m.value > m.most {
			m.most, m.best = m.value, slices.Clone(m.podNumbers)
		}
		if m.value > threshold*(1+1e-6) {
			found = append(found, contents{value: m.value, pods: slices.Clone(m.podNumbers)})
		}
		m.removeAll()
		m.tried += len(order) * len(m.left)
	}
	for i, n := range m.relaxed.pods {
		m.put(i, int(n+1e-6))
	}
	finish()
	for _, i := range order[:min(len(order), maxStartClasses)] {
		if ratio[i] < -maxStartLoss {
			break
		}
		m.put(i, 1)
		finish()
		m.put(i, math.MaxInt32)
		finish()
	}
	slices.SortFunc(found, func(a, b contents) int {
		return cmp.Or(cmp.Compare(b.value, a.value), slices.Compare(a.pods, b.pods))
	})
	found = slices.CompactFunc(found, func(a, b contents) bool { return slices.Equal(a.pods, b.pods) })
	var out [][]podCount
	for _, node := range found[:min(len(found), maxFoundNodes)] {
		out = append(out, m.podCounts(node.pods))
	}
	return out
}

// contents has numbers of pods by position in kind.classes, and their worth.
type contents struct {
	value float64
	pods  []int32
}

// byRatio returns the positions in kind.classes by profit (worth minus payment) relative to payment, highest first, and
// this ratio by position.
func (m *knapsack) byRatio() (order []int, ratio []float64) {
	for i, at := range m.kind.classes {
		profit := m.relaxed.profits[i]
		order = append(order, i)
		ratio = append(ratio, profit/max(m.dualPrice[at]-profit, 1e-300))
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(ratio[b], ratio[a]), cmp.Compare(a, b)) })
	return order, ratio
}

// roomFor returns how many more pods of the class at position i in kind.classes fit on the node.
func (m *knapsack) roomFor(i int) int {
	c := &m.classes[m.kind.classes[i]]
	n := c.cap - int(m.podNumbers[i])
	for _, g := range c.groups {
		n = min(n, m.problem.Caps[g]-m.used[g])
	}
	for r, a := range c.ask {
		if a > 0 {
			n = min(n, int(m.left[r]/a))
		}
	}
	return max(n, 0)
}

// put adds up to n pods of the class at position i to the node, and returns the number added.
func (m *knapsack) put(i, n int) int {
	if n = min(n, m.roomFor(i)); n > 0 {
		m.place(i, n)
	}
	return n
}

// place adds n pods of the class at position i to the node; a negative n removes pods.
func (m *knapsack) place(i, n int) {
	c := &m.classes[m.kind.classes[i]]
	m.podNumbers[i] += int32(n)
	m.value += float64(n) * m.dualPrice[m.kind.classes[i]]
	for r, a := range c.ask {
		m.left[r] -= a * float64(n)
	}
	for _, g := range c.groups {
		m.used[g] += n
	}
}

func (m *knapsack) removeAll() {
	for i, n := range m.podNumbers {
		if n > 0 {
			m.place(i, -int(n))
		}
	}
	m.value = 0
	copy(m.left, m.kind.room)
}

// arrange sets order to the classes that may be on a node that loses less than slack, highest payment first. It also
// sets least and after. pods is the number of pods that fill the node.
func (m *knapsack) arrange(slack float64, pods int) {
	payments := make([]float64, len(m.relaxed.profits))
	for i, profit := range m.relaxed.profits {
		payments[i] = m.dualPrice[m.kind.classes[i]] - profit
		if profit > -slack {
			m.order = append(m.order, i)
		}
	}
	slices.SortFunc(m.order, func(a, b int) int { return cmp.Or(cmp.Compare(payments[b], payments[a]), cmp.Compare(a, b)) })
	m.least = make([][]float64, len(m.order))
	for at := len(m.order) - 1; at >= 0; at-- {
		m.least[at] = slices.Clone(m.classes[m.kind.classes[m.order[at]]].ask)
		if at+1 < len(m.order) {
			for r, a := range m.least[at+1] {
				m.least[at][r] = min(m.least[at][r], a)
			}
		}
	}
	m.after = m.tabulate(pods)
}

// profits returns the sum of all possible profits: the bound of the relaxation without the price of the room.
func (m *knapsack) profits() float64 {
	sum := m.relaxed.most
	for _, rate := range m.relaxed.rates {
		sum -= rate
	}
	return max(sum, 0)
}

// search branches over the classes from position at to the end of the order. profits is the sum of the profits that
// are still possible. search sets best, most, target and unfinishedBound.
func (m *knapsack) search(at int, profits float64) {
	if m.value > m.most {
		m.most, m.best = m.value, slices.Clone(m.podNumbers)
		m.target = max(m.target, m.value+wholeTolerance*m.kind.price)
	}
	for ; at < len(m.order) && !m.isFull(at); at++ {
		free := m.freeRoomPrice()
		bound := m.value + min(free+profits, m.after.most(at, m.left, free))
		if bound <= m.target {
			return
		}
		i := m.order[at]
		c := &m.classes[m.kind.classes[i]]
		if p := m.relaxed.profits[i]; p > 0 && c.shared < 0 { // classes of a shared group divide its cap, so their parts vary
			profits = max(profits-p*float64(m.kind.maxPods(c)), 0)
		}
		if m.roomFor(i) == 0 {
			continue
		}
		if m.nodes++; m.nodes > m.limit {
			m.unfinishedBound = max(m.unfinishedBound, bound)
			return
		}
		for n := m.put(i, math.MaxInt32); n > 0; n-- {
			m.search(at+1, profits)
			m.place(i, -1)
		}
	}
}

func (m *knapsack) freeRoomPrice() float64 {
	sum := 0.0
	for r, rate := range m.relaxed.rates {
		if m.kind.room[r] > 0 {
			sum += rate * m.left[r] / m.kind.room[r]
		}
	}
	return sum
}

// isFull reports whether the free room of some resource is too small for every class from position at to the end of
// the order.
func (m *knapsack) isFull(at int) bool {
	for r, a := range m.least[at] {
		if a > m.left[r] {
			return true
		}
	}
	return false
}
