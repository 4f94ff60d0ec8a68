package evidence

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/api/crds"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/manifest"
	"github.com/joiner-sh/joiner/internal/migration"
)

// InstalledController is a controller in the cluster with its arguments and environment.
type InstalledController struct {
	migration.Controller
	Args    []string // command-line arguments
	Environ []string // NAME=value; without variables that have a valueFrom
}

// MigrationInput converts the objects that ReadManifests or Reader.Karpenter returned into the input of a migration
// check. The Installation lacks its Controllers: these are the second result, because this package does not parse
// settings. Objects of other kinds are ignored. The error is about the first object that cannot be decoded.
func MigrationInput(objects []*unstructured.Unstructured) (migration.Installation, []InstalledController, error) {
	m := migrationBuilder{roles: map[string]string{}, foreign: map[string]bool{},
		definitions: map[string]*apiextensionsv1.CustomResourceDefinition{}}
	for _, o := range objects {
		m.add(o)
	}
	m.out.Nodes = slices.DeleteFunc(m.out.Nodes, func(n migration.Node) bool { return m.foreign[n.Pool] })
	for i, c := range m.installed {
		m.installed[i].Role = m.roles[c.Namespace+"/"+c.Account]
	}
	err := m.compareDefinitions()
	return m.out, m.installed, cmp.Or(m.err, err)
}

type migrationBuilder struct {
	out         migration.Installation
	installed   []InstalledController
	roles       map[string]string                                    // IAM role by "namespace/name" of the service account
	foreign     map[string]bool                                      // names of NodePools whose node class is no EC2NodeClass
	definitions map[string]*apiextensionsv1.CustomResourceDefinition // by name
	err         error                                                // the first error
}

func (m *migrationBuilder) add(o *unstructured.Unstructured) {
	gvk := o.GroupVersionKind()
	switch gvk.GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		if o.GetName() == metav1.NamespaceSystem {
			m.out.UID = string(o.GetUID())
		}
	case schema.GroupKind{Kind: "ServiceAccount"}:
		m.roles[o.GetNamespace()+"/"+o.GetName()] = o.GetAnnotations()["eks.amazonaws.com/role-arn"]
	case schema.GroupKind{Kind: "Node"}:
		if node := (&corev1.Node{}); m.decode(o, node) && node.Labels[karpv1.LabelNodePool] != "" {
			m.out.Nodes = append(m.out.Nodes, migrationNode(node))
		}
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}:
		if d := (&appsv1.Deployment{}); m.decode(o, d) && hasControllerName(&d.ObjectMeta) {
			m.installed = append(m.installed, installedController(d))
		}
	case schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}:
		if d := (&apiextensionsv1.CustomResourceDefinition{}); m.decode(o, d) {
			m.definitions[d.Name] = d
		}
	default:
		m.addKarpenterObject(o, gvk.GroupKind())
	}
}

func (m *migrationBuilder) addKarpenterObject(o *unstructured.Unstructured, kind schema.GroupKind) {
	switch kind {
	case schema.GroupKind{Group: karpv1.Group, Kind: "NodePool"}:
		if p := (&karpv1.NodePool{}); m.decode(o, p) {
			m.out.Pools = append(m.out.Pools, migrationPool(p, checkObject(o, p.Status.Conditions)))
			m.foreign[p.Name] = isForeign(p.Spec.Template.Spec.NodeClassRef)
		}
	case schema.GroupKind{Group: karpv1.Group, Kind: "NodeClaim"}:
		if c := (&karpv1.NodeClaim{}); m.decode(o, c) && !isForeign(c.Spec.NodeClassRef) {
			m.out.Claims = append(m.out.Claims, migrationClaim(c))
		}
	case schema.GroupKind{Group: awsv1.Group, Kind: awsv1.Kind}:
		if c := (&awsv1.EC2NodeClass{}); m.decode(o, c) {
			m.out.Classes = append(m.out.Classes, migration.Class{Name: c.Name, Role: c.Spec.Role, Hash: c.Annotations[awsv1.AnnotationHash],
				HashVersion: c.Annotations[awsv1.AnnotationHashVersion], Object: checkObject(o, c.Status.Conditions)})
		}
	}
}

// decode converts o into object. If it fails, it records the error and returns false.
func (m *migrationBuilder) decode(o *unstructured.Unstructured, object client.Object) bool {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, object); err != nil {
		var d manifest.Decoder // formats the error
		d.Unreadable(manifest.Document{File: "-"}, o.GetKind()+" "+o.GetName(), err)
		m.err = cmp.Or(m.err, d.Errs[0])
		return false
	}
	return true
}

func migrationNode(n *corev1.Node) migration.Node {
	return migration.Node{Name: n.Name, ProviderID: n.Spec.ProviderID, Pool: n.Labels[karpv1.LabelNodePool],
		Disrupted: slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpv1.TaintDisrupted })}
}

// isForeign reports whether the node class is of a kind that Joiner does not serve.
func isForeign(ref *karpv1.NodeClassReference) bool {
	return ref != nil && (ref.Group != awsv1.Group || ref.Kind != awsv1.Kind)
}

// migrationPool converts a NodePool; o is the result of checkObject for that NodePool.
func migrationPool(p *karpv1.NodePool, o migration.Object) migration.Pool {
	ref := p.Spec.Template.Spec.NodeClassRef
	return migration.Pool{Name: p.Name, Class: kubeclient.ClassName(ref), Foreign: isForeign(ref),
		Hash:        p.Annotations[karpv1.AnnotationNodePoolHash],
		HashVersion: p.Annotations[karpv1.AnnotationNodePoolHashVersion], Object: o}
}

func migrationClaim(c *karpv1.NodeClaim) migration.Claim {
	out := migration.Claim{
		Name:       c.Name,
		Pool:       c.Labels[karpv1.LabelNodePool],
		Class:      kubeclient.ClassName(c.Spec.NodeClassRef),
		UID:        c.Annotations[karpv1.KeyClusterUID],
		ProviderID: c.Status.ProviderID, Node: c.Status.NodeName, Deleting: c.DeletionTimestamp != nil,
		PoolHash: c.Annotations[karpv1.AnnotationNodePoolHash], PoolHashVersion: c.Annotations[karpv1.AnnotationNodePoolHashVersion],
		ClassHash: c.Annotations[awsv1.AnnotationHash], ClassHashVersion: c.Annotations[awsv1.AnnotationHashVersion]}
	if after := c.Spec.ExpireAfter.Duration; after != nil && !c.CreationTimestamp.IsZero() {
		out.Expires = c.CreationTimestamp.Add(*after).UTC()
	}
	if drifted, ok := c.StatusConditions().Find(karpv1.ConditionDrifted); ok && drifted.Status == metav1.ConditionTrue {
		out.Drifted = cmp.Or(drifted.Reason, karpv1.ConditionDrifted)
	}
	return out
}

// installedController converts a Deployment. It uses the container named controller, or else the first container.
func installedController(d *appsv1.Deployment) InstalledController {
	spec := &d.Spec.Template.Spec
	out := InstalledController{Controller: migration.Controller{
		Product:   migration.Karpenter,
		Namespace: cmp.Or(d.Namespace, metav1.NamespaceDefault),
		Name:      d.Name,
		Release:   d.Annotations["meta.helm.sh/release-name"], Replicas: 1, Account: cmp.Or(spec.ServiceAccountName, "default")}}
	if d.Labels[appLabel] == string(migration.Joiner) || d.Name == string(migration.Joiner) {
		out.Product = migration.Joiner
	}
	if d.Spec.Replicas != nil {
		out.Replicas = int(*d.Spec.Replicas)
	}
	if len(spec.Containers) == 0 {
		return out
	}
	container := &spec.Containers[max(0, slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == "controller" }))]
	out.Version, out.Args = imageTag(container.Image), container.Args
	if out.Version == "" {
		out.Version = d.Labels["app.kubernetes.io/version"]
	}
	for _, v := range container.Env {
		if v.ValueFrom == nil {
			out.Environ = append(out.Environ, v.Name+"="+v.Value)
		}
	}
	return out
}

// imageTag returns "1.14.1" for public.ecr.aws/karpenter/controller:1.14.1@sha256:…; empty if there is no tag.
func imageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, _ := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	return tag
}

// checkObject validates an object with Joiner's CRDs. It returns the errors, the unknown fields, and why the object is
// not ready.
func checkObject(o *unstructured.Unstructured, conditions []metav1.Condition) migration.Object {
	var out migration.Object
	for _, c := range conditions {
		if c.Type == karpv1.ConditionReady && c.Status != metav1.ConditionTrue {
			out.NotReady = conversion.OneLine(cmp.Or(c.Message, c.Reason, string(c.Status)))
		}
	}
	if version := o.GroupVersionKind().Version; version != karpv1.GroupVersion.Version {
		out.Refused = []string{"it is written in the API " + version + ", which is not served any more; write it as v1"}
		return out
	}
	definitions, err := manifest.Definitions()
	if err != nil {
		out.Refused = []string{err.Error()}
		return out
	}
	compiled, err := definitions[o.GroupVersionKind().GroupKind()]()
	if err != nil {
		out.Refused = []string{err.Error()}
		return out
	}
	tree := o.DeepCopy().Object
	out.Unknown = pruning.PruneWithOptions(tree, compiled.Structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	// Controllers write the status, not the user.
	out.Unknown = slices.DeleteFunc(out.Unknown, func(path string) bool { return strings.HasPrefix(path, "status.") })
	slices.Sort(out.Unknown)
	for _, e := range compiled.Admit(tree) {
		out.Refused = append(out.Refused, manifest.Refusal(e, manifest.FieldValue(e)))
	}
	slices.Sort(out.Refused)
	out.Refused = slices.Compact(out.Refused)
	return out
}

// compareDefinitions compares the CRDs among the objects with Joiner's. It does nothing if there is no CRD, as in most
// files.
func (m *migrationBuilder) compareDefinitions() error {
	if len(m.definitions) == 0 {
		return nil
	}
	ours, err := crds.Definitions()
	if err != nil {
		return err
	}
	for _, own := range ours {
		compared := kubeclient.CompareDefinition(own, m.definitions[own.Name])
		m.out.Definitions = append(m.out.Definitions,
			migration.Definition{Name: compared.Name, Held: compared.NeedsUser(), Says: compared.Summary()})
	}
	return nil
}
