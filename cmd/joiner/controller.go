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
		Annotations:        map[string]string{cli.OwnSignals: "true"},
		ValidArgsFunction:  cli.Settings,
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
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return stoppedOr(ctx, runController(ctx, settings, log))
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
	usual, err := conversion.ReadUsualSpread(settings.SchedulerConfig)
	if err != nil {
		return fmt.Errorf("setting --scheduler-config (SCHEDULER_CONFIG): %w", err)
	}
	home, err := openCluster(ctx, settings, log)
	if err != nil {
		return err
	}
	away, err := openAWS(ctx, settings, home, log)
	if err != nil {
		return err
	}
	m, err := newManager(home, settings, log)
	if err != nil {
		return err
	}
	numbers, err := metrics.New(ctrlmetrics.Registry, version(), commit())
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	away.setProofMetrics(numbers)
	loops := wire(parts{settings: settings, usual: usual, home: home, away: away, manager: m, metrics: numbers, log: log})
	if err := addProbes(m, loops.Progress); err != nil {
		return err
	}
	if err := loops.Add(ctx, m); err != nil {
		return fmt.Errorf("start the loops: %w", err)
	}
	log.Info("starting", "version", version(), "cluster", away.identity.String(), "endpoint", away.join.Endpoint,
		"kubernetes", home.version, "leaderElection", settings.LeaderElection)
	if err := m.Start(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("run: %w", err)
	}
	log.Info("stopped")
	return nil
}

// addProbes makes /readyz fail while a loop makes no progress. The response names the loop, that of /readyz/LOOP also
// the item that the loop works on. The process keeps running, because the other loops work, and a new process would
// probably stall at the same item.
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
	settings config.Settings
	usual    conversion.UsualSpread // kube-scheduler's default topology spread constraints
	home     *home
	away     *away
	manager  ctrl.Manager
	metrics  *metrics.Metrics
	log      *slog.Logger
}

// wire creates the controllers, except those of drift and diagnoses, and connects all of them with the clients and with
// each other.
func wire(p parts) controller.Controllers {
	var (
		cache  = p.manager.GetClient() // reads from the informers
		ledger = &snapshot.Ledger{}
		reader = &snapshot.Reader{
			Cache: cache, Informers: p.manager.GetCache(), Live: p.manager.GetAPIReader(), Ledger: ledger,
			Usual: p.usual, IgnorePreferences: p.settings.PreferencePolicy == "Ignore",
			RelaxMinValues: p.settings.MinValuesPolicy == "BestEffort",
		}
		writer           = &writer.Writer{Client: cache, Ledger: ledger, ClusterUID: p.home.uid}
		recorder         = &kubeclient.Teller{Recorder: p.home.lacks.recorder(p.manager)}
		batch            = loop.NewBatch(p.settings.BatchIdle, p.settings.BatchMax)
		launchBackoff    = &poolhealth.LaunchBackoff{Cache: cache}
		podBackoff       = &poolhealth.PodBackoff{}
		disruptionLock   = &nodestate.DisruptionLock{}
		shortages        = &ec2.Shortages{First: p.settings.ShortageBackoff}
		watch            = p.away.calls.stopwatch(p.metrics)
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
		Region: p.away.identity.Region, EC2: p.away.ec2, Prices: p.away.prices, Table: p.away.table, Cache: cache,
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
	requestBuilder := &offerings.RequestBuilder{Market: market, Cluster: p.away.join, Shortages: shortages}
	var overlays *offerings.OverlayReconciler
	if p.settings.NodeOverlays {
		overlays = &offerings.OverlayReconciler{Cache: cache, Objects: writer, Market: market, Batch: batch, Metrics: p.metrics, Log: p.log}
	}
	loops := controller.Controllers{
		Overlays: overlays,
		Market:   market,
		Pods:     pods,
		Provisioner: &provisioner.Provisioner{
			Batch:      batch,
			Cluster:    reader,
			Market:     market,
			Solve:      provisioner.Plan,
			Claims:     writer,
			Ledger:     ledger,
			Holds:      launchBackoff,
			PodBackoff: podBackoff,
			Watch:      watch,
			Departures: plannedEvictions,
			Events:     loop.NewRateLimitedRecorder(recorder),
			Metrics:    p.metrics,
			Log:        p.log,
		},
		Claims: &nodeclaim.Reconciler{
			Cache: cache, Cluster: reader, Objects: writer, Evictor: writer, Launcher: p.away.ec2, Machines: p.away.ec2,
			Offers: requestBuilder, Ledger: ledger, Batch: batch, Holds: launchBackoff, PodBackoff: podBackoff,
			Events: recorder, Metrics: p.metrics, Log: p.log,
			Registrations: registrations,
			Replacements: &nodeclaim.Replacements{
				Cache: cache, Cluster: reader, Departures: plannedEvictions, Ledger: ledger, Batch: batch, Statics: p.settings.StaticPools,
			},
		},
		Orphans: &nodeclaim.OrphanReconciler{
			Cache: cache, Finder: reader, Cluster: reader, Objects: writer, Evictor: writer, Machines: p.away.ec2,
			Events: recorder, Metrics: p.metrics, Log: p.log,
		},
		NodeClasses: &nodeclass.Reconciler{
			Cache: cache, Objects: writer, Networks: p.away.network, Images: p.away.images, Profiles: p.away.iam,
			Templates: p.away.ec2, Versions: p.home, Offers: requestBuilder, VPC: p.away.vpc, Isolated: p.settings.IsolatedVPC,
			Placements: p.away.ec2,
			Refresh:    min(p.settings.SubnetRefresh, p.settings.AMIRefresh),
			Batch:      batch, Events: recorder, Metrics: p.metrics, Log: p.log,
		},
		Pools: &nodepool.Reconciler{
			Cache: cache, Cluster: reader, Objects: writer, Holds: launchBackoff, Market: market, Registrations: registrations,
			Pauses: pauses, Batch: batch,
			Metrics: p.metrics, Log: p.log,
		},
		Emptiness: &disruptor.Emptiness{
			Cluster: reader, Reader: reader, Live: reader, Market: market, Solve: provisioner.Bounded(provisioner.Plan), Objects: writer, Pods: pods,
			Pauses: pauses, Staying: conditionWriter, Gate: disruptionLock, Ledger: ledger, Events: recorder, Metrics: p.metrics, Log: p.log,
		},
		Moves: &disruptor.Disruptor{
			Cluster:    reader,
			Reader:     reader,
			Market:     market,
			Types:      market,
			Solve:      provisioner.Bounded(provisioner.Plan),
			Claims:     writer,
			Ledger:     ledger,
			Holds:      launchBackoff,
			Objects:    writer,
			Pods:       pods,
			Pauses:     pauses,
			Gate:       disruptionLock,
			Batch:      batch,
			Events:     recorder,
			Metrics:    p.metrics,
			Log:        p.log,
			SpotToSpot: p.settings.SpotToSpot,
			Staying:    conditionWriter,
			History: &disruptor.MoveHistory{
				Store: kubeclient.TripStore{Live: p.manager.GetAPIReader(), Writer: cache, Namespace: leaseNamespace(p.settings)}, Log: p.log,
			},
		},
		Sweeper: &gc.Collector{
			Cache:    cache,
			Live:     p.manager.GetAPIReader(),
			Cluster:  reader,
			Name:     p.settings.ClusterName,
			Fleet:    p.away.ec2,
			Machines: p.away.ec2,
			Objects:  writer,
			Batch:    batch,
			Breaker:  loop.Breaker{Count: p.settings.BreakerCount, Share: p.settings.BreakerShare},
			Holds:    launchBackoff,
			Market:   market,
			Events:   recorder,
			Metrics:  p.metrics,
			Log:      p.log,
		},
	}
	loops.Progress = &loop.Progress{Metrics: p.metrics, Log: p.log}
	loops.Honour = &nodeclass.IneffectiveFieldWarner{
		Cache: cache, Unseen: p.home.lacks.overlays, Events: recorder, Log: p.log,
		Gates: nodeclass.Gates{Overlays: p.settings.NodeOverlays, Reservations: p.settings.ReservedCapacity, Statics: p.settings.StaticPools},
	}
	if !p.settings.IsolatedVPC {
		loops.Sweeper.Profiles = p.away.iam
	}
	if p.settings.StaticPools {
		loops.Statics = &nodepool.StaticReconciler{
			Cache:   cache,
			Cluster: reader,
			Claims:  writer,
			Objects: writer,
			Ledger:  ledger,
			Holds:   launchBackoff,
			Events:  recorder,
			Metrics: p.metrics,
			Log:     p.log,
		}
	}
	if p.settings.NodeRepair {
		loops.Claims.Repair = &nodeclaim.Repair{Cache: cache, Events: recorder}
	}
	if !p.settings.DisableDryRun {
		loops.NodeClasses.Tester = p.away.ec2
	}
	if p.settings.ReservedCapacity {
		loops.NodeClasses.Reservations = p.away.ec2
	}
	loops.Interruption = &interruptions.Handler{
		Cache:      cache,
		Cluster:    reader,
		Objects:    writer,
		Machines:   p.away.ec2,
		Troubles:   p.away.ec2,
		Shortages:  shortages,
		Departures: plannedEvictions,
		Ledger:     ledger,
		Batch:      batch,
		ClusterUID: p.home.uid,
		Account:    accountOf(p.away.arn),
		Region:     p.away.plain.Region,
		Events:     recorder,
		Metrics:    p.metrics,
		Log:        p.log,
	}
	diagnoses := p.diagnoses(loops)
	loops.Diagnoses, loops.Claims.Diagnoses, loops.Moves.Diagnoses, loops.NodeClasses.Diagnoses = diagnoses, diagnoses, diagnoses, diagnoses
	driftCheck := p.drift(loops)
	loops.Drift, loops.Claims.Drift, loops.Sweeper.Drift, loops.Moves.Drift, loops.Claims.Authority = driftCheck, driftCheck,
		driftCheck, driftCheck, p.away.authority
	if p.away.shifts != nil {
		loops.Shifts = &offerings.ZonalShifts{
			Client:  p.away.shifts,
			Cache:   cache,
			Market:  market,
			Batch:   batch,
			Events:  recorder,
			Metrics: p.metrics,
			Log:     p.log,
		}
	}
	if p.away.queue != nil {
		loops.Interruption.Queue = p.away.queue
	}
	return loops
}

// drift creates the loop that detects drifted nodes.
func (p parts) drift(l controller.Controllers) *driftcheck.Reconciler {
	return &driftcheck.Reconciler{
		Cache:     p.manager.GetClient(),
		Fleet:     p.away.ec2,
		Market:    l.Market,
		Objects:   &writer.Writer{Client: p.manager.GetClient()},
		Authority: p.away.authority,
		Reserves:  p.settings.ReservedCapacity,
		Breaker:   loop.Breaker{Count: p.settings.DriftBreakerCount, Share: p.settings.DriftBreakerShare},
		Events:    l.Claims.Events,
		Metrics:   p.metrics,
		Log:       p.log,
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
