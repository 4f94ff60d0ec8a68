package lab_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/lab"
)

// TestMeasuredCapacity checks that the plan uses measured capacities: a pod does not fit the only type according to the
// estimate (3246Mi allocatable), but fits according to its nodes (3328Mi). Once the first node is ready, the pod gets a
// node. The measured value is stored.
func TestMeasuredCapacity(t *testing.T) {
	l := beside(t, lab.Options{})
	controller(t, l)
	name := namespaced(t, l)
	apply(t, l,
		class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [t3.medium]}"),
		deployment(name, "small", 1, "500m", "256Mi", "test: "+name),
		deployment(name, "large", 1, "500m", "3280Mi", "test: "+name),
	)
	allRun(t, l, name, 2, time.Minute)
	within(t, l, time.Minute, "the measured value to be stored", func(ctx context.Context) (bool, error) {
		var kept corev1.ConfigMap
		if err := l.Client.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "joiner-measured-capacity"}, &kept); err != nil {
			return false, err
		}
		for _, lines := range kept.Data {
			for line := range strings.Lines(lines) {
				if strings.HasPrefix(line, "t3.medium memory=") && strings.Contains(line, " disk=20Gi:") && strings.Contains(line, " pods=17:17 ") {
					return true, nil
				}
			}
		}
		return false, nil
	})
	nothingLeft(t, l, name)
}
