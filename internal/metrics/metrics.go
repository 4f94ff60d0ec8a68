// Package metrics defines the Prometheus metrics of the controller: name, labels and help of each.
//
// In: observations of the controllers.
// Out: Prometheus metrics, with Karpenter's names if the meaning is the same.
// Never: a decision that is based on a metric, or a label whose number of values grows with the number of pods.
package metrics

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of the controller. The comment of each metric lists its labels, in the order that
// WithLabelValues expects. All methods of the fields may be called concurrently.
type Metrics struct {
	Scheduling
	Claims
	Nodes
	Pods
	Pools
	Fleet Fleet // the price of the nodes
	AWS
	Interruptions
	Moves
	Extra
}

// Scheduling has the metrics of plans.
type Scheduling struct {
	// Duration is the duration of one plan in seconds, including the snapshot, by controller.
	Duration *prometheus.HistogramVec
	// Unschedulable is the number of unplaced pods of the last plan, by controller.
	Unschedulable *prometheus.GaugeVec
	// Ignored is the number of pending pods that cannot be planned.
	Ignored prometheus.Gauge
	// QueueDepth is the number of pods of the running plan, by controller.
	QueueDepth *prometheus.GaugeVec
}

// Claims has the metrics of NodeClaims.
type Claims struct {
	Created     *prometheus.CounterVec   // reason, nodepool, min_values_relaxed
	Terminated  *prometheus.CounterVec   // nodepool, capacity_type, zone
	Disrupted   *prometheus.CounterVec   // reason, nodepool, capacity_type, consolidation_policy, termination_mode
	Termination *prometheus.HistogramVec // seconds from deletion to removal, by nodepool
	Unhealthy   *prometheus.CounterVec   // condition, nodepool, capacity_type, image_id
	InstanceEnd *prometheus.HistogramVec // seconds from TerminateInstances until the instance is terminated, by nodepool
}

// Nodes has the metrics of Nodes.
type Nodes struct {
	Created     *prometheus.CounterVec   // nodepool
	Terminated  *prometheus.CounterVec   // nodepool, zone
	Drained     *prometheus.CounterVec   // nodepool
	Termination *prometheus.SummaryVec   // seconds from deletion to removal, by nodepool
	Lifetime    *prometheus.HistogramVec // seconds from creation to removal, by nodepool
	Count       prometheus.Gauge         // nodes in the last snapshot
}

// Pods has the metrics of pods.
type Pods struct {
	Bound     prometheus.Histogram   // seconds from creation to binding
	Planned   *prometheus.CounterVec // node (planned, other): bound pods for which a node was launched
	Startup   prometheus.Summary     // seconds from creation to running
	Evictions *prometheus.CounterVec // code
	Drained   *prometheus.CounterVec // reason
	Displaced *prometheus.CounterVec // same labels as Claims.Disrupted
}

// Values of the label node of Pods.Planned.
const (
	PlannedNode = "planned"
	OtherNode   = "other"
)

// Pools has the metrics of NodePools.
type Pools struct {
	Limit   *prometheus.GaugeVec // resource_type, nodepool
	Usage   *prometheus.GaugeVec // resource_type, nodepool
	Allowed *prometheus.GaugeVec // nodepool, reason: nodes that may be disrupted now
	Taken   *prometheus.GaugeVec // nodepool, reason: nodes that count against budgets
	Cost    *prometheus.GaugeVec // nodepool: dollars an hour
}

// Fleet has the metrics that compare the nodes with a plan for the same pods. All are dollars per hour.
type Fleet struct {
	Price prometheus.Gauge // price of the nodes
	Plan  prometheus.Gauge // price of a plan that launches nodes for these pods anew
	Bound prometheus.Gauge // lower bound of the price of nodes for these pods
}

// Moves has the metrics of moves: nodes that are replaced, or removed without a replacement.
type Moves struct {
	Started      *prometheus.CounterVec   // reason
	Ended        *prometheus.CounterVec   // reason, outcome: done, undone
	MoveDuration *prometheus.HistogramVec // reason: seconds from the start to the first deletion
	Saving       *prometheus.CounterVec   // kind: promised, realised; dollars per hour
	ScanDuration prometheus.Histogram     // seconds of one scan of all nodes for moves that save money
	Active       prometheus.Gauge         // moves that are in progress

	Decisions     *prometheus.CounterVec   // decision (delete, replace), reason, consolidation_type (empty, single, multi; "" for drift)
	PoolDecisions *prometheus.CounterVec   // nodepool, then the labels of Decisions
	Failed        *prometheus.CounterVec   // same labels as Decisions: moves that were undone
	Eligible      *prometheus.GaugeVec     // reason: nodes that may be disrupted, ignoring budgets
	Evaluation    *prometheus.HistogramVec // reason, consolidation_type: seconds of one scan for disruptable nodes
	Invalid       *prometheus.CounterVec   // consolidation_type: candidates that failed revalidation
	Timeouts      *prometheus.CounterVec   // consolidation_type: always 0, since no scan has a timeout
	Weighed       *prometheus.CounterVec   // decision (approved, rejected), nodepool, policy: moves that would save money
	Score         *prometheus.HistogramVec // same labels as Weighed: share of the price saved divided by share of the cost of moving pods

	Staying   *prometheus.GaugeVec // cause: nodes that are not disrupted
	Deadlocks *prometheus.GaugeVec // kind: PodDisruptionBudgets that block the drain of nodes until a user changes an object
}

// AWS has the metrics of calls to AWS.
type AWS struct {
	Requests        *prometheus.CounterVec   // service, action, status_code
	Duration        *prometheus.HistogramVec // service, action: seconds of one request, including retries
	Method          *prometheus.HistogramVec // controller, method, provider: seconds of one operation
	MethodErrors    *prometheus.CounterVec   // controller, method, provider, error
	LaunchFailures  *prometheus.CounterVec   // zone, capacity_type, reason
	TerminateErrors prometheus.Counter       // no labels: instances that could not be terminated
}

// Interruptions has the metrics of the interruption queue.
type Interruptions struct {
	Received      *prometheus.CounterVec // message_type
	Deleted       prometheus.Counter     // no labels: messages deleted from the queue
	QueueDuration prometheus.Histogram   // seconds from the sending of a message to its deletion
	Failing       *prometheus.CounterVec // category: instance_status, system_status, event_status
	// Dropped counts messages that were deleted without being processed, by cause: too_large, unreadable, no_subject,
	// unknown_kind, other_account, other_region, capacity_type, no_nodeclaim. Karpenter has no such metric.
	Dropped *prometheus.CounterVec
	// Left counts messages that were returned to the queue because they are not about NodeClaims of this cluster, by
	// owner of the instance. Owners are `namesake` (a cluster with the same name), `nobody` (no cluster), `ours` (no
	// NodeClaim yet) and `unknown`. Karpenter has no such metric.
	Left *prometheus.CounterVec
}

// Extra has the other metrics that Karpenter does not have.
type Extra struct {
	// Stage is the duration in seconds of a stage between a pending pod and CreateFleet, by stage: a Stage constant.
	Stage *prometheus.HistogramVec
	// Join is the time in seconds from the creation of a NodeClaim to a step, by step (launched, registered,
	// initialized) and nodepool.
	Join *prometheus.HistogramVec
	// JoinFailures counts NodeClaims whose instance did not join in time, by check ("AUTH-5"; unknown if no cause was
	// found) and nodepool.
	JoinFailures *prometheus.CounterVec
	// Diagnoses counts collections of evidence about nodes that do not join.
	Diagnoses prometheus.Counter
	// Refused is the number of unplaced pods of the last plan, by the code of their first reason.
	Refused *prometheus.GaugeVec
	// Costly is the number of pods that wait for a separate plan, because the work for their scheduling rules exceeds
	// their share of a plan's work limit.
	Costly prometheus.Gauge
	// StaleClaims counts planned NodeClaims that were not created because the cluster changed during planning, by
	// cause: pods_gone, pods_changed, nodepool_changed, limit, node_came.
	StaleClaims *prometheus.CounterVec
	// LoopBusy is the number of seconds that a loop has worked on its current item, by loop; 0 while the loop is idle.
	LoopBusy *prometheus.GaugeVec
	// LoopStalled is 1 while a loop makes no progress, by loop.
	LoopStalled *prometheus.GaugeVec
	// Shortages is the number of offerings that are skipped because of insufficient capacity.
	Shortages prometheus.Gauge
	// PricesAt is when the current prices were read from AWS, in seconds since 1970, by capacity type; 0 if never.
	PricesAt *prometheus.GaugeVec
	// MarketBuilds counts rebuilds of the table of instance types and prices.
	MarketBuilds prometheus.Counter
	// Swept counts orphans that garbage collection removed, by kind: instance, nodeclaim, launch_template,
	// instance_profile.
	Swept *prometheus.CounterVec
	// BreakerOpen is 1 while garbage collection removes nothing because there are too many orphans, by kind.
	BreakerOpen *prometheus.GaugeVec
	// ByCapacityType is the number of NodeClaims that are not being deleted, by nodepool and capacity_type.
	ByCapacityType *prometheus.GaugeVec
	// Drifted is the number of NodeClaims that differ from their specification, by nodepool, reason and state. States
	// are `drifted`, `observed` (the NodePool only observes drift) and `ignored` (the NodePool ignores the field).
	Drifted *prometheus.GaugeVec
	// DriftHeld is 1 while drifted nodes of a NodePool are not replaced, by nodepool and reason.
	DriftHeld *prometheus.GaugeVec
	// SameName is the number of instances with the name of this cluster and the UID of another cluster.
	SameName prometheus.Gauge
	// NodeMismatches counts Nodes with the provider ID of a NodeClaim's instance that are not the Node of that
	// instance, by nodepool.
	NodeMismatches *prometheus.CounterVec
	// Untagged is the number of instances of deleted NodeClaims that lost their tags. The controller does not terminate
	// an instance without its tags.
	Untagged prometheus.Gauge
	// Proven is 1 if a mark proves that the EKS cluster with the configured name is the controller's own, else 0, by
	// mark. A mark is for example the API server's endpoint.
	Proven *prometheus.GaugeVec
	// ForeignTerminations counts instances of NodeClaims that neither Joiner nor AWS terminated, by nodepool and how.
	// Values of the label how are `call` (another client called TerminateInstances), `within` (a process on the
	// instance shut it down) and `unknown`.
	ForeignTerminations *prometheus.CounterVec
	// Failures counts errors of the loops, by loop and next (step): `Retry`, `Tell` (report the error to the user) or
	// `Reject` (the API server rejects the object).
	Failures *prometheus.CounterVec
	// CallWait is how long a call to EC2 waited for the rate limit, in seconds, by action. Each retry is a separate
	// observation.
	CallWait *prometheus.HistogramVec
	// CallsThrottled counts calls that EC2 throttled, by action. Each throttled retry counts too.
	CallsThrottled *prometheus.CounterVec
}

// Stages from a pending pod to CreateFleet. StageBatch is an intended wait. StageAfterBatch is the sum of the stages after
// StageBatch.
const (
	StageBatch      = "batch"  // the first pod of a batch was seen → the batch was closed
	StagePlan       = "plan"   // batch closed → plan made
	StageClaim      = "claim"  // plan made → NodeClaim created
	StageLaunch     = "launch" // NodeClaim created → CreateFleet called
	StageAfterBatch = "beyond" // batch closed → CreateFleet called
)

// New registers the metrics and returns them. version and commit are those of the binary. It returns an error if the
// registry already has one of the metrics.
func New(registry prometheus.Registerer, version, commit string) (*Metrics, error) {
	r := &maker{registry: registry}
	m := &Metrics{
		Scheduling: r.scheduling(), Claims: r.claims(), Nodes: r.nodes(), Pods: r.pods(),
		Pools: r.pools(), Fleet: r.fleet(), AWS: r.aws(), Interruptions: r.interruptions(), Moves: r.moves(), Extra: r.extra(),
	}
	r.gauges("karpenter_build_info", "Always 1; the labels have the versions of the running binary.", "version",
		"goversion", "goarch", "commit").
		WithLabelValues(version, runtime.Version(), runtime.GOARCH, commit).Set(1)
	for _, node := range []string{PlannedNode, OtherNode} {
		m.Planned.WithLabelValues(node) // a rate needs the 0 before the first pod
	}
	return m, r.err
}

func (r *maker) scheduling() Scheduling {
	return Scheduling{
		Duration: r.histograms("karpenter_scheduler_scheduling_duration_seconds",
			"Duration of one plan, snapshot included.", durations(), "controller"),
		Unschedulable: r.gauges("karpenter_scheduler_unschedulable_pods_count", "Unplaced pods of the last plan.", "controller"),
		Ignored:       r.gauge("karpenter_scheduler_ignored_pods_count", "Pending pods that cannot be planned."),
		QueueDepth:    r.gauges("karpenter_scheduler_queue_depth", "Pods that the running plan considers.", "controller"),
	}
}

func (r *maker) claims() Claims {
	return Claims{
		Created:    r.counters("karpenter_nodeclaims_created_total", "NodeClaims created.", "reason", "nodepool", "min_values_relaxed"),
		Terminated: r.counters("karpenter_nodeclaims_terminated_total", "NodeClaims that were removed.", "nodepool", "capacity_type", "zone"),
		Disrupted: r.counters("karpenter_nodeclaims_disrupted_total", "NodeClaims that were deleted by the controller.",
			"reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"),
		Unhealthy: r.counters("karpenter_nodeclaims_unhealthy_disrupted_total",
			"NodeClaims that were deleted because their node was unhealthy for too long.", "condition", "nodepool", "capacity_type", "image_id"),
		Termination: r.histograms("karpenter_nodeclaims_termination_duration_seconds",
			"From the deletion of a NodeClaim to its removal.", powers(2048), "nodepool"),
		InstanceEnd: r.histograms("karpenter_nodeclaims_instance_termination_duration_seconds",
			"From the call of TerminateInstances until the instance is terminated.", powers(1024), "nodepool"),
	}
}

func (r *maker) nodes() Nodes {
	lifetimes := []float64{900, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 432000, 864000, 1296000, 2592000} // 15 minutes to 30 days
	return Nodes{
		Created:     r.counters("karpenter_nodes_created_total", "Nodes that have registered.", "nodepool"),
		Terminated:  r.counters("karpenter_nodes_terminated_total", "Nodes that were removed.", "nodepool", "zone"),
		Drained:     r.counters("karpenter_nodes_drained_total", "Nodes that were drained before they were removed.", "nodepool"),
		Termination: r.summaries("karpenter_nodes_termination_duration_seconds", "From the deletion of a Node to its removal.", "nodepool"),
		Lifetime: r.histograms("karpenter_nodes_lifetime_duration_seconds", "From the creation of a Node to its removal.",
			lifetimes, "nodepool"),
		Count: r.gauge("karpenter_cluster_state_node_count", "Nodes in the last snapshot, including NodeClaims that have not joined."),
	}
}

func (r *maker) pods() Pods {
	return Pods{
		Bound: r.histogram("karpenter_pods_bound_duration_seconds", "From the creation of a pod until it is bound.", durations()),
		Planned: r.counters("joiner_planned_pods_bound_total",
			"Bound pods for which a node was launched: bound to that node (planned) or to another one (other).", "node"),
		Startup:   r.summary("karpenter_pods_startup_duration_seconds", "From the creation of a pod until it runs."),
		Evictions: r.counters("karpenter_pods_eviction_requests_total", "Eviction requests, by status code of the response.", "code"),
		Drained:   r.counters("karpenter_pods_drained_total", "Pods evicted from nodes that are being drained.", "reason"),
		Displaced: r.counters("karpenter_pods_disruption_initiated_total",
			"Pods on nodes whose NodeClaim was deleted by the controller.", "reason", "nodepool", "capacity_type",
			"consolidation_policy", "termination_mode"),
	}
}

func (r *maker) pools() Pools {
	return Pools{
		Limit:   r.gauges("karpenter_nodepools_limit", "Limit of a NodePool.", "resource_type", "nodepool"),
		Usage:   r.gauges("karpenter_nodepools_usage", "Resources that a NodePool uses.", "resource_type", "nodepool"),
		Allowed: r.gauges("karpenter_nodepools_allowed_disruptions", "Nodes of a NodePool that may be disrupted now.", "nodepool", "reason"),
		Taken: r.gauges("karpenter_nodepools_nodes_consuming_budgets",
			"Nodes of a NodePool that count against its budgets: nodes that are leaving or not ready.", "nodepool", "reason"),
		Cost: r.gauges("karpenter_nodepools_cost_total",
			"Price of the nodes of a NodePool in dollars per hour, by the prices that plans use.", "nodepool"),
	}
}

func (r *maker) fleet() Fleet {
	return Fleet{
		Price: r.gauge("joiner_fleet_price_per_hour",
			"Price in dollars of the nodes whose pods are in joiner_plan_price_per_hour. Nodes of unusable NodePools are left out."),
		Plan: r.gauge("joiner_plan_price_per_hour", "Price in dollars of a plan that launches nodes for the running pods anew."),
		Bound: r.gauge("joiner_fleet_lower_bound_per_hour",
			"Lower bound in dollars on the price of any nodes with room for the running pods."),
	}
}

func (r *maker) aws() AWS {
	return AWS{
		Requests: r.counters("aws_sdk_go_request_total", "Calls to AWS.", "service", "action", "status_code"),
		Duration: r.histograms("aws_sdk_go_request_duration_seconds", "Duration of calls to AWS, retries included.",
			durations(), "service", "action"),
		Method: r.histograms("karpenter_cloudprovider_duration_seconds", "Duration of operations on AWS.", durations(),
			"controller", "method", "provider"),
		MethodErrors: r.counters("karpenter_cloudprovider_errors_total", "Failed operations on AWS.", "controller",
			"method", "provider", "error"),
		LaunchFailures: r.counters("karpenter_cloudprovider_instance_launch_failures_total",
			"Offerings that CreateFleet could not launch.", "zone", "capacity_type", "reason"),
		TerminateErrors: r.counter("karpenter_cloudprovider_instance_termination_failures_total", "Instances that could not be terminated."),
	}
}

func (r *maker) interruptions() Interruptions {
	return Interruptions{
		Received: r.counters("karpenter_interruption_received_messages_total",
			"Messages received from the interruption queue.", "message_type"),
		Deleted: r.counter("karpenter_interruption_deleted_messages_total", "Messages deleted from the interruption queue."),
		QueueDuration: r.histogram("karpenter_interruption_message_queue_duration_seconds",
			"From the sending of a message to its deletion.", durations()),
		Failing: r.counters("karpenter_interruption_instance_status_unhealthy_total",
			"Nodes disrupted because of EC2 status checks or scheduled events of their instances.", "category"),
		Dropped: r.counters("joiner_interruption_dropped_messages_total",
			"Interruption messages deleted without being processed.", "cause"),
		Left: r.counters("joiner_interruption_left_messages_total",
			"Messages returned to the queue because they are not about instances of this cluster's NodeClaims.", "owner"),
	}
}

func (r *maker) moves() Moves {
	return Moves{
		Started: r.counters("joiner_moves_begun_total", "Started moves: nodes that are replaced or removed.", "reason"),
		Ended:   r.counters("joiner_moves_ended_total", "Ended moves: completed, or undone because they were blocked.", "reason", "outcome"),
		MoveDuration: r.histograms("joiner_move_duration_seconds",
			"From the start of a move to the deletion of its nodes.", durations(), "reason"),
		Saving: r.counters("joiner_moves_saving_dollars_per_hour_total",
			"Saving of completed moves: planned, and actual by the prices of the launched instances.", "kind"),
		ScanDuration: r.histogram("joiner_moves_search_duration_seconds",
			"Duration of one scan of all nodes for moves that save money.", durations()),
		Active: r.gauge("joiner_moves_active", "Moves in progress."),

		Decisions: r.counters("karpenter_voluntary_disruption_decisions_total", "Started moves.", "decision", "reason", "consolidation_type"),
		PoolDecisions: r.counters("karpenter_voluntary_disruption_decisions_by_nodepool_total",
			"Started moves, counted once for each NodePool involved.",
			"nodepool", "decision", "reason", "consolidation_type"),
		Failed: r.counters("karpenter_voluntary_disruption_queue_failures_total", "Moves that were undone.", "decision",
			"reason", "consolidation_type"),
		Eligible: r.gauges("karpenter_voluntary_disruption_eligible_nodes", "Nodes that may be disrupted, ignoring budgets.", "reason"),

		Evaluation: r.histograms("karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
			"Duration of one scan for disruption candidates. A consolidation scan finds moves of one and of several nodes, and counts as multi.", durations(), "reason", "consolidation_type"),
		Invalid: r.counters("karpenter_voluntary_disruption_failed_validations_total",
			"Disruption candidates that revalidation rejected.", "consolidation_type"),
		Timeouts: r.counters("karpenter_voluntary_disruption_consolidation_timeouts_total",
			"Always 0: scans have no time limit.", "consolidation_type"),
		Weighed: r.counters("karpenter_consolidation_moves_total",
			"Moves that would save money, in each scan: approved, or rejected because they save less than the NodePool requires.", "decision", "nodepool", "policy"),
		Score: r.histograms("karpenter_consolidation_score",
			"Saving of a move as a share of the price of all candidates, relative to its share of the cost of moving all their pods. Balanced requires 0.5, WhenEmptyOrUnderutilized 0.02.",
			scores(), "decision", "nodepool", "policy"),

		Staying: r.gauges("joiner_nodes_staying", "Nodes of NodePools by what keeps them from voluntary disruption, with the causes of joiner explain node.", "cause"),
		Deadlocks: r.gauges("joiner_disruption_deadlocks",
			"PodDisruptionBudgets, alone or together, that block the drain of nodes until they are changed.", "kind"),
	}
}

func (r *maker) extra() Extra {
	return Extra{
		Stage: r.histograms("joiner_stage_duration_seconds", "Steps on the way from a pending pod to CreateFleet.", stages(), "stage"),
		Join:  r.histograms("joiner_join_duration_seconds", "From the creation of a NodeClaim until its instance is launched (launched), its Node has joined (registered) and is ready (initialized).", durations(), "step", "nodepool"),
		JoinFailures: r.counters("joiner_join_failures_total",
			"NodeClaims whose instance has not joined in time, by the check that found the cause.", "check", "nodepool"),
		Diagnoses: r.counter("joiner_diagnoses_total", "Number of evidence collections for nodes that do not join."),
		Refused:   r.gauges("joiner_refused_pods", "Unplaced pods of the last plan, by their first reason.", "code"),
		Costly: r.gauge("joiner_costly_pods",
			"Pending pods that wait for a plan of their own because their rules cost more than their share."),
		StaleClaims: r.counters("joiner_stale_nodeclaims_total",
			"Planned NodeClaims that were not created because the cluster changed while the plan was made.", "cause"),
		LoopBusy: r.gauges("joiner_loop_busy_seconds",
			"For how long a loop has worked on one thing; 0 while it waits for something to do.", "loop"),
		LoopStalled:    r.gauges("joiner_loop_stalled", "1 while a loop makes no progress; /readyz fails then.", "loop"),
		Shortages:      r.gauge("joiner_shortages", "Offerings without capacity in EC2."),
		PricesAt:       r.gauges("joiner_prices_timestamp_seconds", "When the prices in use were read from AWS; 0 if never.", "capacity_type"),
		MarketBuilds:   r.counter("joiner_market_builds_total", "How often the table of instance types and prices was rebuilt."),
		Swept:          r.counters("joiner_swept_total", "Orphaned objects removed by garbage collection.", "kind"),
		BreakerOpen:    r.gauges("joiner_sweep_breaker_open", "1 while garbage collection is held because it would remove too much.", "kind"),
		ByCapacityType: r.gauges("joiner_nodes", "NodeClaims that are not being deleted, by their capacity type.", "nodepool", "capacity_type"),
		Drifted:        r.gauges("joiner_drifted_nodeclaims", "Drifted NodeClaims. State observed: they are not replaced; ignored: the NodePool ignores the field.", "nodepool", "reason", "state"),
		DriftHeld:      r.gauges("joiner_drift_held", "1 while drifted nodes of a NodePool are not replaced.", "nodepool", "reason"),
		SameName:       r.gauge("joiner_namesake_instances", "Instances with the tag of this cluster's name and the UID of another cluster."),
		NodeMismatches: r.counters("joiner_node_mismatches_total",
			"Nodes with the provider ID of a NodeClaim's instance that are not the Node of that instance.", "nodepool"),
		Untagged: r.gauge("joiner_untagged_instances",
			"Instances of deleted NodeClaims that have lost their tags and are therefore not terminated."),
		Proven: r.gauges("joiner_identity_proven", "1 if the EKS cluster with the configured name is proven to be the controller's own cluster, 0 if the proof is missing.", "mark"),
		ForeignTerminations: r.counters("joiner_foreign_terminations_total",
			"Instances of NodeClaims terminated by neither Joiner nor AWS.", "nodepool", "how"),
		Failures:       r.counters("joiner_loop_failures_total", "Errors of the loops, by what the loop does next.", "loop", "next"),
		CallWait:       r.histograms("joiner_ec2_call_wait_seconds", "How long calls to EC2 waited for their turn.", durations(), "action"),
		CallsThrottled: r.counters("joiner_ec2_calls_refused_total", "Calls that EC2 throttled.", "action"),
	}
}
