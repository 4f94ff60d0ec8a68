package evidence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/api/crds"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/manifest"
	"github.com/joiner-sh/joiner/internal/migration"
)

// ReadManifests reads manifests of any kind from files, with the rules of manifest.ReadFiles, without validation. The
// error joins one error per problem. ReadManifests returns the readable objects even if there is an error.
func ReadManifests(paths []string, stdin io.Reader) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	d := manifest.Decoder{Skipped: map[string]int{}, Unknown: map[string]int{}, Seen: map[string]string{}, Read: map[string]bool{}}
	d.OnDocument = func(doc manifest.Document) {
		object := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(doc.JSON, &object.Object); err != nil {
			d.AddProblem(doc.File, doc.Line, "cannot be read: %v", err)
			return
		}
		out = append(out, object)
	}
	for _, path := range paths {
		if path == "-" {
			d.ReadStream("<stdin>", stdin, true)
			continue
		}
		d.ReadPath(path)
	}
	return out, errors.Join(d.Errs...)
}

// Karpenter returns the objects of Karpenter and of Joiner in the cluster: CRDs, NodePools, NodeClaims, EC2NodeClasses,
// the Nodes of NodePools, Deployments with their service accounts, and the namespace kube-system. The second result
// lists what could not be read.
func (r *Reader) Karpenter(ctx context.Context) ([]*unstructured.Unstructured, []migration.Unseen, error) {
	var out []*unstructured.Unstructured
	var unseen []migration.Unseen
	auth, err := r.authority(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, query := range []struct {
		list     *unstructured.UnstructuredList
		resource string // in RBAC syntax, with its group
		options  []client.ListOption
	}{
		{emptyList(corev1.SchemeGroupVersion, "Namespace"), "namespaces",
			[]client.ListOption{client.MatchingFields{"metadata.name": metav1.NamespaceSystem}}},
		{emptyList(apiextensionsv1.SchemeGroupVersion, "CustomResourceDefinition"), "customresourcedefinitions.apiextensions.k8s.io", nil},
		{emptyList(karpv1.GroupVersion, "NodePool"), "nodepools.karpenter.sh", nil},
		{emptyList(karpv1.GroupVersion, "NodeClaim"), "nodeclaims.karpenter.sh", nil},
		{emptyList(awsv1.GroupVersion, awsv1.Kind), "ec2nodeclasses.karpenter.k8s.aws", nil},
		{emptyList(corev1.SchemeGroupVersion, "Node"), "nodes", []client.ListOption{client.HasLabels{karpv1.LabelNodePool}}},
		{emptyList(appsv1.SchemeGroupVersion, "Deployment"), "deployments.apps", nil},
	} {
		err := r.objects.List(ctx, query.list, query.options...)
		switch {
		case meta.IsNoMatchError(err): // the CRD is not installed; the list of CRDs shows that
			continue
		case kubeclient.IsForbidden(err) && !kubeclient.IsUndiscovered(err):
			unseen = append(unseen, migration.Unseen{What: query.resource, Why: "the permission to list them is missing", Asked: true})
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("list %s: %w", query.resource, err)
		}
		for i := range query.list.Items {
			switch object := &query.list.Items[i]; {
			case !isOfKarpenter(object):
			case object.GetKind() == "Deployment" && !auth.isCertain(object):
				if auth.denied { // otherwise the Deployment only has a controller's name
					unseen = append(unseen, migration.Unseen{What: "deployment " + object.GetNamespace() + "/" + object.GetName(),
						Why: "whether it is a controller depends on clusterroles and clusterrolebindings, which you may not list", Asked: true})
				}
			default:
				out = append(out, object)
			}
		}
	}
	accounts, unseenAccounts, err := r.accounts(ctx, out)
	return append(out, accounts...), append(unseen, unseenAccounts...), err
}

// isCertain reports whether a Deployment with a controller's name is certainly a controller: it is in kube-system, or
// its ServiceAccount may write the status of NodeClaims.
func (a authority) isCertain(o *unstructured.Unstructured) bool {
	account, _, _ := unstructured.NestedString(o.Object, "spec", "template", "spec", "serviceAccountName")
	return o.GetNamespace() == metav1.NamespaceSystem || a.accounts[o.GetNamespace()+"/"+cmp.Or(account, "default")]
}

func emptyList(gv schema.GroupVersion, kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gv.WithKind(kind + "List"))
	return list
}

// isOfKarpenter reports whether the object is of Karpenter or Joiner. It checks Deployments by name and label and CRDs
// by name. The queries of Reader.Karpenter select all other objects.
func isOfKarpenter(o *unstructured.Unstructured) bool {
	switch o.GetKind() {
	case "Deployment":
		return hasControllerName(&metav1.ObjectMeta{Name: o.GetName(), Labels: o.GetLabels()})
	case "CustomResourceDefinition":
		for _, m := range crds.Manifests() {
			if m.Name == o.GetName() {
				return true
			}
		}
		return false
	}
	return true
}

// accounts returns the service accounts of the Deployments among the objects. Missing service accounts are left out;
// those that may not be read are returned as Unseen.
func (r *Reader) accounts(ctx context.Context,
	objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, []migration.Unseen, error) {
	var out []*unstructured.Unstructured
	var unseen []migration.Unseen
	for _, o := range objects {
		name, _, _ := unstructured.NestedString(o.Object, "spec", "template", "spec", "serviceAccountName")
		if o.GetKind() != "Deployment" || name == "" {
			continue
		}
		account := &unstructured.Unstructured{}
		account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
		err := r.objects.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: name}, account)
		switch {
		case err == nil:
			out = append(out, account)
		case kubeclient.IsForbidden(err) && !kubeclient.IsUndiscovered(err): // the migration needs the role in its annotation
			unseen = append(unseen, migration.Unseen{
				What:  "service account " + o.GetNamespace() + "/" + name,
				Why:   "the permission to get it is missing",
				Asked: true,
			})
		case kubeclient.Classify(err) != kubeclient.Gone:
			return nil, nil, fmt.Errorf("read service account %s/%s: %w", o.GetNamespace(), name, err)
		}
	}
	return out, unseen, nil
}
