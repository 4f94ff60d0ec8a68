package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/cli/message"
	"github.com/joiner-sh/joiner/internal/config"
	"github.com/joiner-sh/joiner/internal/diagnosis/checks"
	"github.com/joiner-sh/joiner/internal/kube/manifest"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Limits of shell completion: the timeout of a request to the cluster, and the maximum number of names in the response.
const (
	completionTimeout  = 2 * time.Second
	maxCompletionNames = 500
)

// nodePoolResource and the next three functions return the resources whose names are completed.
func nodePoolResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: karpv1.Group, Version: "v1", Resource: "nodepools"}
}

func nodeClassResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: awsv1.Group, Version: "v1", Resource: "ec2nodeclasses"}
}

func nodeResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
}

func nodeClaimResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: karpv1.Group, Version: "v1", Resource: "nodeclaims"}
}

func mergeCompletions(functions ...cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var out []cobra.Completion
		for _, complete := range functions {
			found, _ := complete(cmd, args, typed)
			out = append(out, found...)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

func completeChecks(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []string
	for _, c := range checks.Checks() {
		names = append(names, c.ID)
	}
	return withPrefix(names, typed), cobra.ShellCompDirectiveNoFileComp
}

// completeNames returns a function that completes the names of a resource's objects in the cluster. If the cluster
// cannot be read, the shell shows the reason.
func (c *clusterFlags) completeNames(resource schema.GroupVersionResource) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names, err := c.listNames(cmd.Context(), resource)
		if err != nil {
			reason := "no names of " + resource.Resource + ": " + message.OneLine(err.Error())
			return cobra.AppendActiveHelp(nil, reason), cobra.ShellCompDirectiveNoFileComp
		}
		return withPrefix(names, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// listNames returns the names of a resource's objects in the cluster, sorted.
func (c *clusterFlags) listNames(ctx context.Context, resource schema.GroupVersionResource) ([]string, error) {
	cfg, err := c.config()
	if err != nil {
		return nil, err
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = completionTimeout
	objects, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	list, err := objects.Resource(resource).List(ctx, metav1.ListOptions{Limit: maxCompletionNames})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names, nil
}

func (c *clusterFlags) completeContexts(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	cfg, err := rules.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return withPrefix(slices.Sorted(maps.Keys(cfg.Contexts)), typed), cobra.ShellCompDirectiveNoFileComp
}

// completeFromManifests returns a function that completes the names which pick returns for the manifests in files.
// Without files it completes with live, the completion of the names in the cluster.
func completeFromManifests(files *[]string, pick func(manifest.Manifests) []string, live cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(*files) == 0 {
			return live(cmd, args, typed)
		}
		if slices.Contains(*files, "-") {
			return nil, cobra.ShellCompDirectiveNoFileComp // the manifests are not on the standard input of a completion
		}
		m, _ := manifest.ReadFiles(*files, strings.NewReader("")) // the objects that could be read are returned with the error
		names := pick(m)
		slices.Sort(names)
		return withPrefix(names, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

func completeWords(words ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return withPrefix(words, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

func completeRegions(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	table, err := catalog.Embedded()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return withPrefix(table.Regions(), typed), cobra.ShellCompDirectiveNoFileComp
}

func completeInstanceTypes(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	table, err := catalog.Embedded()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, t := range table.Types() {
		names = append(names, t.Name)
	}
	return withPrefix(names, typed), cobra.ShellCompDirectiveNoFileComp
}

// CompleteSettings completes the flags of joiner controller. Cobra does not know them, because the controller parses
// its flags itself.
func CompleteSettings(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, s := range config.All() {
		if flag := "--" + s.Flag + "="; strings.HasPrefix(flag, typed) {
			out = append(out, cobra.CompletionWithDesc(flag, s.Help))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func withPrefix(names []string, typed string) []cobra.Completion {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, typed) })
}

// completeFlags registers, for cmd and the commands below it, the completion of the flags that have the same values in
// every command. Commands register the completion of their other flags with registerCompletions. Arguments and flags
// without a completion would complete file names: completeFlags switches that off, except for flags that take a path.
func completeFlags(cmd *cobra.Command) {
	registerCompletions(cmd, map[string]cobra.CompletionFunc{
		"output": completeWords(string(asTable), string(asWide), string(asJSON), string(asYAML)), "region": completeRegions, "from": completeWords(fromAWS, fromEmbedded),
		"instance-type": completeInstanceTypes, "capacity-type": completeWords(catalog.OnDemand, catalog.Spot, catalog.Reserved),
		"fix": completeChecks, "check": completeChecks, "min-values-policy": completeWords(strictValues,
			relaxedValues), "partition": completeWords("aws", "aws-cn", "aws-us-gov"),
	})
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && !cmd.HasSubCommands() {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	withoutFiles := map[string]cobra.CompletionFunc{}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if placeholder, _ := pflag.UnquoteUsage(f); placeholder != "PATH" && placeholder != "FILE" && f.Value.Type() != "bool" {
			withoutFiles[f.Name] = cobra.NoFileCompletions
		}
	})
	registerCompletions(cmd, withoutFiles)
	for _, c := range cmd.Commands() {
		completeFlags(c)
	}
}

// registerCompletions registers the completions of a command's flags. It ignores flags that the command does not have,
// and flags that have a completion already.
func registerCompletions(cmd *cobra.Command, flags map[string]cobra.CompletionFunc) {
	for name, complete := range flags {
		if cmd.Flags().Lookup(name) == nil {
			continue
		}
		if _, isRegistered := cmd.GetFlagCompletionFunc(name); !isRegistered {
			_ = cmd.RegisterFlagCompletionFunc(name, complete) // fails only for a missing flag, or a flag that is registered twice
		}
	}
}
