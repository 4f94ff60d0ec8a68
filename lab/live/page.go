package live

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// pair has the results of both sides for the same script, mix and seed.
type pair struct{ joiner, upstream Result }

// key returns what all runs of a Kind have in common, as text.
func (s Spec) key() string { return fmt.Sprintf("%s, %s", s.Script, s.Mix) }

// Kind is a kind of run: the pairs of all seeds with the same script and mix. Markets and boot times may differ between
// the seeds, but not between the sides of a pair.
type Kind struct {
	Title string
	pairs []pair // sorted by seed
}

// Kinds returns the kinds of the results, sorted by title. It leaves out results without the other
// side, or with another number of phases there.
func Kinds(all []Result) []Kind {
	groups := map[string]map[uint64]pair{}
	for _, r := range all {
		k := r.key()
		if groups[k] == nil {
			groups[k] = map[uint64]pair{}
		}
		p := groups[k][r.Seed]
		if r.Side == Joiner {
			p.joiner = r
		} else {
			p.upstream = r
		}
		groups[k][r.Seed] = p
	}
	var out []Kind
	for title, group := range groups {
		kind := Kind{Title: title}
		for _, seed := range sortedSeeds(group) {
			if p := group[seed]; len(p.joiner.Phases) > 0 && len(p.joiner.Phases) == len(p.upstream.Phases) {
				kind.pairs = append(kind.pairs, p)
			}
		}
		if len(kind.pairs) > 0 {
			out = append(out, kind)
		}
	}
	slices.SortFunc(out, func(a, b Kind) int { return strings.Compare(a.Title, b.Title) })
	return out
}

// Slug returns the title in lower case, with hyphens instead of spaces and punctuation, for a file name.
func (k Kind) Slug() string {
	isBreak := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	return strings.Join(strings.FieldsFunc(strings.ToLower(k.Title), isBreak), "-")
}

// Plot writes the price over time of the pair with the median overpaidPercent, as SVG.
func (k Kind) Plot(w io.Writer) error {
	pairs := slices.Clone(k.pairs)
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(a.overpaidPercent(), b.overpaidPercent()) })
	p := pairs[len(pairs)/2]
	return plotPair(w, p.joiner, p.upstream)
}

// overpaidPercent returns by how many percent Joiner paid more than Karpenter in the whole script.
func (p pair) overpaidPercent() float64 { return percent(total(p.joiner), total(p.upstream)) }

// Markdown returns, for each kind, the plot and a table with the median and the worst case of all seeds. plots has the
// paths of the plots by Kind.Title; a kind without a path gets no plot.
func Markdown(kinds []Kind, plots map[string]string) string {
	var b strings.Builder
	for _, k := range kinds {
		writeTable(&b, k, plots[k.Title])
	}
	return b.String()
}

func sortedSeeds(m map[uint64]pair) []uint64 {
	var out []uint64
	for seed := range m {
		out = append(out, seed)
	}
	slices.Sort(out)
	return out
}

// figure is a number that the tables show for each phase.
type figure struct {
	name   string
	format string
	value  func(Phase) float64
}

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

func writeTable(b *strings.Builder, k Kind, plot string) {
	var seeds []string
	for _, p := range k.pairs {
		s := p.joiner.Spec
		seeds = append(seeds, fmt.Sprintf("%d (%s, boot times %s)", s.Seed, s.Market, s.Boots))
	}
	fmt.Fprintf(b, "## %s\n\n", k.Title)
	if plot != "" {
		fmt.Fprintf(b, "![Price over time with Joiner and with Karpenter, and the lower bound](%s)\n\n", plot)
	}
	fmt.Fprintf(b, "Seeds: %s.\n\nJoiner and Karpenter: median / worst. Last column: number of seeds for which the figure is higher with Joiner.\n\n",
		strings.Join(seeds, "; "))
	fmt.Fprintln(b, "| phase | figure | Joiner | Karpenter | higher |")
	fmt.Fprintln(b, "|---|---|---:|---:|---:|")
	for i, phase := range k.pairs[0].joiner.Phases {
		for _, f := range figures() {
			var joiner, upstream []float64
			higher := 0
			for _, p := range k.pairs {
				j, u := f.value(p.joiner.Phases[i]), f.value(p.upstream.Phases[i])
				joiner, upstream = append(joiner, j), append(upstream, u)
				if j > u {
					higher++
				}
			}
			row := "| %s | %s | " + f.format + " / " + f.format + " | " + f.format + " / " + f.format + " | %d |\n"
			fmt.Fprintf(b, row, phase.Name, f.name, median(joiner), worst(joiner), median(upstream), worst(upstream), higher)
		}
	}
	var overpaid []float64
	for _, p := range k.pairs {
		overpaid = append(overpaid, p.overpaidPercent())
	}
	fmt.Fprintf(b, "\nPaid over the whole script, compared with Karpenter: median %+.1f %%, worst %+.1f %%.\n\n",
		median(overpaid), worst(overpaid))
}

// total returns what a run paid, in dollars.
func total(r Result) float64 {
	sum := 0.0
	for _, p := range r.Phases {
		sum += p.Paid
	}
	return sum
}
