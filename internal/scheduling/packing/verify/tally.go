package verify

// tally counts pods by domain, and finds the minimum.
type tally struct {
	count   map[int]int  // by domain: its pods; domains without pods may be missing
	levels  map[int]int  // by number of pods: how many domains have that number
	domains map[int]bool // the domains; nil if byHost
	byHost  bool         // each host is a domain
	least   int          // the smallest number of pods of a domain; 0 if there are no domains
}

// newTally returns a tally of the domains in b, without pods. byHost is whether each host is a domain.
func newTally(b *bounds, byHost bool) *tally {
	t := &tally{count: map[int]int{}, levels: map[int]int{}, byHost: byHost}
	if byHost {
		t.levels[0] = b.hosts
		return t
	}
	t.domains = make(map[int]bool, len(b.sure))
	for d := range b.sure {
		t.domains[d] = true
	}
	t.levels[0] = len(t.domains)
	return t
}

// add counts n more pods in the domain, or fewer if n is negative.
func (t *tally) add(domain, n int) {
	old := t.count[domain]
	t.count[domain] = old + n
	t.drop(old)
	t.levels[old+n]++
	if old+n < t.least {
		t.least = old + n
	} else if t.levels[t.least] == 0 {
		t.least, _ = t.lowest(-1)
	}
}

func (t *tally) addDomain(domain int) {
	if !t.byHost {
		t.domains[domain] = true
	}
	t.levels[0]++
	t.least = 0
}

func (t *tally) drop(level int) {
	if t.levels[level]--; t.levels[level] == 0 {
		delete(t.levels, level)
	}
}

// lowest returns the minimum number of pods in a domain, ignoring the domain with the number except (-1: none). It
// returns false if there is no other domain.
func (t *tally) lowest(except int) (int, bool) {
	exceptLevel := -1 // level of the domain except
	if except >= 0 {
		exceptLevel = t.count[except]
	}
	// If another domain has the smallest number, no search is needed.
	if exceptLevel != t.least && t.levels[t.least] > 0 || exceptLevel == t.least && t.levels[exceptLevel] > 1 {
		return t.least, true
	}
	least, found := 0, false
	for level, n := range t.levels {
		if level == exceptLevel {
			n--
		}
		if n > 0 && (!found || level < least) {
			least, found = level, true
		}
	}
	return least, found
}
