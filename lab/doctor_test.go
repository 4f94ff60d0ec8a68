package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/world"
)

// trouble is a fault of a lab that joiner doctor must find first, with a fix that mends it when it is pasted into a shell.
type trouble struct {
	name  string
	check string
	cause string // part of it
	// breaks does so before the objects of the test are there, and returns the class, lines of the pool's spec, and the pods' selector.
	breaks func(t *testing.T, l *lab.Lab, name string) (class, selector string)
}

// troubles in the order in which they are played, one after the other, in one lab.
func troubles() []trouble {
	images := "amiSelectorTerms: [{alias: al2023@latest}]"
	return []trouble{
		{"entry-of-wrong-type", "AUTH-2", "is of type STANDARD", func(t *testing.T, l *lab.Lab, name string) (string, string) {
			if err := l.AddNodeRole(name); err != nil {
				t.Fatal(err)
			}
			arn, kind := l.RoleARN(name), world.EntryStandard
			if _, err := eks.NewFromConfig(l.AWS()).CreateAccessEntry(t.Context(), &eks.CreateAccessEntryInput{ClusterName: &l.Cluster, PrincipalArn: &arn, Type: &kind}); err != nil {
				t.Fatal(err)
			}
			return strings.Replace(class(l, name, images), "role: "+lab.NodeRole, "role: "+name, 1), "test: " + name
		}},
		{"closed-group", "NET-1", "nothing out to port 443", func(t *testing.T, l *lab.Lab, name string) (string, string) {
			id := ""
			l.Emulator.Do(func(_ *world.World, _ time.Time) {
				g, err := l.Estate.Region.CreateSecurityGroup(l.Estate.VPC.ID, name, "no way out", nil)
				if err != nil {
					t.Error(err)
					return
				}
				g.Egress, g.Ingress, id = nil, l.Estate.NodeGroup.Ingress, g.ID
			})
			return strings.Replace(class(l, name, images), "securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: "+l.Cluster+"}}]", "securityGroupSelectorTerms: [{id: "+id+"}]", 1), "test: " + name
		}},
		{"no-route", "NET-4", "has no route out", func(_ *testing.T, l *lab.Lab, name string) (string, string) {
			subnet := l.Estate.PrivateSubnets[len(l.Estate.PrivateSubnets)-1].ID
			l.Emulator.Do(func(_ *world.World, _ time.Time) {
				for _, table := range l.Estate.Region.RouteTables() {
					table.SubnetIDs = slices.DeleteFunc(table.SubnetIDs, func(id string) bool { return id == subnet })
				}
				l.Estate.Region.CreateRouteTable(world.RouteTable{VPCID: l.Estate.VPC.ID, SubnetIDs: []string{subnet},
					Routes: []world.Route{{Destination: l.Estate.VPC.CIDR.String(), Target: "local"}}})
			})
			return strings.Replace(class(l, name, images), "subnetSelectorTerms: [{tags: {karpenter.sh/discovery: "+l.Cluster+"}}]", "subnetSelectorTerms: [{id: "+subnet+"}]", 1), "test: " + name
		}},
		{"label-that-nobody-has", "ARCH-4", "no NodePool gives its nodes that label", func(_ *testing.T, l *lab.Lab, name string) (string, string) {
			return class(l, name, images), "pod-type: armapp"
		}},
	}
}

// TestDoctorFinds plays faults in a lab. Each must be the first finding while its pods wait, certain, and be mended by the fix.
func TestDoctorFinds(t *testing.T) {
	l := beside(t, lab.Options{AuthMode: world.AuthBoth})
	joiner := program(t)
	restart(t, l)
	for _, f := range troubles() {
		if !t.Run(f.name, func(t *testing.T) { f.play(t, l, joiner) }) {
			return // what it has broken would be found again
		}
	}
}

func (f trouble) play(t *testing.T, l *lab.Lab, joiner string) {
	nodeClass, selector := f.breaks(t, l, f.name)
	apply(t, l, nodeClass, pool(f.name, "", "{key: kubernetes.io/arch, operator: In, values: [amd64]}"), deployment("default", f.name, 1, "500m", "256Mi", selector))
	began := time.Now()
	within(t, l, time.Minute, "the first finding to be "+f.check, func(ctx context.Context) (bool, error) {
		first, err := firstFinding(ctx, l, joiner)
		if err == nil && (first.Check != f.check || !strings.Contains(first.Cause, f.cause) || first.Verdict != "broken") {
			err = fmt.Errorf("it is %+v", first)
		}
		return err == nil, err
	})
	t.Logf("found after %s", time.Since(began).Truncate(time.Millisecond))
	printed, _, err := l.Doctor(t.Context(), joiner)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + printed)
	if lines := strings.Split(strings.TrimSpace(printed), "\n"); len(lines) > 24 || !strings.Contains(strings.Join(lines[:3], "\n"), f.cause) {
		t.Errorf("of %d lines the first three do not have the cause", len(lines))
	}
	mend(t, l, fixIn(t, printed))
	within(t, l, time.Minute, "the pod to run", func(ctx context.Context) (bool, error) {
		pods, err := l.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + f.name})
		return err == nil && len(pods.Items) == 1 && pods.Items[0].Status.Phase == corev1.PodRunning, err
	})
	within(t, l, time.Minute, "joiner doctor to find nothing", func(ctx context.Context) (bool, error) {
		printed, code, err := l.Doctor(ctx, joiner)
		if err == nil && code != 0 {
			err = fmt.Errorf("it prints:\n%s", printed)
		}
		return code == 0, err
	})
}

// found is a finding, as -o json has it.
type found struct{ Check, Verdict, Cause string }

func firstFinding(ctx context.Context, l *lab.Lab, joiner string) (found, error) {
	printed, _, err := l.Doctor(ctx, joiner, "-o", "json")
	if err != nil {
		return found{}, err
	}
	var report struct{ Findings []found }
	if err := json.Unmarshal([]byte(printed), &report); err != nil || len(report.Findings) == 0 {
		return found{}, fmt.Errorf("read %q: %w", printed, err)
	}
	return report.Findings[0], nil
}
