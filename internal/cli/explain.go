package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/joiner-sh/joiner/internal/cli/output"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
)

func newExplain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Explain why nodes are not disrupted or cannot be drained",
	}
	cmd.AddCommand(newExplainNode(), newExplainBlockers())
	return cmd
}

type blockersFlags struct {
	cluster clusterFlags
	out     format
}

func newExplainBlockers() *cobra.Command {
	var b blockersFlags
	cmd := &cobra.Command{
		Use:   "blockers",
		Short: "List the pods and PodDisruptionBudgets that block the drain of nodes",
		Long: `Lists what blocks the drain of nodes of NodePools: PodDisruptionBudgets that allow no
disruption, now or ever; pods that more than one PodDisruptionBudget selects; and pods
with the annotation karpenter.sh/do-not-disrupt. Each row names the owners of the pods
and the fix. The command changes nothing.

Exit status: 0 no blocker needs a change, 1 a blocker remains until a user changes it.`,
		Example: `  joiner explain blockers
  joiner explain blockers -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return b.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	b.cluster.flags(cmd.Flags())
	b.out.flag(cmd.Flags())
	return cmd
}

func (b *blockersFlags) run(ctx context.Context, out io.Writer) error {
	objects, err := b.cluster.read(ctx)
	if err != nil {
		return err
	}
	return b.print(out, objects.Blockers(time.Now()))
}

// print writes the blockers to out. It returns Findings if at least one blocker remains until a user changes it.
func (b *blockersFlags) print(out io.Writer, blockers []snapshot.Blocker) error {
	rows := []output.Blocker{}
	deadlocks := 0
	for _, blocker := range blockers {
		if blocker.IsDeadlock() { // only a user can end it
			deadlocks++
		}
		rows = append(rows, output.Blocker{
			Kind: string(blocker.Kind), Deadlock: blocker.IsDeadlock(), Budgets: blocker.Budgets, Why: blocker.Why, Fix: blocker.Fix,
			Workloads: blocker.Workloads, Pods: blocker.Pods, Nodes: blocker.Nodes,
		})
	}
	if err := b.out.write(out, func() string { return blockersText(rows) }, func() any { return rows }); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	if deadlocks > 0 {
		return Findings{deadlocks}
	}
	return nil
}

func blockersText(rows []output.Blocker) string {
	if len(rows) == 0 {
		return "No pod or PodDisruptionBudget blocks the drain of a node.\n"
	}
	var b strings.Builder
	for i, r := range rows {
		if i > 0 {
			b.WriteString("\n")
		}
		title := r.Why
		if len(r.Budgets) > 0 {
			title = "PodDisruptionBudget " + strings.Join(r.Budgets, " and ") + ": " + r.Why
		}
		fmt.Fprintf(&b, "%s %s\n", r.Kind, title)
		if len(r.Workloads) > 0 {
			fmt.Fprintf(&b, "  owners %s\n", firstNames(r.Workloads))
		}
		fmt.Fprintf(&b, "  pods   %d: %s\n  nodes  %d: %s\n", len(r.Pods), firstNames(r.Pods), len(r.Nodes), firstNames(r.Nodes))
		if r.Fix != "" {
			fmt.Fprintf(&b, "  fix    %s\n", r.Fix)
		}
	}
	return b.String()
}

// maxNamed is the maximum number of names in a line.
const maxNamed = 5

// firstNames returns the first names, at most maxNamed, and the number of further names.
func firstNames(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
