package manifest

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// handleUnknownKind handles a document of an unsupported kind. If the kind is similar to a supported one, it records a
// problem. Otherwise it counts the document: in Skipped if the kind cannot affect plans, and else in Unknown.
func (d *Decoder) handleUnknownKind(doc Document, gvk schema.GroupVersionKind, all kinds) {
	if meant, ok := nearest(gvk, all); ok {
		if meant.GroupKind() == gvk.GroupKind() || meant.Kind == gvk.Kind && gvk.Group == oldGroup {
			d.AddProblem(doc.File, doc.Line, "%s of %s cannot be read; convert it to %s", gvk.Kind, gvk.GroupVersion(), meant.GroupVersion())
			return
		}
		d.AddProblem(doc.File, doc.Line, "there is no kind %s of %s; write kind: %s and apiVersion: %s",
			gvk.Kind, gvk.GroupVersion(), meant.Kind, meant.GroupVersion())
		return
	}
	key := gvk.Kind
	if gvk.Group != "" {
		key += "." + gvk.Group
	}
	if makesNoPods(gvk) {
		d.Skipped[key]++
		return
	}
	d.Unknown[key]++
}

const oldGroup = "extensions" // the API group of workloads before apps

// nearest returns the supported kind that was probably meant: the same kind with another version or spelling, or in a
// misspelled group. A kind of a group with a dot, such as argoproj.io, is unrelated to a supported kind of the same
// name, unless their groups are similar.
func nearest(gvk schema.GroupVersionKind, all kinds) (schema.GroupVersionKind, bool) {
	var kindsOfGroup []string
	for supported := range all {
		if strings.EqualFold(supported.Kind, gvk.Kind) {
			isMeant := !strings.Contains(gvk.Group, ".") || suggest.Nearest(gvk.Group, []string{supported.Group}) != ""
			return supported, isMeant
		}
		if supported.Group == gvk.Group {
			kindsOfGroup = append(kindsOfGroup, supported.Kind)
		}
	}
	if isBuiltIn(gvk.GroupKind()) {
		return schema.GroupVersionKind{}, false
	}
	kind := suggest.Nearest(gvk.Kind, kindsOfGroup)
	for supported := range all {
		if supported.Group == gvk.Group && supported.Kind == kind {
			return supported, true
		}
	}
	return schema.GroupVersionKind{}, false
}

// makesNoPods reports whether objects of this unsupported kind are known to create no pods.
func makesNoPods(gvk schema.GroupVersionKind) bool {
	if gvk.Kind == "ReplicationController" { // built in, but creates pods
		return false
	}
	if (gvk.GroupKind() == schema.GroupKind{Group: karpv1.Group, Kind: "NodeOverlay"}) {
		return true
	}
	return isBuiltIn(gvk.GroupKind()) || slices.Contains([]string{
		"apiextensions.k8s.io", "apiregistration.k8s.io", "gateway.networking.k8s.io", "metrics.k8s.io", "snapshot.storage.k8s.io",
	}, gvk.Group)
}

func isBuiltIn(kind schema.GroupKind) bool { return len(scheme.Scheme.VersionsForGroupKind(kind)) > 0 }
