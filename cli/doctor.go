package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
	"github.com/spf13/cobra"

	"github.com/joiner-sh/joiner/access"
	"github.com/joiner-sh/joiner/ami"
	"github.com/joiner-sh/joiner/diagnosis"
	"github.com/joiner-sh/joiner/ec2"
	"github.com/joiner-sh/joiner/evidence"
	"github.com/joiner-sh/joiner/fault"
	"github.com/joiner-sh/joiner/kube"
	"github.com/joiner-sh/joiner/network"
)

// doctorFlags are those of joiner doctor.
type doctorFlags struct {
	file    string
	bundle  string
	mask    bool
	name    string
	region  string
	fix     string // id of the check whose fix is to be made
	yes     bool
	cluster clusterFlags
	out     output

	aws       *aws.Config // as the doors were opened with; nil if they were not
	authority string      // the cluster's certificates, as base64 of PEM; empty: not known
}

func newDoctor() *cobra.Command {
	var d doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say why nodes do not join, and what mends it",
		Long: `Looks at the cluster and at AWS around it, reads only, and says why instances do
not become nodes, why pods find no node, and why the controller itself does not
run: the cause first, with what it rests on and the command that mends it.

It needs no controller and works from outside the cluster. What it may not read
it says, and judges the rest. The permissions are in deploy/iam/doctor.json.

With --bundle it also writes what it saw to a file, without secrets, that
joiner doctor -f judges anywhere, without a cluster or AWS.

With --fix CHECK it shows what the fix of that check would change, and makes it
when you say yes; in a script --yes says so, and without either nothing changes.
For that you need the permissions of the commands that it prints.

It ends with 0 when nothing is wrong or all was fixed, 1 when something is wrong, 2
when it could not look, or not fix.`,
		Example: `  joiner doctor                             the cluster of your kubeconfig
  joiner doctor --bundle case.json --mask-accounts
  joiner doctor -f case.json -o json
  joiner doctor --fix AUTH-2                shows the change, and asks`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.run(cmd.Context(), Streams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()})
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&d.file, "filename", "f", "", "judge the bundle in this `FILE`, and ask nobody; - is standard input")
	flags.StringVar(&d.bundle, "bundle", "", "also write what was seen to a `FILE`; secrets are left out")
	flags.BoolVar(&d.mask, "mask-accounts", false, "write numbers in place of the ids of AWS accounts")
	flags.StringVar(&d.name, "cluster-name", "", "the `NAME` of the EKS cluster; without it what the controller is set to, CLUSTER_NAME, then what the kubeconfig says")
	flags.StringVar(&d.region, "region", "", "AWS region; without it AWS_REGION, what the kubeconfig says, then your AWS configuration")
	flags.StringVar(&d.fix, "fix", "", "make the fix of this `CHECK`, after showing it and asking")
	flags.BoolVar(&d.yes, "yes", false, "with --fix: do not ask; only for what is certain")
	d.cluster.instead = "a bundle with -f"
	d.cluster.flags(flags)
	d.out.flag(flags)
	return cmd
}

func (d *doctorFlags) run(ctx context.Context, s Streams) error {
	if err := d.check(); err != nil {
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
	if d.bundle != "" {
		text, err := diagnosis.Write(e)
		if err != nil {
			return err
		}
		if err := os.WriteFile(d.bundle, text, 0o600); err != nil {
			return fmt.Errorf("write bundle: %w", plain(err))
		}
	}
	findings := diagnosis.Diagnose(e)
	if nothingSeen(e) {
		return fmt.Errorf("look at the cluster: neither Kubernetes nor AWS could be asked: %s; %s", whyNot(e.Classes), whyNot(e.Cluster))
	}
	if d.fix != "" {
		return d.mend(ctx, s, e, findings)
	}
	if err := d.out.write(s.Out, func() string { return screen(findings) }, func() any { return report(e, findings) }); err != nil {
		return err
	}
	if n := len(diagnosis.Worst(findings)); n > 0 {
		return Findings{Count: n}
	}
	return nil
}

// check holds the flags against one another.
func (d *doctorFlags) check() error {
	switch {
	case d.yes && d.fix == "":
		return errors.New("--yes goes with --fix CHECK: it says yes to that fix")
	case d.fix != "" && d.file != "":
		return errors.New("--fix changes the cluster that it looks at, and -f is a bundle: leave one of them out")
	case d.fix != "" && d.mask:
		return errors.New("--fix needs the account ids that --mask-accounts takes out: leave one of them out")
	case d.fix != "":
		_, err := knownCheck(d.fix)
		return err
	}
	return nil
}

// nothingSeen reports whether there is nothing that a judgement could rest on.
func nothingSeen(e diagnosis.Evidence) bool {
	return !e.Classes.Known() && !e.Nodes.Known() && !e.Home.Known() && !e.Cluster.Known() && !e.Instances.Known() && !e.Cluster.Is(diagnosis.Missing)
}

func whyNot[T any](i diagnosis.Item[T]) string {
	if i.Why == "" {
		return string(i.Absent)
	}
	return oneLine(i.Why)
}

// doctorReport is joiner doctor -o json.
type doctorReport struct {
	Cluster  string              `json:"cluster"`
	Region   string              `json:"region"`
	At       time.Time           `json:"at"`
	Findings []diagnosis.Finding `json:"findings"` // all checks, worst first
}

func report(e diagnosis.Evidence, findings []diagnosis.Finding) doctorReport {
	return doctorReport{Cluster: e.Name, Region: e.Region, At: e.At, Findings: findings}
}

// evidence is that of a bundle, or what there is to see now.
func (d *doctorFlags) evidence(ctx context.Context, s Streams) (diagnosis.Evidence, error) {
	switch d.file {
	case "":
		return d.collect(ctx)
	case "-":
		text, err := io.ReadAll(s.In)
		if err != nil {
			return diagnosis.Evidence{}, fmt.Errorf("read bundle: %w", plain(err))
		}
		return diagnosis.Parse(bytes.TrimPrefix(text, []byte("\ufeff")))
	}
	text, err := os.ReadFile(d.file)
	if err != nil {
		return diagnosis.Evidence{}, fmt.Errorf("read bundle: %w", plain(err))
	}
	e, err := diagnosis.Parse(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err != nil {
		return e, fmt.Errorf("%s: %w", d.file, err)
	}
	return e, nil
}

// collect opens what doors it can, and asks them.
func (d *doctorFlags) collect(ctx context.Context) (diagnosis.Evidence, error) {
	doors := evidence.Doors{Cluster: d.name, Region: d.region}
	uid := d.openKube(ctx, &doors)
	name, region := d.cluster.eks()
	doors.Cluster = cmp.Or(doors.Cluster, os.Getenv("CLUSTER_NAME"), name)
	if name == doors.Cluster && d.region == "" && os.Getenv("AWS_REGION") == "" {
		d.region = region
	}
	if err := d.openAWS(ctx, &doors, uid); err != nil {
		return diagnosis.Evidence{}, err
	}
	if doors.Kube != nil {
		doors.UserData = d.userDataProblems(doors.Cluster)
	}
	return evidence.Collect(ctx, doors), nil
}

// openKube opens the door to Kubernetes, and finds out of which cluster and, where nobody said it, by what name.
func (d *doctorFlags) openKube(ctx context.Context, doors *evidence.Doors) (uid string) {
	cfg, err := d.cluster.config()
	if err != nil {
		doors.NoKube = oneLine(err.Error())
		return ""
	}
	w, err := kube.NewWitness(cfg)
	if err != nil {
		doors.NoKube = oneLine(hinted(err).Error())
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	home, err := w.Home(ctx)
	if err != nil && kube.WhatNext(err) != kube.Tell {
		doors.NoKube = oneLine(hinted(fmt.Errorf("reach the API server %s: %w", cfg.Host, err)).Error())
		return ""
	}
	doors.Kube, d.authority = w, inBase64(home.CA)
	if c, _, found, err := w.Controller(ctx, nil); err == nil && found && doors.Cluster == "" {
		doors.Cluster = c.Settings["CLUSTER_NAME"]
	}
	return home.UID
}

// openAWS opens the doors to AWS; without credentials or a cluster's name it says why it does not.
func (d *doctorFlags) openAWS(ctx context.Context, doors *evidence.Doors, uid string) error {
	quiet := awsconfig.WithLogger(logging.Nop{})
	options := []func(*awsconfig.LoadOptions) error{quiet}
	if d.region != "" {
		options = append(options, awsconfig.WithRegion(d.region))
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return fmt.Errorf("read the AWS configuration: %s", oneLine(err.Error()))
	}
	doors.Region = cfg.Region
	switch {
	case doors.Cluster == "":
		doors.NoAWS = "the cluster's name is not known: give --cluster-name NAME"
		return nil
	case cfg.Region == "":
		doors.NoAWS = "the region is not known: give --region REGION"
		return nil
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		doors.NoAWS = "no credentials for AWS: " + CredentialsProblem(err)
		return nil
	}
	d.aws = &cfg
	return openDoors(doors, cfg, uid)
}

func openDoors(doors *evidence.Doors, cfg aws.Config, uid string) error {
	if uid == "" {
		uid = "unknown" // whose an instance is, is judged later and by what is known then
	}
	cfg.Retryer = nil
	cfg.RetryMaxAttempts = 3
	cfg = fault.Genuine(cfg)
	a, err := access.New(cfg, access.Cluster{Name: doors.Cluster, UID: uid, Region: cfg.Region})
	e, err2 := ec2.New(cfg, ec2.Cluster{Name: doors.Cluster, UID: uid, Region: cfg.Region})
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	doors.Access, doors.EC2, doors.Images, doors.Network = a, e, ami.New(cfg), network.New(cfg)
	return nil
}
