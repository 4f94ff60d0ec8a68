package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/eks"
	"github.com/joiner-sh/joiner/internal/aws/iam"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/cli/connection"
	"github.com/joiner-sh/joiner/internal/cli/inputfile"
	"github.com/joiner-sh/joiner/internal/cli/message"
	"github.com/joiner-sh/joiner/internal/cli/screen"
	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/checks"
	"github.com/joiner-sh/joiner/internal/doctor/collector"
	"github.com/joiner-sh/joiner/internal/kube/evidence"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

type doctorFlags struct {
	file       string // bundle to evaluate; empty: the evidence is collected
	bundle     string // file to which the evidence is written; empty: none
	mask       bool   // account IDs are replaced
	name       string // name of the EKS cluster
	region     string
	controller string // Deployment of the controller, as namespace/name; empty: searched in the cluster
	fix        string // id of the check whose fix is applied; empty: none
	yes        bool   // the fix is applied without asking
	cluster    clusterFlags
	out        format

	aws       *aws.Config      // configuration of the AWS clients; nil: no clients
	progress  *screen.Progress // nil: no progress is shown
	authority string           // the cluster's certificate authority, as base64 of PEM; empty: unknown
}

func newDoctor() *cobra.Command {
	var d doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Diagnose why nodes do not join, and print the fix",
		Long: `Reads the cluster and its AWS resources, and explains why instances do not become
nodes, why pods are not scheduled, and why the controller does not run: the cause
first, with the evidence and the command that fixes it. It changes nothing.

It needs no controller and works from outside the cluster. Checks that need
permissions you do not have are reported as unknown; the rest still run. The
permissions are in deploy/iam/doctor.json.

--bundle also writes the evidence to a file, without secrets. joiner doctor -f
evaluates it anywhere, without a cluster or AWS.

--fix CHECK prints what the fix of that check would change, and applies it after you
confirm; --yes confirms in a script. You need the permissions of the printed commands.

If Kubernetes or AWS cannot be read at all, the last line gives the reason. Checks
that need only the other system still run.

Exit status: 0 no problem, or all fixed; 1 a problem was found; 2 the bundle could not
be read, the fix was not applied, or no problem was found but Kubernetes or AWS could
not be read at all. Single missing permissions do not change the exit status.`,
		Example: `  joiner doctor                             the cluster of your kubeconfig
  joiner doctor --bundle case.json --mask-accounts
  joiner doctor -f case.json -o json
  joiner doctor --fix AUTH-2                shows the change, and asks`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := emptyFlag(cmd.Flags(), "filename", "bundle", "fix", "cluster-name", "region", "controller"); err != nil {
				return err
			}
			return d.run(cmd.Context(), Streams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()})
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&d.file, "filename", "f", "", "evaluate the bundle in this `FILE`, without a cluster or AWS; - is standard input")
	flags.StringVar(&d.bundle, "bundle", "", "also write the evidence to a `FILE`, without secrets")
	flags.BoolVar(&d.mask, "mask-accounts", false, "replace the ids of AWS accounts by consecutive numbers")
	flags.StringVar(&d.name, "cluster-name", "", "the `NAME` of the EKS cluster; without it the controller's setting, then the environment variable CLUSTER_NAME, then the kubeconfig")
	flags.StringVar(&d.region, "region", "", "AWS `REGION`; without it AWS_REGION, the kubeconfig, then your AWS configuration")
	flags.StringVar(&d.controller, "controller", "", "the Deployment of the controller, as `NAMESPACE/NAME`; without it the Deployment whose service account can write the status of NodeClaims")
	flags.StringVar(&d.fix, "fix", "", "apply the fix of this `CHECK`, after printing it and asking for confirmation")
	flags.BoolVar(&d.yes, "yes", false, "with --fix: do not ask; accepted only for findings with the certainty \"certain\"")
	d.cluster.instead = "a bundle with -f"
	d.cluster.flags(flags)
	d.out.flag(flags)
	return cmd
}

func (d *doctorFlags) run(ctx context.Context, s Streams) error {
	if err := d.validate(); err != nil {
		return err
	}
	e, err := d.evidence(ctx, s)
	if err != nil {
		return err
	}
	if d.mask {
		if e, err = diagnosis.MaskAccounts(e); err != nil {
			return err
		}
	}
	var bundleErr error // error of writing the bundle; findings are printed nevertheless
	if d.bundle != "" {
		text, err := diagnosis.Write(e)
		if err != nil {
			return err
		}
		bundleErr = writeBundle(d.bundle, text)
	}
	findings := checks.Diagnose(e)
	unseen := e.UnreadableSystems()
	if len(unseen) == 2 && !unseen[0].Answered && !unseen[1].Answered { // there is no evidence to judge
		return errors.Join(fmt.Errorf("read the evidence: neither Kubernetes nor AWS could be reached. Kubernetes: %s. AWS: %s", unseen[0].Why,
			unseen[1].Why), bundleErr)
	}
	if d.fix != "" {
		if bundleErr != nil {
			return bundleErr // a fix would destroy the evidence that the user wants to keep
		}
		return d.applyFix(ctx, s, e, findings)
	}
	if err := d.out.write(s.Out, func() string { return screen.Findings(findings, unseen, e.Truncated()) },
		func() any { return report(e, findings) }); err != nil {
		return err
	}
	if bundleErr != nil {
		return bundleErr
	}
	if n := len(diagnosis.Actionable(findings)); n > 0 {
		return Findings{Count: n}
	}
	return unseenError(unseen)
}

// unseenError returns an error that names the systems (Kubernetes, AWS) that could not be read at all; nil if there is
// none.
func unseenError(unseen []diagnosis.UnreadableSystem) error {
	if len(unseen) == 0 {
		return nil
	}
	var out Unseen
	for _, u := range unseen {
		out.What = append(out.What, u.System)
	}
	return out
}

func (d *doctorFlags) validate() error {
	switch {
	case d.controller != "" && !isObjectKey(d.controller):
		return fmt.Errorf("--controller %s: want NAMESPACE/NAME of a Deployment, for example kube-system/joiner", strconv.Quote(d.controller))
	case d.controller != "" && d.file != "":
		return errors.New("--controller and -f exclude each other: -f reads a bundle instead of a cluster; leave one of them out")
	case d.yes && d.fix == "":
		return errors.New("--yes needs --fix CHECK, whose fix it confirms")
	case d.fix != "" && d.file != "":
		return errors.New("--fix changes a cluster, and -f reads a bundle: leave one of them out")
	case d.fix != "" && d.mask:
		return errors.New("--fix needs the account ids that --mask-accounts removes: leave one of them out")
	case d.fix != "":
		_, err := checkID(d.fix)
		return err
	}
	return nil
}

// isObjectKey reports whether the text is NAMESPACE/NAME with valid Kubernetes names.
func isObjectKey(text string) bool {
	namespace, name, ok := strings.Cut(text, "/")
	return ok && len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(name)) == 0
}

// absenceReason returns the reason why an item is absent; empty if the item is present.
func absenceReason[T any](i diagnosis.Item[T]) string {
	if i.Why == "" {
		return string(i.Absent)
	}
	return message.OneLine(i.Why)
}

type doctorReport struct {
	Cluster  string                       `json:"cluster"`
	Region   string                       `json:"region"`
	At       time.Time                    `json:"at"`
	Findings []diagnosis.Finding          `json:"findings"` // of all checks, the worst first
	Unseen   []diagnosis.UnreadableSystem `json:"unseen,omitempty"`
	// Truncated names the lists that were read only partly, each with the number of objects read.
	Truncated []string `json:"truncated,omitempty"`
}

// report returns the output of joiner doctor -o json.
func report(e diagnosis.Evidence, findings []diagnosis.Finding) doctorReport {
	return doctorReport{
		Cluster: e.Name, Region: e.Region, At: e.At, Findings: findings, Unseen: e.UnreadableSystems(), Truncated: e.Truncated(),
	}
}

// evidence returns the evidence in the bundle that -f names, or collects it from the cluster and AWS.
func (d *doctorFlags) evidence(ctx context.Context, s Streams) (diagnosis.Evidence, error) {
	switch d.file {
	case "":
		if d.out == asTable {
			d.progress = screen.NewProgress(s.Err, time.Now)
		}
		defer d.progress.Watch()()
		return d.collect(ctx), nil
	case "-":
		text, err := inputfile.ReadAll(s.In, "standard input")
		if err != nil {
			return diagnosis.Evidence{}, fmt.Errorf("read bundle: %w", message.WithoutSyscall(err))
		}
		return diagnosis.Parse(bytes.TrimPrefix(text, []byte("\ufeff"))) // the byte order mark of some editors
	}
	text, err := inputfile.Read(d.file)
	if err != nil {
		return diagnosis.Evidence{}, fmt.Errorf("read bundle: %w", message.WithoutSyscall(err))
	}
	e, err := diagnosis.Parse(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err != nil {
		return e, fmt.Errorf("%s: %w", d.file, err)
	}
	return e, nil
}

// collect creates the clients of Kubernetes and AWS, as far as possible, and collects evidence with them.
func (d *doctorFlags) collect(ctx context.Context) diagnosis.Evidence {
	clients := collector.Clients{Cluster: d.name, Region: d.region, Controller: d.controller, Progress: d.progress.Note}
	uid := d.openKube(ctx, &clients)
	name, region := d.cluster.eks()
	clients.Cluster = cmp.Or(clients.Cluster, os.Getenv("CLUSTER_NAME"), name)
	if name == clients.Cluster && d.region == "" && os.Getenv("AWS_REGION") == "" { // the region belongs to this name
		d.region = region
	}
	if err := d.openAWS(ctx, &clients, uid); err != nil { // the checks of Kubernetes still run
		clients.NoAWS = message.OneLine(err.Error())
	}
	if clients.Kube != nil {
		clients.UserData = d.userDataProblems(clients.Cluster)
	}
	return collector.Collect(ctx, clients)
}

// openKube creates the client of Kubernetes, and returns the UID of the cluster. It also sets d.authority. If
// clients.Cluster is empty, openKube sets it to the name in the controller's settings. If the cluster cannot be
// reached, openKube sets only clients.NoKube, and returns "".
func (d *doctorFlags) openKube(ctx context.Context, clients *collector.Clients) (uid string) {
	cfg, err := d.cluster.config()
	if err != nil {
		clients.NoKube = message.OneLine(err.Error())
		return ""
	}
	reader, err := evidence.NewReader(cfg)
	if err != nil {
		clients.NoKube = message.OneLine(withHint(err).Error())
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	const source = "namespace kube-system"
	d.progress.Note(source, false) // started
	defer d.progress.Note(source, true)
	home, err := reader.Home(ctx)
	if err != nil && !kubeclient.IsForbidden(err) { // other objects may be readable
		clients.NoKube = message.OneLine(withHint(fmt.Errorf("reach the API server %s: %w", cfg.Host, err)).Error())
		return ""
	}
	clients.Kube, d.authority = reader, inBase64(home.CA)
	if c, _, found, err := reader.Controller(ctx, d.controller, nil); err == nil && found && clients.Cluster == "" {
		clients.Cluster = c.Settings["CLUSTER_NAME"]
	}
	return home.UID
}

// openAWS creates the AWS clients. Without credentials, region or cluster name it sets clients.NoAWS instead and
// returns nil. It returns an error only for an invalid AWS configuration.
func (d *doctorFlags) openAWS(ctx context.Context, clients *collector.Clients, uid string) error {
	noLog := awsconfig.WithLogger(logging.Nop{})
	options := []func(*awsconfig.LoadOptions) error{noLog}
	if d.region != "" {
		options = append(options, awsconfig.WithRegion(d.region))
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return fmt.Errorf("read the AWS configuration: %w; correct it, or set AWS_PROFILE to an existing profile", err)
	}
	if err := connection.EndpointProblem(cfg); err != nil {
		return err
	}
	clients.Region = cfg.Region
	switch {
	case clients.Cluster == "":
		clients.NoAWS = "the cluster's name is not known: give --cluster-name NAME"
		return nil
	case cfg.Region == "":
		clients.NoAWS = "the region is not known: give --region REGION"
		return nil
	}
	const source = "credentials for AWS"
	d.progress.Note(source, false) // started
	_, err = cfg.Credentials.Retrieve(ctx)
	d.progress.Note(source, true)
	if err != nil {
		clients.NoAWS = "no credentials for AWS: " + connection.CredentialsProblem(err) + "; log in (aws sso login), or set AWS_PROFILE"
		return nil
	}
	d.aws = &cfg
	return openClients(clients, cfg, uid)
}

// openClients creates the AWS clients from a configuration with credentials. uid is the UID of the cluster; empty:
// unknown.
func openClients(clients *collector.Clients, cfg aws.Config, uid string) error {
	if uid == "" {
		uid = "unknown" // the owner of an instance is determined later, from all evidence
	}
	cfg.Retryer = nil
	cfg.RetryMaxAttempts = 3 // to report an outage soon
	cfg = awserr.ClientConfig(cfg)
	eksClient, eksErr := eks.New(cfg, clients.Cluster)
	ec2Client, ec2Err := ec2.New(cfg, ec2.Cluster{Name: clients.Cluster, UID: uid, Region: cfg.Region})
	if err := errors.Join(eksErr, ec2Err); err != nil {
		return err
	}
	clients.EKS, clients.IAM = eksClient, iam.New(cfg, iam.Cluster{Name: clients.Cluster, UID: uid, Region: cfg.Region})
	clients.EC2, clients.Images, clients.Network = ec2Client, ami.New(cfg), vpc.New(cfg)
	return nil
}
