package consolidation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/bench/fleet"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Targets for Joiner.
const (
	maxGap     = 5.0       // percent above the lower bound for the pods at the end
	maxSeconds = 5.0       // duration of a pass, in seconds
	maxBytes   = 500 << 20 // memory of a pass, in bytes
)

// Title is the first line of the report's section on consolidation.
const Title = "## Consolidation\n"

// Report returns the section for docs/benchmarks.md.
func Report(rows []Row) string {
	var b strings.Builder
	b.WriteString(Title + `
The same underused fleets, once with upstream's disruption controller (v1.14.1: its methods, validation, queue and provisioner) and
once with Joiner's, in a cluster with simulated time. A launched node is ready after 45 s, a terminated one is paid for another 30 s, and
evicted pods are scheduled as by kube-scheduler's defaults. Budgets are 10 %, ` + "`consolidateAfter`" + ` is 0. While a side computes, the
cluster's time passes too: processor time or real time, whichever is less.

* **converged** is when the price changed for the last time. A side that was stopped before it converged is marked.
* **bound**: no plan for the pods at the end can cost less. **gap**: how far above the bound the final price is.
* For a fleet whose pods come and go, the price, bound and gap are those of the pods left at the end, when no further move is worth its
  disruption. The gap before the end is below the table: the bound is computed every ten seconds for all pods, pending ones included.
* **paid** is the price over time, for as long as both sides were watched.
* With upstream, a simulated hour takes up to about two hours of real time, so on some fleets it was stopped before it converged. Without
  the stop, it could only have converged later and moved more pods. If a longer run could change whether a target is reached, the result
  is **not known**. Costs and prices are compared at the time of the stop: **reached so far** or **not so far**. A replacement is paid for
  beside the node that it replaces, so a side that moves many pods has paid more after some minutes, and less later.
* **a pass** is the longest scan of the whole cluster; Joiner's is from the Kubernetes objects to the moves. **memory** is the peak
  memory of that scan without the cluster itself, garbage included. The memory limit of the Go runtime is nine tenths of 500 MiB,
  as the controller sets it from its own limit.

`)
	b.WriteString("| fleet | pods | $/hour before | by | converged | $/hour after | bound | gap | nodes | pods moved | paid | passes | a pass | memory |\n")
	b.WriteString("|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for i := range rows {
		if r := &rows[i]; r.Skipped == "" {
			r.write(&b)
		}
	}
	for i := range rows {
		rows[i].explain(&b)
	}
	b.WriteString("\n| fleet | to reach | measured | |\n|---|---|---|---|\n")
	for i := range rows {
		if r := &rows[i]; r.Skipped == "" {
			r.writeTargets(&b)
		}
	}
	return b.String()
}

type sideResult struct {
	name    Side
	outcome *Outcome
}

func (r *Row) sides() []sideResult {
	return slices.DeleteFunc([]sideResult{{Joiner, &r.Ours}, {Upstream, &r.Theirs}}, func(s sideResult) bool { return s.outcome.Ran == 0 })
}

func (r *Row) write(b *strings.Builder) {
	head := fmt.Sprintf("| `%s` %s | %d | %s |", r.Fleet.Name, r.Fleet.About, r.Pods, dollars(r.Price.Dollars()))
	for _, side := range r.sides() {
		fmt.Fprintf(b, "%s %s |", head, side.name)
		r.writeOutcome(b, side.outcome)
		head = "|  |  |  |"
	}
}

func (r *Row) writeOutcome(b *strings.Builder, o *Outcome) {
	converged := o.ConvergedAt.Round(time.Second).String()
	if o.Stopped != "" {
		converged += ", stopped " + o.Stopped
	}
	memory := ""
	if o.Peak > 0 {
		memory = fmt.Sprintf("%d MiB", o.Peak>>20)
	}
	fmt.Fprintf(b, " %s | %s | %s | %.1f %% | %d | %d | %s | %d | %.2f s | %s |\n", converged, dollars(o.Price.Dollars()),
		dollars(o.Bound.Dollars()),
		o.gap(), o.Nodes, o.Moved, dollars(fleet.Spent(o.Bill, r.window())), o.Passes, o.Seconds, memory)
}

// gap returns how far the final price is above the lower bound, in percent.
func (o *Outcome) gap() float64 {
	if o.Bound == 0 {
		return 0
	}
	return 100 * (float64(o.Price)/float64(o.Bound) - 1)
}

// explain writes how far the price of a fleet was above the lower bound while its pods came and went. It also writes
// how much of this was the price of nodes that were joining or being removed.
func (r *Row) explain(b *strings.Builder) {
	if len(r.Bounds) == 0 {
		return
	}
	b.WriteString("\n")
	for _, side := range r.sides() {
		o := side.outcome
		meanwhile := min(o.Ran, r.Fleet.ChurnTime)
		least := fleet.Spent(r.Bounds, meanwhile)
		joining, leaving := fleet.SpentInTransition(o.Bill, meanwhile)
		percent := func(cost float64) float64 { return 100 * cost / least }
		aboveBound := percent(fleet.Spent(o.Bill, meanwhile) - least)
		fmt.Fprintf(b, "* `%s`, %s: while pods came and went (%s), the price was %.1f %% above the bound: %.1f %% for nodes that had not joined yet, %.1f %% for nodes that were being removed, and %.1f %% for all other nodes.\n",
			r.Fleet.Name, side.name, meanwhile.Round(time.Minute), aboveBound, percent(joining), percent(leaving),
			aboveBound-percent(joining+leaving))
	}
}

// window returns the period for which payments are compared. The period covers the time in which both sides ran. If the
// price of a side changed later, the period extends to that change, but not beyond the end of upstream's run. A side
// whose run ended earlier pays its last price until the end of the period.
func (r *Row) window() time.Duration {
	if r.Theirs.Ran == 0 {
		return r.Ours.Ran
	}
	return max(min(r.Ours.Ran, r.Theirs.Ran), min(max(r.Ours.ConvergedAt, r.Theirs.ConvergedAt), r.Theirs.Ran))
}

// mark is the result for a target.
type mark string

const (
	reached      mark = "reached"        // reached by a final result
	reachedSoFar mark = "reached so far" // reached at the time when upstream was stopped; upstream's final result is unknown
	unknown      mark = "not known"      // upstream was stopped before the target could be decided
	missed       mark = "**not yet**"    // not reached by a final result
	missedSoFar  mark = "**not so far**" // not reached at the time when upstream was stopped
)

func (r *Row) writeTargets(b *strings.Builder) {
	add := func(want, have string, m mark) {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", r.Fleet.Name, want, have, m)
	}
	ours, theirs := &r.Ours, &r.Theirs
	if ours.Ran == 0 {
		return // Joiner was not run
	}
	add(fmt.Sprintf("within %.0f %% of the bound", maxGap), fmt.Sprintf("%.1f %%", ours.gap()), finalMark(ours.gap() <= maxGap))
	add(fmt.Sprintf("a pass of at most %.0f s and %d MiB", maxSeconds, maxBytes>>20),
		fmt.Sprintf("%.2f s, %d MiB", ours.Seconds, ours.Peak>>20),
		finalMark(ours.Seconds <= maxSeconds && ours.Peak <= maxBytes))
	if theirs.Ran == 0 {
		return
	}
	stopped := ""
	if theirs.Stopped != "" {
		stopped = " until it was stopped"
	}
	ourCost, theirCost := fleet.Spent(ours.Bill, r.window()), fleet.Spent(theirs.Bill, r.window())
	add(fmt.Sprintf("no more paid than by upstream, %s in %s", dollars(theirCost), r.window().Round(time.Second)),
		dollars(ourCost), theirs.comparisonMark(ourCost <= theirCost))
	if theirs.Ran < r.Fleet.ChurnTime {
		return // pods still came and went when upstream was stopped: the final numbers are not comparable
	}
	add(fmt.Sprintf("no dearer in the end than upstream, %s%s", dollars(theirs.Price.Dollars()), stopped),
		dollars(ours.Price.Dollars()), theirs.comparisonMark(ours.Price <= theirs.Price))
	converged := finalMark(ours.Stopped == "" && ours.ConvergedAt <= theirs.ConvergedAt)
	if theirs.Stopped != "" && ours.Stopped == "" {
		converged = atLeastMark(ours.ConvergedAt <= theirs.Ran) // upstream would have converged later
	}
	want := "converged no later than upstream, " + theirs.ConvergedAt.Round(time.Second).String()
	if theirs.Stopped != "" {
		want = fmt.Sprintf("converged no later than upstream, which had not converged when it was stopped, at %s", theirs.Ran.Round(time.Second))
	}
	add(want, ours.ConvergedAt.Round(time.Second).String(), converged)
	moved := finalMark(ours.Moved <= theirs.Moved)
	if theirs.Stopped != "" {
		moved = atLeastMark(ours.Moved <= theirs.Moved) // upstream would have moved more
	}
	add(fmt.Sprintf("no more pods moved than by upstream, %d%s", theirs.Moved, stopped), fmt.Sprint(ours.Moved), moved)
	if low := theirs.lowest(); theirs.Stopped != "" && ours.Price <= low {
		add(fmt.Sprintf("as low as upstream's lowest price, %s, with no more pods moved than upstream until it was stopped, %d", dollars(low.Dollars()), theirs.Moved),
			fmt.Sprint(ours.movedUntil(low)), finalMark(ours.movedUntil(low) <= theirs.Moved))
	}
}

func (o *Outcome) lowest() catalog.Price {
	out := o.Price
	for _, s := range o.Bill {
		out = min(out, s.Price)
	}
	return out
}

// movedUntil returns how many pods had been moved when the settled price (fleet.Step.Settled) first was at most the
// given price.
func (o *Outcome) movedUntil(price catalog.Price) int {
	for _, s := range o.Bill {
		if s.Settled <= price {
			return s.Moved
		}
	}
	return o.Moved
}

func finalMark(ok bool) mark {
	if ok {
		return reached
	}
	return missed
}

// atLeastMark returns the mark for a comparison with a number of upstream that a longer run could only have increased:
// if the target is reached, that is final; otherwise the result is unknown.
func atLeastMark(ok bool) mark {
	if ok {
		return reached
	}
	return unknown
}

// comparisonMark returns the mark for a comparison with upstream's outcome o, which is final unless upstream was
// stopped.
func (o *Outcome) comparisonMark(ok bool) mark {
	switch {
	case o.Stopped == "":
		return finalMark(ok)
	case ok:
		return reachedSoFar
	}
	return missedSoFar
}

func dollars(d float64) string { return fmt.Sprintf("%.2f", d) }

// Line describes a row in one line, as progress output.
func Line(r *Row) string {
	if r.Skipped != "" {
		return fmt.Sprintf("%-14s skipped: %s", r.Fleet.Name, r.Skipped)
	}
	return fmt.Sprintf("%-14s %s: ours %s after %s (%.1f %%, %d moved, %.2f s, %d MiB), upstream %s after %s (%.1f %%, %d moved, %.2f s) %s", r.Fleet.Name,
		dollars(r.Price.Dollars()), dollars(r.Ours.Price.Dollars()), r.Ours.ConvergedAt.Round(time.Second), r.Ours.gap(),
		r.Ours.Moved, r.Ours.Seconds, r.Ours.Peak>>20,
		dollars(r.Theirs.Price.Dollars()), r.Theirs.ConvergedAt.Round(time.Second), r.Theirs.gap(),
		r.Theirs.Moved, r.Theirs.Seconds, r.Theirs.Stopped)
}
