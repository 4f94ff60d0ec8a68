package offering

import (
	"math"
	"slices"
	"strconv"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// maxVariants is the maximum number of variants of one pool: the numbers of values of its custom labels multiply.
// Combinations of values beyond the maximum are not used.
const maxVariants = 128

// labelChoices returns the combinations of values for the custom labels for which the pool's requirements allow
// several values. Of values that no pod's requirement distinguishes, only the first by name is used, so that the same
// value is used in every plan. If pods have a topology rule over the label, each listed value is used. The result has
// at least one combination.
func (p *Pool) labelChoices(types []catalog.Type, queue func() *podgroup.Queue) []requirements.Labels {
	out := []requirements.Labels{{}}
	for _, key := range p.Accepts.Keys() {
		if _, fixed := p.fixed[key]; fixed || IsCloudKey(key) || hasLabel(types, key) {
			continue
		}
		q := queue()
		values := distinguished(p.Accepts[key], requirementsFor(q, key))
		if listed := p.Accepts[key]; q.HasRuleOver(key) && !listed.Complement {
			values = listed.Listed // each value is a domain
		}
		if len(values) == 0 {
			continue // the label stays absent
		}
		var extended []requirements.Labels
		for _, chosen := range out {
			for _, value := range values {
				if len(extended) == maxVariants {
					break
				}
				l := requirements.Labels{}
				for k, v := range chosen {
					l[k] = v
				}
				if value != "" {
					l[key] = value
				}
				extended = append(extended, l)
			}
		}
		out = extended
	}
	return out
}

func hasLabel(types []catalog.Type, key string) bool {
	return slices.ContainsFunc(types, func(t catalog.Type) bool { _, ok := t.Labels[key]; return ok })
}

// requirementsFor returns the requirements of the pods on a label, each once.
func requirementsFor(q *podgroup.Queue, key string) []requirements.Values {
	seen := map[string]bool{}
	var out []requirements.Values
	add := func(reqs requirements.Requirements) {
		v, ok := reqs[key]
		if !ok || seen[v.String()] {
			return
		}
		seen[v.String()] = true
		out = append(out, v)
	}
	for _, s := range q.Signatures {
		for _, reqs := range s.Required {
			add(reqs)
		}
		for _, pref := range s.Preferred {
			add(pref.Requirements)
		}
	}
	slices.SortFunc(out, requirements.Values.Compare)
	return out
}

// distinguished returns the values of allowed that the requirements distinguish. Of values that each requirement
// treats alike, it returns only the first by name. "" stands for a node without the label. The result is empty if the
// label should stay absent.
func distinguished(allowed requirements.Values, reqs []requirements.Values) []string {
	candidates := slices.Clone(allowed.Listed)
	if allowed.Complement {
		candidates = nil
		for _, w := range reqs {
			candidates = append(candidates, w.Listed...)
		}
		slices.Sort(candidates)
		if value, ok := anyInteger(allowed, reqs); ok {
			candidates = append(candidates, value)
		}
		candidates = slices.DeleteFunc(slices.Compact(candidates), func(s string) bool { return !allowed.Accepts(s) })
	}
	if allowed.Absent {
		candidates = slices.Insert(candidates, 0, "")
	}
	var out []string
	seen := map[string]bool{}
	for _, value := range candidates {
		verdicts := make([]byte, len(reqs))
		for i, w := range reqs {
			if value == "" && w.Absent || value != "" && w.Accepts(value) {
				verdicts[i] = 1
			}
		}
		if !seen[string(verdicts)] {
			seen[string(verdicts)] = true
			out = append(out, value)
		}
	}
	if len(out) == 1 && out[0] == "" {
		return nil
	}
	return out
}

// anyInteger returns an integer that allowed accepts and no requirement lists, as text; false if it finds none. The
// integer can satisfy Gt and Lt. anyInteger tries the lowest allowed integers, or the highest if only the maximum is
// limited. Each listed value excludes one integer, so one more try than there are listed values is enough.
func anyInteger(allowed requirements.Values, reqs []requirements.Values) (string, bool) {
	from, step := int64(1), int64(1)
	switch {
	case allowed.Min != nil:
		from = *allowed.Min
	case allowed.Max != nil:
		from, step = *allowed.Max, -1
	}
	tries := len(allowed.Listed) + 1
	for _, w := range reqs {
		tries += len(w.Listed)
	}
	for n := range int64(tries) {
		if step > 0 && from > math.MaxInt64-n || step < 0 && from < math.MinInt64+n {
			break
		}
		text := strconv.FormatInt(from+n*step, 10)
		isListed := func(w requirements.Values) bool { return slices.Contains(w.Listed, text) }
		if allowed.Accepts(text) && !slices.ContainsFunc(reqs, isListed) {
			return text, true
		}
	}
	return "", false
}
