package controller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// launchClaim creates a claim with an instance. At registration, the claim's Node gets a label that the admission
// plugin NodeRestriction protects.
func (r *rig) launchClaim(t *testing.T) karpv1.NodeClaim {
	t.Helper()
	pool := &karpv1.NodePool{}
	if err := r.api.Get(t.Context(), client.ObjectKey{Name: "apps"}, pool); err != nil {
		t.Fatal(err)
	}
	pool.Spec.Template.Labels["node-restriction.kubernetes.io/tier"] = "secret"
	if err := r.api.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	r.reconcileClaims(t)
	return r.claims(t)[0]
}

// forgedNode returns a Node that another instance's kubelet creates with the provider ID of the claim.
func forgedNode(c karpv1.NodeClaim) *corev1.Node {
	node := namedNode(c, "ip-6-6-6-6.ec2.internal")
	node.Spec.Taints = nil
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "6.6.6.6"}}
	return node
}

// TestForgedNode: a Node that has the provider ID of an instance, but was created by another kubelet, is never
// registered. The instance's own Node is registered nevertheless.
func TestForgedNode(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(forged, own *corev1.Node, claim karpv1.NodeClaim){
		"only the provider ID":  func(*corev1.Node, *corev1.Node, karpv1.NodeClaim) {},
		"the address is copied": func(n, own *corev1.Node, _ karpv1.NodeClaim) { n.Status.Addresses = own.Status.Addresses },
		"it has the label registered": func(n, own *corev1.Node, _ karpv1.NodeClaim) {
			n.Labels[karpv1.LabelRegistered], n.Labels[karpv1.LabelInitialized] = "true", "true"
		},
		"it has finalizer, owner, pool and address": func(n, own *corev1.Node, c karpv1.NodeClaim) {
			n.Labels[karpv1.LabelNodePool], n.Labels[awsv1.LabelNodeClass] = "apps", "default"
			n.Finalizers = []string{karpv1.FinalizerTermination}
			n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: c.Name, UID: c.UID}}
			n.Status.Addresses = own.Status.Addresses
		},
		"the own Node's host name and address, another domain": func(n, own *corev1.Node, _ karpv1.NodeClaim) {
			host, _, _ := strings.Cut(own.Name, ".")
			n.Name, n.Status.Addresses = host+".evil.example", own.Status.Addresses
		},
		"the own Node's host name, another address and domain": func(n, own *corev1.Node, _ karpv1.NodeClaim) {
			n.Name = strings.TrimSuffix(own.Name, "l") // the domain without its last letter
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			claim := r.launchClaim(t)
			own, forged := r.nodeOf(t, claim), forgedNode(claim)
			forge(forged, own, claim)
			want := forged.DeepCopy()
			r.create(t, forged)
			for range 2 {
				r.reconcileClaims(t)
				r.wantUnchanged(t, want)
			}
			registered, _ := r.claim(t, claim.Name).StatusConditions().Find(karpv1.ConditionRegistered)
			if registered.Status == "True" || registered.Reason != lifecycle.WaitIdentity || !strings.Contains(registered.Message, forged.Name) {
				t.Errorf("the condition Registered of the claim is %+v, want the reason WaitIdentity and the Node's name", registered)
			}
			for _, about := range []string{"NodeClaim/NodeMismatch", "Node/NodeMismatch"} {
				if r.events.find(about, forged.Name, "kubectl delete node") == "" {
					t.Errorf("no event %s: %v", about, r.events.emitted)
				}
			}
			if n := metricCount(t, r.Claims.Metrics.NodeMismatches, "apps"); n != 1 {
				t.Errorf("%d mismatches are counted, want 1", n)
			}
			r.create(t, own)
			for range 3 {
				r.reconcileClaims(t)
			}
			if got := r.claim(t, claim.Name); got.Status.NodeName != own.Name || !got.StatusConditions().IsReady() {
				t.Fatalf("the claim has Node %q and conditions %+v, want its own Node, and ready\n%s",
					got.Status.NodeName, got.Status.Conditions, r.log)
			}
			r.wantUnchanged(t, want)
			r.ahead += 20 * time.Minute
			r.reconcileClaims(t)
			r.wantUnchanged(t, want)
		})
	}
}

// wantUnchanged asserts that the Node is still as its kubelet created it.
func (r *rig) wantUnchanged(t *testing.T, want *corev1.Node) {
	t.Helper()
	for _, n := range r.nodes(t) {
		if n.Name != want.Name {
			continue
		}
		if n.Labels["node-restriction.kubernetes.io/tier"] != "" || n.Labels["team"] != "" ||
			len(n.Labels) != len(want.Labels) || len(n.Spec.Taints) != len(want.Spec.Taints) ||
			len(n.Finalizers) != len(want.Finalizers) || len(n.OwnerReferences) != len(want.OwnerReferences) || n.DeletionTimestamp != nil {
			t.Fatalf("the Node was changed: %+v %+v\n%s", n.ObjectMeta, n.Spec, r.log)
		}
		return
	}
	t.Fatalf("Node %s is gone", want.Name)
}

// TestForgedNodeHoldsNoPods: no pods are planned onto a forged Node. Only the resources of its claim count, and the pod
// "web" leaves too few of them for the pod "more".
func TestForgedNodeHoldsNoPods(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	forged := forgedNode(r.launchClaim(t))
	forged.Labels[karpv1.LabelRegistered], forged.Labels[karpv1.LabelInitialized], forged.Labels[karpv1.LabelNodePool] = "true", "true", "apps"
	r.create(t, forged)
	r.reconcileClaims(t)
	r.addPendingPod(t, "more", "1500m", "2Gi")
	r.plan(t)
	if n := len(r.claims(t)); n != 2 {
		t.Errorf("%d claims, want 2: one more for the new pod\n%s", n, r.log)
	}
}

func TestForgedNodeOfDeletedClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claim := r.launchClaim(t)
	forged := forgedNode(claim)
	r.create(t, forged)
	r.join(t) // creates no Node, because the forged one has the provider ID
	r.create(t, r.nodeOf(t, claim))
	for range 3 {
		r.reconcileClaims(t)
	}
	claim = *r.claim(t, claim.Name)
	if err := r.api.Delete(t.Context(), &claim); err != nil {
		t.Fatal(err)
	}
	r.finish(t)
	if nodes := r.nodes(t); len(r.claims(t)) != 0 || len(r.instances()) != 0 || len(nodes) != 1 ||
		nodes[0].Name != forged.Name || nodes[0].DeletionTimestamp != nil {
		t.Errorf("left are %d claims, %d instances, and Nodes %+v; want only the forged Node\n%s",
			len(r.claims(t)), len(r.instances()), nodes, r.log)
	}
}

// TestForgedNodeDeleted: the deletion of a Node that has Joiner's finalizer and another instance's provider ID removes
// the finalizer, and terminates no instance.
func TestForgedNodeDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	r.reconcileClaims(t)
	r.join(t)
	r.reconcileClaims(t)
	claim := r.claims(t)[0]
	for name, providerID := range map[string]string{
		"as in the claim": claim.Status.ProviderID,
		"another zone":    "aws:///us-east-1z" + claim.Status.ProviderID[strings.LastIndexByte(claim.Status.ProviderID, '/'):],
	} {
		forged := forgedNode(claim)
		forged.Spec.ProviderID = providerID
		forged.Finalizers, forged.Labels[awsv1.LabelNodeClass] = []string{karpv1.FinalizerTermination}, "default"
		r.create(t, forged)
		if err := r.api.Delete(t.Context(), forged); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if _, err := r.Orphans.Reconcile(t.Context(), named(forged.Name)); err != nil {
				t.Fatal(err)
			}
			r.reconcileClaims(t)
		}
		for _, n := range r.nodes(t) {
			if n.Name == forged.Name {
				t.Errorf("%s: the Node is not removed: %+v", name, n.ObjectMeta)
			}
		}
		if got := r.claim(t, claim.Name); len(r.instances()) != 1 || got.DeletionTimestamp != nil {
			t.Fatalf("%s: %d instances, the claim is deleted: %t; want 1 and false\n%s", name, len(r.instances()), got.DeletionTimestamp != nil, r.log)
		}
	}
}

// TestNodeOfAnotherName: a Node whose name EC2 does not know is registered if the node class has the name in its user
// data, or the domain of the name in an annotation.
func TestNodeOfAnotherName(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		userData, domains string
		node              string // its name; HOST stands for the host name that EC2 knows
		want              bool   // the Node is registered
	}{
		"Bottlerocket":        {"[settings.kubernetes]\nhostname-override = \"mine.example.com\"\n", "", "mine.example.com", true},
		"a dotted key":        {"settings.kubernetes.hostname-override = \"mine.example.com\"\n", "", "mine.example.com", true},
		"a comment":           {"# hostname-override = \"mine.example.com\"\n", "", "mine.example.com", false},
		"a flag":              {"--hostname-override=mine.example.com", "", "mine.example.com", true},
		"another name":        {"[settings.kubernetes]\nhostname-override = \"mine.example.com\"\n", "", "other.example.com", false},
		"a domain":            {"", "a.example, corp.example", "HOST.corp.example", true},
		"any name":            {"", "*", "mine", true},
		"no user data":        {"", "", "mine", false},
		"the domain is wrong": {"", "corp.example", "HOST.evil.example", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			claim := r.launchClaim(t)
			class := r.class(t)
			class.Spec.UserData, class.Annotations = &c.userData, map[string]string{awsv1.AnnotationNodeDomains: c.domains}
			if err := r.api.Update(t.Context(), class); err != nil {
				t.Fatal(err)
			}
			node := r.nodeOf(t, claim)
			host, _, _ := strings.Cut(node.Name, ".")
			node.Name = strings.ReplaceAll(c.node, "HOST", host)
			r.create(t, node)
			r.reconcileClaims(t)
			if got := r.claim(t, claim.Name); got.StatusConditions().IsTrue(karpv1.ConditionRegistered) != c.want {
				t.Errorf("the Node is registered: %t, want %t; the conditions of the claim are %+v", !c.want, c.want, got.Status.Conditions)
			}
		})
	}
}

// TestNodeWithoutAddress: the cloud controller manager may set the address of a Node late. The claim waits for it.
func TestNodeWithoutAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claim := r.launchClaim(t)
	node := r.nodeOf(t, claim)
	addresses := node.Status.Addresses
	node.Status.Addresses = nil
	r.create(t, node)
	if wait := r.reconcileClaims(t); wait > lifecycle.ConfirmPoll {
		t.Errorf("the claim is reconciled again only after %s, want at most ConfirmPoll", wait)
	}
	if c, _ := r.claim(t, claim.Name).StatusConditions().Find(karpv1.ConditionRegistered); c.Reason != lifecycle.WaitConfirmation {
		t.Errorf("the condition Registered of the claim is %+v, want the reason WaitConfirmation", c)
	}
	node.Status.Addresses = addresses
	if err := r.api.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	r.reconcileClaims(t)
	if !r.claim(t, claim.Name).StatusConditions().IsTrue(karpv1.ConditionRegistered) {
		t.Errorf("the claim is not registered: %+v\n%+v\n%s", r.claim(t, claim.Name).Status.Conditions, r.nodes(t)[0].Status.Addresses, r.log)
	}
}

func TestLostFinalizer(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.launchClaim(t)
	r.join(t)
	for range 3 {
		r.reconcileClaims(t)
	}
	node := r.nodes(t)[0]
	node.Finalizers = nil
	if err := r.api.Update(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
	r.reconcileClaims(t)
	if node = r.nodes(t)[0]; len(node.Finalizers) != 1 || node.Finalizers[0] != karpv1.FinalizerTermination {
		t.Errorf("the Node has the finalizers %v, want Joiner's\n%s", node.Finalizers, r.log)
	}
}

// TestTwoNodesOfOneInstance: if a kubelet creates Nodes under two names of its instance, neither Node is registered. A
// condition of the claim reports this, and the claim is deleted after the registration timeout.
func TestTwoNodesOfOneInstance(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claim := r.launchClaim(t)
	r.create(t, r.nodeOf(t, claim))
	r.create(t, r.nodeNamedByID(t, claim))
	r.reconcileClaims(t)
	got, _ := r.claim(t, claim.Name).StatusConditions().Find(karpv1.ConditionRegistered)
	if got.Status == "True" || got.Reason != "MultipleNodesFound" {
		t.Errorf("the condition Registered of the claim is %+v, want the reason MultipleNodesFound\n%s", got, r.log)
	}
	r.ahead += 16 * time.Minute
	r.reconcileClaims(t)
	if r.claim(t, claim.Name).DeletionTimestamp == nil {
		t.Errorf("the claim is not deleted after the registration timeout\n%s", r.log)
	}
}
