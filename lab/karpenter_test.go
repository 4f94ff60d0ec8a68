package lab_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/lab"
)

// Values that Karpenter 1.14 writes.
const (
	poolHashVersion  = "v3"
	classHashVersion = "v5"
	karpenterProfile = "lab_4242424242424242424" // instance profile of the class
)

// emulatedKarpenter emulates Karpenter in a lab: it launches instances, and writes their objects, as Karpenter does.
type emulatedKarpenter struct {
	t     *testing.T
	l     *lab.Lab
	name  string // name of the pool and of the class
	pool  *karpenterv1.NodePool
	class *awsv1.EC2NodeClass

	poolHash, classHash string // equal to Karpenter's hashes: see bench/conformance
}

// newEmulatedKarpenter creates what exists before the migration: the pool and class with Karpenter's annotations, the
// instance profile of the class, and Karpenter's Deployment and service account.
func newEmulatedKarpenter(t *testing.T, l *lab.Lab, name string) *emulatedKarpenter {
	t.Helper()
	p := &emulatedKarpenter{t: t, l: l, name: name, pool: &karpenterv1.NodePool{}, class: &awsv1.EC2NodeClass{}}
	apply(t, l, class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"), karpentersDeployment(l))
	key := client.ObjectKey{Name: name}
	for _, object := range []client.Object{p.pool, p.class} {
		if err := l.Client.Get(t.Context(), key, object); err != nil {
			t.Fatal(err)
		}
	}
	p.computeHashes()
	p.pool.Annotations = map[string]string{karpenterv1.AnnotationNodePoolHash: p.poolHash,
		karpenterv1.AnnotationNodePoolHashVersion: poolHashVersion}
	p.class.Annotations = map[string]string{awsv1.AnnotationHash: p.classHash, awsv1.AnnotationHashVersion: classHashVersion}
	p.class.Finalizers = []string{awsv1.FinalizerTermination}
	for _, object := range []client.Object{p.pool, p.class} {
		if err := l.Client.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	p.class.Status.InstanceProfile = karpenterProfile
	if err := l.Client.Status().Update(t.Context(), p.class); err != nil {
		t.Fatal(err)
	}
	tags := p.tags()
	delete(tags, karpenterv1.LabelNodePool)
	tags[corev1.LabelTopologyRegion] = l.Region
	p.changeAWS(func(w *world.World, now time.Time) error {
		account := w.Account(l.Account)
		_, err := account.CreateProfile(now,
			identity.Profile{Name: karpenterProfile, Path: fmt.Sprintf("/karpenter/%s/%s/%s/", l.Region, l.Cluster, p.class.UID), Tags: tags})
		if err != nil {
			return err
		}
		return account.AddRoleToProfile(karpenterProfile, lab.NodeRole)
	})
	return p
}

// computeHashes sets the hashes that drift detection compares.
func (p *emulatedKarpenter) computeHashes() {
	p.t.Helper()
	pool, poolVersion, err1 := conversion.PoolHash(p.pool)
	class, classVersion, err2 := conversion.ClassHash(p.class, base64.StdEncoding.EncodeToString(p.l.Config.CAData))
	if err := errors.Join(err1, err2); err != nil || poolVersion != poolHashVersion || classVersion != classHashVersion {
		p.t.Fatalf("the hash versions are %s and %s (%v), want Karpenter's versions", poolVersion, classVersion, err)
	}
	p.poolHash, p.classHash = pool, class
}

// karpentersDeployment returns manifests of the service account and the Deployment in Karpenter's chart. They have only
// the fields that the test needs, with the chart's default values.
func karpentersDeployment(l *lab.Lab) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: karpenter, namespace: kube-system, annotations: {eks.amazonaws.com/role-arn: %q}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: karpenter
  namespace: kube-system
  labels: {app.kubernetes.io/name: karpenter, app.kubernetes.io/instance: karpenter}
  annotations: {meta.helm.sh/release-name: karpenter, meta.helm.sh/release-namespace: kube-system}
spec:
  replicas: 2
  selector: {matchLabels: {app.kubernetes.io/name: karpenter}}
  template:
    metadata: {labels: {app.kubernetes.io/name: karpenter}}
    spec:
      serviceAccountName: karpenter
      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: karpenter.sh/nodepool, operator: DoesNotExist}]}]}}}
      containers:
      - name: controller
        image: public.ecr.aws/karpenter/controller:1.14.1
        env:
        - {name: KARPENTER_SERVICE, value: karpenter}
        - {name: CLUSTER_NAME, value: %s}
        - {name: FEATURE_GATES, value: "NodeRepair=false,ReservedCapacity=true,SpotToSpotConsolidation=false"}
        - {name: LOG_OUTPUT_PATHS, value: stdout}
---
`, l.Roles.ARN(lab.ControllerRole), l.Cluster)
}

// tags returns the tags that Karpenter sets on everything that it creates for a pool.
func (p *emulatedKarpenter) tags() map[string]string {
	return map[string]string{
		"kubernetes.io/cluster/" + p.l.Cluster: "owned", "eks:eks-cluster-name": p.l.Cluster,
		karpenterv1.LabelNodePool: p.name, awsv1.LabelNodeClass: p.name,
	}
}

func (p *emulatedKarpenter) changeAWS(do func(*world.World, time.Time) error) {
	p.t.Helper()
	var err error
	p.l.Emulator.Do(func(w *world.World, now time.Time) { err = do(w, now) })
	if err != nil {
		p.t.Fatal(err)
	}
}

// launch creates an instance as Karpenter does, in the private subnet with the given index. It waits until the instance
// has joined, creates the claim, and changes the Node as Karpenter does.
func (p *emulatedKarpenter) launch(claim string, subnet int) {
	p.t.Helper()
	var launched world.Instance
	p.changeAWS(func(w *world.World, now time.Time) error {
		r := p.l.Estate.Region
		image, data, err := p.imageAndUserData(r)
		if err != nil {
			return err
		}
		template := "karpenter.k8s.aws/314159265358979" + fmt.Sprint(subnet)
		if _, err := r.LaunchTemplates.Create(now, world.Template{Name: template, Tags: p.tags()}, world.TemplateVersion{Data: world.TemplateData{
			ImageID: image, InstanceType: "m5.large", UserData: data, Profile: &world.ProfileRef{Name: karpenterProfile},
			GroupIDs: []string{p.l.Estate.NodeSG.ID},
		}}, world.Idempotency{}); err != nil {
			return err
		}
		all, err := r.Launches.RunInstances(now,
			world.RunRequest{TemplateName: template, SubnetID: p.l.Estate.PrivateSubnets[subnet].ID, Min: 1, Max: 1,
				Tags: world.Tagging{"instance": p.tags(), "volume": p.tags()}})
		if err == nil {
			launched = all[0]
		}
		return err
	})
	node := &corev1.Node{}
	within(p.t, p.l, time.Minute, "the instance "+launched.ID+" to join", func(ctx context.Context) (bool, error) {
		var nodes corev1.NodeList
		err := p.l.Client.List(ctx, &nodes)
		for i := range nodes.Items {
			if joined := slices.ContainsFunc(nodes.Items[i].Status.Conditions, isReadyCondition); joined &&
				strings.HasSuffix(nodes.Items[i].Spec.ProviderID, "/"+launched.ID) {
				node = &nodes.Items[i]
			}
		}
		return node.Name != "", err
	})
	p.register(p.createClaim(claim, launched, node), node.Name)
	p.changeAWS(func(w *world.World, now time.Time) error {
		return p.l.Estate.Region.Tag(now, []string{launched.ID}, map[string]string{"karpenter.sh/nodeclaim": claim, "Name": node.Name}, nil)
	})
}

func isReadyCondition(c corev1.NodeCondition) bool {
	return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
}

// imageAndUserData returns the ID of the newest AL2023 image, and user data as Karpenter generates it.
func (p *emulatedKarpenter) imageAndUserData(r *world.Region) (image, data string, err error) {
	c, err := r.EKS.Cluster(p.l.Cluster)
	if err != nil {
		return "", "", err
	}
	// The newest image for the cluster's version, as the alias al2023@latest selects it.
	images := slices.SortedFunc(slices.Values(r.Images.All()), func(a, b world.Image) int { return b.CreatedAt.Compare(a.CreatedAt) })
	at := slices.IndexFunc(images, func(i world.Image) bool {
		return i.Family == "AL2023" && i.Variant == "standard" && i.Architecture == "x86_64" && i.Version == c.Version
	})
	if at < 0 {
		return "", "", fmt.Errorf("no AL2023 image among %d", len(images))
	}
	text := fmt.Sprintf(`MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

# Karpenter Generated NodeConfig
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
metadata: {}
spec:
  cluster:
    apiServerEndpoint: %s
    certificateAuthority: %s
    cidr: %s
    name: %s
  instance:
    localStorage: {}
  kubelet:
    config:
      clusterDNS: [10.100.0.10]
      maxPods: 29
      registerWithTaints:
      - {effect: NoExecute, key: karpenter.sh/unregistered}
    flags:
    - --node-labels="karpenter.sh/capacity-type=on-demand,karpenter.sh/nodepool=%s,test=%s"
--//--
`, c.Endpoint, c.CA, c.ServiceCIDR, p.l.Cluster, p.name, p.name)
	return images[at].ID, base64.StdEncoding.EncodeToString([]byte(text)), nil
}

// createClaim creates the claim of an instance as Karpenter leaves it once the node is ready.
func (p *emulatedKarpenter) createClaim(name string, i world.Instance, node *corev1.Node) *karpenterv1.NodeClaim {
	p.t.Helper()
	began := time.Now().Add(-time.Minute)
	yes := true
	claim := &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, GenerateName: p.name + "-", Finalizers: []string{karpenterv1.FinalizerTermination},
			Labels: map[string]string{
				karpenterv1.LabelNodePool: p.name, awsv1.LabelNodeClass: p.name, karpenterv1.LabelCapacityType: "on-demand", "test": p.name,
				corev1.LabelInstanceTypeStable: "m5.large", corev1.LabelTopologyZone: i.Zone,
				corev1.LabelTopologyRegion: p.l.Region, "topology.k8s.aws/zone-id": i.ZoneID,
				corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", awsv1.LabelInstanceCategory: "m", awsv1.LabelInstanceFamily: "m5",
				awsv1.LabelInstanceGeneration: "5", awsv1.LabelInstanceSize: "large", awsv1.LabelInstanceCPU: "2", awsv1.LabelInstanceMemory: "8192",
			},
			Annotations: map[string]string{
				karpenterv1.AnnotationNodePoolHash: p.poolHash, karpenterv1.AnnotationNodePoolHashVersion: poolHashVersion,
				awsv1.AnnotationHash: p.classHash, awsv1.AnnotationHashVersion: classHashVersion, awsv1.AnnotationInstanceProfile: karpenterProfile,
				awsv1.AnnotationTagged: "true", awsv1.AnnotationClusterNameTagged: "true", karpenterv1.AnnotationMinValuesRelaxed: "false",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: p.name,
				UID: p.pool.UID, BlockOwnerDeletion: &yes}},
		},
		Spec: karpenterv1.NodeClaimSpec{
			NodeClassRef: p.pool.Spec.Template.Spec.NodeClassRef, Requirements: slices.Clone(p.pool.Spec.Template.Spec.Requirements),
			ExpireAfter: p.pool.Spec.Template.Spec.ExpireAfter,
			Resources: karpenterv1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1200m"), corev1.ResourceMemory: resource.MustParse("1Gi"),
				corev1.ResourcePods: resource.MustParse("3"),
			}},
		},
	}
	if err := p.l.Client.Create(p.t.Context(), claim); err != nil {
		p.t.Fatal(err)
	}
	claim.Status.ProviderID, claim.Status.NodeName, claim.Status.ImageID = node.Spec.ProviderID, node.Name, i.ImageID
	claim.Status.Capacity, claim.Status.Allocatable = node.Status.Capacity, node.Status.Allocatable
	conditions := claim.StatusConditions()
	conditions.Start(began)
	for _, c := range []string{karpenterv1.ConditionLaunched, karpenterv1.ConditionRegistered,
		karpenterv1.ConditionInitialized, karpenterv1.ConditionConsistentStateFound, karpenterv1.ConditionReady} {
		conditions.SetTrue(began, c)
	}
	if err := p.l.Client.Status().Update(p.t.Context(), claim); err != nil {
		p.t.Fatal(err)
	}
	return claim
}

// register changes a Node as Karpenter does once the Node has joined and is ready.
func (p *emulatedKarpenter) register(claim *karpenterv1.NodeClaim, nodeName string) {
	p.t.Helper()
	node := &corev1.Node{}
	within(p.t, p.l, 10*time.Second, "the Node to be registered", func(ctx context.Context) (bool, error) {
		if err := p.l.Client.Get(ctx, client.ObjectKey{Name: nodeName}, node); err != nil {
			return false, err
		}
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		maps.Copy(node.Labels, claim.Labels)
		maps.Copy(node.Annotations, claim.Annotations)
		node.Labels[karpenterv1.LabelRegistered], node.Labels[karpenterv1.LabelInitialized] = "true", "true"
		node.Finalizers = []string{karpenterv1.FinalizerTermination}
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpenterv1.TaintUnregistered })
		yes := true
		node.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: claim.Name,
			UID: claim.UID, BlockOwnerDeletion: &yes}}
		err := p.l.Client.Update(ctx, node)
		return err == nil, err
	})
}
