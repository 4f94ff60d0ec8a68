package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/joiner-sh/joiner/internal/cli/helmvalues"
	"github.com/joiner-sh/joiner/internal/cli/screen"
	"github.com/joiner-sh/joiner/internal/kube/evidence"
	"github.com/joiner-sh/joiner/internal/migration"
)

type migrateFlags struct {
	files    []string // manifests; none: the cluster is read
	values   []string // values files of Karpenter's chart
	policies []string // IAM policies of Karpenter's role; none: IAM is queried
	name     string   // name of the EKS cluster
	account  string   // ID of the AWS account
	region   string
	role     string // ARN of Karpenter's role
	cluster  clusterFlags
	out      format
}

func newMigrate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Show what changes when Joiner replaces Karpenter",
		Long: `Joiner uses the NodePools, NodeClaims and EC2NodeClasses of Karpenter unchanged, and
takes over the nodes as they are. "joiner migrate check" shows what changes.`,
	}
	cmd.AddCommand(newMigrateCheck())
	return cmd
}

func newMigrateCheck() *cobra.Command {
	var m migrateFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check what blocks a migration, what changes and what stays, and print the migration commands",
		Long: `Reads an installation of Karpenter: its Deployment and settings, CRDs, objects, nodes,
instances, and the permissions of its role. It changes nothing. Then it lists what
blocks a migration, what Joiner does differently, and what stays the same, and prints
the commands for the migration and for the way back.

It reads the cluster of your kubeconfig, and AWS if there are credentials; with -f it
reads only the files. For each item that it could not read, it prints the missing
permission.

Exit status: 0 nothing blocks the migration, 1 something blocks it, 2 an item that may
block it could not be read. Missing AWS credentials alone do not cause status 2.`,
		Example: `  joiner migrate check                      the cluster of your kubeconfig
  kubectl get nodepools,ec2nodeclasses,nodeclaims,nodes -o yaml > objects.yaml
  joiner migrate check -f objects.yaml --values karpenter-values.yaml
  joiner migrate check -f objects.yaml --policy role.json --cluster-name prod --account 111122223333 --region eu-west-1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := m.validate(cmd.Flags()); err != nil {
				return err
			}
			return m.run(cmd.Context(), Streams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()})
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&m.files, "filename", "f", nil, "check the manifests in this `PATH`, a file or a folder, without a cluster or AWS; - is standard input; may be repeated")
	flags.StringArrayVar(&m.values, "values", nil, "a `FILE` with values that Karpenter's chart was given; may be repeated, the last one wins")
	flags.StringArrayVar(&m.policies, "policy", nil, "a `FILE` with an IAM policy of Karpenter's role, as JSON; may be repeated; without it IAM's policy simulator is used")
	flags.StringVar(&m.name, "cluster-name", "",
		"the `NAME` of the EKS cluster; without it Karpenter's setting, then the environment variable CLUSTER_NAME, then the kubeconfig")
	flags.StringVar(&m.account, "account", "", "the `ID` of the AWS account; without it the account of Karpenter's role")
	flags.StringVar(&m.region, "region", "", "AWS `REGION`; without it AWS_REGION, the kubeconfig, then your AWS configuration")
	flags.StringVar(&m.role, "role", "", "the `ARN` of Karpenter's role; without it the role of its service account")
	m.cluster.instead = manifestInput
	m.cluster.flags(flags)
	m.out.flag(flags)
	return cmd
}

func (m *migrateFlags) validate(flags *pflag.FlagSet) error {
	if err := emptyFlag(flags, "cluster-name", "account", "region", "role"); err != nil {
		return err
	}
	switch {
	case m.name != "" && !clusterPattern.MatchString(m.name):
		return fmt.Errorf("--cluster-name %q: want the name of one EKS cluster: letters, digits, - and _", m.name)
	case m.account != "" && !accountPattern.MatchString(m.account):
		return invalidAccount(m.account)
	case m.region != "" && !regionPattern.MatchString(m.region):
		return fmt.Errorf("--region %q: want one region, for instance eu-west-1", m.region)
	case m.role != "" && !roleARNPattern.MatchString(m.role):
		return fmt.Errorf("--role %q: want the ARN of a role: aws iam get-role --role-name NAME --query Role.Arn --output text", m.role)
	}
	return nil
}

func (m *migrateFlags) run(ctx context.Context, s Streams) error {
	seen, err := m.installation(ctx, s)
	if err != nil {
		return err
	}
	report := migration.Check(seen)
	if err := m.out.write(s.Out, func() string { return screen.Migration(report) }, func() any { return report }); err != nil {
		return err
	}
	blocking := 0
	for _, f := range report.Findings {
		if f.Weight == migration.Stops {
			blocking++
		}
	}
	switch {
	case blocking > 0:
		return Findings{blocking}
	case len(report.Hidden) > 0:
		return Unseen{report.Hidden}
	}
	return nil
}

// installation reads the installation: from the files of -f and --values, or from the cluster and AWS.
func (m *migrateFlags) installation(ctx context.Context, s Streams) (migration.Installation, error) {
	isOffline := len(m.files) > 0 || len(m.values) > 0
	chart, err := helmvalues.ReadValues(m.values)
	if err != nil {
		return migration.Installation{}, err
	}
	seen, installed, err := m.objects(ctx, s, isOffline)
	if err != nil {
		return migration.Installation{}, err
	}
	seen.At, seen.Values, seen.UnknownValues = time.Now().UTC(), chart.Flat, helmvalues.UnknownValues(chart.Flat)
	settings := helmvalues.AddControllers(&seen, installed, chart)
	name, region := m.cluster.eks()
	if isOffline { // the files may be those of another cluster
		name, region = "", ""
	}
	seen.Cluster = cmp.Or(m.name, settings.ClusterName, os.Getenv("CLUSTER_NAME"), name)
	m.region = cmp.Or(m.region, os.Getenv("AWS_REGION"), settings.Region, region)
	aws := migrationAWS{migrateFlags: m, settings: settings, seen: &seen}
	err = aws.read(ctx, isOffline)
	return seen, err
}

// objects reads the objects and controllers of the manifests, or those of the cluster if isOffline is false.
func (m *migrateFlags) objects(ctx context.Context, s Streams, isOffline bool) (
	migration.Installation, []evidence.InstalledController, error,
) {
	if isOffline {
		all, err := evidence.ReadManifests(m.files, s.In)
		if err != nil {
			return migration.Installation{}, nil, err
		}
		seen, installed, err := evidence.MigrationInput(all)
		if err == nil && len(m.files) > 0 &&
			len(seen.Definitions)+len(seen.Pools)+len(seen.Classes)+len(seen.Claims)+len(seen.Nodes)+len(installed) == 0 {
			err = errors.New("the files have no object of Karpenter: kubectl get nodepools,ec2nodeclasses,nodeclaims,nodes -o yaml writes them")
		}
		return seen, installed, err
	}
	cfg, err := m.cluster.config()
	if err != nil {
		return migration.Installation{}, nil, err
	}
	reader, err := evidence.NewReader(cfg)
	if err != nil {
		return migration.Installation{}, nil, withHint(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, crdsTimeout, fmt.Errorf("not done after %s", crdsTimeout))
	defer cancel()
	all, unseen, err := reader.Karpenter(ctx)
	if err != nil {
		return migration.Installation{}, nil, withHint(fmt.Errorf("read the cluster at %s: %w", cfg.Host, err))
	}
	seen, installed, err := evidence.MigrationInput(all)
	seen.Unseen = unseen
	return seen, installed, err
}
