package lab

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// taintUninitialized is the taint of a node that the cloud controller has not initialized yet.
const taintUninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

// annotationNodeIP is the annotation with the kubelet's --node-ip. The cloud controller initializes the node only if
// the instance has this address.
const annotationNodeIP = "alpha.kubernetes.io/provided-node-ip"

// cloudController replaces the cloud controller manager of EKS: it initializes new nodes, and deletes the Nodes of
// terminated instances.
type cloudController struct {
	lab   *Lab
	nodes corelisters.NodeLister
	queue workqueue.TypedRateLimitingInterface[string]
}

func newCloudController(l *Lab) *cloudController {
	return &cloudController{
		lab: l,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](20*time.Millisecond, 5*time.Second)),
	}
}

// start watches nodes and initializes new ones, until ctx ends.
func (c *cloudController) start(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(c.lab.Kube, 0)
	nodes := factory.Core().V1().Nodes()
	c.nodes = nodes.Lister()
	enqueue := func(object any) {
		if node, ok := object.(*corev1.Node); ok && isUninitialized(node) {
			c.queue.Add(node.Name)
		}
	}
	_, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, object any) {
			enqueue(object)
			if node, ok := object.(*corev1.Node); ok && isUnreachable(node) {
				c.lab.fleet.ReportNow(node.Name) // as a real kubelet does within ten seconds
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch nodes: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), nodes.Informer().HasSynced) {
		return fmt.Errorf("watch nodes: %w", context.Cause(ctx))
	}
	go func() {
		<-ctx.Done()
		c.queue.ShutDown()
	}()
	for range 32 { // many workers, because they wait for the API server and hardly use the CPU
		go c.work(ctx)
	}
	return nil
}

func isUnreachable(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
}

func isUninitialized(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintUninitialized })
}

func (c *cloudController) work(ctx context.Context) {
	for {
		name, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return c.initialize(ctx, name) })
		if err != nil && !apierrors.IsNotFound(err) {
			c.queue.AddRateLimited(name)
		} else {
			c.queue.Forget(name)
		}
		c.queue.Done(name)
	}
}

// initialize writes EC2's data about the node's instance to the node, and removes the taint uninitialized.
func (c *cloudController) initialize(ctx context.Context, name string) error {
	nodes := c.lab.Kube.CoreV1().Nodes()
	node, err := nodes.Get(ctx, name, metav1.GetOptions{})
	if err != nil || !isUninitialized(node) {
		return err
	}
	i, ok := c.instanceOf(node)
	if !ok {
		return fmt.Errorf("node %s has no instance", name)
	}
	address := i.PrivateIP
	if c.lab.IPv6 {
		address = i.IPv6
	}
	if provided := node.Annotations[annotationNodeIP]; provided != address {
		return fmt.Errorf("node %s has the --node-ip %q, but its instance has the address %q", name, provided, address)
	}
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: address},
		{Type: corev1.NodeInternalDNS, Address: i.PrivateDNSName},
		{Type: corev1.NodeHostName, Address: i.PrivateDNSName},
	}
	if node, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return err
	}
	node.Spec.ProviderID = providerID(i)
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintUninitialized })
	maps.Copy(node.Labels, map[string]string{
		corev1.LabelInstanceTypeStable:      i.Type,
		corev1.LabelInstanceType:            i.Type,
		corev1.LabelTopologyZone:            i.Zone,
		corev1.LabelTopologyRegion:          i.Region,
		corev1.LabelFailureDomainBetaZone:   i.Zone,
		corev1.LabelFailureDomainBetaRegion: i.Region,
		"topology.k8s.aws/zone-id":          i.ZoneID,
	})
	_, err = nodes.Update(ctx, node, metav1.UpdateOptions{})
	return err
}

// instanceOf returns the instance with the node's provider ID. For a node without provider ID it returns the running or
// pending instance with the node's name. It returns false if there is no such instance.
func (c *cloudController) instanceOf(node *corev1.Node) (world.Instance, bool) {
	var found world.Instance
	ok := false
	c.lab.Emulator.Do(func(w *world.World, _ time.Time) {
		if id := node.Spec.ProviderID[strings.LastIndexByte(node.Spec.ProviderID, '/')+1:]; id != "" {
			found, ok = w.Instance(id)
			return
		}
		for _, i := range w.Region(c.lab.Account, c.lab.Region).Instances.All() {
			if i.PrivateDNSName == node.Name && i.Alive() {
				found, ok = i, true
			}
		}
	})
	return found, ok
}

// deleteNode deletes the Node of a terminated instance, after the time that the cloud controller needs to detect the
// termination. It returns at once.
func (c *cloudController) deleteNode(i world.Instance) {
	go func() {
		select {
		case <-time.After(c.lab.Pace.NodeGone):
		case <-c.lab.ctx.Done():
			return
		}
		select {
		case <-c.lab.instances.ready: // by then, the node informer has synced
		case <-c.lab.ctx.Done():
			return
		}
		node := c.nodeOf(i)
		if node == nil || node.DeletionTimestamp != nil {
			return
		}
		_ = c.lab.Kube.CoreV1().Nodes().Delete(c.lab.ctx, node.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &node.UID},
		})
	}()
}

// nodeOf returns an instance's node, or nil if the instance has none. It compares provider IDs, because EC2 drops the
// names and addresses of terminated instances.
func (c *cloudController) nodeOf(i world.Instance) *corev1.Node {
	nodes, err := c.nodes.List(labels.Everything())
	if err != nil {
		return nil
	}
	for _, node := range nodes {
		if node.Spec.ProviderID == providerID(i) {
			return node
		}
	}
	return nil
}

func providerID(i world.Instance) string { return "aws:///" + i.Zone + "/" + i.ID }
