package output

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// hoursPerMonth is the length of a month in AWS's price estimates.
const hoursPerMonth = 730

// Summary returns a plan as text: its price, the unschedulable pods with reasons and hints, the nodes to launch, and
// the pods that existing nodes have room for. seconds is how long the planning took. width is the maximum width of
// tables in characters; 0 means no limit.
func Summary(p packing.Plan, seconds float64, context Context, width int) string {
	var b strings.Builder
	b.WriteString(headline(p, seconds))
	b.WriteString(context.text(p))
	b.WriteString(omissionNote(p.Omissions))
	if len(p.Refusals) > 0 {
		fmt.Fprintf(&b, "\nWithout a place: %s\n%s", Count(len(p.Refusals), "pod"), indent(refusalsText(p.Refusals)))
	}
	if len(p.PlannedNodes) > 0 {
		fmt.Fprintf(&b, "\nTo launch:\n%s", indent(NodeClaimsTable(p).Fit(indentedWidth(width))))
	}
	b.WriteString(relaxationsText(p.PlannedNodes))
	if len(p.Placements) > 0 {
		fmt.Fprintf(&b, "\nOnto existing nodes: %s\n%s", Count(len(p.Placements), "pod"), indent(placementTable(p).Fit(indentedWidth(width))))
	}
	return b.String()
}

// headline returns the first line: the number of pods and nodes, the price and the lower bound.
func headline(p packing.Plan, seconds float64) string {
	pods := Count(p.Pods, "pod")
	if p.Classes > 0 { // pods that cannot be planned are in no class
		pods += " in " + Count(p.Classes, "class")
	}
	text := fmt.Sprintf("%s, planned in %s: %s to launch", pods, duration(seconds), Count(len(p.PlannedNodes), "node"))
	if len(p.PlannedNodes) > 0 {
		text += fmt.Sprintf(" for $%s per hour ($%s per month)", dollars(p.Price), number(int(p.Price.Dollars()*hoursPerMonth+0.5)))
	}
	if p.LowerBound > 0 {
		gap := 100 * (p.Price.Dollars()/p.LowerBound.Dollars() - 1)
		text += fmt.Sprintf("; no plan could cost less than $%s (gap %.1f %%)", dollars(p.LowerBound), gap)
	}
	return text + ".\n"
}

// omissionNote returns a note about the pods that were planned without some of their preferences.
func omissionNote(all []packing.Omission) string {
	if len(all) == 0 {
		return ""
	}
	preferences := 0
	for _, o := range all {
		preferences += o.Preferences
	}
	return fmt.Sprintf("\nNote: %s about other pods, of %s (%s, …), were left out: the rules of all pods exceed the limit of one plan.\n",
		Count(preferences, "preference"), Count(len(all), "pod"), all[0].Pod)
}

// indentedWidth returns the maximum width of lines before indent adds two blanks to them; 0 means no limit.
func indentedWidth(width int) int {
	if width == 0 {
		return 0
	}
	return max(width-2, 1)
}

// relaxationsText returns a heading and a line for each of the minValues that planned nodes do not meet; empty if all
// are met.
func relaxationsText(planned []packing.PlannedNode) string {
	counts := map[packing.Relaxation]int{}
	var order []packing.Relaxation
	for _, node := range planned {
		for _, r := range node.Relaxed {
			if counts[r]++; counts[r] == 1 {
				order = append(order, r)
			}
		}
	}
	var b strings.Builder
	for _, r := range order {
		fmt.Fprintf(&b, "  %s: %d of %d values of %s\n", Count(counts[r], "node"), r.Have, r.Asked, escapeInvisible(r.Key))
	}
	if b.Len() == 0 {
		return ""
	}
	return "\nWith fewer choices than minValues asks for:\n" + b.String()
}

func duration(seconds float64) string {
	if seconds < 1 {
		return fmt.Sprintf("%.0f ms", 1000*seconds)
	}
	return fmt.Sprintf("%.1f s", seconds)
}

func dollars(p catalog.Price) string { return fmt.Sprintf("%.4f", p.Dollars()) }

// NodeClaimsTable returns the table of the nodes to launch. Nodes with the same NodePool, instance type, zone,
// capacity type and reservation share a row. The rows with the highest price come first.
func NodeClaimsTable(p packing.Plan) Table {
	groups := groupNodes(p.PlannedNodes)
	slices.SortStableFunc(groups, func(a, b []packing.PlannedNode) int { return cmp.Compare(totalPrice(b), totalPrice(a)) })
	t := Table{
		Header: []string{"COUNT", "TYPE", "ZONE", "CAPACITY", "NODEPOOL", "PODS", "CPU", "MEMORY", "$/HOUR", "ALTERNATIVES"},
		Right:  []int{0, 5, 6, 7, 8},
	}
	for _, g := range groups {
		first := g[0].Offerings[0]
		pods, cpu, memory := 0, int64(0), int64(0)
		for _, node := range g {
			pods += len(node.Pods)
			cpu += node.Requests.CPU
			memory += node.Requests.Memory
		}
		t.Rows = append(t.Rows, []string{
			number(len(g)), first.InstanceType, first.Zone, capacityText(first), g[0].Pool, number(pods),
			fmt.Sprintf("%.1f", float64(cpu)/1000), gibibytes(memory), dollars(totalPrice(g)), alternatives(g[0]),
		})
	}
	return t
}

// capacityText returns the capacity type of an offering, with its reservation: "spot", "reserved cr-0123456789abcdef0".
func capacityText(c packing.Choice) string {
	if c.Reservation == "" {
		return c.CapacityType
	}
	return c.CapacityType + " " + c.Reservation
}

// groupNodes groups planned nodes by NodePool and cheapest offering.
func groupNodes(planned []packing.PlannedNode) [][]packing.PlannedNode {
	index := map[string]int{}
	var out [][]packing.PlannedNode
	for _, node := range planned {
		first := node.Offerings[0]
		key := strings.Join([]string{node.Pool, first.InstanceType, first.Zone, capacityText(first)}, "\x00")
		i, ok := index[key]
		if !ok {
			i = len(out)
			index[key] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], node)
	}
	return out
}

func totalPrice(planned []packing.PlannedNode) catalog.Price {
	var total catalog.Price
	for _, node := range planned {
		total += node.Price()
	}
	return total
}

// alternatives returns the number of offerings that the node may be launched with instead of its cheapest offering, and
// the number of their instance types.
func alternatives(node packing.PlannedNode) string {
	others := node.Offerings[1:]
	if len(others) == 0 {
		return "none"
	}
	types := map[string]bool{}
	for _, o := range others {
		types[o.InstanceType] = true
	}
	return fmt.Sprintf("%s, %s", Count(len(others), "offering"), Count(len(types), "type"))
}

// gibibytes returns an amount of memory in GiB, with one decimal unless it is a multiple of 1 GiB.
func gibibytes(bytes int64) string {
	if bytes%(1<<30) == 0 {
		return resources.Format(resources.Memory, bytes)
	}
	return fmt.Sprintf("%.1fGi", float64(bytes)/(1<<30))
}

func placementTable(p packing.Plan) Table {
	t := Table{Header: []string{"NODE", "PODS", "WHICH"}, Right: []int{1}}
	index := map[string]int{}
	var pods [][]string
	for _, placed := range p.Placements {
		i, ok := index[placed.Node]
		if !ok {
			i = len(t.Rows)
			index[placed.Node] = i
			t.Rows = append(t.Rows, []string{placed.Node, "", ""})
			pods = append(pods, nil)
		}
		pods[i] = append(pods[i], placed.Pod)
	}
	for i := range t.Rows {
		t.Rows[i][1], t.Rows[i][2] = number(len(pods[i])), firstNames(pods[i])
	}
	slices.SortFunc(t.Rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return t
}

// firstNames returns the first three names, and the number of further names.
func firstNames(names []string) string {
	const maxNames = 3
	if len(names) <= maxNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %s more", strings.Join(names[:maxNames], ", "), number(len(names)-maxNames))
}

// refusalsText returns the unschedulable pods, grouped by sentence and hint, the group with the most pods first.
func refusalsText(all []packing.Refusal) string {
	type group struct {
		refusal packing.Refusal
		pods    []string
	}
	index := map[string]int{}
	var groups []group
	for _, r := range all {
		key := Sentence(r) + "\x00" + r.Hint
		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key] = i
			groups = append(groups, group{refusal: r})
		}
		groups[i].pods = append(groups[i].pods, r.Pod)
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(len(b.pods), len(a.pods)) })
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "%s: %s\n  %s\n", Count(len(g.pods), "pod"), escapeInvisible(firstNames(g.pods)), escapeInvisible(Sentence(g.refusal)))
		if g.refusal.Hint != "" && !repeats(g.refusal.Hint, Sentence(g.refusal)) {
			fmt.Fprintf(&b, "  to do: %s\n", escapeInvisible(g.refusal.Hint))
		}
	}
	return b.String()
}

// repeats reports whether hint is "fix " and a part of the sentence.
func repeats(hint, sentence string) bool {
	what, ok := strings.CutPrefix(hint, "fix ")
	return ok && strings.Contains(sentence, what)
}
