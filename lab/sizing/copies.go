package sizing

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/lab/controlplane"
)

// leaseRenewal is the interval for renewing the leases of copies, which have no kubelet. After 50 seconds without a
// renewal, kube-controller-manager marks a Node as unreachable.
const leaseRenewal = 15 * time.Second

// createCopies creates n copies of the first node. The names of the copies' NodeClaims and pods contain consecutive
// numbers from first.
func (c *testCluster) createCopies(ctx context.Context, first, n int) error {
	instances, err := c.launch(ctx, n)
	if err != nil {
		return err
	}
	var objects []controlplane.EtcdObject
	for k, i := range instances {
		copied, err := c.copyOf(i, first+k)
		if err != nil {
			return err
		}
		objects = append(objects, copied...)
	}
	var tagErr error
	c.lab.Emulator.Do(func(w *world.World, now time.Time) {
		region := w.Region(c.lab.Account, c.lab.Region)
		for k, i := range instances {
			tags := map[string]string{"karpenter.sh/nodeclaim": c.claimName(first + k), "Name": i.PrivateDNSName}
			if tagErr = region.Tag(now, []string{i.ID}, tags, nil); tagErr != nil {
				return
			}
		}
	})
	if tagErr != nil {
		return tagErr
	}
	if err := c.lab.Store(ctx, objects); err != nil {
		return err
	}
	for k, i := range instances {
		if err := c.addPods(ctx, first+k, i.PrivateDNSName); err != nil {
			return err
		}
	}
	return nil
}

func (c *testCluster) claimName(number int) string { return fmt.Sprintf("%s-%05d", poolName, number) }

// copyOf returns the NodeClaim, Node and lease of a copy of the first node.
func (c *testCluster) copyOf(i world.Instance, number int) ([]controlplane.EtcdObject, error) {
	claim := c.claim.DeepCopy()
	claim.Name, claim.UID, claim.ResourceVersion = c.claimName(number), uuid.NewUUID(), ""
	claim.Status.NodeName, claim.Status.ProviderID = i.PrivateDNSName, "aws:///"+i.Zone+"/"+i.ID
	claim.APIVersion, claim.Kind = "karpenter.sh/v1", "NodeClaim"

	node := c.node.DeepCopy()
	node.Name, node.UID, node.ResourceVersion = i.PrivateDNSName, uuid.NewUUID(), ""
	node.APIVersion, node.Kind = "v1", "Node"
	node.Spec.ProviderID = claim.Status.ProviderID
	node.Labels[corev1.LabelHostname], node.Labels[copyMark] = i.PrivateDNSName, "true"
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: i.PrivateIP}, {Type: corev1.NodeHostName, Address: i.PrivateDNSName},
		{Type: corev1.NodeInternalDNS, Address: i.PrivateDNSName},
	}
	node.Status.Images = usualImages()
	for k := range node.OwnerReferences {
		node.OwnerReferences[k].Name, node.OwnerReferences[k].UID = claim.Name, claim.UID
	}
	c.copies = append(c.copies, node.Name)
	var out []controlplane.EtcdObject
	for _, o := range []struct {
		key    string
		object any
	}{{"karpenter.sh/nodeclaims/" + claim.Name, claim}, {"minions/" + node.Name, node},
		{"leases/kube-node-lease/" + node.Name, leaseOf(node.Name)}} {
		stored, err := storedAs(o.key, o.object)
		if err != nil {
			return nil, err
		}
		out = append(out, stored)
	}
	return out, nil
}

// storedAs returns an object in the format in which etcd stores it under the key.
func storedAs(key string, object any) (controlplane.EtcdObject, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return controlplane.EtcdObject{}, fmt.Errorf("write %s: %w", key, err)
	}
	return controlplane.EtcdObject{Key: key, JSON: text}, nil
}

// leaseOf returns a node's lease, renewed now. It is valid for 40 seconds, as a lease of a kubelet is.
func leaseOf(node string) *coordinationv1.Lease {
	now, seconds := metav1.NewMicroTime(time.Now()), int32(40)
	return &coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{
			Name:              node,
			Namespace:         corev1.NamespaceNodeLease,
			UID:               types.UID("lease-" + node),
			CreationTimestamp: metav1.Now(),
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
}

// keepLeases renews the leases of the copies until stop is called.
func (c *testCluster) keepLeases(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for sleep(ctx, leaseRenewal) == nil {
			var leases []controlplane.EtcdObject
			for _, name := range c.copies {
				stored, err := storedAs("leases/kube-node-lease/"+name, leaseOf(name))
				if err != nil {
					c.say("  " + err.Error())
					return
				}
				leases = append(leases, stored)
			}
			if err := c.lab.Store(ctx, leases); err != nil && ctx.Err() == nil {
				c.say("  " + err.Error())
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// addPods adds running pods to the copy with the given number. The owner of the pods is the NodePool, because no
// controller changes the number of a NodePool's pods. The controller of a ReplicaSet could create more pods before it
// has observed the stored pods.
func (c *testCluster) addPods(ctx context.Context, number int, node string) error {
	yes, app := true, fmt.Sprintf("app-%05d", number)
	owner := metav1.OwnerReference{
		APIVersion:         "karpenter.sh/v1",
		Kind:               "NodePool",
		Name:               poolName,
		UID:                c.poolUID,
		Controller:         &yes,
		BlockOwnerDeletion: &yes,
	}
	var objects []controlplane.EtcdObject
	for k := range PodsPerNode {
		pod := runningPod(app, fmt.Sprintf("%s-%02d", app, k), node)
		pod.OwnerReferences = []metav1.OwnerReference{owner}
		stored, err := storedAs("pods/"+namespace+"/"+pod.Name, pod)
		if err != nil {
			return err
		}
		objects = append(objects, stored)
		c.lastPod = pod.Name
	}
	return c.lab.Store(ctx, objects)
}

// usualImages returns 30 images with two names each. A kubelet reports up to 50 images of its node.
func usualImages() []corev1.ContainerImage {
	var out []corev1.ContainerImage
	for i := range 30 {
		repository := fmt.Sprintf("111122223333.dkr.ecr.us-east-1.amazonaws.com/team/service-%02d", i)
		out = append(out, corev1.ContainerImage{
			Names:     []string{repository + "@sha256:" + strings.Repeat(fmt.Sprintf("%02x", i), 32), repository + ":1.2.3"},
			SizeBytes: 100 << 20,
		})
	}
	return out
}

func quantities(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}
