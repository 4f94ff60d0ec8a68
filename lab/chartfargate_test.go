package lab_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// valuesForFargate writes a copy of a values file without the values that Fargate does not support: nodeSelector and
// hostNetwork. It also removes serviceMonitor, because this cluster does not have the CRD of ServiceMonitors.
func (s *fargateCluster) valuesForFargate(file string) string {
	s.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(text, &values); err != nil {
		s.t.Fatalf("read %s: %v", file, err)
	}
	if values["nodeSelector"] != nil { // keep null, which is a documented value
		delete(values, "nodeSelector")
	}
	delete(values, "hostNetwork")
	delete(values, "serviceMonitor")
	if text, err = yaml.Marshal(values); err != nil {
		s.t.Fatal(err)
	}
	out := filepath.Join(s.t.TempDir(), filepath.Base(file))
	if err := os.WriteFile(out, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// everyValuesFile installs the chart with each of its documented values files, and waits until all releases run on
// Fargate.
func (s *fargateCluster) everyValuesFile() {
	t := s.t
	t.Helper()
	s.makeProfile("charts", "chart-*", nil)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(chartFolder(t)), "testdata", "*.values.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("values files: %v, error %v; want at least one file", files, err)
	}
	namespaces := map[string]string{} // by release name
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".values.yaml")
		namespaces[name] = s.newNamespace("chart-" + name)
		s.run("install", name, chartFolder(t), "-n", namespaces[name], "-f", s.valuesForFargate(file))
	}
	for name, namespace := range namespaces {
		s.awaitOnFargate(namespace, s.deploymentOf(namespace, name))
	}

	// Fargate does not support hostNetwork, and the pod's event must report this.
	refused := s.newNamespace("chart-refused")
	s.run("install", "refused", chartFolder(t), "-n", refused, "--set", "settings.clusterName=demo,hostNetwork=true")
	within(t, s.l, 20*time.Second, "the pod on the host's network to be refused", func(ctx context.Context) (bool, error) {
		events, err := s.l.Kube.CoreV1().Events(refused).List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedScheduling"})
		if err != nil {
			return false, err
		}
		for _, e := range events.Items {
			if strings.HasPrefix(e.Message, "Pod not supported on Fargate: fields not supported: HostNetwork") {
				return true, nil
			}
		}
		return false, fmt.Errorf("no event reports HostNetwork; there are %d other events", len(events.Items))
	})
}

// newNamespace creates a namespace, and in it the service account that one of the values files expects to exist.
func (s *fargateCluster) newNamespace(name string) string {
	s.t.Helper()
	if _, err := s.l.Kube.CoreV1().Namespaces().Create(s.t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "present"}}
	if _, err := s.l.Kube.CoreV1().ServiceAccounts(name).Create(s.t.Context(), account, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	return name
}

// deploymentOf returns the name of the release's Deployment, the only one in its namespace.
func (s *fargateCluster) deploymentOf(namespace, release string) string {
	s.t.Helper()
	list, err := s.l.Kube.AppsV1().Deployments(namespace).List(s.t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		s.t.Fatalf("release %s has %d Deployments, want 1; error: %v", release, len(list.Items), err)
	}
	return list.Items[0].Name
}
