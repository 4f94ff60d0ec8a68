package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/joiner-sh/joiner/internal/cli/message"
	"github.com/joiner-sh/joiner/internal/cli/output"
	"github.com/joiner-sh/joiner/internal/kube/manifest"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

type planFlags struct {
	files   []string
	cluster clusterFlags
	market  marketFlags
	out     format
	strict  bool // exit status 1 if a pod is unschedulable

	minValues string         // Strict or BestEffort
	instances map[string]int // available instances of capacity reservations, by ID
}

func newPlan() *cobra.Command {
	var p planFlags
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show which nodes would be launched for pending pods, and why a pod cannot be scheduled",
		Long: `Plans nodes for the pending pods of a cluster, or for the pods of manifests, and
launches nothing. It prints the nodes to launch, their hourly price, the gap to the
lower bound, and the reason for every unschedulable pod.

With -f it reads files and folders (YAML or JSON; - is standard input) and needs
neither a cluster nor AWS: workloads count as the pods of their replicas, and
instance types come from the embedded table. An EC2NodeClass without status may use
all zones of the region.

Without AWS, spot prices are estimated as a share of on-demand prices. Each plan shows
the source of its prices.

Exit status: 0 there is a plan, also if pods are unschedulable; 1 with --strict if a
pod is unschedulable; 2 an input cannot be read.`,
		Example: `  joiner plan                                   the cluster of your kubeconfig
  joiner plan -f nodepool.yaml -f deployments/  offline
  helm template . | joiner plan -f nodepool.yaml -f - -o json`,
		Args: rejectArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(p.files) > 0 && !cmd.Flags().Changed("from") {
				p.market.from = fromEmbedded
			}
			return p.run(cmd.Context(), Streams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()})
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&p.files, "filename", "f", nil, "plan for the manifests in this `PATH`, not for a cluster; may be repeated")
	p.cluster.instead = manifestInput
	p.cluster.flags(flags)
	p.market.flags(flags, fromAWS)
	flags.Lookup("from").Usage += "; with -f the default is embedded"
	p.out.flag(flags)
	flags.StringVar(&p.minValues, "min-values-policy", strictValues,
		"if minValues of a NodePool cannot be met, leave pods unscheduled "+
			"("+strictValues+") or launch with fewer instance types ("+relaxedValues+")")
	flags.StringToIntVar(&p.instances, "reservation", nil,
		"number of available instances of a capacity reservation, as `ID=COUNT`; may be repeated")
	flags.BoolVar(&p.strict, "strict", false, "exit with status 1 if a pod is unschedulable")
	registerCompletions(cmd, map[string]cobra.CompletionFunc{"context": p.cluster.completeContexts})
	return cmd
}

// rejectArguments returns an error if there are arguments. Manifests are named by -f. If the path after -f is a
// pattern, the shell expands it, and all paths but the first become arguments.
func rejectArguments(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("plan takes no argument %q; for manifests write -f before each path: joiner plan -f %s", args[0], args[0])
}

// The values of --min-values-policy.
const (
	strictValues  = "Strict"
	relaxedValues = "BestEffort"
)

func (p *planFlags) run(ctx context.Context, s Streams) error {
	isRelaxed := strings.EqualFold(p.minValues, relaxedValues)
	if !isRelaxed && !strings.EqualFold(p.minValues, strictValues) {
		return fmt.Errorf("--min-values-policy %s: want %s or %s", p.minValues, strictValues, relaxedValues)
	}
	for _, id := range slices.Sorted(maps.Keys(p.instances)) {
		if n := p.instances[id]; n < 0 {
			return fmt.Errorf("--reservation %s=%d: want a count of instances, from 0", id, n)
		}
	}
	// 1. Read the cluster and the catalogs.
	objects, notes, err := p.objects(ctx, s.In)
	if err != nil {
		return err
	}
	classes, reservationNotes, err := p.classesOf(objects)
	if err != nil {
		return err
	}
	notes = append(notes, reservationNotes...)
	market, err := p.market.catalogs(ctx, classes, s.Err)
	if err != nil {
		return err
	}
	applyDedicatedTenancy(market, objects.Pools)
	notes = append(notes, overReservedNotes(classes, market)...)
	input := objects.Snapshot(snapshot.View{
		Now: time.Now(), Live: len(p.files) == 0, Market: market, RelaxMinValues: isRelaxed,
	})

	// 2. Plan.
	start := time.Now()
	plan := packing.Solve(input, market, packing.DefaultEffort)
	seconds := time.Since(start).Seconds()

	// 3. Print.
	for _, note := range notes {
		fmt.Fprintln(s.Err, "note: "+message.OneLine(note))
	}
	planContext := output.Context{Prices: p.market.prices}
	if len(p.files) == 0 {
		planContext.InFlight = inFlight(objects, input, time.Now())
	}
	text := func() string { return output.Summary(plan, seconds, planContext, p.out.width(s.Out)) }
	if err := p.out.write(s.Out, text, func() any { return output.PlanOf(plan, seconds, planContext) }); err != nil {
		return err
	}
	if p.strict && len(plan.Refusals) > 0 {
		return Findings{Count: len(plan.Refusals)}
	}
	return nil
}

// objects reads the manifests, or the cluster if there are none, and returns notes for the user about the objects.
func (p *planFlags) objects(ctx context.Context, in io.Reader) (snapshot.Objects, []string, error) {
	if len(p.files) == 0 {
		objects, err := p.cluster.read(ctx)
		return objects, notesOn(objects, true), err
	}
	m, err := manifest.ReadFiles(p.files, in)
	if err != nil {
		return snapshot.Objects{}, nil, err
	}
	if len(m.Pools) == 0 {
		return snapshot.Objects{}, nil, errors.New("the manifests have no NodePool, so no node can be launched: " +
			"add one with -f (kubectl get nodepools,ec2nodeclasses -o yaml writes those of a cluster)")
	}
	return m.Objects, slices.Concat(m.Notes, notesOn(m.Objects, false), bootNotes(m.Objects), skippedObjectNotes(m)), nil
}

// classesOf returns the inputs of the catalog of each EC2NodeClass, by name. It also returns a note about the capacity
// reservations that the plan ignores, because their number of available instances is not known.
func (p *planFlags) classesOf(o snapshot.Objects) (map[string]classInput, []string, error) {
	settings, err := o.Settings()
	if err != nil {
		return nil, nil, err
	}
	unknown := map[string]bool{}
	out := map[string]classInput{}
	for name, s := range settings {
		out[name] = classInput{settings: s}
	}
	for _, class := range o.Classes {
		input, ok := out[class.Name]
		if !ok {
			continue
		}
		for _, subnet := range class.Status.Subnets {
			input.zones = append(input.zones, catalog.Zone{Name: subnet.Zone, ID: subnet.ZoneID})
		}
		reservations, unknownIDs := snapshot.Reservations(class, p.instances)
		input.reserved = reservations
		for _, id := range unknownIDs {
			unknown[id] = true
		}
		out[class.Name] = input
	}
	if len(unknown) == 0 {
		return out, nil, nil
	}
	ids := slices.Sorted(maps.Keys(unknown))
	return out, []string{fmt.Sprintf("left out, because their number of available instances is not known (set --reservation ID=COUNT): %s (%s)",
		output.Count(len(ids), "capacity reservation"), firstAndCount(ids))}, nil
}
