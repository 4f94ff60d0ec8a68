package sizing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/lab"
)

const (
	namespace    = "crowd"
	poolName     = "crowd"
	instanceType = "m5.4xlarge"
	burstPerNode = 10             // number of burst pods that fit on one node: 15 of its 16 CPUs, see pendingPod
	batchSize    = 500            // number of nodes that are created together
	copyMark     = "sizing/copy"  // label of copied Nodes, which the DaemonSets exclude
	burstMark    = "sizing/burst" // label of the first pod and of the pods of a burst
)

// testCluster is a cluster with many nodes. The controller launches the first node, which boots and joins. The other
// nodes are copies of the first node: instances that run without booting, each with a NodeClaim and a Node.
type testCluster struct {
	lab *lab.Lab
	say func(string)

	poolUID  types.UID              // UID of the NodePool
	claim    *karpenterv1.NodeClaim // NodeClaim of the first node
	node     *corev1.Node           // the first node
	instance world.Instance         // instance of the first node
	copies   []string               // names of the copied Nodes
	lastPod  string                 // name of the pod that was added last
}

// manifest returns the NodePool of the test, with its EC2NodeClass and namespace. The NodePool allows one instance
// type, so that the cluster does not depend on prices. Its budget is 100 %, because nodes that are not ready count
// against budgets. A copy has no kubelet, so the copy is temporarily not ready if keepLeases renews its lease late.
func (c *testCluster) manifest() string {
	return fmt.Sprintf(`
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: %[1]s}
spec:
  role: %[2]s
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: %[3]s}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: %[3]s}}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %[1]s}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: %[1]s}
      requirements:
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: node.kubernetes.io/instance-type, operator: In, values: [%[4]s]}
  disruption: {consolidateAfter: 0s, budgets: [{nodes: 100%%}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: %[5]s}
`, poolName, lab.NodeRole, c.lab.Cluster, instanceType, namespace)
}

// build creates the cluster, with the given number of copies. It runs the program joiner only for the first node.
func (c *testCluster) build(ctx context.Context, joiner string, copies int) error {
	if err := c.excludeCopies(ctx); err != nil {
		return err
	}
	if err := c.lab.Apply(ctx, c.manifest()); err != nil {
		return err
	}
	run, err := c.lab.RunController(ctx, joiner, "DISABLE_LEADER_ELECTION=true")
	if err != nil {
		return err
	}
	defer run.Kill()
	if err := c.createFirstNode(ctx); err != nil {
		return err
	}
	run.Kill()
	c.say(fmt.Sprintf("  Creating %d nodes with %d pods", copies, copies*PodsPerNode))
	for created := 0; created < copies; {
		n := min(batchSize, copies-created)
		if err := c.createCopies(ctx, created, n); err != nil {
			return err
		}
		created += n
	}
	return c.waitServed(ctx)
}

// excludeCopies prevents pods of the DaemonSets in kube-system from running on copies, which have no kubelet.
func (c *testCluster) excludeCopies(ctx context.Context) error {
	api := c.lab.Kube.AppsV1().DaemonSets(metav1.NamespaceSystem)
	sets, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list DaemonSets: %w", err)
	}
	for _, d := range sets.Items {
		terms := d.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		for i := range terms {
			terms[i].MatchExpressions = append(terms[i].MatchExpressions,
				corev1.NodeSelectorRequirement{Key: copyMark, Operator: corev1.NodeSelectorOpDoesNotExist})
		}
		if _, err := api.Update(ctx, &d, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("keep DaemonSet %s off copies: %w", d.Name, err)
		}
	}
	return nil
}

// createFirstNode creates one pod and waits until the pod runs on a node that the controller has launched. The fields
// claim, node and instance are then the templates for the copies.
func (c *testCluster) createFirstNode(ctx context.Context) error {
	pod := pendingPod("first")
	err := c.until(ctx, 2*time.Minute, "the creation of the first pod", func(ctx context.Context) (bool, error) {
		_, err := c.lab.Kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err), nil // retry: the namespace's service account may not exist yet
	})
	if err != nil {
		return err
	}
	return c.until(ctx, 2*time.Minute, "the first node", func(ctx context.Context) (bool, error) {
		var claims karpenterv1.NodeClaimList
		if err := c.lab.Client.List(ctx, &claims); err != nil || len(claims.Items) == 0 {
			return false, err
		}
		bound, err := c.lab.Kube.CoreV1().Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil || bound.Status.Phase != corev1.PodRunning {
			return false, err
		}
		claim := &claims.Items[0]
		if claim.Status.NodeName == "" || !claim.StatusConditions().IsTrue(karpenterv1.ConditionInitialized) {
			return false, nil
		}
		node, err := c.lab.Kube.CoreV1().Nodes().Get(ctx, claim.Status.NodeName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, i := range c.lab.Instances() {
			if strings.HasSuffix(claim.Status.ProviderID, "/"+i.ID) && i.Tags["Name"] != "" { // the controller writes the tag Name last
				c.claim, c.node, c.instance, c.poolUID = claim, node, i, claim.OwnerReferences[0].UID
			}
		}
		return c.claim != nil, nil
	})
}

// launch starts n instances like that of the first node, but without user data, so that no kubelet starts. Then it
// waits twice the time that instances are pending.
func (c *testCluster) launch(ctx context.Context, n int) ([]world.Instance, error) {
	tags := maps.Clone(c.instance.Tags)
	maps.DeleteFunc(tags, func(key, _ string) bool { return strings.HasPrefix(key, "aws:") })
	var out []world.Instance
	var err error
	c.lab.Emulator.Do(func(w *world.World, now time.Time) {
		region := w.Region(c.lab.Account, c.lab.Region)
		out, err = region.Launches.RunInstances(now, world.RunRequest{
			Data: world.TemplateData{
				ImageID:      c.instance.ImageID,
				InstanceType: c.instance.Type,
				Profile:      &world.ProfileRef{ARN: c.instance.ProfileARN},
				GroupIDs:     c.instance.SecurityGroupIDs,
			},
			SubnetID: c.instance.SubnetID, Min: n, Max: n, Tags: world.Tagging{"instance": tags},
		})
	})
	if err != nil {
		return nil, fmt.Errorf("launch %d instances: %w", n, err)
	}
	if len(out) != n {
		return nil, errors.New("the emulator launched fewer instances than requested")
	}
	return out, sleep(ctx, 2*c.lab.Pace.Pending)
}

// waitServed waits until the API server returns the last pod from its cache.
func (c *testCluster) waitServed(ctx context.Context) error {
	return c.until(ctx, 5*time.Minute, "the API server to return the last pod from its cache", func(ctx context.Context) (bool, error) {
		_, err := c.lab.Kube.CoreV1().Pods(namespace).Get(ctx, c.lastPod, metav1.GetOptions{ResourceVersion: "0"})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// until polls until ok returns true or an error, or the time limit ends. The error names the expected state: what.
func (c *testCluster) until(ctx context.Context, limit time.Duration, what string, ok func(context.Context) (bool, error)) error {
	if err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, limit, true, ok); err != nil {
		return fmt.Errorf("wait for %s: %w\n%s", what, err, c.lab.Evidence(ctx))
	}
	return nil
}
