package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// crdsTimeout is the timeout of all calls of a joiner crds command together. It is also that of joiner migrate check for
// reading Karpenter's objects.
const crdsTimeout = time.Minute

func newCRDs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "crds",
		Short: "Manage the CustomResourceDefinitions of the API",
		Long: `Manage the CRDs of NodePool, NodeClaim, NodeOverlay and EC2NodeClass. The controller
installs and updates them on startup unless APPLY_CRDS=false. A CRD that is newer
than the one of this program is never downgraded.`,
	}
	cmd.AddCommand(newCRDsApply(), newCRDsCheck(), newCRDsPrint(), newCRDsDelete())
	return cmd
}

func newCRDsApply() *cobra.Command {
	var (
		cluster clusterFlags
		force   bool
		out     format
	)
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Apply this program's definitions, unless the cluster's are newer",
		Long: `Applies the CRDs with server-side apply, waits until the API server serves them, and
prints the result for each. A CRD of another program stays unchanged if it has
fields that this program does not know, because objects would lose them; --force
overwrites it.

Exit status: 0 all are up to date, 1 a CRD of another program was left unchanged.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDefinitions(cmd.Context(), &cluster, func(ctx context.Context, d *kubeclient.DefinitionInstaller) error {
				d.Force = force
				compared, err := d.Install(ctx, kubeclient.SelectAll)
				if err != nil {
					return err
				}
				return printDefinitions(&out, cmd.OutOrStdout(), compared, kubeclient.DefinitionComparison.NeedsUser)
			})
		},
	}
	cluster.flags(cmd.Flags())
	out.flag(cmd.Flags())
	cmd.Flags().BoolVar(&force, "force", false, "overwrite definitions that have fields which this program does not know")
	return cmd
}

func newCRDsCheck() *cobra.Command {
	var (
		cluster clusterFlags
		out     format
	)
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the cluster's definitions against this program's",
		Long: `Compares the CRDs of the cluster with those of this program, and changes nothing.

Exit status: 0 all are up to date, 1 a CRD is missing, older, or of another program.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDefinitions(cmd.Context(), &cluster, func(ctx context.Context, d *kubeclient.DefinitionInstaller) error {
				compared, err := d.Compare(ctx)
				if err != nil {
					return err
				}
				return printDefinitions(&out, cmd.OutOrStdout(), compared, func(s kubeclient.DefinitionComparison) bool {
					return s.State != kubeclient.DefinitionSame && s.State != kubeclient.DefinitionNewer
				})
			})
		},
	}
	cluster.flags(cmd.Flags())
	out.flag(cmd.Flags())
	return cmd
}

func newCRDsPrint() *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print this program's definitions as YAML, for tools that apply them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := kubeclient.DefinitionManifests()
			if err != nil {
				return err
			}
			if out == asTable || out == asYAML || out == asWide { // all print YAML
				_, err = io.WriteString(cmd.OutOrStdout(), text)
				return err
			}
			var all []any
			for part := range strings.SplitSeq(text, "\n---\n") {
				var definition any
				if err := yaml.Unmarshal([]byte(part), &definition); err != nil {
					return fmt.Errorf("write the definitions as JSON: %w", err)
				}
				if definition != nil {
					all = append(all, definition)
				}
			}
			list := map[string]any{"apiVersion": "v1", "kind": "List", "items": all}
			return out.write(cmd.OutOrStdout(), nil, func() any { return list })
		},
	}
	out.flag(cmd.Flags())
	return cmd
}

func newCRDsDelete() *cobra.Command {
	var (
		cluster clusterFlags
		out     format
	)
	cmd := &cobra.Command{
		Use:   "delete",
		Short: "Delete the definitions, if no object of their kinds is left",
		Long: `Deletes the definitions when Joiner is uninstalled. It refuses while a NodePool,
NodeClaim, NodeOverlay or EC2NodeClass exists, because deleting a definition deletes
its objects.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDefinitions(cmd.Context(), &cluster, func(ctx context.Context, d *kubeclient.DefinitionInstaller) error {
				return out.writeLines(cmd.OutOrStdout(), func(w io.Writer) error {
					removed, err := d.Remove(ctx)
					for _, name := range removed {
						fmt.Fprintf(w, "%s: deleted\n", name)
					}
					if err == nil && len(removed) == 0 {
						fmt.Fprintln(w, "there are no definitions")
					}
					return err
				})
			})
		},
	}
	cluster.flags(cmd.Flags())
	out.flag(cmd.Flags())
	return cmd
}

// withDefinitions calls do with a client for the CRDs of the cluster, and the timeout crdsTimeout. Errors other than
// Findings get a hint.
func withDefinitions(ctx context.Context, cluster *clusterFlags, do func(context.Context, *kubeclient.DefinitionInstaller) error) error {
	cfg, err := cluster.config()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, crdsTimeout, fmt.Errorf("not done after %s", crdsTimeout))
	defer cancel()
	definitions, err := kubeclient.NewDefinitions(cfg)
	if err != nil {
		return withHint(err)
	}
	if err := do(ctx, definitions); err != nil {
		var found Findings
		if errors.As(err, &found) {
			return err
		}
		return withHint(err)
	}
	return nil
}

// printDefinitions prints the result of comparing each CRD. It returns Findings if isWrong is true for at least one.
func printDefinitions(format *format, out io.Writer, compared []kubeclient.DefinitionComparison,
	isWrong func(kubeclient.DefinitionComparison) bool) error {
	count := 0
	err := format.writeLines(out, func(w io.Writer) error {
		for _, s := range compared {
			if isWrong(s) {
				count++
			}
			if _, err := fmt.Fprintf(w, "%s: %s\n", s.Name, s.Summary()); err != nil {
				return fmt.Errorf("write the output: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if count > 0 {
		return Findings{count}
	}
	return nil
}
