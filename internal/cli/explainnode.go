package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/cli/output"
	"github.com/joiner-sh/joiner/internal/diagnosis/leader"
	"github.com/joiner-sh/joiner/internal/doctor/collector"
	"github.com/joiner-sh/joiner/internal/kube/evidence"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/suggest"
)

type explainNodeFlags struct {
	all     bool
	cluster clusterFlags
	out     format
}

func newExplainNode() *cobra.Command {
	var e explainNodeFlags
	cmd := &cobra.Command{
		Use:   "node [NAME...]",
		Short: "Explain why a node is not being disrupted",
		Long: `Prints for each node of a NodePool what blocks its voluntary disruption: the policy of
the NodePool, a budget, a pod, a pause, or that moving its pods would save too
little. NAME is the name of a Node or of a NodeClaim.

The causes come from the NodeClaims, where the controller writes a cause that has
lasted for 30 seconds; blocking pods are read now. If no controller is active, a
note says since when, because the causes may be outdated.`,
		Example: `  joiner explain node ip-10-0-1-17.eu-west-1.compute.internal
  joiner explain node --all
  joiner explain node --all -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case e.all && len(args) > 0:
				return errors.New("name nodes or use --all, not both")
			case !e.all && len(args) == 0:
				return errors.New("name nodes, or use --all")
			}
			return e.run(cmd.Context(), Streams{Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()}, args)
		},
	}
	cmd.Flags().BoolVar(&e.all, "all", false, "all nodes of NodePools")
	e.cluster.flags(cmd.Flags())
	e.out.flag(cmd.Flags())
	cmd.ValidArgsFunction = mergeCompletions(e.cluster.completeNames(nodeResource()), e.cluster.completeNames(nodeClaimResource()))
	registerCompletions(cmd, map[string]cobra.CompletionFunc{"context": e.cluster.completeContexts})
	return cmd
}

func (e *explainNodeFlags) run(ctx context.Context, s Streams, names []string) error {
	objects, err := e.cluster.read(ctx)
	if err != nil {
		return err
	}
	rows, err := explainNodes(objects, names, time.Now())
	if err != nil {
		return err
	}
	return e.print(s, rows, e.noControllerSince(ctx))
}

// noControllerSince returns the time since which no controller has been active; zero if one is active. If the Lease
// cannot be read, it returns zero and no error, because the explanation of the nodes is useful without that time.
func (e *explainNodeFlags) noControllerSince(ctx context.Context) time.Time {
	cfg, err := e.cluster.config()
	if err != nil {
		return time.Time{}
	}
	reader, err := evidence.NewReader(cfg)
	if err != nil {
		return time.Time{}
	}
	return leader.LeaderlessSince(collector.Leader(ctx, reader))
}

// print prints the rows. If since is not zero, no controller has been active since that time: print then removes
// recheckNote from the rows and prints a note.
func (e *explainNodeFlags) print(s Streams, rows []output.NodeExplanation, since time.Time) error {
	for i := range rows {
		if !since.IsZero() {
			rows[i].NoControllerSince, rows[i].Why = since, strings.TrimSuffix(rows[i].Why, recheckNote)
		}
	}
	text := func() string { return output.NodeExplanations(rows, e.out.width(s.Out)) }
	if err := e.out.write(s.Out, text, func() any { return rows }); err != nil {
		return err
	}
	if !since.IsZero() {
		fmt.Fprintf(s.Err, "note: no controller has been active since %s (its lease has ended): the causes may be outdated\n",
			since.UTC().Format("2006-01-02 15:04:05Z"))
	}
	return nil
}

// explainNodes returns a row for each NodeClaim with one of the names, and for each NodeClaim whose Node has one of the
// names. Without names, it returns a row for each NodeClaim. Rows are sorted by the name of the Node. The error lists
// the names that match nothing.
func explainNodes(o snapshot.Objects, names []string, now time.Time) ([]output.NodeExplanation, error) {
	rows, known := []output.NodeExplanation{}, []string{}
	found := map[string]bool{}
	blockers := o.BlockingPods(now)
	for _, claim := range o.Claims {
		claimNames := []string{claim.Name}
		if claim.Status.NodeName != "" { // a NodeClaim has no Node until its instance has joined
			claimNames = append(claimNames, claim.Status.NodeName)
		}
		known = append(known, claimNames...)
		if len(names) > 0 && !slices.ContainsFunc(claimNames, func(name string) bool { return slices.Contains(names, name) }) {
			continue
		}
		for _, name := range claimNames {
			found[name] = true
		}
		rows = append(rows, explainNode(claim, blockers))
	}
	var missing []error
	for _, name := range names {
		if !found[name] {
			missing = append(missing,
				fmt.Errorf("no Node of a NodePool and no NodeClaim has the name %s%s", name, suggest.Hint(name, known)))
		}
	}
	slices.SortFunc(rows, func(a, b output.NodeExplanation) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Claim, b.Claim))
	})
	return rows, errors.Join(missing...)
}

// recheckNote is appended to the explanation if the NodeClaim has no cause that still applies.
const recheckNote = "; the controller checks it again within seconds"

// Causes as in the metric joiner_nodes_staying. They are values of disruption.Cause, which this package must not
// import.
const (
	blocked        = "Blocked"
	leaving        = "Leaving"
	notInitialized = "NotInitialized"
	undecided      = "Undecided"
)

// explainNode returns the row of the NodeClaim's node, with the cause why the node is not being disrupted. If the node
// is being disrupted, the cause is leaving. The keys of blockers are names of Nodes.
func explainNode(claim *karpv1.NodeClaim, blockers map[string]snapshot.BlockingPod) output.NodeExplanation {
	out := output.NodeExplanation{Node: claim.Status.NodeName, Claim: claim.Name, Pool: claim.Labels[karpv1.LabelNodePool]}
	conditions := claim.StatusConditions()
	disruption, isDisrupting := conditions.Find(karpv1.ConditionDisruptionReason)
	cause, hasCause := conditions.Find(karpv1.ConditionDisruptable)
	blocker, hasBlocker := blockers[claim.Status.NodeName]
	switch {
	case claim.DeletionTimestamp != nil && isDisrupting:
		out.Cause, out.Why = leaving, "it is being disrupted: "+disruption.Reason
	case claim.DeletionTimestamp != nil:
		out.Cause, out.Why = leaving, "its NodeClaim is being deleted"
	case isDisrupting:
		out.Cause, out.Why = leaving, "its pods are about to be moved: "+disruption.Reason
	case !conditions.IsTrue(karpv1.ConditionInitialized):
		out.Cause, out.Why = notInitialized, "it is not ready for pods yet"
	case hasCause && cause.Reason != blocked:
		out.Cause, out.Why = cause.Reason, cause.Message
	case hasCause && hasBlocker: // the current blocker may differ from the blocker in the condition
		out.Cause, out.Why = blocked, blocker.String()
	case hasBlocker: // the controller has written no cause yet, and does not count the node as blocked
		out.Cause, out.Why = undecided, blocker.String()+recheckNote
	case hasCause:
		out.Cause, out.Why = undecided, "the last reason no longer applies ("+cause.Message+")"+recheckNote
	default:
		out.Cause, out.Why = undecided, "no reason is known"+recheckNote
	}
	// The cause in the condition is another one than a blocking pod, so the pod is a second cause.
	if hasBlocker && hasCause && cause.Reason != blocked && out.Cause == cause.Reason {
		out.Why += "; also, " + blocker.String()
	}
	return out
}
