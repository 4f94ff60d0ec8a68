package podgroup

import (
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/hashkey"
)

// Ports numbers lists of host ports, and reports which lists conflict on one node. The zero value has no list. Only
// Number changes a Ports, so the other methods may be called concurrently between calls of Number.
type Ports struct {
	numbers   map[string]int         // number of each list, by its ports
	conflicts [][]uint64             // by list: the lists that conflict with it, as bits
	users     map[portKey]*portUsers // by port: the lists that have the port
}

// portKey is a port and its protocol, without the address.
type portKey struct {
	port     int32
	protocol string
}

// portUsers are the lists that have a port, as bits.
type portUsers struct {
	all        []uint64            // all lists with the port
	everywhere []uint64            // lists with the port on all addresses
	byIP       map[string][]uint64 // by address: lists with the port on this address only
}

// NoPorts is the number of the empty list.
const NoPorts = 0

// Number returns the number of the list. Equal lists have the same number.
func (p *Ports) Number(list []cluster.HostPort) int {
	if len(list) == 0 {
		return NoPorts
	}
	if p.numbers == nil {
		p.numbers, p.users, p.conflicts = map[string]int{}, map[portKey]*portUsers{}, [][]uint64{nil}
	}
	var key []byte
	for _, h := range list {
		key = hashkey.Int(hashkey.Text(key, h.IP, h.Protocol), int(h.Port))
	}
	if n, ok := p.numbers[string(key)]; ok {
		return n
	}
	n := len(p.conflicts)
	p.numbers[string(key)] = n
	for _, h := range list {
		p.record(n, h)
	}
	var conflicts []uint64
	for _, h := range list {
		conflicts = p.users[portKey{h.Port, h.Protocol}].withConflicts(conflicts, h)
	}
	p.conflicts = append(p.conflicts, conflicts)
	for other := range n {
		if hasBit(conflicts, other) {
			p.conflicts[other] = withBit(p.conflicts[other], n)
		}
	}
	return n
}

// Relevant returns the ports of the list that are also in a numbered list, on any address. The other ports conflict
// with no numbered list, so they can be ignored.
func (p *Ports) Relevant(list []cluster.HostPort) []cluster.HostPort {
	var out []cluster.HostPort
	for i := range list {
		if p.users[portKey{list[i].Port, list[i].Protocol}] != nil {
			out = append(out, list[i])
		}
	}
	return out
}

func (p *Ports) record(list int, h cluster.HostPort) {
	key := portKey{h.Port, h.Protocol}
	u := p.users[key]
	if u == nil {
		u = &portUsers{}
		p.users[key] = u
	}
	u.all = withBit(u.all, list)
	if h.Everywhere() {
		u.everywhere = withBit(u.everywhere, list)
		return
	}
	if u.byIP == nil {
		u.byIP = map[string][]uint64{}
	}
	u.byIP[h.IP] = withBit(u.byIP[h.IP], list)
}

// withConflicts returns the set, with the lists added that conflict with the port. It may change the given set.
func (u *portUsers) withConflicts(set []uint64, h cluster.HostPort) []uint64 {
	if h.Everywhere() {
		return withBits(set, u.all)
	}
	return withBits(withBits(set, u.everywhere), u.byIP[h.IP])
}

// Conflict reports whether two lists, given by their numbers, conflict on one node.
func (p *Ports) Conflict(a, b int) bool {
	return a != NoPorts && b != NoPorts && hasBit(p.conflicts[a], b)
}

// ConflictAny reports whether list a conflicts with any list in others. All lists are given by their numbers.
func (p *Ports) ConflictAny(a int, others []int) bool {
	if a == NoPorts {
		return false
	}
	conflicting := p.conflicts[a]
	for _, b := range others {
		if hasBit(conflicting, b) {
			return true
		}
	}
	return false
}

func hasBit(set []uint64, n int) bool { return n>>6 < len(set) && set[n>>6]&(1<<(n&63)) != 0 }

// withBit returns the set with n added. It may change the given set.
func withBit(set []uint64, n int) []uint64 {
	for len(set) <= n>>6 {
		set = append(set, 0)
	}
	set[n>>6] |= 1 << (n & 63)
	return set
}

// withBits returns the set with all of more added. It may change the given set.
func withBits(set, more []uint64) []uint64 {
	for len(set) < len(more) {
		set = append(set, 0)
	}
	for i, w := range more {
		set[i] |= w
	}
	return set
}
