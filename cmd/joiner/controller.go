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

// newController returns the command that runs the autoscaler.
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
				log.Warn("this setting has no effect", "setting", n.Setting, "value", n.Value, "cause", n.Says)
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
	if err := tryPorts(ctx, settings); err != nil {
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
	m, err := newManager(kube, settings, log)
	if err != nil {
		return err
	}
	joinerMetrics, err := metrics.New(ctrlmetrics.Registry, version(), commit())
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	aws.setProofMetrics(joinerMetrics)
	loops := wire(parts{
		settings: settings, defaultSpread: defaultSpread, kube: kube, aws: aws, manager: m, metrics: joinerMetrics, log: log,
	})
	if err := addProbes(m, loops.Progress); err != nil {
		return err
	}
	if err := loops.Add(ctx, m); err != nil {
		return fmt.Errorf("start the loops: %w", err)
	}
	log.Info("starting", "version", version(), "cluster", aws.identity.String(), "endpoint", aws.join.Endpoint,
		"kubernetes", kube.version, "leaderElection", settings.LeaderElection)
	if err := m.Start(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("run: %w", err)
	}
	log.Info("stopped")
	return nil
}

// addProbes makes /readyz fail while a loop makes no progress. The response names the loop; the response of /readyz/LOOP
// also names the item that the loop works on. The process keeps running, because the other loops work, and a new process
// would probably stall at the same item.
func addProbes(m ctrl.Manager, progress *loop.Progress) error {
	for _, name := range loop.Names() {
		if err := m.AddReadyzCheck(name, progress.Check(name)); err != nil {
			return fmt.Errorf("set up probes: %w", err)
		}
	}
	return nil
}

// parts are the dependencies of the controllers.
type parts struct {
	settings      config.Settings
	defaultSpread conversion.DefaultSpread // kube-scheduler's default topology spread constraints
	kube          *kubeSide
	aws           *awsSide
	manager       ctrl.Manager
	metrics       *metrics.Metrics
	log           *slog.Logger
}

// wire creates the controllers, and connects them with the clients and with each other. It creates those of drift and
// diagnoses with the methods drift and diagnoses.
func wire(p parts) controller.Controllers {
	var (
		cache  = p.manager.GetClient() // reads from the informers
		ledger = &snapshot.Ledger{}
		reader = &snapshot.Reader{
			Cache: cache, Informers: p.manager.GetCache(), Live: p.manager.GetAPIReader(), Ledger: ledger,
			DefaultSpread: p.defaultSpread, IgnorePreferences: p.settings.PreferencePolicy == "Ignore",
			RelaxMinValues: p.settings.MinValuesPolicy == "BestEffort",
		}
		writer           = &writer.Writer{Client: cache, Ledger: ledger, ClusterUID: p.kube.uid}
		recorder         = &kubeclient.EventWriter{Recorder: p.kube.missing.recorder(p.manager)}
		batch            = loop.NewBatch(p.settings.BatchIdle, p.settings.BatchMax)
		launchBackoff    = &poolhealth.LaunchBackoff{Cache: cache}
		podBackoff       = &poolhealth.PodBackoff{}
		disruptionLock   = &nodestate.DisruptionLock{}
		shortages        = &ec2.Shortages{First: p.settings.ShortageBackoff}
		stopwatch        = p.aws.calls.start(p.metrics)
		pods             = &nodestate.PodWatch{Batch: batch, Metrics: p.metrics}
		plannedEvictions = &nodestate.PlannedEvictions{}
		registrations    = &poolhealth.Registrations{}
		conditionWriter  = &disruptor.DisruptableConditionWriter{Objects: writer, Events: recorder, Metrics: p.metrics}
		pauses           = &loop.Pauses{Switch: kubeclient.PauseSwitch{
			Live:      p.manager.GetAPIReader(),
			Namespace: leaseNamespace(p.settings),
		}, Log: p.log}
	)
	market := &offerings.Catalogs{
		Region: p.aws.identity.Region, EC2: p.aws.ec2, Prices: p.aws.prices, Table: p.aws.table, Cache: cache,
		Shortages: shortages,
		Measured: &offerings.Measured{
			Store: kubeclient.MeasuredStore{Live: p.manager.GetAPIReader(), Writer: cache, Namespace: leaseNamespace(p.settings)},
			Cache: cache, Batch: batch, Log: p.log,
		},
		Options: offerings.MarketOptions{
			ReservedENIs: int64(p.settings.ReservedENIs), MemoryOverhead: p.settings.MemoryOverheadPercent,
			Overlays: p.settings.NodeOverlays,
		},
		Batch: batch, Metrics: p.metrics, Log: p.log,
	}
	requestBuilder := &offerings.RequestBuilder{Market: market, Cluster: p.aws.join, Shortages: shortages}
	var overlays *offerings.OverlayReconciler
	if p.settings.NodeOverlays {
		overlays = &offerings.OverlayReconciler{Cache: cache, Objects: writer, Market: market, Batch: batch, Metrics: p.metrics, Log: p.log}
	}
	loops := controller.Controllers{
		Overlays: overlays,
		Market:   market,
		Pods:     pods,
		Provisioner: &provisioner.Provisioner{
			Batch:         batch,
			Cluster:       reader,
			Market:        market,
			Solve:         provisioner.Plan,
			Claims:        writer,
			Ledger:        ledger,
			LaunchBackoff: launchBackoff,
			PodBackoff:    podBackoff,
			Stopwatch:     stopwatch,
			Departures:    plannedEvictions,
			Events:        loop.NewRateLimitedRecorder(recorder),
			Metrics:       p.metrics,
			Log:           p.log,
		},
		Claims: &nodeclaim.Reconciler{
			Cache: cache, Cluster: reader, Objects: writer, Evictor: writer, Nominator: writer, Pods: pods,
			Launcher: p.aws.ec2, Instances: p.aws.ec2,
			Offers: requestBuilder, Ledger: ledger, Batch: batch, LaunchBackoff: launchBackoff, PodBackoff: podBackoff,
			Events: recorder, Metrics: p.metrics, Log: p.log,
			Registrations: registrations,
			Replacements: &nodeclaim.Replacements{
				Cache: cache, Cluster: reader, Departures: plannedEvictions, Ledger: ledger, Batch: batch, Statics: p.settings.StaticPools,
			},
		},
		Orphans: &nodeclaim.OrphanReconciler{
			Cache: cache, Finder: reader, Cluster: reader, Objects: writer, Evictor: writer, Instances: p.aws.ec2,
			Events: recorder, Metrics: p.metrics, Log: p.log,
		},
		NodeClasses: &nodeclass.Reconciler{
			Cache: cache, Objects: writer, Networks: p.aws.network, Images: p.aws.images, Profiles: p.aws.iam,
			Templates: p.aws.ec2, Versions: p.kube, Offers: requestBuilder, VPC: p.aws.vpc, Isolated: p.settings.IsolatedVPC,
			Placements: p.aws.ec2,
			Refresh:    min(p.settings.SubnetRefresh, p.settings.AMIRefresh),
			Batch:      batch, Events: recorder, Metrics: p.metrics, Log: p.log,
		},
		Pools: &nodepool.Reconciler{
			Cache: cache, Cluster: reader, Objects: writer, LaunchBackoff: launchBackoff, Market: market, Registrations: registrations,
			Pauses: pauses, Batch: batch,
			Metrics: p.metrics, Log: p.log,
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
			Staying: conditionWriter,
			Lock:    disruptionLock,
			Ledger:  ledger,
			Events:  recorder,
			Metrics: p.metrics,
			Log:     p.log,
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
			Batch:         batch,
			Events:        recorder,
			Metrics:       p.metrics,
			Log:           p.log,
			SpotToSpot:    p.settings.SpotToSpot,
			Staying:       conditionWriter,
			History: &disruptor.MoveHistory{
				Store: kubeclient.TripStore{Live: p.manager.GetAPIReader(), Writer: cache, Namespace: leaseNamespace(p.settings)}, Log: p.log,
			},
		},
		Sweeper: &gc.Collector{
			Cache:         cache,
			Live:          p.manager.GetAPIReader(),
			Cluster:       reader,
			Name:          p.settings.ClusterName,
			Fleet:         p.aws.ec2,
			Instances:     p.aws.ec2,
			Objects:       writer,
			Batch:         batch,
			Breaker:       loop.Breaker{Count: p.settings.BreakerCount, Share: p.settings.BreakerShare},
			LaunchBackoff: launchBackoff,
			Market:        market,
			Events:        recorder,
			Metrics:       p.metrics,
			Log:           p.log,
		},
	}
	loops.Progress = &loop.Progress{Metrics: p.metrics, Log: p.log}
	loops.IneffectiveFields = &nodeclass.IneffectiveFieldWarner{
		Cache: cache, SkipOverlays: p.kube.missing.overlays, Events: recorder, Log: p.log,
		Gates: nodeclass.Gates{Overlays: p.settings.NodeOverlays, Reservations: p.settings.ReservedCapacity, Statics: p.settings.StaticPools},
	}
	if !p.settings.IsolatedVPC {
		loops.Sweeper.Profiles = p.aws.iam
	}
	if p.settings.StaticPools {
		loops.Statics = &nodepool.StaticReconciler{
			Cache:         cache,
			Cluster:       reader,
			Claims:        writer,
			Objects:       writer,
			Ledger:        ledger,
			LaunchBackoff: launchBackoff,
			Events:        recorder,
			Metrics:       p.metrics,
			Log:           p.log,
		}
	}
	if p.settings.NodeRepair {
		loops.Claims.Repair = &nodeclaim.Repair{Cache: cache, Events: recorder}
	}
	if !p.settings.DisableDryRun {
		loops.NodeClasses.Tester = p.aws.ec2
	}
	if p.settings.ReservedCapacity {
		loops.NodeClasses.Reservations = p.aws.ec2
	}
	loops.Interruption = &interruptions.Handler{
		Cache:      cache,
		Cluster:    reader,
		Objects:    writer,
		Instances:  p.aws.ec2,
		Troubles:   p.aws.ec2,
		Shortages:  shortages,
		Departures: plannedEvictions,
		Ledger:     ledger,
		Batch:      batch,
		ClusterUID: p.kube.uid,
		Account:    accountOf(p.aws.arn),
		Region:     p.aws.plain.Region,
		Events:     recorder,
		Metrics:    p.metrics,
		Log:        p.log,
	}
	diagnoses := p.diagnoses(loops)
	loops.Diagnoses, loops.Claims.Diagnoses, loops.Moves.Diagnoses, loops.NodeClasses.Diagnoses = diagnoses, diagnoses, diagnoses, diagnoses
	driftCheck := p.drift(loops)
	loops.Drift, loops.Claims.Drift, loops.Sweeper.Drift, loops.Moves.Drift, loops.Claims.Authority = driftCheck, driftCheck,
		driftCheck, driftCheck, p.aws.authority
	if p.aws.shifts != nil {
		loops.Shifts = &offerings.ZonalShifts{
			Client:  p.aws.shifts,
			Cache:   cache,
			Market:  market,
			Batch:   batch,
			Events:  recorder,
			Metrics: p.metrics,
			Log:     p.log,
		}
	}
	if p.aws.queue != nil {
		loops.Interruption.Queue = p.aws.queue
	}
	return loops
}

// drift creates the loop that detects drifted nodes.
func (p parts) drift(l controller.Controllers) *driftcheck.Reconciler {
	return &driftcheck.Reconciler{
		Cache:                p.manager.GetClient(),
		Fleet:                p.aws.ec2,
		Market:               l.Market,
		Objects:              &writer.Writer{Client: p.manager.GetClient()},
		Authority:            p.aws.authority,
		ComparesReservations: p.settings.ReservedCapacity,
		Breaker:              loop.Breaker{Count: p.settings.DriftBreakerCount, Share: p.settings.DriftBreakerShare},
		Events:               l.Claims.Events,
		Metrics:              p.metrics,
		Log:                  p.log,
	}
}

// accountOf returns the account of an ARN; empty if it has none.
func accountOf(arn string) string {
	parts := strings.SplitN(arn, ":", 6) // arn:aws:eks:us-east-1:111122223333:cluster/prod
	if len(parts) < 6 {
		return ""
	}
	return parts[4]
}
