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

// TestMeasuredCapacity checks that plans use the measured capacity of an instance type. According to the estimate
// (3246Mi allocatable), the large pod does not fit the only type; according to the type's first node (3328Mi), it does.
// Once that node is ready, the large pod gets a node. The measured value is stored.
func TestMeasuredCapacity(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	ensureController(t, l)
	name := newTestNamespace(t, l)
	apply(t, l,
		class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [t3.medium]}"),
		deployment(name, "small", 1, "500m", "256Mi", "test: "+name),
		deployment(name, "large", 1, "500m", "3280Mi", "test: "+name),
	)
	awaitRunning(t, l, name, 2, time.Minute)
	within(t, l, time.Minute, "the measured value to be stored", func(ctx context.Context) (bool, error) {
		var stored corev1.ConfigMap
		if err := l.Client.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "joiner-measured-capacity"}, &stored); err != nil {
			return false, err
		}
		for _, lines := range stored.Data { // disk and pods are EXPECTED:MEASURED
			for line := range strings.Lines(lines) {
				if strings.HasPrefix(line, "t3.medium memory=") && strings.Contains(line, " disk=20Gi:") && strings.Contains(line, " pods=17:17 ") {
					return true, nil
				}
			}
		}
		return false, nil
	})
	cleanUp(t, l, name)
}
