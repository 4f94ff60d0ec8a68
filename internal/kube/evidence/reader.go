package evidence

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// Reader reads from Kubernetes the evidence about nodes that do not join. It changes nothing, and masks secrets in
// texts that other programs wrote. If a method does not read all objects of a list, its result cut says how many it
// read; otherwise cut is empty.
type Reader struct {
	objects   client.Reader        // reads objects: from the API server, or from the informers if clientset is nil
	clientset kubernetes.Interface // client of the API server; nil within the controller
	host      string               // address of the API server; empty within the controller
	authMaps  client.Reader        // reads the ConfigMap aws-auth from the API server; set only if clientset is nil

	mu    sync.Mutex
	known *authority // the result of readAuthority; nil until it succeeds
}

// NewCacheReader returns a Reader for use in the controller. It reads the controller's informers, and the ConfigMap
// aws-auth from the API server. The caller must not call Home, Events, PodEvents, Lease, Pods or Controller.
func NewCacheReader(cache, live client.Reader) *Reader {
	return &Reader{objects: cache, authMaps: live}
}

// NewReader returns a Reader of the cluster's API server.
func NewReader(cfg *rest.Config) (*Reader, error) {
	scheme, err := kubeclient.Scheme()
	if err != nil {
		return nil, fmt.Errorf("make scheme: %w", err)
	}
	live, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the API server %s: %w", cfg.Host, err)
	}
	plain, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("reach the API server %s: %w", cfg.Host, err)
	}
	return &Reader{objects: live, clientset: plain, host: cfg.Host}, nil
}

// Home identifies the cluster, and reports the state of its DNS.
func (r *Reader) Home(ctx context.Context) (diagnosis.ClusterIdentity, error) {
	namespace, err := r.clientset.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	switch {
	case kubeclient.Classify(err) == kubeclient.Gone:
		return diagnosis.ClusterIdentity{}, fmt.Errorf("namespace kube-system, which every cluster has, does not exist: check that the address is that of an API server: %w", err)
	case err != nil:
		return diagnosis.ClusterIdentity{}, err
	}
	out := diagnosis.ClusterIdentity{UID: string(namespace.UID), Endpoint: r.host}
	if root, err := r.clientset.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{}); err == nil {
		out.CA = root.Data["ca.crt"]
	}
	if text, err := r.clientset.Discovery().RESTClient().Get().AbsPath("/.well-known/openid-configuration").DoRaw(ctx); err == nil {
		var issuer struct{ Issuer string }
		if json.Unmarshal(text, &issuer) == nil {
			out.Issuer = issuer.Issuer
		}
	}
	dnsSlices, err := r.clientset.DiscoveryV1().EndpointSlices(metav1.NamespaceSystem).List(ctx,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kube-dns"})
	switch {
	case kubeclient.IsForbidden(err): // whether DNS is up stays unknown
		out.DNSAbsent, out.DNSWhy = diagnosis.Denied, "to list endpointslices in kube-system"
		return out, nil
	case err != nil:
		out.DNSAbsent, out.DNSWhy = diagnosis.Failed, diagnosis.Mask(err.Error())
		return out, nil
	}
	for _, s := range dnsSlices.Items {
		out.DNSReady = out.DNSReady ||
			slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready })
	}
	return out, nil
}

// authMapName is the name of the ConfigMap that maps IAM roles to users, if the cluster's authentication mode uses it.
const authMapName = "aws-auth"

// AuthMap reads the ConfigMap aws-auth.
func (r *Reader) AuthMap(ctx context.Context) (diagnosis.AuthMap, error) {
	if r.authMaps != nil {
		config := &corev1.ConfigMap{}
		if err := r.authMaps.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: authMapName}, config); err != nil {
			return diagnosis.AuthMap{}, err
		}
		return ReadAuthMap(config.Data["mapRoles"]), nil
	}
	config, err := r.clientset.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, authMapName, metav1.GetOptions{})
	if err != nil {
		return diagnosis.AuthMap{}, err
	}
	return ReadAuthMap(config.Data["mapRoles"]), nil
}

// maxAuthMapBytes is the maximum length of mapRoles, which is the maximum size of a ConfigMap.
const maxAuthMapBytes = 1 << 20

// ReadAuthMap parses mapRoles of aws-auth as the authenticator does: as a list whose entries may have unknown fields.
func ReadAuthMap(text string) diagnosis.AuthMap {
	out := diagnosis.AuthMap{Raw: text}
	if len(text) > maxAuthMapBytes {
		return diagnosis.AuthMap{Problem: fmt.Sprintf("it has %d bytes, more than a ConfigMap holds", len(text))}
	}
	var rows []struct {
		RoleARN  string   `json:"rolearn"`
		Username string   `json:"username"`
		Groups   []string `json:"groups"`
	}
	if err := yaml.Unmarshal([]byte(text), &rows); err != nil {
		out.Problem = strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")), " ")
		return out
	}
	for _, r := range rows {
		out.Roles = append(out.Roles, diagnosis.Mapping{ARN: r.RoleARN, Username: r.Username, Groups: r.Groups})
	}
	return out
}

// Classes returns the EC2NodeClasses, sorted by name.
func (r *Reader) Classes(ctx context.Context) (found []diagnosis.Class, cut string, err error) {
	out := []diagnosis.Class{}
	isCut, err := r.pages(ctx, maxObjects, func() client.ObjectList { return &awsv1.EC2NodeClassList{} }, func(l client.ObjectList) int {
		list := l.(*awsv1.EC2NodeClassList)
		for i := range list.Items {
			out = append(out, diagnosisClass(&list.Items[i]))
		}
		return len(list.Items)
	})
	if err != nil {
		return nil, "", err
	}
	slices.SortFunc(out, func(a, b diagnosis.Class) int { return cmp.Compare(a.Name, b.Name) })
	return out, cutNote(isCut, len(out), "EC2NodeClasses"), nil
}

func diagnosisClass(c *awsv1.EC2NodeClass) diagnosis.Class {
	out := diagnosis.Class{
		Name:     c.Name,
		UID:      string(c.UID),
		Family:   c.Spec.ResolvedAMIFamily(),
		Role:     c.Spec.Role,
		Profile:  c.Status.InstanceProfile,
		PublicIP: c.Spec.AssociatePublicIPAddress, HopLimit: 1, Conditions: diagnosisConditions(c.Status.Conditions)}
	if c.Spec.InstanceProfile != nil {
		out.Profile = *c.Spec.InstanceProfile
	}
	setInstanceFields(&out, &c.Spec)
	if c.Spec.UserData != nil {
		out.DataBytes = len(*c.Spec.UserData)
	}
	for _, t := range c.Spec.AMISelectorTerms {
		if t.ID != "" {
			out.ImageIDs = append(out.ImageIDs, t.ID)
		}
	}
	for _, t := range c.Spec.SubnetSelectorTerms {
		out.SubnetTags = withTags(out.SubnetTags, t.Tags)
	}
	for _, t := range c.Spec.SecurityGroupSelectorTerms {
		out.GroupTags = withTags(out.GroupTags, t.Tags)
	}
	for _, a := range c.Status.AMIs {
		out.Images = append(out.Images, a.ID)
	}
	for _, s := range c.Status.Subnets {
		out.Subnets = append(out.Subnets, s.ID)
	}
	for _, g := range c.Status.SecurityGroups {
		out.Groups = append(out.Groups, g.ID)
	}
	for _, list := range [][]string{out.ImageIDs, out.Images, out.Subnets, out.Groups} {
		slices.Sort(list)
	}
	return out
}

// withTags adds the tags in more to all, and returns all; nil if both have no tags.
func withTags(all, more map[string]string) map[string]string {
	if all == nil && len(more) > 0 {
		all = map[string]string{}
	}
	maps.Copy(all, more)
	return all
}

// setInstanceFields sets the fields that describe the instances: metadata options, root disk and KMS keys.
func setInstanceFields(out *diagnosis.Class, spec *awsv1.EC2NodeClassSpec) {
	if m := spec.MetadataOptions; m != nil && m.HTTPPutResponseHopLimit != nil {
		out.HopLimit = *m.HTTPPutResponseHopLimit
	}
	if m := spec.MetadataOptions; m != nil && m.HTTPEndpoint != nil {
		out.NoMetadata = *m.HTTPEndpoint == "disabled"
	}
	for i, m := range spec.BlockDeviceMappings {
		if m.EBS != nil && m.EBS.KMSKeyID != nil && !slices.Contains(out.Keys, *m.EBS.KMSKeyID) {
			out.Keys = append(out.Keys, *m.EBS.KMSKeyID)
		}
		if m.EBS != nil && m.EBS.VolumeSize != nil && (m.RootVolume || len(spec.BlockDeviceMappings) == 1) {
			out.RootGiB, out.RootIndex = int(m.EBS.VolumeSize.Value()>>30), i // a single volume counts as root volume
		}
	}
}

// checkReason matches the reasons of conditions that report the finding of a check: "AUTH_5".
var checkReason = regexp.MustCompile(`^[A-Z]+_[0-9]+$`)

// diagnosisConditions converts conditions, sorted by type. It leaves out conditions that a diagnosis has written,
// because they are not evidence.
func diagnosisConditions(all []metav1.Condition) []diagnosis.Condition {
	var out []diagnosis.Condition
	for _, c := range all {
		if checkReason.MatchString(c.Reason) {
			continue
		}
		out = append(out, diagnosis.Condition{
			Type:    c.Type,
			Status:  string(c.Status),
			Reason:  c.Reason,
			Message: diagnosis.Mask(c.Message),
			Since:   c.LastTransitionTime.UTC(),
		})
	}
	slices.SortFunc(out, func(a, b diagnosis.Condition) int { return cmp.Compare(a.Type, b.Type) })
	return out
}

// Pools returns the NodePools, sorted by name. Their requirements lack minValues.
func (r *Reader) Pools(ctx context.Context) (found []diagnosis.Pool, cut string, err error) {
	out := []diagnosis.Pool{}
	isCut, err := r.pages(ctx, maxObjects, func() client.ObjectList { return &karpv1.NodePoolList{} }, func(l client.ObjectList) int {
		list := l.(*karpv1.NodePoolList)
		for i := range list.Items {
			p := &list.Items[i]
			template := &p.Spec.Template
			pool := diagnosis.Pool{
				Name:       p.Name,
				UID:        string(p.UID),
				Class:      kubeclient.ClassName(template.Spec.NodeClassRef),
				Labels:     template.Labels,
				Taints:     diagnosisTaints(template.Spec.Taints),
				Startup:    diagnosisTaints(template.Spec.StartupTaints),
				Conditions: diagnosisConditions(p.Status.Conditions),
			}
			for _, r := range template.Spec.Requirements {
				pool.Requirements = append(pool.Requirements, diagnosis.Requirement{Key: r.Key, Operator: string(r.Operator), Values: r.Values})
			}
			out = append(out, pool)
		}
		return len(list.Items)
	})
	if err != nil {
		return nil, "", err
	}
	slices.SortFunc(out, func(a, b diagnosis.Pool) int { return cmp.Compare(a.Name, b.Name) })
	return out, cutNote(isCut, len(out), "NodePools"), nil
}

func diagnosisTaints(taints []corev1.Taint) []diagnosis.Taint {
	var out []diagnosis.Taint
	for _, t := range taints {
		out = append(out, diagnosis.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return out
}

// Claims returns the NodeClaims, sorted by name.
func (r *Reader) Claims(ctx context.Context) (found []diagnosis.Claim, cut string, err error) {
	out := []diagnosis.Claim{}
	isCut, err := r.pages(ctx, maxObjects, func() client.ObjectList { return &karpv1.NodeClaimList{} }, func(l client.ObjectList) int {
		list := l.(*karpv1.NodeClaimList)
		for i := range list.Items {
			c := &list.Items[i]
			out = append(out, diagnosis.Claim{
				Name:       c.Name,
				UID:        string(c.UID),
				Pool:       c.Labels[karpv1.LabelNodePool],
				Class:      kubeclient.ClassName(c.Spec.NodeClassRef),
				ProviderID: c.Status.ProviderID,
				Created:    c.CreationTimestamp.UTC(), Deleting: c.DeletionTimestamp != nil, Conditions: diagnosisConditions(c.Status.Conditions)})
		}
		return len(list.Items)
	})
	if err != nil {
		return nil, "", err
	}
	slices.SortFunc(out, func(a, b diagnosis.Claim) int { return cmp.Compare(a.Name, b.Name) })
	return out, cutNote(isCut, len(out), "NodeClaims"), nil
}

// Nodes returns the nodes, sorted by name.
func (r *Reader) Nodes(ctx context.Context) (found []diagnosis.Node, cut string, err error) {
	out := []diagnosis.Node{}
	isCut, err := r.pages(ctx, maxObjects, func() client.ObjectList { return &corev1.NodeList{} }, func(l client.ObjectList) int {
		list := l.(*corev1.NodeList)
		for i := range list.Items {
			n := &list.Items[i]
			node := diagnosis.Node{
				Name:       n.Name,
				ProviderID: n.Spec.ProviderID,
				Pool:       n.Labels[karpv1.LabelNodePool],
				Created:    n.CreationTimestamp.UTC(),
				Taints:     diagnosisTaints(n.Spec.Taints), Zone: n.Labels[corev1.LabelTopologyZone], Arch: n.Labels[corev1.LabelArchStable],
				Labels: diagnosis.OwnLabels(n.Labels)}
			for _, c := range n.Status.Conditions {
				if c.Type == corev1.NodeReady {
					node.Ready, node.Message = c.Status == corev1.ConditionTrue, diagnosis.Mask(c.Message)
				}
			}
			node.TaintsBy = TaintWriters(n)
			out = append(out, node)
		}
		return len(list.Items)
	})
	if err != nil {
		return nil, "", err
	}
	slices.SortFunc(out, func(a, b diagnosis.Node) int { return cmp.Compare(a.Name, b.Name) })
	return out, cutNote(isCut, len(out), "Nodes"), nil
}

// Daemons returns the DaemonSets, sorted by namespace and name.
func (r *Reader) Daemons(ctx context.Context) (found []diagnosis.DaemonSet, cut string, err error) {
	out := []diagnosis.DaemonSet{}
	isCut, err := r.pages(ctx, maxObjects, func() client.ObjectList { return &appsv1.DaemonSetList{} }, func(l client.ObjectList) int {
		list := l.(*appsv1.DaemonSetList)
		for i := range list.Items {
			s := &list.Items[i]
			set := diagnosis.DaemonSet{Namespace: s.Namespace, Name: s.Name, Host: s.Spec.Template.Spec.HostNetwork,
				Desired: int(s.Status.DesiredNumberScheduled), Ready: int(s.Status.NumberReady)}
			if s.Name == "aws-node" && s.Namespace == metav1.NamespaceSystem {
				set.Env = containerVariables(&s.Spec.Template.Spec, "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "ENABLE_PREFIX_DELEGATION",
					"ENABLE_IPv6", "ENI_CONFIG_LABEL_DEF")
			}
			out = append(out, set)
		}
		return len(list.Items)
	})
	if err != nil {
		return nil, "", err
	}
	slices.SortFunc(out, func(a, b diagnosis.DaemonSet) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, cutNote(isCut, len(out), "DaemonSets"), nil
}

// containerVariables returns the environment variables with these names, of all containers; nil if none is set.
func containerVariables(spec *corev1.PodSpec, names ...string) map[string]string {
	var out map[string]string
	for i := range spec.Containers {
		for _, v := range spec.Containers[i].Env {
			if !slices.Contains(names, v.Name) {
				continue
			}
			if out == nil {
				out = map[string]string{}
			}
			out[v.Name] = diagnosis.Mask(v.Value)
		}
	}
	return out
}
