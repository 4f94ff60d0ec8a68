package cli

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/cli/output"
	"github.com/joiner-sh/joiner/internal/doctor/collector"
	"github.com/joiner-sh/joiner/internal/node/userdata/reading"
	"github.com/joiner-sh/joiner/internal/suggest"
)

type correctFlags struct {
	class     string             // name of the EC2NodeClass
	cluster   string             // --cluster-name
	render    renderFlags        // reads the EC2NodeClass, and renders its user data
	checks    []string           // ids of the checks whose problems are fixed; empty: all
	requested reading.Correction // from --without-flag, --without-program, --forgive and --max-pods; zero: none
	diff      bool
	out       format
}

func newCorrect() *cobra.Command {
	var c correctFlags
	cmd := &cobra.Command{
		Use:   "correct NODECLASS",
		Short: "Print the patch that corrects the user data of an EC2NodeClass",
		Long: `Parses the user data of an EC2NodeClass as its instances would, fixes its problems,
and prints a merge patch of the EC2NodeClass for kubectl patch. It changes nothing
itself. The fixes of joiner doctor use this command, so they do not repeat user
data, which may contain secrets.

It fixes: quotes, flags and taints of a call of bootstrap.sh; the name and the
certificate authority of the cluster; Windows line endings; misspelt and unknown
settings; text that the AMI family cannot parse. Some problems show only in the
console output of an instance. For these, give the correction yourself, with
--without-flag, --without-program, --forgive or --max-pods.

Exit status: 0 a patch is printed, 2 there is no problem that it can fix.`,
		Example: `  joiner correct web --diff
  kubectl patch ec2nodeclass web --type merge -p "$(joiner correct web)"
  joiner correct web --check TAINT-2
  joiner correct web --without-flag feature-gates`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.class = args[0]
			return c.run(cmd.Context(), Streams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()})
		},
		ValidArgsFunction: c.render.live.completeNames(nodeClassResource()),
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&c.render.files, "filename", "f", nil,
		"read manifests from this `PATH` (- is standard input) instead of a cluster; may be repeated")
	flags.StringVar(&c.cluster, "cluster-name", "",
		"the `NAME` of the EKS cluster; without it the controller's setting, then the environment variable CLUSTER_NAME, then the kubeconfig")
	flags.StringSliceVar(&c.checks, "check", nil, "fix only problems of this `CHECK`; may be repeated")
	flags.StringVar(&c.requested.Flag, "without-flag", "", "remove this `FLAG` of the kubelet, also from spec.kubelet")
	flags.StringVar(&c.requested.Program, "without-program", "", "remove the calls of this `PROGRAM`")
	flags.StringVar(&c.requested.IgnoreFailureOf, "forgive", "", "continue the script if this `PROGRAM` fails")
	flags.IntVar(&c.requested.MaxPods, "max-pods", 0, "maximum number of pods to set, for an image that does not know the instance type")
	c.out.flag(flags)
	flags.BoolVar(&c.diff, "diff", false, "print the changed lines instead of the patch")
	c.render.live.instead = manifestInput
	c.render.live.flags(flags)
	registerCompletions(cmd, map[string]cobra.CompletionFunc{"context": c.render.live.completeContexts})
	return cmd
}

func (c *correctFlags) run(ctx context.Context, s Streams) error {
	// 1. Read.
	if err := c.findCluster(ctx); err != nil {
		return err
	}
	class, err := c.read(ctx, s)
	if err != nil {
		return err
	}

	// 2. Correct.
	patch := c.patch(class)
	userData := textOrEmpty(class.Spec.UserData)
	if patch.isEmpty(userData) {
		return fmt.Errorf("EC2NodeClass %s: no problem can be fixed automatically: joiner doctor lists the problems", class.Name)
	}

	// 3. Print.
	if c.diff {
		after := userData
		if patch.data != nil {
			after = *patch.data
		}
		lines := output.Difference(userData, after)
		return c.out.write(s.Out, func() string { return strings.Join(lines, "\n") + "\n" }, func() any { return lines })
	}
	text, err := patch.json()
	if err != nil {
		return err
	}
	if c.out.isText() { // kubectl reads the patch, so it is printed unchanged
		_, err := fmt.Fprintln(s.Out, text)
		return err
	}
	return c.out.write(s.Out, nil, func() any { return json.RawMessage(text) })
}

func textOrEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// findCluster sets the facts about the cluster in c.render. Without manifests it reads the name and the certificate
// authority of the cluster from the cluster, the environment and the kubeconfig.
func (c *correctFlags) findCluster(ctx context.Context) error {
	c.render.cluster.Name = c.cluster
	if len(c.render.files) == 0 {
		d, clients := doctorFlags{cluster: c.render.live}, collector.Clients{Cluster: c.cluster}
		d.openKube(ctx, &clients)
		name, _ := c.render.live.eks()
		c.render.cluster.Name = cmp.Or(clients.Cluster, os.Getenv("CLUSTER_NAME"), name)
		c.render.setAuthority(d.authority)
	}
	return c.render.completeCluster()
}

// read returns the EC2NodeClass with the name in c.class.
func (c *correctFlags) read(ctx context.Context, s Streams) (*awsv1.EC2NodeClass, error) {
	m, err := c.render.objects(ctx, s)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, class := range m.Classes {
		if class.Name == c.class {
			return class, nil
		}
		names = append(names, class.Name)
	}
	return nil, fmt.Errorf("there is no EC2NodeClass %s %s%s", c.class, c.render.objectSource(), suggest.Hint(c.class, names))
}

// correction is a change of an EC2NodeClass.
type correction struct {
	data    *string // new spec.userData; nil: unchanged
	kubelet string  // field of spec.kubelet to remove; empty: none
}

// isEmpty reports whether the correction changes nothing in an EC2NodeClass with this user data.
func (c correction) isEmpty(userData string) bool {
	return c.kubelet == "" && (c.data == nil || *c.data == userData)
}

// json returns the correction as a merge patch.
func (c correction) json() (string, error) {
	spec := map[string]any{}
	switch {
	case c.data != nil && *c.data == "":
		spec["userData"] = nil
	case c.data != nil:
		spec["userData"] = *c.data
	}
	if c.kubelet != "" {
		spec["kubelet"] = map[string]any{c.kubelet: nil}
	}
	text, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return "", fmt.Errorf("write the patch: %w", err)
	}
	return string(text), nil
}

// patch returns the correction that the flags request, such as --max-pods. Without such flags it returns the correction
// that fixes the problems of the user data.
func (c *correctFlags) patch(class *awsv1.EC2NodeClass) correction {
	in := c.render.input(class)
	out := correction{kubelet: kubeletField(class, c.requested.Flag)}
	if c.requested == (reading.Correction{}) {
		in.Own = reading.Correct(in, c.render.userDataParser(class), c.checks...)
	} else {
		in.Own = reading.ApplyCorrection(in, c.requested)
	}
	if in.Own != textOrEmpty(class.Spec.UserData) {
		out.data = &in.Own
	}
	return out
}

// kubeletField returns the field of spec.kubelet whose name begins with the name of the kubelet's flag: maxPods for
// max-pods. It ignores hyphens and case. Of several fields it returns the first by name, of none "".
func kubeletField(class *awsv1.EC2NodeClass, flag string) string {
	flag = strings.ReplaceAll(strings.TrimLeft(flag, "-"), "-", "")
	if flag == "" || class.Spec.Kubelet == nil {
		return ""
	}
	text, err := json.Marshal(class.Spec.Kubelet)
	fields := map[string]any{}
	if err = errors.Join(err, json.Unmarshal(text, &fields)); err != nil {
		return ""
	}
	var found []string
	for name := range fields {
		if strings.HasPrefix(strings.ToLower(name), flag) {
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.Min(found)
}

// inBase64 encodes PEM as EKS does. Empty text stays empty.
func inBase64(pem string) string { return base64.StdEncoding.EncodeToString([]byte(pem)) }
