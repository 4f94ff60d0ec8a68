package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/cli"
	"github.com/joiner-sh/joiner/internal/config"
	"github.com/joiner-sh/joiner/internal/controller"
	"github.com/joiner-sh/joiner/internal/controller/disruptor"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/controller/fleetprice"
	"github.com/joiner-sh/joiner/internal/controller/gc"
	"github.com/joiner-sh/joiner/internal/controller/interruptions"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
	"github.com/joiner-sh/joiner/internal/controller/nodeclass"
	"github.com/joiner-sh/joiner/internal/controller/nodepool"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/controller/provisioner"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/kube/writer"
	"github.com/joiner-sh/joiner/internal/metrics"
)

func newController() *cobra.Command {
	return &cobra.Command{
		Use:   "controller",
		Short: "Run the autoscaler",
		Long: `Runs in the cluster it serves, or anywhere with a kubeconfig and AWS credentials.

Exit status: 2 the controller cannot start; the last line of the log says how to fix it.

Settings:
` + config.Help(),
		// Package config reads the flags and the environment, which have Karpenter's names.
		DisableFlagParsing: true,
		Annotations:        map[string]string{cli.HandlesSignals: "true"},
		ValidArgsFunction:  cli.CompleteSettings,
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, notes, err := config.FromProcess(args, os.Environ())
			if errors.Is(err, config.ErrHelp) {
				return cmd.Help()
			}
			if err != nil {
				return err
			}
			log := newLogger(cmd.ErrOrStderr(), settings.LogLevel)
			for _, n := range notes {
				log.Warn("this setting has no effect", "setting", n.Setting, "value", n.Value, "cause", n.Explanation)
			}
			ctx, stop := signalContext(cmd.Context())
			defer stop()
			return withSignalName(ctx, runController(ctx, settings, log))
		},
	}
}

// runController connects to the cluster and AWS, and runs the controllers until ctx is done or one of them fails.
func runController(ctx context.Context, settings config.Settings, log *slog.Logger) error {
	if settings.MemoryLimit > 0 {
		debug.SetMemoryLimit(settings.MemoryLimit / 10 * 9) // 10 % is for memory that the Go runtime does not count
	}
	if err := checkPorts(ctx, settings); err != nil {
		return err
	}
	defaultSpread, err := conversion.ReadDefaultSpread(settings.SchedulerConfig)
	if err != nil {
		return fmt.Errorf("setting --scheduler-config (SCHEDULER_CONFIG): %w", err)
	}
	kube, err := openCluster(ctx, settings, log)
	if err != nil {
		return err
	}
	aws, err := openAWS(ctx, settings, kube, log)
	if err != nil {
		return err
	}
	manager, err := newManager(kube, settings, log)
	if err != nil {
		return err
	}
	joinerMetrics, err := metrics.New(ctrlmetrics.Registry, version(), commit())
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	aws.setProofMetrics(joinerMetrics)
	loops := wire(dependencies{
		settings: settings, defaultSpread: defaultSpread, kube: kube, aws: aws, manager: manager, metrics: joinerMetrics, log: log,
	})
	if err := addProbes(manager, loops.Progress); err != nil {
		return err
	}
	if err := loops.Add(ctx, manager); err != nil {
		return fmt.Errorf("start the loops: %w", err)
	}
	log.Info("starting", "version", version(), "cluster", aws.identity.String(), "endpoint", aws.join.Endpoint,
		"kubernetes", kube.version, "leaderElection", settings.LeaderElection)
	if err := manager.Start(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("run: %w", err)
	}
	log.Info("stopped")
	return nil
}

// addProbes makes /readyz fail while a loop makes no progress. The response names the loop; the response of
// /readyz/LOOP also names the item that the loop works on. The process keeps running, because the other loops work, and
// a new process would probably stall at the same item.
func addProbes(manager ctrl.Manager, progress *loop.Progress) error {
	for _, name := range loop.Names() {
		if err := manager.AddReadyzCheck(name, progress.Check(name)); err != nil {
			return fmt.Errorf("set up probes: %w", err)
		}
	}
	return nil
}

// dependencies are what the controllers are created from: settings, clients, the manager, metrics and the log.
type dependencies struct {
	settings      config.Settings
	defaultSpread conversion.DefaultSpread // kube-scheduler's default topology spread constraints
	kube          *kubeSide
	aws           *awsSide
	manager       ctrl.Manager
	metrics       *metrics.Metrics
	log           *slog.Logger
}

// wire creates the controllers, and connects them with the clients and with each other. newDriftCheck and
// newDiagnoser create two of them.
func wire(d dependencies) controller.Controllers {
	var (
		cache  = d.manager.GetClient() // reads from the informers
		ledger = &snapshot.Ledger{}
		reader = &snapshot.Reader{
			Cache: cache, Informers: d.manager.GetCache(), Live: d.manager.GetAPIReader(), Ledger: ledger,
			DefaultSpread: d.defaultSpread, IgnorePreferences: d.settings.PreferencePolicy == "Ignore",
			RelaxMinValues: d.settings.MinValuesPolicy == "BestEffort",
		}
		writer           = &writer.Writer{Client: cache, Ledger: ledger, ClusterUID: d.kube.uid}
		recorder         = &kubeclient.EventWriter{Recorder: d.kube.missing.recorder(d.manager)}
		batch            = loop.NewBatch(d.settings.BatchIdle, d.settings.BatchMax)
		launchBackoff    = &poolhealth.LaunchBackoff{Cache: cache}
		podBackoff       = &poolhealth.PodBackoff{}
		disruptionLock   = &nodestate.DisruptionLock{}
		shortages        = &ec2.Shortages{First: d.settings.ShortageBackoff}
		stopwatch        = d.aws.calls.start(d.metrics)
		pods             = &nodestate.PodWatch{Batch: batch, Metrics: d.metrics}
		plannedEvictions = &nodestate.PlannedEvictions{}
		registrations    = &poolhealth.Registrations{}
		conditionWriter  = &disruptor.DisruptableConditionWriter{Objects: writer, Events: recorder, Metrics: d.metrics}
		pauses           = &loop.Pauses{Switch: kubeclient.PauseSwitch{
			Live:      d.manager.GetAPIReader(),
			Namespace: leaseNamespace(d.settings),
		}, Log: d.log}
	)
	market := &offerings.Catalogs{
		Region: d.aws.identity.Region, EC2: d.aws.ec2, Prices: d.aws.prices, Table: d.aws.table, Cache: cache,
		Shortages: shortages,
		Measured: &offerings.Measured{
			Store: kubeclient.MeasuredStore{Live: d.manager.GetAPIReader(), Writer: cache, Namespace: leaseNamespace(d.settings)},
			Cache: cache, Batch: batch, Log: d.log,
		},
		Options: offerings.MarketOptions{
			ReservedENIs: int64(d.settings.ReservedENIs), MemoryOverhead: d.settings.MemoryOverheadPercent,
			Overlays: d.settings.NodeOverlays,
		},
		Batch: batch, Metrics: d.metrics, Log: d.log,
	}
	requestBuilder := &offerings.RequestBuilder{Market: market, Cluster: d.aws.join, Shortages: shortages}
	var overlays *offerings.OverlayReconciler
	if d.settings.NodeOverlays {
		overlays = &offerings.OverlayReconciler{Cache: cache, Objects: writer, Market: market, Batch: batch, Metrics: d.metrics, Log: d.log}
	}
	loops := controller.Controllers{
		Overlays: overlays,
		Market:   market,
		Pods:     pods,
		Provisioner: &provisioner.Provisioner{
			Batch:            batch,
			Cluster:          reader,
			Market:           market,
			Solve:            provisioner.Plan,
			Claims:           writer,
			Ledger:           ledger,
			LaunchBackoff:    launchBackoff,
			PodBackoff:       podBackoff,
			Stopwatch:        stopwatch,
			PlannedEvictions: plannedEvictions,
			Events:           loop.NewRateLimitedRecorder(recorder),
			Metrics:          d.metrics,
			Log:              d.log,
		},
		Claims: &nodeclaim.Reconciler{
			Cache: cache, Cluster: reader, Objects: writer, Evictor: writer, Binder: writer, Pods: pods,
			Launcher: d.aws.ec2, Instances: d.aws.ec2,
			Offers: requestBuilder, Ledger: ledger, Batch: batch, LaunchBackoff: launchBackoff, PodBackoff: podBackoff,
			Events: recorder, Metrics: d.metrics, Log: d.log,
			Registrations: registrations,
			Replacements: &nodeclaim.Replacements{
				Cache: cache, Cluster: reader, PlannedEvictions: plannedEvictions, Ledger: ledger, Batch: batch, Statics: d.settings.StaticPools,
			},
		},
		Orphans: &nodeclaim.OrphanReconciler{
			Cache: cache, Finder: reader, Cluster: reader, Objects: writer, Evictor: writer, Instances: d.aws.ec2,
			Events: recorder, Metrics: d.metrics, Log: d.log,
		},
		NodeClasses: &nodeclass.Reconciler{
			Cache: cache, Objects: writer, Networks: d.aws.network, Images: d.aws.images, Profiles: d.aws.iam,
			Templates: d.aws.ec2, Versions: d.kube, Offers: requestBuilder, VPC: d.aws.vpcID, Isolated: d.settings.IsolatedVPC,
			Placements: d.aws.ec2,
			Refresh:    min(d.settings.SubnetRefresh, d.settings.AMIRefresh),
			Batch:      batch, Events: recorder, Metrics: d.metrics, Log: d.log,
		},
		Pools: &nodepool.Reconciler{
			Cache: cache, Cluster: reader, Objects: writer, LaunchBackoff: launchBackoff, Market: market, Registrations: registrations,
			Pauses: pauses, Batch: batch,
			Metrics: d.metrics, Log: d.log,
		},
		FleetPrice: &fleetprice.Reporter{
			Cluster: reader, Reader: reader, Market: market, Types: market, Solve: provisioner.BoundedSolver(provisioner.Plan),
			Metrics: d.metrics, Log: d.log,
		},
		Emptiness: &disruptor.Emptiness{
			Cluster: reader,
			Reader:  reader,
			Live:    reader,
			Market:  market,
			Solve:   provisioner.BoundedSolver(provisioner.Plan),
			Objects: writer,
			Pods:    pods,
			Pauses:  pauses,
			Stays:   conditionWriter,
			Lock:    disruptionLock,
			Ledger:  ledger,
			Events:  recorder,
			Metrics: d.metrics,
			Log:     d.log,
		},
		Moves: &disruptor.Disruptor{
			Cluster:       reader,
			Reader:        reader,
			Market:        market,
			Types:         market,
			Solve:         provisioner.BoundedSolver(provisioner.Plan),
			Claims:        writer,
			Ledger:        ledger,
			LaunchBackoff: launchBackoff,
			Objects:       writer,
			Pods:          pods,
			Pauses:        pauses,
			Lock:          disruptionLock,
			Events:        recorder,
			Metrics:       d.metrics,
			Log:           d.log,
			SpotToSpot:    d.settings.SpotToSpot,
			Stays:         conditionWriter,
			History: &disruptor.MoveHistory{
				Store: kubeclient.MoveStore{Live: d.manager.GetAPIReader(), Writer: cache, Namespace: leaseNamespace(d.settings)}, Log: d.log,
			},
		},
		Sweeper: &gc.Collector{
			Cache:         cache,
			Live:          d.manager.GetAPIReader(),
			Cluster:       reader,
			Name:          d.settings.ClusterName,
			Fleet:         d.aws.ec2,
			Instances:     d.aws.ec2,
			Objects:       writer,
			Batch:         batch,
			Breaker:       loop.Breaker{Count: d.settings.BreakerCount, Share: d.settings.BreakerShare},
			LaunchBackoff: launchBackoff,
			Market:        market,
			Events:        recorder,
			Metrics:       d.metrics,
			Log:           d.log,
		},
	}
	loops.Progress = &loop.Progress{Metrics: d.metrics, Log: d.log}
	loops.IneffectiveFields = &nodeclass.IneffectiveFieldWarner{
		Cache: cache, SkipOverlays: d.kube.missing.overlays, Events: recorder, Log: d.log,
		Gates: nodeclass.Gates{Overlays: d.settings.NodeOverlays, Reservations: d.settings.ReservedCapacity, Statics: d.settings.StaticPools},
	}
	if !d.settings.IsolatedVPC {
		loops.Sweeper.Profiles = d.aws.iam
	}
	if d.settings.StaticPools {
		loops.Statics = &nodepool.StaticReconciler{
			Cache:         cache,
			Cluster:       reader,
			Claims:        writer,
			Objects:       writer,
			Ledger:        ledger,
			LaunchBackoff: launchBackoff,
			Events:        recorder,
			Metrics:       d.metrics,
			Log:           d.log,
		}
	}
	if d.settings.NodeRepair {
		loops.Claims.Repair = &nodeclaim.Repair{Cache: cache, Events: recorder}
	}
	if !d.settings.DisableDryRun {
		loops.NodeClasses.DryRunner = d.aws.ec2
	}
	if d.settings.ReservedCapacity {
		loops.NodeClasses.Reservations = d.aws.ec2
	}
	loops.Interruption = &interruptions.Handler{
		Cache:            cache,
		Cluster:          reader,
		Objects:          writer,
		Instances:        d.aws.ec2,
		StatusChecks:     d.aws.ec2,
		Shortages:        shortages,
		PlannedEvictions: plannedEvictions,
		Ledger:           ledger,
		Batch:            batch,
		ClusterUID:       d.kube.uid,
		Account:          accountOf(d.aws.arn),
		Region:           d.aws.unlimited.Region,
		Events:           recorder,
		Metrics:          d.metrics,
		Log:              d.log,
	}
	diagnoses := d.newDiagnoser(loops)
	loops.Diagnoses, loops.Claims.Diagnoses, loops.Moves.Diagnoses, loops.NodeClasses.Diagnoses = diagnoses, diagnoses, diagnoses, diagnoses
	driftCheck := d.newDriftCheck(loops)
	loops.Drift, loops.Claims.Drift, loops.Sweeper.Drift, loops.Moves.Drift, loops.Claims.Authority = driftCheck, driftCheck,
		driftCheck, driftCheck, d.aws.authority
	if d.aws.shifts != nil {
		loops.Shifts = &offerings.ZonalShifts{
			Client:  d.aws.shifts,
			Cache:   cache,
			Market:  market,
			Batch:   batch,
			Events:  recorder,
			Metrics: d.metrics,
			Log:     d.log,
		}
	}
	if d.aws.queue != nil {
		loops.Interruption.Queue = d.aws.queue
	}
	return loops
}

func (d dependencies) newDriftCheck(l controller.Controllers) *driftcheck.Reconciler {
	return &driftcheck.Reconciler{
		Cache:                d.manager.GetClient(),
		Fleet:                d.aws.ec2,
		Market:               l.Market,
		Objects:              &writer.Writer{Client: d.manager.GetClient()},
		Authority:            d.aws.authority,
		ComparesReservations: d.settings.ReservedCapacity,
		Breaker:              loop.Breaker{Count: d.settings.DriftBreakerCount, Share: d.settings.DriftBreakerShare},
		Events:               l.Claims.Events,
		Metrics:              d.metrics,
		Log:                  d.log,
	}
}

// accountOf returns the account ID in an ARN, or "" if the ARN has none.
func accountOf(arn string) string {
	parts := strings.SplitN(arn, ":", 6) // arn:aws:eks:us-east-1:111122223333:cluster/prod
	if len(parts) < 6 {
		return ""
	}
	return parts[4]
}
