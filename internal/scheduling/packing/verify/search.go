package verify

// maxStates is the maximum number of states in the search. A state has the number of bound pods of
// each group. The search takes at most a few tenths of a second.
const maxStates = 50_000

// search tries every order, if the part is small enough, and reports whether
// some order works. The result from a state depends only on the number of bound pods of each group, so
// no state is visited twice.
func (o *order) search() bool {
	states := 1
	for _, i := range o.members {
		g := &o.groups[i]
		for g.left < len(g.pods) {
			o.move(i, -1)
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

// complete binds all remaining pods if that is possible; otherwise it changes nothing. state is the number of
// the current state; dead has the states from which not all pods can be bound.
func (o *order) complete(dead map[int]bool, state int) bool {
	all, radix := true, 1
	for _, i := range o.members {
		g := &o.groups[i]
		if g.left > 0 {
			all = false
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
	dead[state] = !all
	return all
}

// rebind binds the pods that can be bound, so that the remaining pods can be reported.
func (o *order) rebind() {
	for _, i := range o.members {
		for g := &o.groups[i]; g.left > 0 && o.obstacle(i) == nil; {
			o.move(i, 1)
		}
	}
}
