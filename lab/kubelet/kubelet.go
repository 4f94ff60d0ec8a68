package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// Kubelet emulates the kubelet of one node.
type Kubelet struct {
	Settings

	fleet  *Fleet
	client *corev1client.CoreV1Client
	leases coordinationclient.LeaseInterface
	ctx    context.Context
	stop   context.CancelFunc

	networkUp sync.Once
	network   chan struct{} // closed when pods can have addresses
	reportNow chan struct{} // holds a value while a report is requested, see Fleet.ReportNow

	mu        sync.Mutex
	pods      map[types.UID]*podState
	addresses int64 // maximum number of pod addresses; valid once the network is up
}

func leaseClient(config *rest.Config, client *http.Client) (coordinationclient.LeaseInterface, error) {
	c, err := coordinationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return c.Leases(corev1.NamespaceNodeLease), nil
}

// Stop ends the kubelet without a further write, like a power failure.
func (k *Kubelet) Stop() {
	k.stop()
	k.fleet.forget(k)
}

// run registers the node, renews its lease and reports its status, until the kubelet is stopped. The node becomes Ready
// with the first report after the network is up.
func (k *Kubelet) run() {
	defer k.fleet.forget(k)
	node, ok := k.register()
	if !ok {
		return
	}
	go k.renewLease(node)
	k.fleet.enqueuePodsOf(k.NodeName) // starts the pods with hostNetwork
	// If the network plug-in has a pod, syncPod calls bringNetworkUp.
	if k.OwnNetwork || k.fleet.networkPod == "" && k.sleep(k.fleet.pace.CNI) {
		k.bringNetworkUp(nil) // nil: no plug-in pod
	}
	select {
	case <-k.network:
	case <-k.ctx.Done():
		return
	}
	k.fleet.enqueuePodsOf(k.NodeName) // starts the other pods
	for {
		wait := statusHeartbeat
		if err := k.report(); err != nil {
			k.logError("kubelet_node_status.go:473", "Error updating node status, will retry", err)
			wait = time.Second
		}
		next := time.NewTimer(wait)
		select {
		case <-next.C:
		case <-k.reportNow:
		case <-k.ctx.Done():
			next.Stop()
			return
		}
		next.Stop()
	}
}

// hasNetwork reports whether bringNetworkUp has been called.
func (k *Kubelet) hasNetwork() bool {
	select {
	case <-k.network:
		return true
	default:
		return false
	}
}

// register creates the Node, and retries with the back-off of a real kubelet until it succeeds. It returns false when
// the kubelet is stopped.
func (k *Kubelet) register() (*corev1.Node, bool) {
	k.logInfo("kubelet_node_status.go:75", fmt.Sprintf("\"Attempting to register node\" node=%q", k.NodeName))
	backoff := 100 * time.Millisecond
	for {
		node, err := k.tryRegister()
		if err == nil {
			k.logInfo("kubelet_node_status.go:78", fmt.Sprintf("\"Successfully registered node\" node=%q", k.NodeName))
			return node, true
		}
		k.logError("kubelet_node_status.go:107", "Unable to register node with API server", err)
		if !k.sleep(backoff) {
			return nil, false
		}
		backoff = min(2*backoff, 7*time.Second)
	}
}

// tryRegister sends the requests of one attempt to register the node. It returns the Node as stored.
func (k *Kubelet) tryRegister() (*corev1.Node, error) {
	node, err := k.client.Nodes().Create(k.ctx, k.node(), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return node, err
	}
	// The Node exists already, so the kubelet uses it. The kubelet updates the status and the labels that it detects
	// itself. It does not update the labels of --node-labels, the taints and the provider ID.
	k.logInfo("kubelet_node_status.go:130", fmt.Sprintf("\"Node was previously registered\" node=%q", k.NodeName))
	_, err = k.client.Nodes().Get(k.ctx, k.NodeName, metav1.GetOptions{}) // as a real kubelet does
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": k.instanceLabels()}})
	if err != nil {
		return nil, err
	}
	if node, err = k.client.Nodes().Patch(k.ctx, k.NodeName, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return nil, err
	}
	return node, k.report()
}

// labels returns the labels of the Node that the kubelet creates: those of --node-labels and those that it detects.
func (k *Kubelet) labels() map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, k.Labels)
	maps.Copy(labels, k.instanceLabels())
	return labels
}

// instanceLabels returns the labels that a kubelet detects by itself. Source: updateDefaultLabels in
// pkg/kubelet/kubelet_node_status.go.
func (k *Kubelet) instanceLabels() map[string]string {
	return map[string]string{
		corev1.LabelHostname: k.NodeName, corev1.LabelOSStable: "linux", corev1.LabelArchStable: k.Arch,
		"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": k.Arch,
	}
}

func (k *Kubelet) node() *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        k.NodeName,
			Labels:      k.labels(),
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Spec:   corev1.NodeSpec{ProviderID: k.ProviderID, Taints: k.Taints},
		Status: k.status(),
	}
	if k.ExternalCloud {
		node.Annotations["alpha.kubernetes.io/provided-node-ip"] = k.IP
		node.Spec.Taints = append(append([]corev1.Taint{}, k.Taints...), corev1.Taint{
			Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule,
		})
	}
	return node
}

func (k *Kubelet) status() corev1.NodeStatus {
	now := metav1.Now()
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: status, Reason: reason, Message: message,
			LastHeartbeatTime: now, LastTransitionTime: now,
		}
	}
	ready := condition(corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady",
		"container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized")
	if k.hasNetwork() {
		ready = condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
	}
	var capacity, allocatable corev1.ResourceList
	k.withLock(func() { capacity, allocatable = k.Capacity, k.Allocatable })
	return corev1.NodeStatus{
		Capacity:    capacity,
		Allocatable: allocatable,
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: k.IP},
			{Type: corev1.NodeHostName, Address: k.NodeName},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
		NodeInfo: corev1.NodeSystemInfo{
			OperatingSystem: "linux", Architecture: k.Arch, OSImage: k.OSImage, KernelVersion: k.KernelVersion,
			KubeletVersion: k.Version, ContainerRuntimeVersion: "containerd://2.1.4",
		},
		Conditions: []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
			condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
			condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
			ready,
		},
	}
}

// report writes the node's status. It does not write addresses, because the cloud controller sets them.
func (k *Kubelet) report() error {
	status := k.status()
	status.Addresses = nil
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	_, err = k.client.Nodes().PatchStatus(k.ctx, k.NodeName, patch)
	return err
}

func (k *Kubelet) renewLease(node *corev1.Node) {
	var lease *coordinationv1.Lease
	for {
		renewed, err := k.renewOnce(node, lease)
		wait := leaseRenewal
		if err != nil {
			k.logError("controller.go:146", "Failed to ensure lease exists, will retry", err)
			renewed, wait = nil, 2*time.Second // the lease may have been deleted with its Node
		}
		lease = renewed
		if !k.sleep(wait) {
			return
		}
	}
}

// renewOnce renews the lease, and returns the stored lease. If lease is nil, renewOnce creates a lease. If the API
// server has a lease already, renewOnce returns that lease without renewing it.
func (k *Kubelet) renewOnce(node *corev1.Node, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	now := metav1.NowMicro()
	if lease != nil {
		lease = lease.DeepCopy()
		lease.Spec.RenewTime = &now
		return k.leases.Update(k.ctx, lease, metav1.UpdateOptions{})
	}
	seconds := int32(leaseDuration / time.Second)
	lease, err := k.leases.Create(k.ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name:            k.NodeName,
			Namespace:       corev1.NamespaceNodeLease,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &k.NodeName, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return lease, err
	}
	return k.leases.Get(k.ctx, k.NodeName, metav1.GetOptions{})
}

// sleep waits for d. It returns false when the kubelet is stopped first.
func (k *Kubelet) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-k.ctx.Done():
		return false
	}
}

// logInfo adds a line to the kubelet's log. where is the file and line of the kubelet's source that logs the message.
func (k *Kubelet) logInfo(where, message string) { k.Say(klog('I', where, message)) }

// logError adds a line about an error to the kubelet's log, see logInfo. It ignores the errors of requests that were
// canceled because the kubelet was stopped.
func (k *Kubelet) logError(where, message string, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	k.Say(klog('E', where, fmt.Sprintf("%q err=%q node=%q", message, err, k.NodeName)))
}

// klog returns a log line in the format of Kubernetes programs.
func klog(severity rune, where, message string) string {
	return fmt.Sprintf("%c%s    1893 %s] %s", severity, time.Now().UTC().Format("0102 15:04:05.000000"), where, message)
}
