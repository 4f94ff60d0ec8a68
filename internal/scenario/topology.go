package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// appendSpread reads "SELECTOR over KEY [max-skew=N] [min-domains=N] [soft] [any-node] [honor-taints]".
func appendSpread(to *[]cluster.Spread, text string) error {
	s := cluster.Spread{MaxSkew: 1}
	options, err := readSelectorAndKey(&s.Selector, &s.Key, text, "over")
	if err != nil {
		return err
	}
	for _, o := range options {
		key, value, _ := strings.Cut(o, "=")
		switch {
		case key == "max-skew":
			err = setInt(&s.MaxSkew, value)
		case key == "min-domains":
			err = setInt(&s.MinDomains, value)
		case o == "soft":
			s.Soft = true
		case o == "any-node":
			s.IgnoresNodeAffinity = true
		case o == "honor-taints":
			s.HonorTaints = true
		default:
			err = errors.New("want max-skew=N, min-domains=N, soft, any-node or honor-taints")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", o, err)
		}
	}
	*to = append(*to, s)
	return nil
}

// appendTerm reads "SELECTOR by KEY [weight=N] [ns=A,B | ns=* | ns=]". ns= is an empty list of namespaces. Without ns,
// the term selects pods of the given namespace.
func appendTerm(to *[]cluster.Term, text, namespace string) error {
	t := cluster.Term{Namespaces: []string{namespace}}
	options, err := readSelectorAndKey(&t.Selector, &t.Key, text, "by")
	if err != nil {
		return err
	}
	for _, o := range options {
		key, value, _ := strings.Cut(o, "=")
		switch {
		case key == "weight":
			if err := setInt(&t.Weight, value); err != nil {
				return fmt.Errorf("%s: %w", o, err)
			}
		case o == "ns=*":
			t.Namespaces, t.AllNamespaces = nil, true
		case o == "ns=":
			t.Namespaces, t.AllNamespaces = nil, false
		case key == "ns":
			t.Namespaces, t.AllNamespaces = slices.Sorted(slices.Values(strings.Split(value, ","))), false
		default:
			return fmt.Errorf("%s: want weight=N, ns=A,B or ns=*", o)
		}
	}
	*to = append(*to, t)
	return nil
}

// readSelectorAndKey reads "SELECTOR over KEY" or "SELECTOR by KEY", and returns the words after the key.
func readSelectorAndKey(s *cluster.Selector, key *string, text, preposition string) ([]string, error) {
	selector, rest, err := parseSelector(text)
	if err != nil {
		return nil, err
	}
	words := strings.Fields(rest)
	if len(words) < 2 || words[0] != preposition {
		return nil, fmt.Errorf("want SELECTOR %s KEY, but the selector is followed by %q", preposition, strings.TrimSpace(rest))
	}
	*s, *key = selector, words[1]
	return words[2:], nil
}

// appendResident reads "LABELS [xN] [ns=NAMESPACE] [ending]". LABELS have the format of kubectl --show-labels:
// "app=web,tier=front", or <none>.
func appendResident(to *[]cluster.Resident, args []string) error {
	if len(args) == 0 {
		return errors.New("want LABELS [xN] [ns=NAMESPACE] [ending]")
	}
	r := cluster.Resident{PodKind: &cluster.PodKind{Namespace: defaultNamespace}, Count: 1}
	if err := setLabels(&r.Labels, args[0]); err != nil {
		return err
	}
	for _, word := range args[1:] {
		namespace, isNamespace := strings.CutPrefix(word, "ns=")
		switch {
		case isNamespace:
			r.Namespace = namespace
		case word == "ending":
			r.Terminating = true
		default:
			n, err := parseTimes(word)
			if err != nil {
				return fmt.Errorf("%w, ns=NAMESPACE or ending", err)
			}
			r.Count = n
		}
	}
	*to = append(*to, r)
	return nil
}

// setLabels reads "app=web,tier=front", or <none>.
func setLabels(to *requirements.Labels, text string) error {
	if text == noPod {
		return nil
	}
	for _, pair := range strings.Split(text, ",") {
		if err := setLabel(to, []string{pair}); err != nil {
			return err
		}
	}
	return nil
}

// setDaemonKind reads the LABELS of the pods of a daemon, in the format of a resident.
func setDaemonKind(d *cluster.Daemon, args []string) error {
	if len(args) != 1 {
		return errors.New("want LABELS")
	}
	d.Kind = &cluster.PodKind{Namespace: d.Namespace}
	return setLabels(&d.Kind.Labels, args[0])
}

func (w *writer) kind(k *cluster.PodKind) {
	if k == nil {
		return
	}
	w.printf("    pods %s\n", labelsText(k.Labels))
	for _, t := range k.RequiredAntiAffinity {
		w.printf("    apart %s\n", termText(t, k.Namespace))
	}
}

// appendAvoidedTerm appends an anti-affinity term to the last resident.
func appendAvoidedTerm(to []cluster.Resident, text string) error {
	if len(to) == 0 {
		return errors.New("apart needs a resident above it")
	}
	kind := to[len(to)-1].PodKind
	return appendTerm(&kind.RequiredAntiAffinity, text, kind.Namespace)
}

// shareKinds makes residents of equal kinds share one PodKind.
func shareKinds(nodes []cluster.Node) {
	kinds := map[string]*cluster.PodKind{}
	for i := range nodes {
		for j := range nodes[i].Residents {
			r := &nodes[i].Residents[j]
			text := residentText(*r.PodKind, 1)
			if kinds[text] == nil {
				kinds[text] = r.PodKind
			}
			r.PodKind = kinds[text]
		}
	}
}

// appendVolume reads a PersistentVolumeClaim: NAME for a claim in the pod's own namespace, or NAMESPACE/NAME.
func appendVolume(to *[]string, args []string, namespace string) error {
	if len(args) != 1 {
		return errors.New("want the name of a volume claim")
	}
	claim := args[0]
	if !strings.Contains(claim, "/") {
		claim = namespace + "/" + claim
	}
	*to = slices.Sorted(slices.Values(append(*to, claim)))
	return nil
}

func (w *writer) topology(p *cluster.Pod) {
	for _, s := range p.Spread {
		w.printf("    spread %s over %s", selectorText(s.Selector), s.Key)
		if s.MaxSkew != 1 {
			w.printf(" max-skew=%d", s.MaxSkew)
		}
		if s.MinDomains != 0 {
			w.printf(" min-domains=%d", s.MinDomains)
		}
		for _, flag := range []struct {
			word string
			set  bool
		}{{"soft", s.Soft}, {"any-node", s.IgnoresNodeAffinity}, {"honor-taints", s.HonorTaints}} {
			if flag.set {
				w.printf(" %s", flag.word)
			}
		}
		w.printf("\n")
	}
	for _, t := range p.Affinity {
		w.printf("    near %s\n", termText(t, p.Namespace))
	}
	for _, t := range p.AntiAffinity {
		w.printf("    apart %s\n", termText(t, p.Namespace))
	}
}

// termText is the inverse of appendTerm for a pod in this namespace.
func termText(t cluster.Term, namespace string) string {
	text := selectorText(t.Selector) + " by " + t.Key
	if t.Weight != 0 {
		text += fmt.Sprintf(" weight=%d", t.Weight)
	}
	switch {
	case t.AllNamespaces:
		text += " ns=*"
	case len(t.Namespaces) != 1 || t.Namespaces[0] != namespace:
		text += " ns=" + strings.Join(t.Namespaces, ",")
	}
	return text
}

func (w *writer) volumes(p *cluster.Pod) {
	for _, claim := range p.Volumes {
		if name, isOwn := strings.CutPrefix(claim, p.Namespace+"/"); isOwn && !strings.Contains(name, "/") {
			claim = name
		}
		w.printf("    volume %s\n", claim)
	}
}

// residentText returns the line that appendResident reads for n pods of a kind, and the lines of their anti-affinity.
func residentText(k cluster.PodKind, n int) string {
	var w writer
	w.printf("    resident %s", labelsText(k.Labels))
	if n != 1 {
		w.printf(" x%d", n)
	}
	if k.Namespace != defaultNamespace {
		w.printf(" ns=%s", k.Namespace)
	}
	if k.Terminating {
		w.printf(" ending")
	}
	w.printf("\n")
	for _, t := range k.RequiredAntiAffinity {
		w.printf("      apart %s\n", termText(t, k.Namespace))
	}
	return w.String()
}

func labelsText(labels requirements.Labels) string {
	if len(labels) == 0 {
		return noPod
	}
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ",")
}
