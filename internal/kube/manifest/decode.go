package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	k8sjson "sigs.k8s.io/json"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
)

// Decoder decodes documents into objects and collects their problems.
type Decoder struct {
	objects snapshot.Objects
	Skipped map[string]int // number of documents whose kind does not affect plans, by kind
	Unknown map[string]int // number of documents of unknown kinds, by kind
	notes   []string       // sentences for the user about assumptions and ignored values
	Errs    []error        // one for each problem found

	Seen      map[string]string // file and line of each object, by "Kind namespace/name"
	Read      map[string]bool   // files that were read, by absolute path
	workloads []workload        // Deployments and other objects that create pods
	admission admission         // objects with which pods are completed
	bytes     int64             // number of bytes read so far

	// OnDocument, if not nil, is called for each document and each item of a List, instead of decoding it.
	OnDocument func(Document)
}

// head has the fields that identify the kind of a document, and the items of a List.
type head struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Items      []json.RawMessage `json:"items"`
}

func (d *Decoder) readSource(s source) {
	docs := d.documents(s)
	for _, doc := range docs {
		d.readDocument(s, doc)
	}
	if len(docs) == 0 && s.named && len(bytes.TrimSpace(s.data)) == 0 {
		d.AddProblem(s.name, 0, "is empty; give a file with Kubernetes objects")
	}
}

// readDocument decodes one document of the file: an object, a List, or a JSON array of objects.
func (d *Decoder) readDocument(s source, doc Document) {
	if bytes.HasPrefix(bytes.TrimSpace(doc.JSON), []byte("[")) {
		var items []json.RawMessage
		if err := json.Unmarshal(doc.JSON, &items); err == nil {
			d.readItems(s, doc, items)
			return
		}
	}
	var h head
	if err := json.Unmarshal(doc.JSON, &h); err != nil || h.Kind == "" || h.APIVersion == "" {
		if s.named {
			d.AddProblem(doc.File, doc.Line, "is not a Kubernetes object: apiVersion or kind is missing")
			return
		}
		d.Skipped["(no kind)"]++ // a folder may also contain other files
		return
	}
	gv, err := schema.ParseGroupVersion(h.APIVersion)
	if err != nil {
		d.AddProblem(doc.File, doc.Line, "apiVersion %q is invalid; write group/version, for instance apps/v1",
			h.APIVersion)
		return
	}
	if h.Kind == "List" || strings.HasSuffix(h.Kind, "List") && h.Items != nil {
		d.readItems(s, doc, h.Items)
		return
	}
	if d.OnDocument != nil {
		d.OnDocument(doc)
		return
	}
	d.readObject(doc, gv.WithKind(h.Kind))
}

type kinds map[schema.GroupVersionKind]func() client.Object

// knownKinds returns the kinds that affect plans.
func knownKinds() kinds {
	core, apps, batch := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion
	storage, policy := storagev1.SchemeGroupVersion, policyv1.SchemeGroupVersion
	return kinds{
		core.WithKind("Pod"):                                      func() client.Object { return &corev1.Pod{} },
		core.WithKind("Node"):                                     func() client.Object { return &corev1.Node{} },
		core.WithKind("Namespace"):                                func() client.Object { return &corev1.Namespace{} },
		core.WithKind("LimitRange"):                               func() client.Object { return &corev1.LimitRange{} },
		core.WithKind("PersistentVolumeClaim"):                    func() client.Object { return &corev1.PersistentVolumeClaim{} },
		core.WithKind("PersistentVolume"):                         func() client.Object { return &corev1.PersistentVolume{} },
		apps.WithKind("Deployment"):                               func() client.Object { return &appsv1.Deployment{} },
		apps.WithKind("ReplicaSet"):                               func() client.Object { return &appsv1.ReplicaSet{} },
		apps.WithKind("StatefulSet"):                              func() client.Object { return &appsv1.StatefulSet{} },
		apps.WithKind("DaemonSet"):                                func() client.Object { return &appsv1.DaemonSet{} },
		batch.WithKind("Job"):                                     func() client.Object { return &batchv1.Job{} },
		batch.WithKind("CronJob"):                                 func() client.Object { return &batchv1.CronJob{} },
		storage.WithKind("StorageClass"):                          func() client.Object { return &storagev1.StorageClass{} },
		storage.WithKind("CSINode"):                               func() client.Object { return &storagev1.CSINode{} },
		schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"): func() client.Object { return &schedulingv1.PriorityClass{} },
		nodev1.SchemeGroupVersion.WithKind("RuntimeClass"):        func() client.Object { return &nodev1.RuntimeClass{} },
		policy.WithKind("PodDisruptionBudget"):                    func() client.Object { return &policyv1.PodDisruptionBudget{} },
		karpv1.GroupVersion.WithKind("NodePool"):                  func() client.Object { return &karpv1.NodePool{} },
		karpv1.GroupVersion.WithKind("NodeClaim"):                 func() client.Object { return &karpv1.NodeClaim{} },
		awsv1.GroupVersion.WithKind(awsv1.Kind):                   func() client.Object { return &awsv1.EC2NodeClass{} },
	}
}

// readObject decodes an object and adds it. If the object is invalid, it records the problems and does not add the
// object.
func (d *Decoder) readObject(doc Document, gvk schema.GroupVersionKind) {
	all := knownKinds()
	newObject, ok := all[gvk]
	if !ok {
		d.handleUnknownKind(doc, gvk, all)
		return
	}
	var tree map[string]any
	if err := utiljson.Unmarshal(doc.JSON, &tree); err != nil { // keeps whole numbers as integers
		d.AddProblem(doc.File, doc.Line, "%s cannot be read: %v", gvk.Kind, err)
		return
	}
	name := nameIn(tree)
	if path, value := invalidQuantity(tree, "", false); path != "" {
		d.AddProblem(doc.File, doc.lineOf(lastKey(path), value),
			"%s %s: %s: %q is not an amount; write for instance 500m, 2 or 1Gi", gvk.Kind, name, path, value)
		return
	}
	strictErrors, err := k8sjson.UnmarshalStrict(doc.JSON, newObject())
	var typos []typo
	for _, strictError := range strictErrors {
		if t, ok := typoOf(strictError, newObject()); ok {
			typos = append(typos, t)
		}
	}
	if !d.admit(doc, gvk, tree, typos) {
		return
	}
	object, decodeErr := decode(tree, newObject())
	if err := cmp.Or(err, decodeErr); err != nil {
		d.Unreadable(doc, gvk.Kind+" "+name, err)
		return
	}
	for _, strictError := range strictErrors {
		hint := ""
		if t, ok := typoOf(strictError, newObject()); ok {
			hint = t.hint()
		}
		d.note(doc.File, doc.Line, "%s %s: %v, ignored%s", gvk.Kind, name, strictError, hint)
	}
	d.add(doc, gvk.Kind, object)
}

// Unreadable records why an object cannot be decoded.
func (d *Decoder) Unreadable(doc Document, id string, err error) {
	if m, ok := typeMismatchOf(err); ok {
		d.AddProblem(doc.File, doc.lineOf(lastKey(m.path)+":", ""), "%s: %s", id, m.sentence())
		return
	}
	d.AddProblem(doc.File, doc.Line, "%s cannot be read: %v", id, err)
}

// decode decodes tree, to which the defaults were added, into object.
func decode(tree map[string]any, object client.Object) (client.Object, error) {
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	return object, k8sjson.UnmarshalCaseSensitivePreserveInts(data, object)
}

func (d *Decoder) add(doc Document, kind string, object client.Object) {
	if object.GetNamespace() == "" && kubeclient.IsNamespaced(object) {
		object.SetNamespace("default")
	}
	if object.GetName() == "" && object.GetGenerateName() == "" {
		d.AddProblem(doc.File, doc.Line, "%s has no metadata.name", kind)
		return
	}
	id := identity(kind, object)
	found := problems(object)
	for _, p := range found {
		d.AddProblem(doc.File, doc.lineOf(p.key, p.value), "%s: %s", id, p.text)
	}
	for _, p := range likelyMistakes(object) {
		d.note(doc.File, doc.lineOf(p.key, p.value), "%s: %s", id, p.text)
	}
	if object.GetName() != "" {
		if before, ok := d.Seen[id]; ok {
			d.AddProblem(doc.File, doc.Line, "%s is defined twice, first in %s; remove one", id, before)
			return
		}
		d.Seen[id] = position(doc.File, doc.Line)
	}
	if len(found) == 0 {
		d.store(object)
	}
}

func (d *Decoder) store(object client.Object) {
	o := &d.objects
	switch v := object.(type) {
	case *corev1.Pod:
		conversion.DefaultRequests(&v.Spec)
		o.Pods = append(o.Pods, v)
	case *corev1.Node:
		o.Nodes = append(o.Nodes, v)
	case *corev1.Namespace:
		o.Namespaces = append(o.Namespaces, v)
	case *storagev1.CSINode:
		o.CSINodes = append(o.CSINodes, v)
	case *corev1.PersistentVolumeClaim:
		o.VolumeClaims = append(o.VolumeClaims, v)
	case *corev1.PersistentVolume:
		o.Volumes = append(o.Volumes, v)
	case *appsv1.DaemonSet:
		o.DaemonSets = append(o.DaemonSets, v)
	case *schedulingv1.PriorityClass:
		d.admission.priorities[v.Name] = v
	case *nodev1.RuntimeClass:
		d.admission.runtimes[v.Name] = v
	case *corev1.LimitRange:
		d.admission.ranges[v.Namespace] = append(d.admission.ranges[v.Namespace], v)
	case *storagev1.StorageClass:
		o.StorageClasses = append(o.StorageClasses, v)
	case *policyv1.PodDisruptionBudget:
		o.Budgets = append(o.Budgets, v)
	case *karpv1.NodePool:
		o.Pools = append(o.Pools, v)
	case *karpv1.NodeClaim:
		o.Claims = append(o.Claims, v)
	case *awsv1.EC2NodeClass:
		o.Classes = append(o.Classes, v)
	default:
		d.workloads = append(d.workloads, workloadOf(object))
	}
}

// identity returns "Kind namespace/name", or "Kind name" without a namespace.
func identity(kind string, object client.Object) string {
	if object.GetNamespace() == "" {
		return fmt.Sprintf("%s %s", kind, object.GetName())
	}
	return fmt.Sprintf("%s %s/%s", kind, object.GetNamespace(), object.GetName())
}

// nameIn returns "namespace/name" of a decoded object for messages; "name" if it has no namespace, "(no name)" without
// a name.
func nameIn(tree map[string]any) string {
	meta, _ := tree["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	if name == "" {
		return "(no name)"
	}
	if namespace, _ := meta["namespace"].(string); namespace != "" {
		return namespace + "/" + name
	}
	return name
}
