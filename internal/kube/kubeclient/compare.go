package kubeclient

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/joiner-sh/joiner/api/crds"
)

// DefinitionState is the result of comparing a CRD of the cluster with the program's, one of the constants below.
type DefinitionState string

// The states.
const (
	DefinitionMissing DefinitionState = "missing" // the cluster has no such CRD
	DefinitionSame    DefinitionState = "same"    // its CRD has the program's revision
	DefinitionOlder   DefinitionState = "older"   // its CRD has an older revision
	DefinitionNewer   DefinitionState = "newer"   // its CRD has a newer revision
	DefinitionForeign DefinitionState = "foreign" // its CRD was not installed by Joiner, and the program knows all of its fields
	DefinitionBeyond  DefinitionState = "beyond"  // its CRD was not installed by Joiner, and has fields that the program does not know
	DefinitionStored  DefinitionState = "stored"  // objects may be stored in a version that the program does not know
)

// DefinitionSeen is the comparison of one CRD.
type DefinitionSeen struct {
	Name     string          // "nodepools.karpenter.sh"
	State    DefinitionState // result of the comparison
	Revision int             // of the cluster's CRD; 0 if it has none
	Beyond   []string        // with DefinitionBeyond, the unknown fields; with DefinitionStored, the unknown versions
	Brought  bool            // the program's CRD was installed

	version string // resourceVersion of the cluster's CRD; empty if the CRD is missing
}

// wanted reports whether the program's CRD is to be installed.
func (s DefinitionSeen) wanted(which Which, force bool) bool {
	switch s.State {
	case DefinitionMissing:
		return true
	case DefinitionOlder, DefinitionForeign:
		return which != Lacking
	case DefinitionBeyond:
		return which != Lacking && force
	case DefinitionSame:
		return which == Every
	case DefinitionNewer, DefinitionStored:
	}
	return false
}

// Held reports whether only a decision of the user lets the program install its CRD. It is false for a newer CRD, which
// the program can use.
func (s DefinitionSeen) Held() bool {
	return !s.Brought && (s.State == DefinitionBeyond || s.State == DefinitionStored)
}

// Says returns the result as a sentence for users.
func (s DefinitionSeen) Says() string {
	ours := crds.Revision()
	switch s.State {
	case DefinitionMissing:
		return s.is("created at", "is missing; it would be created at") + revision(ours)
	case DefinitionOlder:
		return s.is("updated from", "has") + revision(s.Revision) + s.is(" to", "; it would be updated to") + revision(ours)
	case DefinitionForeign:
		return s.is("taken over", "was not installed by joiner; it would be taken over") + " at" + revision(ours) + ": all its fields are known"
	case DefinitionSame:
		return s.is("restored after a manual change; it has", "has") + revision(ours)
	case DefinitionNewer:
		return fmt.Sprintf("left as it is: its revision %d is newer than this program's, %d, which can work with it", s.Revision, ours)
	case DefinitionStored:
		return fmt.Sprintf("left as it is: objects may be stored as %s, which this program does not know; update each of them to store it as v1, then remove the other versions from status.storedVersions of the definition", strings.Join(s.Beyond, ", "))
	case DefinitionBeyond:
	}
	fields := strings.Join(s.Beyond[:min(3, len(s.Beyond))], ", ")
	if more := len(s.Beyond) - 3; more > 0 {
		fields += fmt.Sprintf(" and %d more", more)
	}
	return s.is("taken over at"+revision(ours)+", which removed these fields: ",
		"left as it is: another program installed it, and it has fields that this program does not know: ") + fields +
		s.is("", "; objects would lose them; `joiner crds apply --force` takes it over")
}

// revision returns the end of a message: " revision 7".
func revision(n int) string { return fmt.Sprintf(" revision %d", n) }

// is returns the text for the state of the CRD: installed if the program has installed its own, else pending.
func (s DefinitionSeen) is(installed, pending string) string {
	if s.Brought {
		return installed
	}
	return pending
}

// CompareDefinition compares the CRD found in the cluster, nil for none, with the program's own.
func CompareDefinition(own, found *apiextensionsv1.CustomResourceDefinition) DefinitionSeen {
	if found == nil {
		return DefinitionSeen{Name: own.Name, State: DefinitionMissing}
	}
	out := DefinitionSeen{Name: own.Name, version: found.ResourceVersion}
	for _, stored := range found.Status.StoredVersions {
		if !slices.ContainsFunc(own.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored }) {
			out.State, out.Beyond = DefinitionStored, append(out.Beyond, stored)
		}
	}
	ours := crds.Revision()
	theirs, err := strconv.Atoi(found.Annotations[crds.KeyRevision])
	if err == nil && theirs > 0 {
		out.Revision = theirs
	}
	switch {
	case out.Revision > ours: // a newer program knows its stored versions
		out.State, out.Beyond = DefinitionNewer, nil
	case out.State == DefinitionStored:
	case out.Revision == ours:
		out.State = DefinitionSame
	case out.Revision > 0:
		out.State = DefinitionOlder
	default:
		out.State = DefinitionForeign
		if out.Beyond = beyond(own, found); len(out.Beyond) > 0 {
			out.State = DefinitionBeyond
		}
	}
	return out
}

// beyond lists the fields of found that own does not have, in the versions that both have.
func beyond(own, found *apiextensionsv1.CustomResourceDefinition) []string {
	var out []string
	for _, theirs := range found.Spec.Versions {
		for _, ours := range own.Spec.Versions {
			if ours.Name == theirs.Name && ours.Schema != nil && theirs.Schema != nil {
				out = unknownFields(out, "", ours.Schema.OpenAPIV3Schema, theirs.Schema.OpenAPIV3Schema)
			}
		}
	}
	return out
}

// unknownFields appends the paths of the fields of theirs that ours does not have, in order.
func unknownFields(to []string, path string, ours, theirs *apiextensionsv1.JSONSchemaProps) []string {
	if ours == nil || theirs == nil || keepsAll(ours) {
		return to
	}
	for _, name := range slices.Sorted(maps.Keys(theirs.Properties)) {
		field, at := theirs.Properties[name], strings.TrimPrefix(path+"."+name, ".")
		known, ok := ours.Properties[name]
		if !ok {
			to = append(to, at)
			continue
		}
		to = unknownFields(to, at, &known, &field)
	}
	if ours.Items != nil && theirs.Items != nil {
		to = unknownFields(to, path+"[]", ours.Items.Schema, theirs.Items.Schema)
	}
	if ours.AdditionalProperties != nil && theirs.AdditionalProperties != nil {
		to = unknownFields(to, path+"{}", ours.AdditionalProperties.Schema, theirs.AdditionalProperties.Schema)
	}
	return to
}

// keepsAll reports whether a schema preserves unknown fields.
func keepsAll(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
}

// runtimeKind returns the kind of the list of a CRD's objects.
func runtimeKind(d *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: d.Spec.Group, Version: d.Spec.Versions[0].Name, Kind: d.Spec.Names.ListKind}
}

// isNoKind reports whether the API server does not serve the kind.
func isNoKind(err error) bool { return meta.IsNoMatchError(err) }
