package verify

import (
	"maps"
	"slices"
	"strconv"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// identity is a key that is equal for two values only if the values are equal: every text and every list is preceded
// by its length. Each method adds a value to the key.
type identity []byte

func (w *identity) number(n int) {
	*w = append(strconv.AppendInt(*w, int64(n), 10), ' ')
}

func (w *identity) flag(yes bool) {
	if yes {
		*w = append(*w, '+')
		return
	}
	*w = append(*w, '-')
}

func (w *identity) text(s string) {
	w.number(len(s))
	*w = append(*w, s...)
}

func (w *identity) texts(list []string) {
	w.number(len(list))
	for _, s := range list {
		w.text(s)
	}
}

func (w *identity) labels(l requirements.Labels) {
	w.number(len(l))
	for _, key := range slices.Sorted(maps.Keys(l)) {
		w.text(key)
		w.text(l[key])
	}
}

// bound adds the limit of a requirement; nil means no limit.
func (w *identity) bound(n *int64) {
	w.flag(n != nil)
	if n != nil {
		w.number(int(*n))
	}
}

func (w *identity) requirements(r requirements.Requirements) {
	w.number(len(r))
	for _, key := range r.Keys() {
		v := r[key]
		w.text(key)
		w.texts(v.Listed)
		w.flag(v.Complement)
		w.flag(v.Absent)
		w.bound(v.Min)
		w.bound(v.Max)
	}
}

func (w *identity) alternatives(list []requirements.Requirements) {
	w.number(len(list))
	for _, r := range list {
		w.requirements(r)
	}
}

func (w *identity) tolerations(list []requirements.Toleration) {
	w.number(len(list))
	for _, t := range list {
		w.text(t.Key)
		w.text(t.Operator)
		w.text(t.Value)
		w.text(string(t.Effect))
	}
}

func (w *identity) taints(list []requirements.Taint) {
	w.number(len(list))
	for _, t := range list {
		w.text(t.Key)
		w.text(t.Value)
		w.text(string(t.Effect))
	}
}

func (w *identity) selector(s cluster.Selector) {
	w.flag(s.MatchesNothing)
	w.requirements(s.Labels)
}

func (w *identity) term(t *cluster.Term) {
	w.text(t.Key)
	w.flag(t.AllNamespaces)
	if !t.AllNamespaces {
		w.texts(t.Namespaces)
	}
	w.selector(t.Selector)
}

func (w *identity) ports(list []cluster.HostPort) {
	w.number(len(list))
	for _, p := range list {
		w.text(p.IP)
		w.number(int(p.Port))
		w.text(p.Protocol)
	}
}
