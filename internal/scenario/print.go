package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// String returns the scenario as text that Parse can read.
func (s Scenario) String() string {
	var w writer
	for line := range strings.Lines(s.Story) {
		w.printf("%s\n", strings.TrimRight("# "+strings.TrimSuffix(line, "\n"), " "))
	}
	for _, class := range slices.Sorted(maps.Keys(s.Market)) {
		w.catalog(class, s.Market[class])
	}
	w.section("pools", len(s.Snapshot.Pools))
	for _, p := range s.Snapshot.Pools {
		w.pool(p)
	}
	w.section("nodes", len(s.Snapshot.Nodes))
	for _, n := range s.Snapshot.Nodes {
		w.node(n)
	}
	w.section("daemons", len(s.Snapshot.Daemons))
	for _, d := range s.Snapshot.Daemons {
		w.printf("  %s/%s%s\n", d.Namespace, d.Name, amountsText("", d.Requests.With(resources.Pods, 0)))
		w.required(d.Required)
		w.tolerationsAndPorts(d.Tolerations, d.HostPorts)
		w.kind(d.Kind)
	}
	w.section("pods", len(s.Snapshot.Pods))
	w.pods(s.Snapshot.Pods)
	w.printf("solve")
	if s.Effort != 0 {
		w.printf(" effort=%d", s.Effort)
	}
	w.printf("\n----\n%s", s.Expect)
	return w.String()
}

type writer struct{ strings.Builder }

func (w *writer) printf(format string, args ...any) { fmt.Fprintf(w, format, args...) }

func (w *writer) section(name string, entries int) {
	if entries > 0 {
		w.printf("%s\n", name)
	}
}

// amountsText returns amounts as " cpu=2 mem=8Gi". The prefix is written before each name.
func amountsText(prefix string, a resources.Amounts) string {
	var b strings.Builder
	for _, name := range a.Names() {
		fmt.Fprintf(&b, " %s%s=%s", prefix, wordOf(name), resources.Format(name, a.Of(name)))
	}
	return b.String()
}

// differingAmounts returns the amounts of a that are not 0 and differ from those of b.
func differingAmounts(a, b resources.Amounts) resources.Amounts {
	var out resources.Amounts
	for _, name := range a.Names() {
		if a.Of(name) != b.Of(name) {
			out = out.With(name, a.Of(name))
		}
	}
	return out
}

func (w *writer) catalog(class string, c catalog.Catalog) {
	w.printf("catalog")
	if class != defaultClass {
		w.printf(" %s", class)
	}
	w.printf("\n")
	for _, t := range c.Types {
		for i, o := range t.Offerings {
			zone := o.Zone
			if o.ZoneID != "" {
				zone += "/" + o.ZoneID
			}
			w.printf("  %s %s %s %s", t.Name, zone, o.CapacityType, o.Price)
			if i == 0 {
				w.typeAttributes(t, o)
			}
			if o.Reservation.ID != "" {
				w.printf("%s", reservationText(o.Reservation))
			}
			if !o.Available {
				w.printf(" short")
			}
			w.printf("\n")
		}
	}
}

// typeAttributes writes the amounts and labels of a type, on the line of its first offering.
func (w *writer) typeAttributes(t catalog.Type, first catalog.Offering) {
	w.printf("%s%s", amountsText("", t.Allocatable), amountsText("capacity:", differingAmounts(t.Capacity, t.Allocatable)))
	if t.Volumes != 0 {
		w.printf(" volumes=%d", t.Volumes)
	}
	arch := t.Labels[catalog.LabelArch]
	if arch != "amd64" {
		w.printf(" arch=%s", arch)
	}
	usual := usualLabels(t, arch, regionOf(first.Zone))
	for _, key := range slices.Sorted(maps.Keys(t.Labels)) {
		if t.Labels[key] != usual[key] {
			w.printf(" label:%s=%s", key, t.Labels[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(usual)) {
		if _, ok := t.Labels[key]; !ok {
			w.printf(" label:%s=", key)
		}
	}
}

func (w *writer) pool(p cluster.Pool) {
	w.printf("  %s", p.Name)
	if p.NodeClass != defaultClass {
		w.printf(" class=%s", p.NodeClass)
	}
	if p.Weight != 0 {
		w.printf(" weight=%d", p.Weight)
	}
	if p.RelaxesMinValues {
		w.printf(" min-values=best-effort")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Limits.Ceiling)) {
		w.printf(" limit:%s=%s", wordOf(name), resources.Format(name, p.Limits.Ceiling[name]))
	}
	if p.Limits.Nodes != nil {
		w.printf(" limit:nodes=%d", *p.Limits.Nodes)
	}
	w.printf("%s", amountsText("used:", p.Usage))
	if p.Nodes != 0 {
		w.printf(" used:nodes=%d", p.Nodes)
	}
	w.printf("\n")
	for _, r := range p.Requirements {
		w.printf("    require %s\n", requirementText(r))
	}
	w.labels(p.Labels)
	w.taints("taint", p.Taints)
	w.taints("startup-taint", p.StartupTaints)
	switch {
	case p.UnusableByIntent:
		w.printf("    closed %s\n", p.Unusable)
	case p.Unusable != "":
		w.printf("    unusable %s\n", p.Unusable)
	}
}

// requirementText returns "KEY OPERATOR VALUES… [min=N]".
func requirementText(r requirements.Requirement) string {
	words := append([]string{r.Key, string(r.Operator)}, r.Values...)
	if r.MinValues != 0 {
		words = append(words, "min="+strconv.Itoa(r.MinValues))
	}
	return strings.Join(words, " ")
}

func (w *writer) labels(labels requirements.Labels) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		w.printf("    label %s=%s\n", key, labels[key])
	}
}

func (w *writer) taints(word string, taints []requirements.Taint) {
	for _, t := range taints {
		w.printf("    %s %s\n", word, t)
	}
}

func (w *writer) node(n cluster.Node) {
	w.printf("  %s", n.Name)
	for _, pair := range [][2]string{{"pool", n.Pool}, {"class", n.NodeClass}, {"claim", n.Claim}} {
		if pair[1] != "" {
			w.printf(" %s=%s", pair[0], pair[1])
		}
	}
	w.printf("%s%s%s", amountsText("", n.Allocatable), amountsText("capacity:", differingAmounts(n.Capacity, n.Allocatable)),
		amountsText("used:", n.Requested))
	switch {
	case !n.Joined:
		w.printf(" joining")
	case !n.Initialized:
		w.printf(" uninitialized")
	}
	if n.Leaving {
		w.printf(" leaving")
	}
	taints := n.Taints
	if len(taints) > 0 && taints[0] == cluster.CordonTaint() {
		w.printf(" cordoned")
		taints = taints[1:]
	}
	w.printf("\n")
	w.labels(n.Labels)
	w.taints("taint", taints)
	w.tolerationsAndPorts(nil, n.HostPorts)
	for _, r := range n.Residents {
		w.printf("%s", residentText(*r.PodKind, r.Count))
	}
}

func (w *writer) tolerationsAndPorts(tolerations []requirements.Toleration, ports []cluster.HostPort) {
	for _, t := range tolerations {
		w.printf("    tolerate %s\n", tolerationText(t))
	}
	for _, p := range ports {
		w.printf("    port %s\n", portText(p))
	}
}

// pods writes the pods. Adjacent pods that differ only in a consecutive number share one entry.
func (w *writer) pods(pods []cluster.Pod) {
	for len(pods) > 0 {
		description := podDescription(pods[0])
		stem, isNumbered := strings.CutSuffix(pods[0].Name, "-1")
		n := 1
		for isNumbered && n < len(pods) && pods[n].Name == fmt.Sprintf("%s-%d", stem, n+1) &&
			pods[n].Namespace == pods[0].Namespace && podDescription(pods[n]) == description {
			n++
		}
		name := pods[0].Name
		if isNumbered {
			name = fmt.Sprintf("%s x%d", stem, n)
		}
		if pods[0].Namespace != defaultNamespace {
			name = pods[0].Namespace + "/" + name
		}
		w.printf("  %s%s", name, description)
		pods = pods[n:]
	}
}

// podDescription returns the text of the pod after its name: the rest of its first line, and the lines of its details.
func podDescription(p cluster.Pod) string {
	var w writer
	requests := p.Requests
	if requests.Pods == 1 {
		requests.Pods = 0
	}
	w.printf("%s", amountsText("", requests))
	if p.Priority != 0 {
		w.printf(" priority=%d", p.Priority)
	}
	for _, pair := range [][2]string{{"owner", p.Owner}, {"node", p.Node}} {
		if pair[1] != "" {
			w.printf(" %s=%s", pair[0], pair[1])
		}
	}
	w.printf("\n")
	w.labels(p.Labels)
	w.required(p.Required)
	for _, preference := range p.Preferred {
		w.printf("    prefer %d %s\n", preference.Weight, strings.Join(requirementLines(preference.Requirements), " ; "))
	}
	w.topology(&p)
	w.tolerationsAndPorts(p.Tolerations, p.HostPorts)
	w.volumes(&p)
	if p.Unplannable != "" {
		w.printf("    unplannable %s\n", p.Unplannable)
	}
	return w.String()
}

// required writes the lines that appendRequired reads. An empty first alternative needs the line "or" to be read.
func (w *writer) required(alternatives []requirements.Requirements) {
	for i, reqs := range alternatives {
		if i > 0 || len(reqs) == 0 {
			w.printf("    or\n")
		}
		for _, line := range requirementLines(reqs) {
			w.printf("    require %s\n", line)
		}
	}
}

// requirementLines returns requirements as texts "KEY OPERATOR VALUES…", sorted by key. A key may need several texts.
func requirementLines(reqs requirements.Requirements) []string {
	var out []string
	for _, key := range reqs.Keys() {
		for _, text := range valuesText(reqs[key]) {
			out = append(out, key+" "+text)
		}
	}
	return out
}

// valuesText returns a set of values as one or more texts "OPERATOR VALUES…". The set has the values that satisfy all
// texts. A complement that accepts nodes without the label (Absent) needs NotIn: the other operators require the label.
func valuesText(v requirements.Values) []string {
	if !v.Complement {
		if v.Absent {
			return []string{string(requirements.DoesNotExist)}
		}
		return []string{strings.Join(append([]string{string(requirements.In)}, v.Listed...), " ")}
	}
	var out []string
	if len(v.Listed) > 0 || v.Absent {
		out = append(out, strings.Join(append([]string{string(requirements.NotIn)}, v.Listed...), " "))
	}
	if v.Min != nil {
		out = append(out, fmt.Sprintf("%s %d", requirements.Gte, *v.Min))
	}
	if v.Max != nil {
		out = append(out, fmt.Sprintf("%s %d", requirements.Lte, *v.Max))
	}
	if !v.Absent && v.Min == nil && v.Max == nil {
		out = append(out, string(requirements.Exists))
	}
	return out
}
