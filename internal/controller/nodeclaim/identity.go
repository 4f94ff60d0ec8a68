package nodeclaim

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// refusedNode is a Node that has a claim's provider ID, but is not the Node of the claim's instance, or is not
// confirmed yet.
type refusedNode struct {
	node    *corev1.Node
	verdict lifecycle.Verdict // IdentityMismatch or IdentityUnknown
	why     string            // a sentence without a full stop
}

func (r refusedNode) message() string {
	return fmt.Sprintf("Node %s has the provider ID %s but is not the Node of that instance, so it is not registered: %s; if Nodes of this EC2NodeClass have a domain of their own, add the domain to its annotation joiner.sh/node-domains; else find out who created the Node, then run: kubectl delete node %s",
		r.node.Name, r.node.Spec.ProviderID, r.why, r.node.Name)
}

// identify splits the Nodes with the claim's provider ID into the Nodes of the claim's instance and the other Nodes. It
// compares each Node with EC2's data, except the Node that the claim was registered with. That Node was compared when
// it joined, and only the same kubelet can recreate a Node with that name.
func (c *Reconciler) identify(ctx context.Context, claim *karpv1.NodeClaim, nodes []*corev1.Node,
	now time.Time) (accepted []*corev1.Node, refused []refusedNode, err error) {
	var unchecked []*corev1.Node
	for _, n := range nodes {
		if isRegistered(claim, n) {
			accepted = append(accepted, n)
		} else {
			unchecked = append(unchecked, n)
		}
	}
	if len(unchecked) == 0 {
		return accepted, nil, nil
	}
	identity, isGone, err := c.identityOf(ctx, claim)
	if err != nil {
		if len(accepted) > 0 {
			return accepted, nil, nil // the other Nodes with this provider ID can wait
		}
		return nil, nil, err
	}
	for _, n := range unchecked {
		if isGone && claim.DeletionTimestamp != nil {
			// The instance is gone: there is no data to compare with, and no running instance to confuse the Node with.
			if isOwnedBy(n, claim) {
				accepted = append(accepted, n)
			}
			continue
		}
		verdict, why := identity.Judge(ClaimantOf(n))
		if verdict == lifecycle.IdentityMatches {
			accepted = append(accepted, n)
			continue
		}
		refused = append(refused, refusedNode{n, verdict, why})
	}
	c.reportRefused(claim, refused, now)
	return accepted, refused, nil
}

// identityOf reads the identity of the claim's instance from EC2. From the node class it reads which names the Node may
// have besides EC2's private DNS name. isGone is true if the instance is terminated, or EC2 does not know it.
func (c *Reconciler) identityOf(ctx context.Context, claim *karpv1.NodeClaim) (out lifecycle.Identity, isGone bool, err error) {
	id, _ := ec2.ParseProviderID(claim.Status.ProviderID)
	out.Instance = id
	instance, err := c.Instances.Instance(ctx, id)
	switch {
	case awserr.Is(err, awserr.Gone):
		return out, true, nil
	case err != nil:
		return out, false, err
	}
	var class awsv1.EC2NodeClass
	err = c.Cache.Get(ctx, client.ObjectKey{Name: claim.Spec.NodeClassRef.Name}, &class)
	if err != nil && !apierrors.IsNotFound(err) {
		return out, false, fmt.Errorf("read ec2nodeclass %s: %w", claim.Spec.NodeClassRef.Name, err)
	}
	return InstanceIdentity(instance, &class), instance.State == ec2.Terminated, nil
}

// InstanceIdentity returns the identity of an instance's Node according to EC2 and the node class.
func InstanceIdentity(i ec2.Instance, class *awsv1.EC2NodeClass) lifecycle.Identity {
	out := lifecycle.Identity{Instance: i.ID, PrivateDNS: i.PrivateDNS, Addresses: i.Addresses}
	if class.Spec.UserData != nil {
		if m := hostnameOverride.FindStringSubmatch(*class.Spec.UserData); m != nil {
			out.Names = append(out.Names, cmp.Or(m[1], m[2]))
		}
	}
	for domain := range strings.SplitSeq(class.Annotations[awsv1.AnnotationNodeDomains], ",") {
		if domain = strings.Trim(strings.TrimSpace(domain), "."); domain != "" {
			out.Domains = append(out.Domains, domain)
		}
	}
	return out
}

// hostnameOverride matches a node name that user data sets with a Bottlerocket setting or a kubelet flag. It does not
// match a name that a script computes.
var hostnameOverride = regexp.MustCompile(`(?m)^[ \t]*(?:settings\.kubernetes\.)?"?hostname-override"?[ \t]*=[ \t]*["']([A-Za-z0-9.-]+)["']|--hostname-override[= ]([A-Za-z0-9.-]+)`)

// ClaimantOf returns the identity that the Node object states: its name, instance ID and addresses.
func ClaimantOf(n *corev1.Node) lifecycle.NodeIdentity {
	out := lifecycle.NodeIdentity{Name: n.Name}
	out.Instance, _ = ec2.ParseProviderID(n.Spec.ProviderID)
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			out.Addresses = append(out.Addresses, a.Address)
		}
	}
	return out
}

// isRegistered reports whether the claim was registered with this Node. The proof is the claim's status, because nodes
// cannot write NodeClaims, and a kubelet can only write the Node of its own name. Everything else on a Node may be
// forged.
func isRegistered(claim *karpv1.NodeClaim, n *corev1.Node) bool {
	return snapshot.IsNodeOf(claim, n) && claim.StatusConditions().IsTrue(karpv1.ConditionRegistered)
}

func isOwnedBy(n *corev1.Node, claim *karpv1.NodeClaim) bool {
	return slices.ContainsFunc(n.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == claim.UID })
}

// preferRegistered returns only the Node that the claim was registered with, if that Node is ready. Otherwise it
// returns all Nodes; if there are several, the claim waits.
func preferRegistered(claim *karpv1.NodeClaim, nodes []*corev1.Node) []*corev1.Node {
	for _, n := range nodes {
		if isRegistered(claim, n) && nodestate.IsReady(n) {
			return []*corev1.Node{n}
		}
	}
	return nodes
}

// noteRefused adds the refused Nodes to the input of lifecycle.Next.
func (v *View) noteRefused() {
	for _, r := range v.refused {
		if r.verdict == lifecycle.IdentityUnknown {
			v.seen.Node.Unconfirmed = cmp.Or(v.seen.Node.Unconfirmed, r.node.Name+" is not registered yet: "+r.why)
		} else {
			v.seen.Node.Mismatch = cmp.Or(v.seen.Node.Mismatch, r.message())
		}
	}
}

// reportRefused emits an event, counts and logs each Node that does not belong to the instance, once per cause and
// hour.
func (c *Reconciler) reportRefused(claim *karpv1.NodeClaim, refused []refusedNode, now time.Time) {
	for _, r := range refused {
		if r.verdict != lifecycle.IdentityMismatch || !c.refusals.isNews(r.node.UID, r.why, now) {
			continue
		}
		pool := claim.Labels[karpv1.LabelNodePool]
		c.Events.Emit(claim, kubeclient.ReasonNodeMismatch, r.message())
		c.Events.Emit(r.node, kubeclient.ReasonNodeMismatch, r.message())
		c.Metrics.NodeMismatches.WithLabelValues(pool).Inc()
		c.Log.Warn("did not register a Node: it has the provider ID of an instance and is not the Node of that instance", "Node", r.node.Name, "NodeClaim", claim.Name, "nodePool", pool,
			"providerID", r.node.Spec.ProviderID, "cause", r.why)
	}
}

// refusals records which Nodes were reported as not registered, and why. The zero value is empty. Its methods may be
// called concurrently.
type refusals struct {
	mu       sync.Mutex
	reported map[types.UID]refusal
}

type refusal struct {
	why string    // the reported cause
	at  time.Time // when it was reported
}

// Events expire after an hour, so a lasting cause is reported again after refusalLife. At maxRefusals entries, all
// entries are dropped.
const (
	refusalLife = time.Hour
	maxRefusals = 10_000
)

// isNews reports whether this cause was not reported for the Node within the last hour, and records it as reported.
func (r *refusals) isNews(node types.UID, why string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was, ok := r.reported[node]; ok && was.why == why && now.Sub(was.at) < refusalLife {
		return false
	}
	if r.reported == nil || len(r.reported) >= maxRefusals {
		r.reported = map[types.UID]refusal{}
	}
	r.reported[node] = refusal{why, now}
	return true
}
