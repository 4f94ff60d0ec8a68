package collector_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/checks"
	"github.com/joiner-sh/joiner/internal/doctor/collector"
	"github.com/joiner-sh/joiner/internal/kube/evidence"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// TestJoining: items that are not needed for joining are not requested. Roles are requested only if an instance
// is late, or if the cluster does not map the role of a class. Instances are requested only if some are late. The
// evidence suffices for checks.Preflight.
func TestJoining(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		role  string
		late  map[string]bool // not nil: only what joining needs is requested
		roles int             // number of requested roles
		found string          // IDs of the checks with a finding
	}{
		"nothing is late":     {"node", map[string]bool{}, 0, ""},
		"an instance is late": {"node", map[string]bool{"i-1": true}, 1, ""},
		"unmapped role":       {"other", map[string]bool{}, 3, "AUTH-2"}, // also those of the two access entries
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestAccount(t)
			scheme, err := kubeclient.Scheme()
			if err != nil {
				t.Fatal(err)
			}
			class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: awsv1.EC2NodeClassSpec{Role: c.role}}
			class.Status.Subnets = []awsv1.Subnet{{ID: s.estate.PrivateSubnets[0].ID}}
			class.Status.SecurityGroups = []awsv1.SecurityGroup{{ID: s.estate.NodeSG.ID}}
			authMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "aws-auth"},
				Data: map[string]string{"mapRoles": "[]"}}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(class, authMap).Build()
			s.clients.Kube, s.clients.NoKube, s.clients.Late = evidence.NewCacheReader(api, api), "", c.late
			e := collector.Collect(t.Context(), s.clients)
			if !e.NodeGroups.Is(diagnosis.NotAsked) || !e.Fargate.Is(diagnosis.NotAsked) || !e.Events.Is(diagnosis.NotAsked) ||
				!e.Identity.Is(diagnosis.NotAsked) {
				t.Errorf("want no node groups, Fargate profiles, events and kube-system, got %+v", e)
			}
			if !e.Cluster.Known() || !e.Entries.Known() || !e.AuthMap.Known() || !e.Groups.Known() || !e.Routes.Known() ||
				!e.Classes.Known() || e.Account == "" {
				t.Errorf("want all items that joining needs, got %+v", e)
			}
			if e.Instances.Known() != (len(c.late) > 0) || len(e.Roles) != c.roles {
				t.Errorf("instances known: %t, want %t; roles %v, want %d of them", e.Instances.Known(), len(c.late) > 0, e.Roles, c.roles)
			}
			var ids []string
			for _, f := range checks.Preflight(e)["default"] {
				ids = append(ids, f.Check)
			}
			if strings.Join(ids, ",") != c.found {
				t.Errorf("findings of the checks %v, want %s", ids, c.found)
			}
		})
	}
}
