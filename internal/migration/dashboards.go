package migration

import (
	"slices"
	"strings"
)

// Panel is a panel of a Grafana dashboard in Karpenter's documentation, with its metrics.
type Panel struct {
	Dashboard, Title string   // name of the dashboard and title of the panel
	Metrics          []string // names of its metrics
}

// Panels returns the panels of Karpenter's capacity and performance dashboards, as of its v1 API.
func Panels() []Panel {
	const capacity, performance = "capacity", "performance"
	return []Panel{
		{capacity, "Nodes Created", []string{"karpenter_nodes_created_total"}},
		{capacity, "Nodes Terminated", []string{"karpenter_nodes_terminated_total"}},
		{capacity, "Node Disruption Decisions", []string{"karpenter_voluntary_disruption_decisions_total"}},
		{capacity, "Nodes Eligible for Disruption", []string{"karpenter_voluntary_disruption_eligible_nodes"}},
		{capacity, "Nodes Disrupted", []string{"karpenter_nodeclaims_disrupted_total"}},
		{capacity, "Pod Phase", []string{"karpenter_pods_state"}},
		{capacity, "Pod Distribution", []string{"karpenter_pods_state"}},
		{capacity, "Nodepool Summary", []string{"karpenter_nodepools_usage", "karpenter_nodepools_limit", "karpenter_nodes_allocatable"}},
		{capacity, "Spot Node Percentage", []string{"karpenter_nodes_allocatable"}},
		{capacity, "Node Summary", []string{"karpenter_nodes_allocatable", "karpenter_nodes_total_daemon_requests",
			"karpenter_nodes_total_pod_requests"}},
		{performance, "Node Termination Latency", []string{"karpenter_nodes_termination_duration_seconds"}},
		{performance, "Pod Startup Latency", []string{"karpenter_pods_startup_duration_seconds"}},
		{performance, "Controller Reconciliation Latency", []string{"controller_runtime_reconcile_time_seconds"}},
	}
}

// MetricsOfKarpenterAlone returns the metrics in Panels that Joiner does not have.
func MetricsOfKarpenterAlone() []string {
	return []string{"karpenter_nodes_allocatable", "karpenter_nodes_total_daemon_requests",
		"karpenter_nodes_total_pod_requests", "karpenter_pods_state"}
}

// dashboards returns a finding with the panels of Karpenter's dashboards that stay empty or lack columns with Joiner.
func dashboards(in Installation) []Finding {
	if len(in.controllersOf(Karpenter)) == 0 {
		return nil
	}
	var empty, partial []string
	for _, p := range Panels() {
		missing := slices.DeleteFunc(slices.Clone(p.Metrics), func(m string) bool { return !slices.Contains(MetricsOfKarpenterAlone(), m) })
		switch len(missing) {
		case 0:
		case len(p.Metrics):
			empty = append(empty, p.Title)
		default:
			partial = append(partial, p.Title)
		}
	}
	return []Finding{differs("Grafana dashboards of Karpenter",
		"these panels stay empty: %s; these lack columns: %s. Joiner does not have the metrics %s",
		strings.Join(empty, ", "), strings.Join(partial, ", "), strings.Join(MetricsOfKarpenterAlone(), ", ")).
		withFix("import deploy/dashboards/joiner.json, which has the spot share and usage of NodePools from other metrics; the other panels keep working")}
}
