package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestNew checks that all metrics can be registered together, also in two registries, and that metrics of the
// dashboards have the names below.
func TestNew(t *testing.T) {
	t.Parallel()
	for range 2 {
		registry := prometheus.NewPedanticRegistry()
		m, err := New(registry, "v1", "abc")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(registry, "v1", "abc"); err == nil {
			t.Error("a second registration in the same registry returned no error")
		}
		// Gather returns a metric with labels only after its first value.
		m.Stage.WithLabelValues(StageAfterBatch).Observe(0.2)
		m.Claims.Created.WithLabelValues("provisioned", "default", "false").Inc()
		m.Received.WithLabelValues("spot_interrupted").Inc()
		m.Nodes.Termination.WithLabelValues("default").Observe(1)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, f := range families {
			names[f.GetName()] = true
			if f.GetHelp() == "" || !strings.HasSuffix(f.GetHelp(), ".") {
				t.Errorf("%s: the help %q does not end with a full stop", f.GetName(), f.GetHelp())
			}
		}
		for _, want := range []string{
			"karpenter_nodeclaims_created_total", "karpenter_build_info", "joiner_stage_duration_seconds",
			"karpenter_nodes_termination_duration_seconds", "karpenter_pods_startup_duration_seconds",
			"karpenter_interruption_received_messages_total", "karpenter_interruption_deleted_messages_total",
			"karpenter_interruption_message_queue_duration_seconds",
		} {
			if !names[want] {
				t.Errorf("metric %s is missing in %v", want, names)
			}
		}
	}
}
