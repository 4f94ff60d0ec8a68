package controller

import (
	"maps"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/iam"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// Names as Karpenter gives them.
const (
	karpenterClaim    = "apps-x7k2p"
	karpenterNode     = "ip-10-0-33-7.ec2.internal"
	karpenterTemplate = "karpenter.k8s.aws/13141592653589793238"
	karpenterProfile  = "prod_4242424242424242424"
)

// TestKarpentersNodesAreTakenOver: a node that Karpenter has created, with Karpenter's tags, hashes and names, stays in
// service. It is not replaced, does not drift, is not garbage-collected, and takes new pods. Spec, labels and
// annotations of its claim do not change. When the claim is deleted, the instance is terminated.
func TestKarpentersNodesAreTakenOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	awsClient, ok := r.NodeClasses.Profiles.(*iam.Client)
	if !ok {
		t.Fatal("the rig's profiles are not an IAM client")
	}
	r.Sweeper.Profiles = awsClient
	instance := r.launchAsKarpenter(t)
	r.createAsKarpenter(t, instance)
	before := onlyClaim(t, r)
	pods := func() (pending, running int) {
		var list corev1.PodList
		if err := r.api.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Items {
			if p.Spec.NodeName == "" {
				pending++
			} else {
				running++
			}
		}
		return pending, running
	}

	// Let 65 hours pass.
	for range 5 {
		r.reconcileClassAndPool(t)
		r.reconcileClaims(t)
		r.removeEmptyNodes(t)
		r.ahead += 13 * time.Hour
		if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
			t.Fatal(err)
		}
	}
	r.addPendingPod(t, "more", "500m", "512Mi") // the node has room for it
	r.plan(t)
	r.reconcileClaims(t)
	r.emitQueuedEvents()
	if pending, running := pods(); pending != 1 || running != 1 || r.events.find("Pod/Nominated", karpenterNode) == "" {
		t.Errorf("%d pods are pending and %d run; want one each, and an event that nominates the node for the new pod: %v",
			pending, running, r.events.emitted)
	}
	claim := onlyClaim(t, r)
	if claim.Name != karpenterClaim || claim.DeletionTimestamp != nil ||
		claim.StatusConditions().IsTrue(karpv1.ConditionDrifted) || !claim.StatusConditions().IsReady() {
		t.Errorf("the claim is %+v %+v, want it ready and not drifted", claim.ObjectMeta, claim.Status.Conditions)
	}
	if !reflect.DeepEqual(claim.Spec, before.Spec) || !reflect.DeepEqual(claim.Labels, before.Labels) {
		t.Errorf("spec or labels of the claim have changed: %+v %v", claim.Spec, claim.Labels)
	}
	for key, value := range before.Annotations {
		if claim.Annotations[key] != value {
			t.Errorf("annotation %s of the claim is %q, was %q", key, claim.Annotations[key], value)
		}
	}
	node := r.nodes(t)[0]
	if len(r.nodes(t)) != 1 || node.DeletionTimestamp != nil || len(node.Spec.Taints) != 1 {
		t.Errorf("the node has changed: %+v %+v", node.ObjectMeta, node.Spec)
	}
	r.wantAWSUnchanged(t, instance)

	// The node can be removed.
	if err := r.api.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	r.finish(t)
	if len(r.claims(t))+len(r.instances()) > 0 {
		t.Errorf("after the deletion: %d claims, %d instances, want none\n%s", len(r.claims(t)), len(r.instances()), r.log)
	}
}

func (r *rig) wantAWSUnchanged(t *testing.T, instance world.Instance) {
	t.Helper()
	calls := r.Calls()
	for _, call := range []string{"CreateFleet", "TerminateInstances", "DeleteLaunchTemplate", "CreateTags", "DeleteTags"} {
		if n := calls["ec2:"+call]; n > 0 {
			t.Errorf("%s was called %d times, want never", call, n)
		}
	}
	r.Do(func(w *world.World, _ time.Time) {
		current, _ := w.Instance(instance.ID)
		if current.State != world.Running || !maps.Equal(current.Tags, instance.Tags) {
			t.Errorf("the instance is %s with tags %v, was %s with %v", current.State, current.Tags, instance.State, instance.Tags)
		}
		if r.estate.Region.LaunchTemplates.ByIDOrName("", karpenterTemplate) == nil {
			t.Error("Karpenter's launch template is gone")
		}
		p, err := w.Account(emulator.DefaultAccount).Profile(karpenterProfile)
		if err != nil || p.Role != "node" {
			t.Errorf("Karpenter's instance profile has changed: %+v %v", p, err)
		}
	})
}

// launchAsKarpenter creates an instance, its launch template and its instance profile as Karpenter does: tagged with
// the name of the cluster, and not with the cluster's UID.
func (r *rig) launchAsKarpenter(t *testing.T) world.Instance {
	t.Helper()
	tags := map[string]string{
		"kubernetes.io/cluster/" + testCluster: "owned", "eks:eks-cluster-name": testCluster,
		"karpenter.sh/nodepool": "apps", "karpenter.k8s.aws/ec2nodeclass": "default",
	}
	instanceTags := maps.Clone(tags)
	instanceTags["karpenter.sh/nodeclaim"], instanceTags["Name"] = karpenterClaim, karpenterNode
	profileTags := maps.Clone(tags)
	delete(profileTags, "karpenter.sh/nodepool")
	profileTags["topology.kubernetes.io/region"] = testRegion
	var out world.Instance
	r.Do(func(w *world.World, now time.Time) {
		account := w.Account(emulator.DefaultAccount)
		_, err := account.CreateProfile(now,
			identity.Profile{Name: karpenterProfile, Path: "/karpenter/" + testRegion + "/" + testCluster + "/uid-class/", Tags: profileTags})
		if err == nil {
			err = account.AddRoleToProfile(karpenterProfile, "node")
		}
		if err == nil {
			_, err = r.estate.Region.LaunchTemplates.Create(now, world.Template{Name: karpenterTemplate, Tags: tags},
				world.TemplateVersion{Data: world.TemplateData{
					ImageID: r.estate.Region.Images.All()[0].ID, InstanceType: "t3.medium", Profile: &world.ProfileRef{Name: karpenterProfile},
					GroupIDs: []string{r.estate.NodeSG.ID},
				}}, world.Idempotency{})
		}
		var launched []world.Instance
		if err == nil {
			launched, err = r.estate.Region.Launches.RunInstances(now, world.RunRequest{
				TemplateName: karpenterTemplate, SubnetID: r.estate.PrivateSubnets[0].ID, Min: 1, Max: 1,
				Tags: world.Tagging{"instance": instanceTags, "volume": instanceTags},
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		out = launched[0]
	})
	r.ahead += time.Minute // until the instance runs
	r.Do(func(w *world.World, _ time.Time) { out, _ = w.Instance(out.ID) })
	return out
}

// createAsKarpenter creates the claim and the Node of the instance as Karpenter does, and a pod on the Node. It
// annotates the pool and the class with Karpenter's hashes.
func (r *rig) createAsKarpenter(t *testing.T, i world.Instance) {
	t.Helper()
	pool, class := r.pool(t), r.class(t)
	poolHashes := map[string]string{karpv1.AnnotationNodePoolHash: "9999999999999999999", karpv1.AnnotationNodePoolHashVersion: "v3"}
	classHashes := map[string]string{awsv1.AnnotationHash: "8888888888888888888", awsv1.AnnotationHashVersion: "v4"}
	pool.Annotations, class.Annotations = poolHashes, classHashes
	class.Finalizers = []string{awsv1.FinalizerTermination}
	if err := r.api.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	providerID := "aws:///" + i.Zone + "/" + i.ID
	annotations := map[string]string{
		awsv1.AnnotationInstanceProfile: karpenterProfile, awsv1.AnnotationTagged: "true", awsv1.AnnotationClusterNameTagged: "true",
		karpv1.AnnotationMinValuesRelaxed: "false",
	}
	maps.Copy(annotations, poolHashes)
	maps.Copy(annotations, classHashes)
	labels := map[string]string{
		karpv1.LabelNodePool: "apps", awsv1.LabelNodeClass: "default", karpv1.LabelCapacityType: "on-demand", "team": "a",
		corev1.LabelInstanceTypeStable: "t3.medium", corev1.LabelTopologyZone: i.Zone, corev1.LabelTopologyRegion: testRegion,
		corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", awsv1.LabelInstanceFamily: "t3", awsv1.LabelInstanceSize: "medium",
		awsv1.LabelInstanceCPU: "2", awsv1.LabelInstanceMemory: "4096",
	}
	size := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1930m"), corev1.ResourceMemory: resource.MustParse("3246Mi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("17Gi"), corev1.ResourcePods: resource.MustParse("17"),
	}
	created := r.now().Add(-24 * time.Hour)
	spec := pool.Spec.Template.Spec
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: karpenterClaim, GenerateName: "apps-", UID: "uid-" + karpenterClaim, Generation: 1, Labels: labels, Annotations: annotations,
			Finalizers: []string{karpv1.FinalizerTermination}, CreationTimestamp: metav1.NewTime(created),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: "apps",
				UID: pool.UID, BlockOwnerDeletion: new(bool)}},
		},
		Spec: karpv1.NodeClaimSpec{NodeClassRef: spec.NodeClassRef, Taints: spec.Taints, ExpireAfter: spec.ExpireAfter,
			Requirements: spec.Requirements},
	}
	claim.Status.ProviderID, claim.Status.NodeName, claim.Status.ImageID = providerID, karpenterNode, i.ImageID
	claim.Status.Capacity, claim.Status.Allocatable = size, size
	conditions := claim.StatusConditions()
	conditions.Start(created)
	for _, c := range []string{karpv1.ConditionLaunched, karpv1.ConditionRegistered, karpv1.ConditionInitialized,
		karpv1.ConditionConsistentStateFound, karpv1.ConditionReady} {
		conditions.SetTrue(created, c)
	}
	r.create(t, claim)
	nodeLabels := maps.Clone(labels)
	maps.Copy(nodeLabels, map[string]string{karpv1.LabelRegistered: "true", karpv1.LabelInitialized: "true", corev1.LabelHostname: karpenterNode})
	r.create(t, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: karpenterNode, UID: "uid-" + karpenterNode, Labels: nodeLabels, Annotations: annotations,
			Finalizers: []string{karpv1.FinalizerTermination}, CreationTimestamp: metav1.NewTime(created),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: karpenterClaim,
				UID: claim.UID}},
		},
		Spec: corev1.NodeSpec{ProviderID: providerID, Taints: spec.Taints},
		Status: corev1.NodeStatus{
			Capacity: size, Allocatable: size, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	})
	r.addPendingPod(t, "served", "500m", "512Mi")
	r.bind(t)
}
