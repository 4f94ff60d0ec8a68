package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/lab"
)

// restrictedLabel is a label of the pool. NodeRestriction does not allow a kubelet to set this label.
const restrictedLabel = "node-restriction.kubernetes.io/tier"

// TestForgedNodes checks that a kubelet cannot get the labels, and thereby the pods, of another instance's NodePool.
// While an instance boots, kubelets of other instances create Nodes with the provider ID of that instance. The
// controller does not change these Nodes, and the NodeClaim reports the mismatch. Then the instance's own Node joins
// and runs the pod.
func TestForgedNodes(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	c := ensureController(t, l)
	name := newTestNamespace(t, l)
	// The API server refuses the instance's own kubelet until the role is mapped, so the forged Nodes join first.
	// Preflight is off, because it would prevent the launch with this role.
	const role = "node-of-secure"
	if err := l.Roles.AddNodeRole(role); err != nil {
		t.Fatal(err)
	}
	apply(t, l,
		strings.NewReplacer("metadata: {name: "+name+"}", "metadata: {name: "+name+", annotations: {"+awsv1.AnnotationPreflight+": 'off'}}",
			"role: "+lab.NodeRole, "role: "+role).Replace(class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]")),
		strings.Replace(pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"),
			"labels: {", "labels: {"+restrictedLabel+": secret, ", 1),
		deployment(name, name, 1, "500m", "256Mi", restrictedLabel+": secret"))
	i := awaitInstance(t, l, name)

	forged := []*forgedNode{
		newForgedNode(t, l, "ip-6-6-6-6.ec2.internal", i),
		newForgedNode(t, l, "ip-6-6-6-7.ec2.internal", i),
	}
	// The second forged Node has the instance's address, and the pool's labels that NodeRestriction does not protect.
	forged[0].address = "6.6.6.6"
	forged[1].address, forged[1].taints = i.PrivateIP, []corev1.Taint{karpenterv1.UnregisteredTaint()}
	forged[1].labels = map[string]string{karpenterv1.LabelNodePool: name, karpenterv1.LabelInitialized: "true", "test": name}
	changes := watchForged(t, l, name, forged)
	for _, f := range forged {
		f.join(t, l)
	}
	awaitMismatch(t, l, name, i, forged)
	if n := metricSum(t, c.Metrics, "joiner_node_mismatches_total", `nodepool="`+name+`"`); n != float64(len(forged)) {
		t.Errorf("joiner_node_mismatches_total is %.0f, want %d", n, len(forged))
	}

	_, err := eks.NewFromConfig(l.AWS()).CreateAccessEntry(t.Context(), &eks.CreateAccessEntryInput{
		ClusterName: &l.Cluster, PrincipalArn: aws.String(l.Roles.ARN(role)), Type: aws.String("EC2_LINUX")})
	if err != nil {
		t.Fatal(err)
	}
	awaitOwnNode(t, l, name, i)
	for _, f := range forged {
		f.checkUnchanged(t, l)
		if err := l.Kube.CoreV1().Nodes().Delete(t.Context(), f.name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		within(t, l, 20*time.Second, "Node "+f.name+" to be deleted", func(ctx context.Context) (bool, error) {
			_, err := l.Kube.CoreV1().Nodes().Get(ctx, f.name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
	}
	awaitOwnNode(t, l, name, i) // still, after the deletion of the forged Nodes
	if all := instancesOf(l, name); len(all) != 1 {
		t.Errorf("%d instances were launched, want 1: %v", len(all), all)
	}
	cleanUp(t, l, name)
	for _, change := range changes() {
		t.Error(change)
	}
}

// awaitInstance waits until a NodeClaim of the pool has a running instance, and returns the instance.
func awaitInstance(t *testing.T, l *lab.Lab, pool string) (out world.Instance) {
	t.Helper()
	within(t, l, time.Minute, "an instance of NodePool "+pool, func(context.Context) (bool, error) {
		_, providerIDs := claimsOf(t, l, pool)
		for _, i := range instancesOf(l, pool) {
			if out = i; i.State == world.Running && providerIDs["aws:///"+i.Zone+"/"+i.ID] {
				return true, nil
			}
		}
		return false, nil
	})
	return out
}

// forgedNode is a Node that a kubelet creates with the provider ID of another instance, the victim.
type forgedNode struct {
	name    string
	kube    *kubernetes.Clientset // client with the permissions of the kubelet
	address string
	labels  map[string]string
	taints  []corev1.Taint
	victim  world.Instance // instance whose provider ID the Node has
}

// newForgedNode returns a forged Node. join creates the Node in the cluster.
func newForgedNode(t *testing.T, l *lab.Lab, name string, victim world.Instance) *forgedNode {
	t.Helper()
	cfg := rest.CopyConfig(l.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + name, Groups: []string{"system:nodes", "system:authenticated"}}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &forgedNode{name: name, kube: kube, victim: victim}
}

// join creates the Node and reports it as ready, with room for many pods. It checks that the API server refuses the
// label that NodeRestriction protects.
func (f *forgedNode) join(t *testing.T, l *lab.Lab) {
	t.Helper()
	nodes := f.kube.CoreV1().Nodes()
	_, err := nodes.Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: f.name, Labels: f.labels},
		Spec:       corev1.NodeSpec{ProviderID: "aws:///" + f.victim.Zone + "/" + f.victim.ID, Taints: f.taints},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	room := corev1.ResourceList{}
	for name, amount := range map[corev1.ResourceName]string{"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi"} {
		room[name] = resource.MustParse(amount)
	}
	now := metav1.Now()
	status, err := json.Marshal(map[string]any{"status": corev1.NodeStatus{
		Capacity: room, Allocatable: room, Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: f.address}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "ok",
			LastHeartbeatTime: now, LastTransitionTime: now}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nodes.Patch(t.Context(), f.name, types.StrategicMergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	label := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"secret"}}}`, restrictedLabel)
	if _, err := nodes.Patch(t.Context(), f.name, types.MergePatchType, label, metav1.PatchOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("Node %s can get the label %s, want NodeRestriction to forbid it: %v", f.name, restrictedLabel, err)
	}
}

func (f *forgedNode) get(t *testing.T, l *lab.Lab) *corev1.Node {
	t.Helper()
	node, err := l.Kube.CoreV1().Nodes().Get(t.Context(), f.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// describeChange describes a change that the controller made to the Node n. It returns an empty text if n is unchanged.
func (f *forgedNode) describeChange(n *corev1.Node) string {
	expected := slices.Concat(slices.Collect(maps.Keys(f.labels)), []string{corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable,
		"beta.kubernetes.io/os", "beta.kubernetes.io/arch"})
	for key, value := range n.Labels {
		if !slices.Contains(expected, key) {
			return fmt.Sprintf("Node %s got the label %s=%s", n.Name, key, value)
		}
	}
	for _, want := range f.taints {
		if !slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool { return taint.MatchTaint(&want) }) {
			return fmt.Sprintf("Node %s lost its taint %s: %v", n.Name, want.Key, n.Spec.Taints)
		}
	}
	switch {
	case len(n.Finalizers) > 0 || len(n.OwnerReferences) > 0:
		return fmt.Sprintf("Node %s got finalizers %v, owners %v", n.Name, n.Finalizers, n.OwnerReferences)
	case slices.ContainsFunc(slices.Collect(maps.Keys(n.Annotations)), func(key string) bool {
		return strings.Contains(key, karpenterv1.Group) || strings.Contains(key, "joiner.sh")
	}):
		return fmt.Sprintf("Node %s got annotations: %v", n.Name, n.Annotations)
	}
	return ""
}

func (f *forgedNode) checkUnchanged(t *testing.T, l *lab.Lab) {
	t.Helper()
	n := f.get(t, l)
	if change := f.describeChange(n); change != "" || n.DeletionTimestamp != nil {
		t.Errorf("Node %s was changed, want no change: %q; deletion timestamp %v", n.Name, change, n.DeletionTimestamp)
	}
}

// watchForged watches the forged Nodes and the namespace's pods. The returned function lists the changes that the
// controller made to the forged Nodes, and the pods that were bound to these Nodes.
func watchForged(t *testing.T, l *lab.Lab, namespace string, forged []*forgedNode) func() []string {
	t.Helper()
	var mu sync.Mutex
	problems := map[string]bool{}
	record := func(object any) {
		problem := ""
		for _, f := range forged {
			switch o := object.(type) {
			case *corev1.Node:
				if o.Name == f.name {
					problem = f.describeChange(o)
				}
			case *corev1.Pod:
				if o.Spec.NodeName == f.name {
					problem = "pod " + o.Name + " was bound to Node " + f.name
				}
			}
		}
		if problem != "" {
			mu.Lock()
			defer mu.Unlock()
			problems[problem] = true
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: record, UpdateFunc: func(_, object any) { record(object) }}
	nodeFactory := informers.NewSharedInformerFactory(l.Kube, 0)
	podFactory := informers.NewSharedInformerFactoryWithOptions(l.Kube, 0, informers.WithNamespace(namespace))
	for _, informer := range []cache.SharedIndexInformer{
		nodeFactory.Core().V1().Nodes().Informer(), podFactory.Core().V1().Pods().Informer(),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			t.Fatal(err)
		}
	}
	for _, factory := range []informers.SharedInformerFactory{nodeFactory, podFactory} {
		factory.Start(t.Context().Done())
		factory.WaitForCacheSync(t.Context().Done())
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Sorted(maps.Keys(problems))
	}
}

// awaitMismatch waits until the NodeClaim's condition Registered, and an event of each forged Node, report why the Node
// does not belong to the instance.
func awaitMismatch(t *testing.T, l *lab.Lab, pool string, i world.Instance, forged []*forgedNode) {
	t.Helper()
	why := fmt.Sprintf("EC2 says that the private DNS name of instance %s is %s", i.ID, i.PrivateDNSName)
	within(t, l, 30*time.Second, "the NodeClaim to report the forged Node", func(context.Context) (bool, error) {
		claims, _ := claimsOf(t, l, pool)
		if len(claims) != 1 {
			return false, fmt.Errorf("%d NodeClaims, want 1", len(claims))
		}
		c, _ := claims[0].StatusConditions().Find(karpenterv1.ConditionRegistered)
		isOneSentence := strings.HasPrefix(c.Message, "Node ip-6-6-6-") && !strings.Contains(strings.TrimSuffix(c.Message, "."), ". ")
		if c.Status == metav1.ConditionTrue || c.Reason != "NodeMismatch" || !isOneSentence || !strings.Contains(c.Message, why) {
			return false, fmt.Errorf("Registered is %s, %s: %s", c.Status, c.Reason, c.Message)
		}
		return true, nil
	})
	for _, f := range forged {
		within(t, l, 30*time.Second, "an event about Node "+f.name, func(ctx context.Context) (bool, error) {
			events, err := l.Kube.CoreV1().Events("").List(ctx,
				metav1.ListOptions{FieldSelector: "reason=NodeMismatch,involvedObject.kind=Node,involvedObject.name=" + f.name})
			return err == nil && len(events.Items) > 0 && strings.Contains(events.Items[0].Message, why), err
		})
		f.checkUnchanged(t, l)
	}
}

// awaitOwnNode waits until the NodeClaim has the instance's own Node, and this Node has the pool's labels and runs the
// pod.
func awaitOwnNode(t *testing.T, l *lab.Lab, pool string, i world.Instance) {
	t.Helper()
	within(t, l, time.Minute, "the instance's own Node to be initialized", func(ctx context.Context) (bool, error) {
		claims, _ := claimsOf(t, l, pool)
		if len(claims) != 1 || !claims[0].StatusConditions().IsTrue(karpenterv1.ConditionInitialized) {
			return false, fmt.Errorf("%d NodeClaims, want 1 that is initialized", len(claims))
		}
		node := &corev1.Node{}
		err := l.Client.Get(ctx, client.ObjectKey{Name: i.PrivateDNSName}, node)
		return err == nil && claims[0].Status.NodeName == node.Name && node.Labels[restrictedLabel] == "secret" &&
			node.Labels[karpenterv1.LabelRegistered] == "true", err
	})
	within(t, l, time.Minute, "the pod to run on Node "+i.PrivateDNSName, func(ctx context.Context) (bool, error) {
		pods, err := l.Kube.CoreV1().Pods(pool).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 1 && pods.Items[0].Status.Phase == corev1.PodRunning &&
			pods.Items[0].Spec.NodeName == i.PrivateDNSName, err
	})
}
