package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/joiner-sh/joiner/internal/permissions"
)

type policyFlags struct {
	scope permissions.Scope // cluster, account and resources that the policies are limited to
	args  []string          // the name of one policy; none: all policies
	out   format
}

func newRenderPolicy() *cobra.Command {
	var p policyFlags
	cmd := &cobra.Command{
		Use:   "iam-policy --cluster-name NAME --account ID --region REGION [POLICY]",
		Short: "Render the IAM policies that the controller needs",
		Long: `Prints the IAM policies that the controller needs for its own cluster, and no more.
The policies "launch", "profiles", "reading" and "interruption" are for the
controller; the policy "doctor", which only reads, is for joiner doctor. With the
name of a policy, the output is its policy document; without a name, an object with
all policies by name.

With --cluster-uid, the policies also exclude another cluster of the same name in the
same account and region. The command calls neither AWS nor the cluster.`,
		Example: `  joiner render iam-policy --cluster-name prod --account 111122223333 --region eu-west-1 launch > launch.json
  joiner render iam-policy --cluster-name prod --account 111122223333 --region eu-west-1 \
    --cluster-uid "$(kubectl get namespace kube-system -o jsonpath={.metadata.uid})"`,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: []string{"launch", "profiles", "reading", "interruption", "doctor"},
		RunE: func(cmd *cobra.Command, args []string) error {
			p.args = args
			return p.run(cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	p.out.flag(flags)
	flags.StringVar(&p.scope.Cluster, "cluster-name", "", "the `NAME` of the EKS cluster")
	flags.StringVar(&p.scope.Account, "account", "", "the `ID` of the AWS account, 12 digits")
	flags.StringVar(&p.scope.Region, "region", "", "the `REGION` of the cluster")
	flags.StringVar(&p.scope.Partition, "partition", "", "the `PARTITION`: aws, aws-cn or aws-us-gov (default: the partition of the region)")
	flags.StringVar(&p.scope.UID, "cluster-uid", "", "the `UID` of the cluster's kube-system namespace, if the cluster exists already")
	flags.StringArrayVar(&p.scope.NodeRoles, "node-role", nil, "the `NAME` of a role that nodes may have, with its path in front; may be repeated (default KarpenterNodeRole-CLUSTER)")
	flags.StringVar(&p.scope.Queue, "interruption-queue", "",
		"the `NAME` of the interruption queue (default: the queue with the cluster's name)")
	flags.StringArrayVar(&p.scope.Parameters, "ssm-parameter", nil,
		"the `NAME` of a parameter of your own that names an image; may be repeated")
	return cmd
}

func (p policyFlags) run(out io.Writer) error {
	if err := scopeProblem(p.scope); err != nil {
		return err
	}
	policies, err := permissions.Policies(p.scope)
	if err != nil {
		return err
	}
	doctorPolicies, err := permissions.Doctor(p.scope)
	if err != nil {
		return err
	}
	all := map[string]json.RawMessage{}
	var names []string
	for _, policy := range append(policies, doctorPolicies...) {
		text, err := policy.JSON()
		if err != nil {
			return err
		}
		all[policy.Name], names = text, append(names, policy.Name)
	}
	if len(p.args) == 1 {
		text, ok := all[p.args[0]]
		if !ok {
			return fmt.Errorf("there is no policy %q: want one of %s", p.args[0], strings.Join(names, ", "))
		}
		return p.out.write(out, func() string { return string(text) }, func() any { return text })
	}
	if !p.out.isText() {
		return p.out.write(out, nil, func() any { return all })
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(all); err != nil {
		return fmt.Errorf("write the policies: %w", err)
	}
	return nil
}
