package verify

// maxStates bounds the search: how many ways there may be of some pods being
// bound and others not. It takes a few tenths of a second at most.
const maxStates = 50_000

// search tries every order, if the part is small enough, and reports whether
// there is one. Where it gets depends only on how many pods of each group are bound, so
// no such state is looked at twice.
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

// complete binds all remaining pods if that is possible, and else changes nothing. state numbers the
// pods.
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

// rebind binds the pods that can be bound, so that the rest can be reported.
func (o *order) rebind() {
	for _, i := range o.members {
		for g := &o.groups[i]; g.left > 0 && o.obstacle(i) == nil; {
			o.move(i, 1)
		}
	}
}
