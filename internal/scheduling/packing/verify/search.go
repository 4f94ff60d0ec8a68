package verify

// maxStates is the maximum number of states in a search. A state is a number of bound pods for each group. A search
// with this number of states takes a few tenths of a second.
const maxStates = 50_000

// search tries every order, if the component has at most maxStates states, and reports whether some order works. If so,
// all pods are bound. Whether the rest of the pods can be bound depends only on the state, so no state is visited
// twice.
func (o *order) search() bool {
	states := 1
	for _, i := range o.members {
		g := &o.groups[i]
		for g.left < len(g.pods) {
			o.move(i, -1) // unbinds what greedy bound
		}
		if states *= len(g.pods) + 1; states > maxStates {
			o.rebind()
			return false
		}
	}
	if o.complete(map[int]bool{}, 0) {
		return true
	}
	o.rebind()
	return false
}

// complete binds all remaining pods if that is possible, and returns true. Otherwise it changes no binding. state is
// the number of the current state. Its digits are the numbers of bound pods, one digit for each group. dead has the
// states from which no order binds all pods.
func (o *order) complete(dead map[int]bool, state int) bool {
	allBound, radix := true, 1
	for _, i := range o.members {
		g := &o.groups[i]
		if g.left > 0 {
			allBound = false
			next := state + radix
			if !dead[next] && o.obstacle(i) == nil {
				o.move(i, 1)
				if o.complete(dead, next) {
					return true
				}
				o.move(i, -1)
			}
		}
		radix *= len(g.pods) + 1
	}
	dead[state] = !allBound
	return allBound
}

// rebind binds the pods that can be bound, group by group. The check of refused pods uses the resulting state of the
// rules.
func (o *order) rebind() {
	for _, i := range o.members {
		for g := &o.groups[i]; g.left > 0 && o.obstacle(i) == nil; {
			o.move(i, 1)
		}
	}
}
