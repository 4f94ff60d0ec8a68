package live

import (
	"fmt"
	"slices"
	"strings"
)

// pair are the results of both sides for the same script, mix, market, boot times and seed.
type pair struct{ joiner, upstream Result }

// key identifies what both sides of a pair have in common, except the seed.
func (s Spec) key() string {
	return fmt.Sprintf("%s, %s, %s, boot times %s", s.Script, s.Mix, s.Market, s.Boots)
}

// Markdown returns the page: for each kind of run a table with the median and the worst case of all seeds.
func Markdown(all []Result) string {
	groups, order := map[string]map[uint64]pair{}, []string{}
	for _, r := range all {
		k := r.key()
		if groups[k] == nil {
			groups[k] = map[uint64]pair{}
			order = append(order, k)
		}
		p := groups[k][r.Seed]
		if r.Side == Joiner {
			p.joiner = r
		} else {
			p.upstream = r
		}
		groups[k][r.Seed] = p
	}
	slices.Sort(order)
	var b strings.Builder
	for _, k := range order {
		var pairs []pair
		for _, seed := range sortedSeeds(groups[k]) {
			if p := groups[k][seed]; len(p.joiner.Phases) > 0 && len(p.joiner.Phases) == len(p.upstream.Phases) {
				pairs = append(pairs, p)
			}
		}
		if len(pairs) > 0 {
			table(&b, k, pairs)
		}
	}
	return b.String()
}

// sortedSeeds returns the seeds in ascending order.
func sortedSeeds(m map[uint64]pair) []uint64 {
	var out []uint64
	for seed := range m {
		out = append(out, seed)
	}
	slices.Sort(out)
	return out
}

// figure is a row of a table: a number of each phase.
type figure struct {
	name   string
	format string
	of     func(Phase) float64
}

// figures are the rows of a table.
func figures() []figure {
	return []figure{
		{"pods did not all run (1: yes)", "%.0f", func(p Phase) float64 {
			if p.Done {
				return 0
			}
			return 1
		}},
		{"price over the bound, %", "%+.1f", func(p Phase) float64 { return percent(p.Price, p.Bound) }},
		{"price over the bound after 15 s, %", "%+.1f", func(p Phase) float64 { return percent(p.Price15, p.Bound) }},
		{"price over a fresh plan, %", "%+.1f", func(p Phase) float64 { return percent(p.Price, p.Plan) }},
		{"peak price over the bound, %", "%+.1f", func(p Phase) float64 { return percent(p.Peak, p.Bound) }},
		{"paid, dollars", "%.4f", func(p Phase) float64 { return p.Paid }},
		{"Pending to Running, median, s", "%.1f", func(p Phase) float64 { return p.Waits.Median.Seconds() }},
		{"Pending to Running, p99, s", "%.1f", func(p Phase) float64 { return p.Waits.P99.Seconds() }},
		{"Pending to Running, longest, s", "%.1f", func(p Phase) float64 { return p.Waits.Worst.Seconds() }},
		{"restarted pods", "%.0f", func(p Phase) float64 { return float64(p.Restarted) }},
		{"launched instances", "%.0f", func(p Phase) float64 { return float64(p.Launched) }},
		{"instances ended within 5 minutes", "%.0f", func(p Phase) float64 { return float64(p.ShortTerm) }},
		{"CPU of the controller, s", "%.1f", func(p Phase) float64 { return p.CPU.Seconds() }},
		{"memory of the controller, MiB", "%.0f", func(p Phase) float64 { return float64(p.Memory >> 20) }},
		{"calls to AWS", "%.0f", func(p Phase) float64 { return float64(p.AWSCalls) }},
		{"requests to the API server", "%.0f", func(p Phase) float64 { return float64(p.Requests) }},
	}
}

// percent returns by how many percent a is above b; 0 if b is 0.
func percent(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return 100 * (a/b - 1)
}

// table writes the table of one kind of run.
func table(b *strings.Builder, title string, pairs []pair) {
	var seeds []string
	for _, p := range pairs {
		seeds = append(seeds, fmt.Sprint(p.joiner.Seed))
	}
	fmt.Fprintf(b, "## %s\n\nSeeds: %s. Each cell: median / worst.\n\n", title, strings.Join(seeds, ", "))
	fmt.Fprintln(b, "| phase | figure | Joiner | Karpenter |")
	fmt.Fprintln(b, "|---|---|---:|---:|")
	for i, phase := range pairs[0].joiner.Phases {
		for _, f := range figures() {
			var ours, theirs []float64
			for _, p := range pairs {
				ours, theirs = append(ours, f.of(p.joiner.Phases[i])), append(theirs, f.of(p.upstream.Phases[i]))
			}
			cell := "| %s | %s | " + f.format + " / " + f.format + " | " + f.format + " / " + f.format + " |\n"
			fmt.Fprintf(b, cell, phase.Name, f.name, median(ours), worst(ours), median(theirs), worst(theirs))
		}
	}
	var saved []float64
	for _, p := range pairs {
		saved = append(saved, percent(total(p.joiner), total(p.upstream)))
	}
	fmt.Fprintf(b, "\nPaid over the whole script, compared with Karpenter: median %+.1f %%, worst %+.1f %%.\n\n", median(saved), worst(saved))
}

// total returns what a run paid in all phases, in dollars.
func total(r Result) float64 {
	sum := 0.0
	for _, p := range r.Phases {
		sum += p.Paid
	}
	return sum
}
