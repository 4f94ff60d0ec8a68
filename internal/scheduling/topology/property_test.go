package topology

import (
	flags "flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

func TestMain(m *testing.M) {
	flags.Parse()
	// Failures are printed, so rapid needs no file.
	_ = flags.Set("rapid.nofailfile", "true")
	os.Exit(m.Run())
}

// TestAssignProperties assigns pods of one to three kinds, one kind after the other, in a cluster with residents. An
// independent implementation of the rules checks that the assigned pods can be bound in some order, and that no place
// allows an unassigned pod. No place has more pods than it takes, and the result is deterministic.
func TestAssignProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var residents []running
		for range rapid.IntRange(0, 3).Draw(t, "residents") {
			residents = append(residents, running{drawPod(t, false), drawZone(t), drawCapacityType(t), rapid.IntRange(1, 2).Draw(t, "n")})
		}
		var kinds []cluster.Pod
		for range rapid.IntRange(1, 3).Draw(t, "kinds") {
			kinds = append(kinds, drawPod(t, true))
		}
		cells := drawCells(t)
		counted := drawCounted(t)
		index, domainCounts := prepare(kinds, residents, counted)
		reference := &judge{counted: counted}
		for _, s := range residents {
			for range s.n {
				reference.placed = append(reference.placed, placed{&s.pod, map[string]string{Zone: s.zone, capacityType: s.capacityType}})
			}
		}
		for i := range kinds {
			p := &index.Profiles[index.ProfileOf[i]]
			n := rapid.IntRange(0, 7).Draw(t, "pods")
			places := drawPlaces(t, p, cells)
			otherIndex, other := prepare(kinds, residents, counted)
			for k := range i { // the pods of the previous kinds, in the other index
				profile := &otherIndex.Profiles[otherIndex.ProfileOf[k]]
				for _, q := range reference.placed {
					if q.pod == &kinds[k] {
						other.Add(profile, domainsOf(profile, q.node), 1)
					}
				}
			}
			before := domainCounts.Clone()
			counts := domainCounts.Assign(p, n, places)
			if again := before.Assign(p, n, places); !slices.Equal(counts, again) {
				t.Fatalf("kind %d: Assign returned %v, and for a copy of the counts %v, want the same", i, counts, again)
			}
			other.Assign(&otherIndex.Profiles[otherIndex.ProfileOf[i]], n, places)
			if !reflect.DeepEqual(other.counts, domainCounts.counts) {
				t.Fatalf("kind %d: another index of the same pods has the counts\n%+v, want\n%+v", i, other.counts, domainCounts.counts)
			}
			reference.check(t, &kinds[i], n, places, cells, counts)
		}
	})
}

func prepare(kinds []cluster.Pod, residents []running, counted map[string][]bool) (*Index, *DomainCounts) {
	index := indexOf(avoiding(residents), kinds...)
	domainCounts := NewDomainCounts(index, domains)
	for g := range index.Groups {
		if index.Groups[g].Kind == Spread {
			domainCounts.SetCounted(g, counted[index.Groups[g].Key])
		}
	}
	addResidents(domainCounts, index, residents)
	return index, domainCounts
}

// placed is a pod on a node with these labels; "" stands for a missing label.
type placed struct {
	pod  *cluster.Pod
	node map[string]string
}

// judge is the independent implementation: it evaluates the rules directly, one pod at a time.
type judge struct {
	placed  []placed
	counted map[string][]bool // by label and domain: whether it counts for the minimum of a spread
}

// check checks counts, the number of pods that Assign put into each place, and adds these pods to placed.
func (j *judge) check(t *rapid.T, pod *cluster.Pod, n int, places []Place, cells []map[string]string, counts []int) {
	total := 0
	for i, got := range counts {
		total += got
		if got < 0 || got > max(places[i].Most, 0) {
			t.Fatalf("%d pods in place %d, which takes %d", got, i, places[i].Most)
		}
	}
	if total > n {
		t.Fatalf("%d pods were assigned, but there are only %d", total, n)
	}
	if !j.canBind(pod, cells, slices.Clone(counts), map[string]bool{}) {
		t.Fatalf("%+v: no order of binding results in %v", *pod, counts)
	}
	for i, got := range counts {
		if total < n && got < places[i].Most && j.admits(pod, cells[i]) {
			t.Fatalf("%+v: %d of %d pods are assigned (%v), but %v allows one more", *pod, total, n, counts, cells[i])
		}
	}
}

// canBind reports whether the pods can be bound in some order, and binds them in that order. left has the number of
// unbound pods by cell. failed has the values of left, as text, for which there is no order.
func (j *judge) canBind(pod *cluster.Pod, cells []map[string]string, left []int, failed map[string]bool) bool {
	key := fmt.Sprint(left)
	if failed[key] {
		return false
	}
	allBound := true
	for i := range left {
		if left[i] == 0 {
			continue
		}
		allBound = false
		if !j.admits(pod, cells[i]) {
			continue
		}
		j.placed = append(j.placed, placed{pod, cells[i]})
		left[i]--
		if j.canBind(pod, cells, left, failed) {
			return true
		}
		left[i]++
		j.placed = j.placed[:len(j.placed)-1]
	}
	failed[key] = !allBound
	return allBound
}

// admits reports whether kube-scheduler would bind the pod to a node with these labels now.
func (j *judge) admits(pod *cluster.Pod, node map[string]string) bool {
	for i := range pod.Spread {
		if s := &pod.Spread[i]; !s.Soft && !j.admitsSpread(pod, s, node) {
			return false
		}
	}
	for i := range pod.AntiAffinity {
		if t := &pod.AntiAffinity[i]; t.Weight == 0 &&
			slices.ContainsFunc(j.placed, func(q placed) bool { return meets(t, q.pod, q.node, node) }) {
			return false
		}
	}
	for _, q := range j.placed {
		for i := range q.pod.AntiAffinity {
			if t := &q.pod.AntiAffinity[i]; t.Weight == 0 && meets(t, pod, q.node, node) {
				return false
			}
		}
	}
	return j.admitsAffinity(pod, node) && j.admitsVolumes(pod, node)
}

// meets reports whether the term counts the pod, and both nodes are in the same domain of its label.
func meets(t *cluster.Term, pod *cluster.Pod, a, b map[string]string) bool {
	return t.Matches(pod.Namespace, pod.Labels) && a[t.Key] != "" && a[t.Key] == b[t.Key]
}

func (j *judge) admitsSpread(pod *cluster.Pod, s *cluster.Spread, node map[string]string) bool {
	if node[s.Key] == "" {
		return false
	}
	counts := func(p *cluster.Pod) bool {
		return len(s.Selector.Labels) > 0 && p.Namespace == pod.Namespace && s.Selector.Matches(p.Labels)
	}
	pods := map[string]int{}
	for _, q := range j.placed {
		if counts(q.pod) {
			pods[q.node[s.Key]]++
		}
	}
	fewest, numCounted := -1, 0
	for name, d := range numbers { // all domains
		if isDomainOf(s.Key, name) && j.counted[s.Key][d] {
			numCounted++
			if n := pods[name]; fewest < 0 || n < fewest {
				fewest = n
			}
		}
	}
	if fewest < 0 || numCounted < s.MinDomains {
		fewest = 0
	}
	after := pods[node[s.Key]]
	if counts(pod) {
		after++
	}
	return after-fewest <= s.MaxSkew
}

// isDomainOf reports whether the name is a domain of the label: names of zones have one letter.
func isDomainOf(key, name string) bool { return (key == Zone) == (len(name) == 1) }

func (j *judge) admitsAffinity(pod *cluster.Pod, node map[string]string) bool {
	var required []cluster.Term
	for _, t := range pod.Affinity {
		if t.Weight == 0 {
			required = append(required, t)
		}
	}
	all := func(p *cluster.Pod) bool {
		return !slices.ContainsFunc(required, func(t cluster.Term) bool { return !t.Matches(p.Namespace, p.Labels) })
	}
	inAllDomains, anywhere := true, false // whether a pod that matches all terms is in the node's domain of each term, and anywhere
	for _, t := range required {
		if node[t.Key] == "" {
			return false
		}
		here := false
		for _, q := range j.placed {
			if all(q.pod) && q.node[t.Key] != "" {
				anywhere = true
				here = here || q.node[t.Key] == node[t.Key]
			}
		}
		inAllDomains = inAllDomains && here
	}
	return inAllDomains || !anywhere && all(pod)
}

// admitsVolumes reports whether the pods that share a claim with the pod are in the zone of the node.
func (j *judge) admitsVolumes(pod *cluster.Pod, node map[string]string) bool {
	for _, claim := range pod.Volumes {
		if node[Zone] == "" {
			return false
		}
		for _, q := range j.placed {
			if slices.Contains(q.pod.Volumes, claim) && q.node[Zone] != "" && q.node[Zone] != node[Zone] {
				return false
			}
		}
	}
	return true
}

func drawZone(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c", "a", "b", "c", ""}).Draw(t, "zone")
}

func drawCapacityType(t *rapid.T) string {
	return rapid.SampledFrom([]string{"spot", "od", "spot", "od", ""}).Draw(t, "capacity type")
}

func drawCounted(t *rapid.T) map[string][]bool {
	out := map[string][]bool{}
	for _, key := range []string{Zone, capacityType} {
		for range domains[key] {
			out[key] = append(out[key], rapid.IntRange(0, 5).Draw(t, "counted") > 0)
		}
	}
	return out
}

// drawPod draws a pod; without allRules its only rules are anti-affinity.
func drawPod(t *rapid.T, allRules bool) cluster.Pod {
	p := pod(rapid.SampledFrom([]string{"web", "db"}).Draw(t, "app"))
	p.Namespace = rapid.SampledFrom([]string{"default", "default", "other"}).Draw(t, "namespace")
	p.AntiAffinity = drawTerms(t, "away")
	if !allRules {
		return p
	}
	p.Affinity = drawTerms(t, "near")
	for range rapid.SampledFrom([]int{0, 1, 1, 2}).Draw(t, "spreads") {
		p.Spread = append(p.Spread, cluster.Spread{
			Key: drawKey(t), MaxSkew: rapid.IntRange(1, 2).Draw(t, "maxSkew"), Selector: drawSelector(t),
			MinDomains: rapid.IntRange(0, 3).Draw(t, "minDomains"), Soft: rapid.IntRange(0, 3).Draw(t, "soft") == 0,
		})
	}
	if rapid.IntRange(0, 4).Draw(t, "volume") == 0 {
		p.Volumes = []string{rapid.SampledFrom([]string{"default/data", "default/logs"}).Draw(t, "claim")}
	}
	return p
}

func drawTerms(t *rapid.T, what string) []cluster.Term {
	var out []cluster.Term
	for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, what) {
		term := cluster.Term{Key: drawKey(t), Namespaces: []string{"default"}, Selector: drawSelector(t)}
		if rapid.IntRange(0, 3).Draw(t, "preferred") == 0 {
			term.Weight = rapid.IntRange(1, 3).Draw(t, "weight")
		}
		if rapid.IntRange(0, 3).Draw(t, "everywhere") == 0 {
			term.Namespaces, term.AllNamespaces = nil, true
		}
		out = append(out, term)
	}
	return out
}

func drawKey(t *rapid.T) string {
	return rapid.SampledFrom([]string{Zone, Zone, capacityType}).Draw(t, "key")
}

func drawSelector(t *rapid.T) cluster.Selector {
	switch rapid.IntRange(0, 7).Draw(t, "selector") {
	case 0:
		return cluster.Selector{}
	case 1:
		return cluster.Selector{MatchesNothing: true}
	}
	return apps(rapid.SampledFrom([]string{"web", "db"}).Draw(t, "of"))
}

// drawCells draws the cells. A cell is the labels of the nodes of a place.
func drawCells(t *rapid.T) []map[string]string {
	var out []map[string]string
	for range rapid.IntRange(1, 5).Draw(t, "places") {
		out = append(out, map[string]string{Zone: drawZone(t), capacityType: drawCapacityType(t)})
	}
	return out
}

func drawPlaces(t *rapid.T, p *Profile, cells []map[string]string) []Place {
	var out []Place
	for _, cell := range cells {
		place := Place{
			Domains: domainsOf(p, cell), Most: rapid.IntRange(0, 7).Draw(t, "most"),
			Rank: rapid.IntRange(0, 1).Draw(t, "rank"), Price: float64(rapid.IntRange(0, 2).Draw(t, "price")),
		}
		place.Free = rapid.IntRange(0, place.Most).Draw(t, "free")
		out = append(out, place)
	}
	return out
}

func domainsOf(p *Profile, node map[string]string) []int {
	out := make([]int, len(p.Keys))
	for i, key := range p.Keys {
		out[i] = number(key, node[key])
	}
	return out
}
