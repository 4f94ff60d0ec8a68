package repocheck

// This file has the names in Karpenter 1.14 and its AWS provider. The text after | is a remark, which
// docs/compatibility.md shows: it explains what Joiner does not have or does differently. TestCompatibility reads from
// the code which of the names Joiner has.

// karpenterMetrics are Karpenter's metrics with their labels. A name has the prefix karpenter_ unless it begins with a
// dot.
const karpenterMetrics = `
build_info version goversion goarch commit
cloudprovider_duration_seconds controller method provider
cloudprovider_errors_total controller method provider error
cloudprovider_instance_launch_failures_total zone zone_id capacity_type reason
cloudprovider_instance_termination_failures_total zone zone_id
cloudprovider_instance_type_cpu_cores instance_type | joiner catalog shows it
cloudprovider_instance_type_memory_bytes instance_type | joiner catalog shows it
cloudprovider_instance_type_offering_available instance_type capacity_type zone | joiner_shortages counts offerings without capacity
cloudprovider_instance_type_offering_price_estimate instance_type capacity_type zone | joiner catalog shows it
cloudprovider_batcher_batch_size batcher
cloudprovider_batcher_batch_time_seconds batcher
cluster_state_node_count
cluster_state_synced | plans use the informer caches directly, so no second state must be synchronized
cluster_state_unsynced_time_seconds | as above
cluster_utilization_percent resource_type
consolidation_moves_total decision nodepool policy|counts at most one move per node in each scan
consolidation_score decision nodepool policy|compares the saving with the price of all candidate nodes, not of one NodePool; also for WhenEmptyOrUnderutilized
ec2nodeclasses_userdata_bytes nodeclass
interruption_deleted_messages_total
interruption_instance_status_unhealthy_total category
interruption_message_queue_duration_seconds
interruption_received_messages_total message_type
nodeclaims_created_total reason nodepool min_values_relaxed
nodeclaims_disrupted_total reason nodepool capacity_type consolidation_policy termination_mode
nodeclaims_instance_termination_duration_seconds nodepool
nodeclaims_terminated_total nodepool capacity_type zone
nodeclaims_termination_duration_seconds nodepool
nodeclaims_unhealthy_disrupted_total condition nodepool capacity_type image_id
nodepools_allowed_disruptions nodepool reason
nodepools_cost_total nodepool
nodepools_cost_tracker_errors_total nodepool
nodepools_limit resource_type nodepool
nodepools_nodes_consuming_budgets nodepool reason
nodepools_usage resource_type nodepool
nodes_allocatable | kube-state-metrics has it
nodes_created_total nodepool
nodes_current_lifetime_seconds | kube-state-metrics has it
nodes_drained_total nodepool
nodes_lifetime_duration_seconds nodepool
nodes_system_overhead | kube-state-metrics has it
nodes_terminated_total nodepool zone
nodes_termination_duration_seconds nodepool
nodes_total_daemon_limits
nodes_total_daemon_requests
nodes_total_pod_limits
nodes_total_pod_requests
pods_bound_duration_seconds
pods_disruption_initiated_total reason nodepool capacity_type consolidation_policy termination_mode
pods_drained_total reason
pods_eviction_requests_total code
pods_provisioning_bound_duration_seconds
pods_provisioning_scheduling_undecided_time_seconds name namespace
pods_provisioning_startup_duration_seconds
pods_provisioning_unbound_time_seconds name namespace
pods_provisioning_unstarted_time_seconds name namespace
pods_scheduling_decision_duration_seconds | joiner_stage_duration_seconds has each step of the decision
pods_startup_duration_seconds
pods_state | would have one series per pod; kube-state-metrics has it
pods_unbound_time_seconds name namespace
pods_unstarted_time_seconds name namespace
scheduler_ignored_pods_count
scheduler_pending_pods_by_effective_zone_count controller zone
scheduler_queue_depth controller scheduling_id | every plan would have a new value of this label
scheduler_scheduling_duration_seconds controller | one observation per planning pass
scheduler_unfinished_work_seconds controller scheduling_id
scheduler_unschedulable_pods_count controller
voluntary_disruption_consolidation_timeouts_total consolidation_type|always 0: scans have no timeout
voluntary_disruption_decision_evaluation_duration_seconds reason consolidation_type|always of type multi: one scan finds moves of one node and of several nodes
voluntary_disruption_decisions_by_nodepool_total nodepool decision reason consolidation_type
voluntary_disruption_decisions_total decision reason consolidation_type
voluntary_disruption_eligible_nodes reason
voluntary_disruption_failed_validations_total consolidation_type
voluntary_disruption_queue_failures_total decision reason consolidation_type
.aws_sdk_go_request_attempt_duration_seconds service action
.aws_sdk_go_request_attempt_total service action
.aws_sdk_go_request_duration_seconds service action
.aws_sdk_go_request_retry_count service action
.aws_sdk_go_request_total service action status_code
.operator_nodeclaim_status_condition_count | kube-state-metrics can be configured to export it
.operator_nodepool_status_condition_count | kube-state-metrics can be configured to export it
.operator_node_status_condition_count | kube-state-metrics has it
.operator_ec2nodeclass_status_condition_count | kube-state-metrics can be configured to export it
`

// karpenterEvents are Karpenter's events: kind of object and reason.
const karpenterEvents = `
Pod FailedScheduling
Pod Nominated
Pod Evicted
Pod Disrupted
Pod InvalidDoNotDisruptAnnotation
Pod DoNotDisruptUntil
Pod DoNotDisruptGracePeriodElapsed
NodePool NoCompatibleInstanceTypes
NodePool ZonalShiftActive
NodePool ZonalShiftCleared
NodePool,Node,NodeClaim DisruptionBlocked
NodePool,Node,NodeClaim ConsolidationApproved
Node,NodeClaim Unconsolidatable
Node,NodeClaim ConsolidationCandidate
Node,NodeClaim ConsolidationRejected
Node,NodeClaim DisruptionTerminating
NodeClaim DisruptionLaunching
NodeClaim DisruptionWaitingReadiness
NodeClaim InsufficientCapacityError
NodeClaim UnregisteredTaintMissing
NodeClaim FailedConsistencyCheck
Node,NodeClaim TerminationGracePeriodExpiring
Node FailedDraining
Node AwaitingVolumeDetachment
Node NodeRepairBlocked
Node,NodeClaim SpotInterrupted
Node,NodeClaim CapacityReservationInstanceInterrupted
Node,NodeClaim SpotRebalanceRecommendation
Node,NodeClaim InstanceStopping
Node,NodeClaim InstanceTerminating
Node,NodeClaim InstanceUnhealthy
Node,NodeClaim TerminatingOnInterruption
EC2NodeClass WaitingOnNodeClaimTermination
`

// karpenterConditions are Karpenter's conditions: kind of object and type.
const karpenterConditions = `
NodePool ValidationSucceeded
NodePool NodeClassReady
NodePool NodeRegistrationHealthy
NodePool Ready
NodeClaim Launched
NodeClaim Registered
NodeClaim Initialized
NodeClaim Ready
NodeClaim Consolidatable
NodeClaim Drifted
NodeClaim Drained
NodeClaim VolumesDetached
NodeClaim InstanceTerminating
NodeClaim ConsistentStateFound
NodeClaim DisruptionReason
EC2NodeClass AMIsReady
EC2NodeClass SubnetsReady
EC2NodeClass SecurityGroupsReady
EC2NodeClass InstanceProfileReady
EC2NodeClass ValidationSucceeded
EC2NodeClass PlacementGroupReady
EC2NodeClass CapacityReservationsReady
EC2NodeClass Ready
`

// karpenterSettings are Karpenter's flags, each with a value that is not the default.
const karpenterSettings = `
ami-refresh-interval 5m
aws-feature-gates NodeClassCEL=true
batch-idle-duration 2s
batch-max-duration 20s
cluster-ca-bundle LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJjVENDQVJhZ0F3SUJBZ0lVVm1uMzVWaFcxam5Bc3RkWW95ZDFaZ3F6cm04d0NnWUlLb1pJemowRUF3SXcKRlRFVE1CRUdBMVVFQXd3S2EzVmlaWEp1WlhSbGN6QWdGdzB5TmpFeE1qSXhOREUxTWpCYUdBOHlNVEkyTVRBeQpPVEUwTVRVeU1Gb3dGVEVUTUJFR0ExVUVBd3dLYTNWaVpYSnVaWFJsY3pCWk1CTUdCeXFHU000OUFnRUdDQ3FHClNNNDlBd0VIQTBJQUJFZjZJdVY5TTFPMk9ScVk4c2Fzd1QraTExbjBlSDdUZkxvTENPSzIrMUh6YW5pK0lyOW4KekFRNUdiVGdqaUx3UWVYTEphS0NRSmNJN0JSZ2RzcEhEdktqUWpCQU1BOEdBMVVkRXdFQi93UUZNQU1CQWY4dwpEZ1lEVlIwUEFRSC9CQVFEQWdJRU1CMEdBMVVkRGdRV0JCUnkxdXlDeGYzSEFGeTJYVnlFUFhkM3Fwd3JoakFLCkJnZ3Foa2pPUFFRREFnTkpBREJHQWlFQTFyVUE2N0NuSEJYU3RVd3JQYnFnZnRSOXVQRlYrRUhCWEJSMFhNVEMKUElvQ0lRQzhrQktYeDZKcFJqVDBzYmZ1RGh0Z3NXUFJoVXN1TlBzWmRTWHZnVms1Y2c9PQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==
cluster-endpoint https://example.com
cluster-name other
cpu-requests 2000
disable-cluster-state-observability true
disable-controller-warmup false
disable-dry-run true
disable-leader-election true
eks-control-plane true
enable-profiling true
enable-zonal-shift true
feature-gates NodeOverlay=true
health-probe-port 9001
ignore-dra-requests false
interruption-queue notices
isolated-vpc true
karpenter-service karpenter
kube-client-burst 10
kube-client-qps 10
leader-election-name other
leader-election-namespace other
log-error-output-paths /tmp/errors
log-level debug
log-output-paths /tmp/log
memory-limit 1000000000
metrics-port 9000
min-values-policy BestEffort
preference-policy Ignore
reserved-enis 1
scheduler-config x
subnet-refresh-interval 5m
vm-memory-overhead-percent 0.1
`

// karpenterGates are Karpenter's feature gates of --feature-gates.
const karpenterGates = `
CapacityBuffer
NodeOverlay
NodeRepair
ReservedCapacity | on by default; uses the reservations that spec.capacityReservationSelectorTerms of the EC2NodeClass selects
SpotToSpotConsolidation
StaticCapacity
`

// karpenterKeys are Karpenter's labels, annotations, taints, finalizers and tags.
const karpenterKeys = `
label karpenter.sh/nodepool
label karpenter.sh/capacity-type
label karpenter.sh/registered
label karpenter.sh/initialized
label karpenter.sh/do-not-sync-taints
label karpenter.k8s.aws/ec2nodeclass
label karpenter.k8s.aws/instance-category
label karpenter.k8s.aws/instance-family
label karpenter.k8s.aws/instance-generation
label karpenter.k8s.aws/instance-size
label karpenter.k8s.aws/instance-capability-flex
label karpenter.k8s.aws/instance-cpu
label karpenter.k8s.aws/instance-cpu-manufacturer
label karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz
label karpenter.k8s.aws/instance-memory
label karpenter.k8s.aws/instance-ebs-bandwidth
label karpenter.k8s.aws/instance-network-bandwidth
label karpenter.k8s.aws/instance-hypervisor
label karpenter.k8s.aws/instance-encryption-in-transit-supported
label karpenter.k8s.aws/instance-tenancy
label karpenter.k8s.aws/instance-local-nvme
label karpenter.k8s.aws/instance-gpu-name
label karpenter.k8s.aws/instance-gpu-manufacturer
label karpenter.k8s.aws/instance-gpu-count
label karpenter.k8s.aws/instance-gpu-memory
label karpenter.k8s.aws/instance-accelerator-name
label karpenter.k8s.aws/instance-accelerator-manufacturer
label karpenter.k8s.aws/instance-accelerator-count
label karpenter.k8s.aws/capacity-reservation-id
label karpenter.k8s.aws/capacity-reservation-type
label karpenter.k8s.aws/capacity-reservation-interruptible
label karpenter.k8s.aws/placement-group-id
label karpenter.k8s.aws/placement-group-partition
label topology.k8s.aws/zone-id
annotation karpenter.sh/do-not-disrupt
annotation karpenter.sh/nodepool-hash
annotation karpenter.sh/nodepool-hash-version
annotation karpenter.sh/nodeclaim-termination-timestamp
annotation karpenter.sh/nodeclaim-min-values-relaxed
annotation karpenter.sh/requested-dra-drivers
annotation karpenter.sh/price-overlay-applied
annotation karpenter.sh/capacity-overlay-applied
annotation karpenter.sh/capacity-buffer-fake-pod | Karpenter sets it only on virtual pods that are not in the API server
annotation karpenter.sh/capacity-buffer-name | Karpenter sets it only on virtual pods that are not in the API server
annotation karpenter.sh/capacity-buffer-namespace | Karpenter sets it only on virtual pods that are not in the API server
annotation karpenter.k8s.aws/ec2nodeclass-hash
annotation karpenter.k8s.aws/ec2nodeclass-hash-version
annotation karpenter.k8s.aws/instance-profile-name
annotation karpenter.k8s.aws/tagged
annotation compatibility.karpenter.k8s.aws/cluster-name-tagged
taint karpenter.sh/disrupted
taint karpenter.sh/unregistered
finalizer karpenter.sh/termination
finalizer karpenter.k8s.aws/termination
tag kubernetes.io/cluster/
tag eks:eks-cluster-name
tag karpenter.sh/nodepool
tag karpenter.sh/nodeclaim
tag karpenter.k8s.aws/ec2nodeclass
tag Name
`
