package charts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/internal/config"
)

type objects struct {
	deployment     appsv1.Deployment
	service        corev1.Service
	pdb            policyv1.PodDisruptionBudget
	network        *networkingv1.NetworkPolicy
	serviceAccount *corev1.ServiceAccount
	roles          []rbacv1.ClusterRole        // and Roles, whose fields are a subset
	bindings       []rbacv1.ClusterRoleBinding // and RoleBindings
	hasMonitor     bool
}

// goldenObjects returns the objects in the golden file of a values file. An unknown kind or field fails the test.
func goldenObjects(t *testing.T, name string) objects {
	t.Helper()
	var out objects
	for _, doc := range strings.Split(golden(t, name), "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(doc), &kind); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		var to any
		switch kind.Kind {
		case "":
			continue
		case "Deployment":
			to = &out.deployment
		case "Service":
			to = &out.service
		case "PodDisruptionBudget":
			to = &out.pdb
		case "NetworkPolicy":
			out.network = &networkingv1.NetworkPolicy{}
			to = out.network
		case "ServiceAccount":
			out.serviceAccount = &corev1.ServiceAccount{}
			to = out.serviceAccount
		case "ClusterRole", "Role":
			out.roles = append(out.roles, rbacv1.ClusterRole{})
			to = &out.roles[len(out.roles)-1]
		case "ClusterRoleBinding", "RoleBinding":
			out.bindings = append(out.bindings, rbacv1.ClusterRoleBinding{})
			to = &out.bindings[len(out.bindings)-1]
		case "ServiceMonitor":
			out.hasMonitor = true
			to = &map[string]any{}
		default:
			t.Fatalf("no test handles the kind %s", kind.Kind)
		}
		if err := yaml.UnmarshalStrict([]byte(doc), to); err != nil {
			t.Errorf("%v in\n%s", err, doc)
		}
	}
	return out
}

// TestPods: with each values file, the pods tolerate Fargate, match all selectors, and meet the restricted Pod Security
// Standard.
func TestPods(t *testing.T) {
	t.Parallel()
	for name := range valuesFiles(t) {
		o := goldenObjects(t, name)
		pod := o.deployment.Spec.Template
		for _, want := range []corev1.Toleration{
			{Key: "CriticalAddonsOnly", Operator: corev1.TolerationOpExists},
			{Key: "eks.amazonaws.com/compute-type", Operator: corev1.TolerationOpEqual, Value: "fargate", Effect: corev1.TaintEffectNoSchedule},
		} {
			if !slices.Contains(pod.Spec.Tolerations, want) {
				t.Errorf("%s: the pods do not tolerate %+v", name, want)
			}
		}
		for kind, selector := range map[string]map[string]string{
			"Deployment": o.deployment.Spec.Selector.MatchLabels, "Service": o.service.Spec.Selector,
			"PodDisruptionBudget": o.pdb.Spec.Selector.MatchLabels,
		} {
			if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)) {
				t.Errorf("%s: the %s selects %v, the pods have the labels %v", name, kind, selector, pod.Labels)
			}
		}
		if o.network != nil && !maps.Equal(o.network.Spec.PodSelector.MatchLabels, o.service.Spec.Selector) {
			t.Errorf("%s: the NetworkPolicy selects %v, want the Service's pods", name, o.network.Spec.PodSelector.MatchLabels)
		}
		for _, s := range pod.Spec.TopologySpreadConstraints {
			if s.LabelSelector == nil || len(s.LabelSelector.MatchLabels) == 0 {
				t.Errorf("%s: the topology spread over %s selects no pods", name, s.TopologyKey)
			}
		}
		checkSecurity(t, name, pod.Spec)
	}
}

// checkSecurity checks the restricted Pod Security Standard for the pod and the controller's container.
func checkSecurity(t *testing.T, name string, pod corev1.PodSpec) {
	t.Helper()
	c := pod.Containers[0].SecurityContext
	switch {
	case pod.SecurityContext.RunAsNonRoot == nil || !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser == 0:
		t.Errorf("%s: the pod may run as root", name)
	case pod.SecurityContext.SeccompProfile == nil || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault:
		t.Errorf("%s: the seccomp profile of the pod is not RuntimeDefault", name)
	case c.AllowPrivilegeEscalation == nil || *c.AllowPrivilegeEscalation, c.ReadOnlyRootFilesystem == nil || !*c.ReadOnlyRootFilesystem:
		t.Errorf("%s: the container allows privilege escalation or writes to its root file system: %+v", name, c)
	case !slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}):
		t.Errorf("%s: the container keeps capabilities: %+v", name, c.Capabilities)
	}
	if name == "everything" && *pod.SecurityContext.RunAsUser != 1000740000 { // as in everything.values.yaml
		t.Errorf("everything: the user ID is %d, want 1000740000", *pod.SecurityContext.RunAsUser)
	}
}

// TestPorts: the container and the Service have the ports of the controller's settings, and the probes use one of them.
func TestPorts(t *testing.T) {
	t.Parallel()
	for name := range valuesFiles(t) {
		o := goldenObjects(t, name)
		c := o.deployment.Spec.Template.Spec.Containers[0]
		settings, _, err := config.Load(nil, environment(c))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := map[string]int32{"http-metrics": int32(settings.MetricsPort), "http": int32(settings.ProbePort)}
		for _, p := range c.Ports {
			if want[p.Name] != p.ContainerPort {
				t.Errorf("%s: port %s is %d, the controller's is %d", name, p.Name, p.ContainerPort, want[p.Name])
			}
		}
		for _, p := range o.service.Spec.Ports {
			if p.TargetPort.StrVal != p.Name || want[p.Name] != p.Port {
				t.Errorf("%s: the Service's port %s is %d to %s, the controller's is %d", name, p.Name, p.Port, p.TargetPort.String(), want[p.Name])
			}
		}
		if len(c.Ports) != 2 || len(o.service.Spec.Ports) != 2 || c.LivenessProbe.HTTPGet.Port.StrVal != "http" ||
			c.ReadinessProbe.HTTPGet.Port.StrVal != "http" {
			t.Errorf("%s: want two ports in the Service and the container, and probes of the port http; the container has %+v",
				name, c.Ports)
		}
	}
}

// environment returns a lookup of the variables of a container that have plain values.
func environment(c corev1.Container) func(string) (string, bool) {
	return func(name string) (value string, ok bool) {
		for _, e := range c.Env { // if a name occurs twice, the kubelet uses the last value
			if e.Name == name && e.ValueFrom == nil {
				value, ok = e.Value, true
			}
		}
		return value, ok
	}
}

// TestSettingsArrive: the controller gets the settings of a values file. It reports unsupported values of Karpenter
// that differ from their default.
func TestSettingsArrive(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check func(config.Settings) bool
		notes []string // flags of the settings that the controller reports to have no effect
	}{
		"defaults": {func(s config.Settings) bool {
			want, _, err := config.Load([]string{"--cluster-name=demo"}, func(string) (string, bool) { return "", false })
			return err == nil && fmt.Sprint(s) == fmt.Sprint(want)
		}, nil},
		"karpenter": {func(s config.Settings) bool {
			return s.ClusterName == "demo" && s.InterruptionQueue == "demo" && s.NodeRepair && s.ReservedCapacity &&
				s.MemoryOverheadPercent == 0 && s.LogLevel == "debug"
		}, []string{"--ignore-dra-requests"}},
		"private": {func(s config.Settings) bool {
			return s.IsolatedVPC && s.EC2Limits["CreateFleet"] == config.Rate{Burst: 100, PerSecond: 20} && s.ClusterEndpoint != ""
		}, nil},
		"everything": {func(s config.Settings) bool {
			return s.NodeOverlays && s.StaticPools && !s.ReservedCapacity && s.ReservedENIs == 1 &&
				s.PreferencePolicy == "Ignore" && s.MinValuesPolicy == "BestEffort" &&
				s.DisableDryRun && strings.Contains(s.SchedulerConfig, "maxSkew") && s.ClusterCABundle != "" && !s.ApplyCRDs && s.MetricsPort == 9090
		}, []string{"--aws-feature-gates", "--log-output-paths"}},
	} {
		s, notes, err := config.Load(nil, environment(goldenObjects(t, name).deployment.Spec.Template.Spec.Containers[0]))
		if err != nil || !c.check(s) {
			t.Errorf("%s: error %v, settings %+v; want those of the values file", name, err, s)
		}
		var got []string
		for _, n := range notes {
			setting, _, _ := strings.Cut(n.Setting, " ")
			got = append(got, setting)
		}
		slices.Sort(got)
		if !slices.Equal(got, c.notes) {
			t.Errorf("%s: the controller reports that %v have no effect, want %v", name, got, c.notes)
		}
	}
}

// TestRoles: each binding binds a role to the service account of the pods. Each role has a binding, except those that
// extend the roles admin and view for users.
func TestRoles(t *testing.T) {
	t.Parallel()
	for name := range valuesFiles(t) {
		o := goldenObjects(t, name)
		account := o.deployment.Spec.Template.Spec.ServiceAccountName
		if o.serviceAccount != nil && o.serviceAccount.Name != account {
			t.Errorf("%s: the ServiceAccount is %s, but the pods use %s", name, o.serviceAccount.Name, account)
		}
		bound := map[string]bool{}
		for _, b := range o.bindings {
			bound[b.Namespace+"/"+b.RoleRef.Name] = true
			if len(b.Subjects) != 1 || b.Subjects[0].Name != account || b.Subjects[0].Namespace != namespace {
				t.Errorf("%s: %s is bound to %v, want only the pods' service account", name, b.RoleRef.Name, b.Subjects)
			}
		}
		for _, r := range o.roles {
			isForUsers := r.Labels["rbac.authorization.k8s.io/aggregate-to-admin"] != "" ||
				r.Labels["rbac.authorization.k8s.io/aggregate-to-view"] != ""
			if bound[r.Namespace+"/"+r.Name] == isForUsers || len(r.Rules) == 0 {
				t.Errorf("%s: role %s/%s must be bound: %t, and must have rules: it has %d", name, r.Namespace, r.Name, !isForUsers, len(r.Rules))
			}
		}
		if (len(o.roles) == 0) != (name == "minimal") || o.hasMonitor != (name == "karpenter" || name == "everything") {
			t.Errorf("%s: %d roles, ServiceMonitor %t; want 0 roles only with minimal, a ServiceMonitor only with karpenter and everything",
				name, len(o.roles), o.hasMonitor)
		}
	}
}

// TestRolesFollowSettings: the ClusterRole has a rule that only one setting needs only with that setting.
func TestRolesFollowSettings(t *testing.T) {
	t.Parallel()
	resources := func(name string) map[string]bool {
		out := map[string]bool{}
		for _, r := range goldenObjects(t, name).roles {
			for _, rule := range r.Rules {
				for _, resource := range rule.Resources {
					// The roles for users and the Roles do not depend on settings.
					if !strings.HasSuffix(r.Name, "-admin") && !strings.HasSuffix(r.Name, "-view") && r.Namespace == "" {
						out[resource] = true
					}
				}
			}
		}
		return out
	}
	plain, all := resources("defaults"), resources("everything")
	for resource, needsSetting := range map[string]bool{"nodeoverlays/status": true, "nodeoverlays": false, "services": true,
		"statefulsets": true, "things": true, "nodeclaims": false, "pods/eviction": false} {
		if plain[resource] == needsSetting || !all[resource] {
			t.Errorf("the ClusterRole has a rule for %s by default: %t, with all settings: %t; want %t, true",
				resource, plain[resource], all[resource], !needsSetting)
		}
	}
	if !plain["customresourcedefinitions"] || all["customresourcedefinitions"] {
		t.Error("the role must have permissions for CRDs by default, and must not have them if crds.apply is false")
	}
}
