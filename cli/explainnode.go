package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/kube"
	"github.com/joiner-sh/joiner/spelling"
	"github.com/joiner-sh/joiner/view"
)

// explainNodeFlags are those of joiner explain node.
type explainNodeFlags struct {
	all     bool
	cluster clusterFlags
	out     output
}

func newExplainNode() *cobra.Command {
	var e explainNodeFlags
	cmd := &cobra.Command{
		Use:   "node [NAME...]",
		Short: "Say why nodes stay that somebody expects to go",
		Long: `Says of each node of a NodePool what keeps it from being taken away by choice: its
NodePool's policy, a budget, a pod, a pause, or that moving its pods would save
too little. A name is that of a Node or of a NodeClaim.

What it says stands on the NodeClaims, where the controller writes what has been
so for half a minute; which pods hold a node is looked up as it is now.`,
		Example: `  joiner explain node ip-10-0-1-17.eu-west-1.compute.internal
  joiner explain node --all
  joiner explain node --all -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case e.all && len(args) > 0:
				return errors.New("name nodes or say --all, not both")
			case !e.all && len(args) == 0:
				return errors.New("name nodes, or say --all")
			}
			return e.run(cmd.Context(), cmd.OutOrStdout(), args)
		},
	}
	cmd.Flags().BoolVar(&e.all, "all", false, "all nodes of NodePools")
	e.cluster.flags(cmd.Flags())
	e.out.flag(cmd.Flags())
	return cmd
}

func (e *explainNodeFlags) run(ctx context.Context, out io.Writer, names []string) error {
	objects, err := e.cluster.read(ctx)
	if err != nil {
		return err
	}
	rows, err := nodeStays(objects, names, time.Now())
	if err != nil {
		return err
	}
	return e.out.write(out, func() string { return view.NodeStays(rows) }, func() any { return rows })
}

// nodeStays says of each claim with one of the names, of all without names, what keeps its node. Sorted by Node.
func nodeStays(o kube.Objects, names []string, now time.Time) ([]view.NodeStay, error) {
	rows, known := []view.NodeStay{}, []string{}
	found := map[string]bool{}
	holds := o.Holds(now)
	for _, claim := range o.Claims {
		own := []string{claim.Name}
		if claim.Status.NodeName != "" { // until its instance has joined, a claim has no Node
			own = append(own, claim.Status.NodeName)
		}
		known = append(known, own...)
		if len(names) > 0 && !slices.ContainsFunc(own, func(name string) bool { return slices.Contains(names, name) }) {
			continue
		}
		for _, name := range own {
			found[name] = true
		}
		rows = append(rows, nodeStay(claim, holds))
	}
	var wrong []error
	for _, name := range names {
		if !found[name] {
			wrong = append(wrong, fmt.Errorf("there is no Node of a NodePool, and no NodeClaim, of the name %s%s", name, spelling.Hint(name, known)))
		}
	}
	slices.SortFunc(rows, func(a, b view.NodeStay) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Claim, b.Claim))
	})
	return rows, errors.Join(wrong...)
}

// nodeStay says what keeps the claim's node, or what else there is to say of it.
func nodeStay(claim *karpv1.NodeClaim, holds map[string]kube.Hold) view.NodeStay {
	out := view.NodeStay{Node: claim.Status.NodeName, Claim: claim.Name, Pool: claim.Labels[karpv1.LabelNodePool]}
	conditions := claim.StatusConditions()
	reason, isGoing := conditions.Find(karpv1.ConditionDisruptionReason)
	stay, stays := conditions.Find(karpv1.ConditionDisruptable)
	hold, isHeld := holds[claim.Status.NodeName]
	switch {
	case claim.DeletionTimestamp != nil && isGoing:
		out.Cause, out.Why = "Leaving", "it is being taken away: "+reason.Reason
	case claim.DeletionTimestamp != nil:
		out.Cause, out.Why = "Leaving", "its NodeClaim is being deleted"
	case isGoing:
		out.Cause, out.Why = "Leaving", "its pods are about to be moved: "+reason.Reason
	case !conditions.IsTrue(karpv1.ConditionInitialized):
		out.Cause, out.Why = "NotInitialized", "it is not ready for pods yet"
	case stays:
		out.Cause, out.Why = stay.Reason, stay.Message
	case isHeld:
		out.Cause, out.Why = "Blocked", hold.String()
	default:
		out.Cause, out.Why = "None", "nothing is known to keep it; the controller looks at it again within seconds"
	}
	if isHeld && stays && stay.Reason != "Blocked" && out.Cause == stay.Reason {
		out.Why += "; also, " + hold.String()
	}
	return out
}
