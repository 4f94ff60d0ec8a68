package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/evidence"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/suggest"
)

type pauseFlags struct {
	namespace string
	span      durationWithDays
	hasEnd    bool // the pause ends after span; otherwise joiner resume ends it
	cluster   clusterFlags
	out       format
}

func newPause() *cobra.Command {
	var p pauseFlags
	cmd := &cobra.Command{
		Use:   "pause [NODEPOOL...]",
		Short: "Pause voluntary disruption for some or all NodePools",
		Long: `While paused, the controller starts no voluntary disruption: empty, underutilized and
drifted nodes stay, and a started disruption is undone if no pod is evicted yet. Other
work continues: nodes are launched, expire, are repaired, and are drained before an
interruption.

With names it sets the annotation joiner.sh/paused on these NodePools. Without names it
writes the ConfigMap joiner in the controller's namespace, which pauses all NodePools.
With --for the pause ends after that time.`,
		Example: `  joiner pause                              all NodePools, until joiner resume
  joiner pause --for 2h
  joiner pause batch web --for 30m`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p.hasEnd = cmd.Flags().Changed("for")
			value, err := p.value(time.Now())
			if err != nil {
				return err
			}
			return p.out.writeLines(cmd.OutOrStdout(), func(w io.Writer) error { return p.set(cmd.Context(), w, args, value) })
		},
		ValidArgsFunction: p.cluster.completeNames(nodePoolResource()),
	}
	cmd.Flags().Var(&p.span, "for", "the pause ends after this `DURATION`, for instance 90m, 2h or 1d; without --for, joiner resume ends the pause")
	cmd.Flags().Lookup("for").DefValue = ""
	p.flags(cmd)
	return cmd
}

func newResume() *cobra.Command {
	var p pauseFlags
	cmd := &cobra.Command{
		Use:   "resume [NODEPOOL...]",
		Short: "Resume voluntary disruption for some or all NodePools",
		Long: `With names it ends the pauses of these NodePools, but not the pause of all NodePools.
Without names it ends the pause of all NodePools, but not the pauses of single
NodePools. It prints which NodePools are still paused.`,
		Example: `  joiner resume
  joiner resume batch web`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.out.writeLines(cmd.OutOrStdout(), func(w io.Writer) error { return p.set(cmd.Context(), w, args, "") })
		},
		ValidArgsFunction: p.cluster.completeNames(nodePoolResource()),
	}
	p.flags(cmd)
	return cmd
}

func (p *pauseFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&p.namespace, "namespace", "n", "", "the `NAMESPACE` of the controller; without it the namespace of its Deployment")
	p.cluster.flags(cmd.Flags())
	p.out.flag(cmd.Flags())
	registerCompletions(cmd, map[string]cobra.CompletionFunc{"context": p.cluster.completeContexts})
}

// value returns the text of a pause that starts now: "true", or the time when it ends.
func (p *pauseFlags) value(now time.Time) (string, error) {
	switch {
	case p.hasEnd && time.Duration(p.span) < time.Second:
		return "", fmt.Errorf("--for %s: want a second or more", time.Duration(p.span))
	case !p.hasEnd:
		return "true", nil
	}
	return now.Add(time.Duration(p.span)).UTC().Format(time.RFC3339), nil
}

// set pauses the NodePools with a result of p.value, or resumes them if value is empty. If pools is empty, it pauses or
// resumes all NodePools.
func (p *pauseFlags) set(ctx context.Context, out io.Writer, pools []string, value string) error {
	api, _, err := p.cluster.api()
	if err != nil {
		return err
	}
	if len(pools) == 0 {
		return p.setAll(ctx, out, api, value)
	}
	if err := setPools(ctx, out, api, pools, value); err != nil || value != "" {
		return err
	}
	return p.noteAllPaused(ctx, out, api)
}

// setPools sets the annotation joiner.sh/paused on each of the NodePools. If one of the NodePools does not exist, it
// changes none.
func setPools(ctx context.Context, out io.Writer, api client.Client, pools []string, value string) error {
	var all karpv1.NodePoolList
	if err := api.List(ctx, &all); err != nil {
		return withHint(fmt.Errorf("list nodepools: %w", err))
	}
	exists := map[string]bool{}
	var names []string
	for i := range all.Items {
		exists[all.Items[i].Name], names = true, append(names, all.Items[i].Name)
	}
	var missing []error
	for _, pool := range pools {
		if !exists[pool] {
			missing = append(missing, fmt.Errorf("there is no NodePool %s%s", quoteEmpty(pool), suggest.Hint(pool, names)))
		}
	}
	if len(missing) > 0 {
		return errors.Join(missing...) // before any NodePool is changed
	}
	for _, pool := range pools {
		previous, changed, err := kubeclient.SetPoolPause(ctx, api, pool, value)
		if err != nil {
			return withHint(err)
		}
		if err := printResult(out, "NodePool "+pool, value, previous, changed); err != nil {
			return err
		}
	}
	return nil
}

// quoteEmpty makes an empty name visible, for example that of an unset shell variable.
func quoteEmpty(name string) string {
	if name == "" {
		return `""`
	}
	return name
}

// setAll writes the pause of all NodePools to the ConfigMap. On resume it prints the NodePools that have a pause of
// their own.
func (p *pauseFlags) setAll(ctx context.Context, out io.Writer, api client.Client, value string) error {
	namespace, err := p.findNamespace(ctx, api)
	if err != nil {
		return err
	}
	pauseSwitch := kubeclient.PauseSwitch{Live: api, Writer: api, Namespace: namespace}
	before, err := pauseSwitch.Read(ctx)
	if err != nil {
		return withHint(err)
	}
	newValue := value
	if newValue == "" {
		newValue = "false" // not paused
	}
	if before != newValue {
		if err := pauseSwitch.Write(ctx, newValue); err != nil {
			return withHint(err)
		}
	}
	if err := printResult(out, "all NodePools, by "+pauseSwitch.String(), value, before, before != newValue); err != nil {
		return err
	}
	if err := p.warnUnread(ctx, out, api); err != nil || value != "" {
		return err
	}
	var pools karpv1.NodePoolList
	if err := api.List(ctx, &pools); err != nil {
		return withHint(fmt.Errorf("list nodepools: %w", err))
	}
	for i := range pools.Items {
		if pause, ok := pools.Items[i].Annotations[karpv1.AnnotationPaused]; ok && pause != "false" {
			if _, err := fmt.Fprintf(out, "NodePool %s has a pause of its own (%s: %q): joiner resume %s\n", pools.Items[i].Name,
				karpv1.AnnotationPaused, pause, pools.Items[i].Name); err != nil {
				return fmt.Errorf("write the output: %w", err)
			}
		}
	}
	return nil
}

// warnUnread prints a note if no known controller reads the pause ConfigMap in the namespace of --namespace.
func (p *pauseFlags) warnUnread(ctx context.Context, out io.Writer, api client.Reader) error {
	if p.namespace == "" {
		return nil
	}
	found, err := evidence.PauseNamespaces(ctx, api)
	if err != nil || slices.Contains(found, p.namespace) {
		return nil // after an error it is unknown whether a controller reads the ConfigMap
	}
	note := fmt.Sprintf("there is no Deployment of Joiner: only a controller with LEADER_ELECTION_NAMESPACE=%s reads this ConfigMap",
		p.namespace)
	if len(found) > 0 {
		note = fmt.Sprintf("the controller reads ConfigMap %s/%s, not this one: use --namespace %[1]s, or leave it out",
			found[0], kubeclient.PauseName)
	}
	if _, err := fmt.Fprintln(out, "note: "+note); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// noteAllPaused prints a note if the pause of all NodePools remains after joiner resume with names. It prints nothing
// if the ConfigMap cannot be found or read.
func (p *pauseFlags) noteAllPaused(ctx context.Context, out io.Writer, api client.Client) error {
	namespace, err := p.findNamespace(ctx, api)
	if err != nil {
		return nil // a pause of single NodePools does not depend on the controller's namespace
	}
	pauseSwitch := kubeclient.PauseSwitch{Live: api, Namespace: namespace}
	value, err := pauseSwitch.Read(ctx)
	if until, parseErr := time.Parse(time.RFC3339, value); err != nil || value == "false" || parseErr == nil && !until.After(time.Now()) {
		return nil // the pause is unknown, or has ended
	}
	if _, err := fmt.Fprintf(out, "all NodePools are still paused, by %s: joiner resume\n", pauseSwitch); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// findNamespace returns the namespace in which the controller reads the pause ConfigMap.
func (p *pauseFlags) findNamespace(ctx context.Context, api client.Reader) (string, error) {
	if p.namespace != "" {
		return p.namespace, nil
	}
	found, err := evidence.PauseNamespaces(ctx, api)
	switch {
	case err != nil:
		return "", withHint(fmt.Errorf("find the controller: %w", err))
	case len(found) == 0:
		return "", errors.New("find the controller: there is no Deployment of Joiner; name its namespace with --namespace")
	case len(found) > 1:
		return "", fmt.Errorf("find the controller: it is in the namespaces %s; choose one with --namespace", strings.Join(found, ", "))
	}
	return found[0], nil
}

// printResult prints the result of setting value on object. If value replaces a pause, printResult also prints the
// previous value, because another user may have set it.
func printResult(out io.Writer, object, value, previous string, changed bool) error {
	text := "resumed"
	switch {
	case value == "" && !changed:
		text = "is not paused"
	case value == "true":
		text = "paused, until joiner resume"
	case value != "":
		text = "paused until " + value
	}
	if until, err := time.Parse(time.RFC3339, previous); changed && value != "" && err == nil && until.After(time.Now()) {
		text += " (before: until " + previous + ")"
	} else if changed && value != "" && previous == "true" {
		text += " (before: until joiner resume)"
	}
	if _, err := fmt.Fprintf(out, "%s: %s\n", object, text); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}
