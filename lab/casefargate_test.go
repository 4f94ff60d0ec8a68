package lab_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/lab/fargate"
)

const (
	executionRole    = "JoinerPodExecution"
	fargateProfile   = "joiner"
	fargateNamespace = "kube-system"
)

// notInAuth is EKS's message for a pod execution role that is not mapped or lacks permissions. %s is the name of the
// Fargate profile.
const notInAuth = "Misconfigured Fargate Profile: fargate profile %s blocked for new launches due to: Pod execution role is not found " +
	"in auth config or does not have all required permissions for launching fargate pods."

// fargateCluster is a cluster without nodes, whose system pods run on Fargate.
type fargateCluster struct {
	*installation
	joiner string // path of the program
}

// TestCaseFargate reproduces the user report case-5: the controller's own pods stay Pending in a cluster whose system
// pods run on Fargate.
//
// It injects each of the reported causes. joiner doctor runs outside of the cluster and reports the right cause in its
// first lines, and the pods run after its printed fix. Then the test installs the chart on Fargate with each of its
// documented values files.
func TestCaseFargate(t *testing.T) {
	helm := os.Getenv(helmVariable)
	if helm == "" {
		t.Skip(helmVariable + " is not set to a Helm binary: make bin/helm builds one")
	}
	l := parallelLab(t, lab.Options{Fargate: true, AuthMode: ekscluster.AuthBoth})
	joiner := program(t)
	if err := l.Roles.AddExecutionRole(executionRole); err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		name string
		test func(*fargateCluster)
	}{
		{"pods before the profile", (*fargateCluster).podsBeforeProfile},
		{"mapping lost", (*fargateCluster).mappingLost},
		{"permissions lost", (*fargateCluster).permissionsLost},
		{"toleration lost", (*fargateCluster).tolerationLost},
		{"missed by the webhook", (*fargateCluster).missedByWebhook},
		{"chart", (*fargateCluster).everyValuesFile},
	} {
		ok := t.Run(part.name, func(t *testing.T) {
			part.test(&fargateCluster{installation: &installation{t: t, l: l, helm: helm}, joiner: joiner})
		})
		if !ok {
			return // the fault remains, and doctor would report it in the next subtest too
		}
	}
}

// podsBeforeProfile creates the pods before the profile. EKS processes pods only when they are created, so it does not
// assign these pods to Fargate.
func (s *fargateCluster) podsBeforeProfile() {
	s.run("install", "joiner", chartFolder(s.t), "-n", fargateNamespace, "--set", "settings.clusterName="+s.l.Cluster)
	s.awaitPending("no nodes available to schedule pods", "default-scheduler")
	s.makeProfile(fargateProfile, fargateNamespace, map[string]string{"app.kubernetes.io/name": "joiner"})
	s.checkFix("FG-2", "was created before Fargate profile "+fargateProfile+" was active")
}

// mappingLost deletes the access entry that EKS created with the profile. A tool that manages all mappings would do the
// same. New pods must stay Pending until the fix.
func (s *fargateCluster) mappingLost() {
	arn := s.l.Roles.ARN(executionRole)
	if _, err := eks.NewFromConfig(s.l.AWS()).DeleteAccessEntry(s.t.Context(),
		&eks.DeleteAccessEntryInput{ClusterName: &s.l.Cluster, PrincipalArn: &arn}); err != nil {
		s.t.Fatal(err)
	}
	s.deletePods()
	s.awaitPending(fmt.Sprintf(notInAuth, fargateProfile), fargate.Scheduler)
	s.checkFix("FG-3", "pod execution role "+executionRole+" of Fargate profile "+fargateProfile+" is not mapped")
}

// permissionsLost detaches the policy of the pod execution role, which causes the same event as mappingLost.
func (s *fargateCluster) permissionsLost() {
	role, policy := executionRole, "arn:aws:iam::aws:policy/"+fargate.ExecutionPolicy
	if _, err := iam.NewFromConfig(s.l.AWS()).DetachRolePolicy(s.t.Context(),
		&iam.DetachRolePolicyInput{RoleName: &role, PolicyArn: &policy}); err != nil {
		s.t.Fatal(err)
	}
	s.deletePods()
	s.awaitPending(fmt.Sprintf(notInAuth, fargateProfile), fargate.Scheduler)
	s.checkFix("FG-3", "pod execution role "+executionRole+" lacks "+fargate.ExecutionPolicy)
}

// tolerationLost replaces the tolerations of the chart while EKS's webhook is down, so the new pods are not assigned to
// Fargate. The profile is older than the pods. kube-scheduler's event reports a taint of the existing nodes.
func (s *fargateCluster) tolerationLost() {
	s.ageProfile()
	s.l.Serverless.SetDown(true)
	s.patch(`{"spec":{"template":{"spec":{"tolerations":[{"key":"CriticalAddonsOnly","operator":"Exists"}]}}}}`)
	s.awaitPending("had untolerated taint", "default-scheduler") // current kube-schedulers omit the name of the taint
	s.l.Serverless.SetDown(false)
	s.checkFix("FG-8", "do not tolerate the taint eks.amazonaws.com/compute-type")
}

// missedByWebhook creates pods with the toleration while EKS's webhook is down. A Fargate node accepts only one pod, so
// the new pods stay Pending.
func (s *fargateCluster) missedByWebhook() {
	s.l.Serverless.SetDown(true)
	s.patch(`{"spec":{"template":{"metadata":{"annotations":{"restart":"1"}}}}}`)
	s.awaitPending("Too many pods", "default-scheduler")
	s.l.Serverless.SetDown(false)
	s.checkFix("FG-2", "was not assigned to Fargate when it was created")
}

func (s *fargateCluster) makeProfile(name, namespace string, labels map[string]string) {
	s.t.Helper()
	var subnets []string
	for _, subnet := range s.l.Estate.PrivateSubnets {
		subnets = append(subnets, subnet.ID)
	}
	arn, api := s.l.Roles.ARN(executionRole), eks.NewFromConfig(s.l.AWS())
	_, err := api.CreateFargateProfile(s.t.Context(), &eks.CreateFargateProfileInput{
		ClusterName: &s.l.Cluster, FargateProfileName: &name, PodExecutionRoleArn: &arn, Subnets: subnets,
		Selectors: []ekstypes.FargateProfileSelector{{Namespace: &namespace, Labels: labels}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	within(s.t, s.l, 10*time.Second, "profile "+name+" to be active", func(ctx context.Context) (bool, error) {
		out, err := api.DescribeFargateProfile(ctx, &eks.DescribeFargateProfileInput{ClusterName: &s.l.Cluster, FargateProfileName: &name})
		return err == nil && out.FargateProfile.Status == ekstypes.FargateProfileStatusActive, err
	})
}

func (s *fargateCluster) ageProfile() {
	s.t.Helper()
	s.l.Emulator.Do(func(w *world.World, now time.Time) {
		p, err := w.Region(s.l.Account, s.l.Region).EKS.FargateProfile(s.l.Cluster, fargateProfile)
		if err != nil {
			s.t.Error(err)
			return
		}
		p.CreatedAt = now.Add(-time.Hour)
	})
}

func (s *fargateCluster) pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := s.l.Kube.CoreV1().Pods(fargateNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=joiner"})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (s *fargateCluster) deletePods() {
	s.t.Helper()
	err := s.l.Kube.CoreV1().Pods(fargateNamespace).DeleteCollection(s.t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=joiner"})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *fargateCluster) patch(patch string) {
	s.t.Helper()
	if _, err := s.l.Kube.AppsV1().Deployments(fargateNamespace).Patch(s.t.Context(), "joiner", types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// awaitPending waits until both replicas of the controller have no node, this schedulerName, and an event
// FailedScheduling with the text.
func (s *fargateCluster) awaitPending(text, scheduler string) {
	s.t.Helper()
	within(s.t, s.l, 20*time.Second, "FailedScheduling events of two pods with: "+text, func(ctx context.Context) (bool, error) {
		pods, err := s.pods(ctx)
		if err != nil {
			return false, err
		}
		events, err := s.l.Kube.CoreV1().Events(fargateNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		reported := 0
		for _, p := range pods {
			if p.Spec.SchedulerName == scheduler && p.Spec.NodeName == "" && p.DeletionTimestamp == nil &&
				hasFailedScheduling(p, events.Items, text) {
				reported++
			}
		}
		if reported != 2 {
			err = fmt.Errorf("%d pods have the event, want 2", reported)
		}
		return reported == 2, err
	})
}

func hasFailedScheduling(p corev1.Pod, events []corev1.Event, text string) bool {
	return slices.ContainsFunc(events, func(e corev1.Event) bool {
		return e.InvolvedObject.UID == p.UID && e.Reason == "FailedScheduling" && strings.Contains(e.Message, text)
	})
}

// checkFix checks that the first finding of joiner doctor has the check and the cause. It applies the printed fix, and
// waits until the pods run and doctor reports no problem.
func (s *fargateCluster) checkFix(check, cause string) {
	t, l := s.t, s.l
	t.Helper()
	printed, code, err := l.Doctor(t.Context(), s.joiner)
	if err != nil || code != 1 {
		t.Fatalf("joiner doctor: exit status %d, error %v, want 1 and no error:\n%s", code, err, printed)
	}
	t.Log("\n" + printed)
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	if len(lines) > 24 || !strings.HasPrefix(printed, check+" broken") || !strings.Contains(strings.Join(lines[:3], "\n"), cause) {
		t.Errorf("want at most 24 lines, the first three with %s and %q; got %d lines", check, cause, len(lines))
	}
	applyFix(t, l, fixIn(t, printed))
	s.awaitOnFargate(fargateNamespace, "joiner")
	within(t, l, 20*time.Second, "joiner doctor to report no problem", func(ctx context.Context) (bool, error) {
		printed, code, err := l.Doctor(ctx, s.joiner)
		if err == nil && code != 0 {
			err = fmt.Errorf("joiner doctor prints:\n%s", printed)
		}
		return code == 0, err
	})
}

// awaitOnFargate waits until a Deployment is ready, and checks that each of its pods has its own Fargate node.
func (s *fargateCluster) awaitOnFargate(namespace, name string) {
	t, l := s.t, s.l
	t.Helper()
	var d *appsv1.Deployment
	within(t, l, 30*time.Second, "deployment "+namespace+"/"+name+" to run", func(ctx context.Context) (done bool, err error) {
		if d, err = l.Kube.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return false, err
		}
		want, status := *d.Spec.Replicas, d.Status
		if status.ObservedGeneration != d.Generation || status.Replicas != want || status.UpdatedReplicas != want ||
			status.ReadyReplicas != want {
			return false, fmt.Errorf("the Deployment has the status %+v", status)
		}
		return true, nil
	})
	pods, err := l.Kube.CoreV1().Pods(namespace).List(t.Context(),
		metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector)})
	if err != nil {
		t.Fatal(err)
	}
	nodes := map[string]bool{}
	for _, p := range pods.Items {
		if p.DeletionTimestamp != nil {
			continue
		}
		if !strings.HasPrefix(p.Spec.NodeName, "fargate-ip-") || nodes[p.Spec.NodeName] ||
			p.Status.Phase != corev1.PodRunning || p.Annotations[fargate.CapacityAnnotation] == "" {
			t.Errorf("pod %s of %s is %s on node %q with annotations %v, want Running on a Fargate node of its own",
				p.Name, namespace, p.Status.Phase, p.Spec.NodeName, p.Annotations)
		}
		nodes[p.Spec.NodeName] = true
	}
}
