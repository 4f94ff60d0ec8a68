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
	DefinitionMissing         DefinitionState = "missing" // the cluster has no such CRD
	DefinitionSame            DefinitionState = "same"    // the cluster's CRD has the program's revision
	DefinitionOlder           DefinitionState = "older"   // the cluster's CRD has an older revision
	DefinitionNewer           DefinitionState = "newer"   // the cluster's CRD has a newer revision
	DefinitionForeign         DefinitionState = "foreign" // a CRD of another program; this program knows all of its fields
	DefinitionUnknownFields   DefinitionState = "beyond"  // a CRD of another program, with fields that this program does not know
	DefinitionUnknownVersions DefinitionState = "stored"  // objects may be stored in a version that the program does not know
)

// DefinitionComparison is the result of comparing one CRD of the cluster with the program's.
type DefinitionComparison struct {
	Name      string          // "nodepools.karpenter.sh"
	State     DefinitionState // result of the comparison
	Revision  int             // revision of the cluster's CRD; 0 if the CRD has no revision, or is missing
	Unknown   []string        // with DefinitionUnknownFields, the unknown fields; with DefinitionUnknownVersions, the unknown versions
	Installed bool            // the program's CRD was installed

	version string // resourceVersion of the cluster's CRD; empty if the CRD is missing
}

// isSelected reports whether the program's CRD is to be installed. force is DefinitionInstaller.Force.
func (s DefinitionComparison) isSelected(selection Selection, force bool) bool {
	switch s.State {
	case DefinitionMissing:
		return true
	case DefinitionOlder, DefinitionForeign:
		return selection != SelectMissing
	case DefinitionUnknownFields:
		return selection != SelectMissing && force
	case DefinitionSame:
		return selection == SelectAll
	case DefinitionNewer, DefinitionUnknownVersions:
	}
	return false
}

// NeedsUser reports whether the user must decide or change something before the program installs its own CRD. It
// returns false if the cluster's CRD is newer, because the program can use a newer CRD.
func (s DefinitionComparison) NeedsUser() bool {
	return !s.Installed && (s.State == DefinitionUnknownFields || s.State == DefinitionUnknownVersions)
}

// Summary returns the result as a sentence for users.
func (s DefinitionComparison) Summary() string {
	ours := crds.Revision()
	switch s.State {
	case DefinitionMissing:
		return s.byResult("created at", "is missing; it would be created at") + revisionText(ours)
	case DefinitionOlder:
		return s.byResult("updated from", "has") + revisionText(s.Revision) + s.byResult(" to", "; it would be updated to") + revisionText(ours)
	case DefinitionForeign:
		return s.byResult("taken over", "was not installed by joiner; it would be taken over") + " at" + revisionText(ours) +
			": all its fields are known"
	case DefinitionSame:
		return s.byResult("restored after a manual change; it has", "has") + revisionText(ours)
	case DefinitionNewer:
		return fmt.Sprintf("left as it is: its revision %d is newer than this program's, %d; this program can use the newer definition", s.Revision, ours)
	case DefinitionUnknownVersions:
		return fmt.Sprintf("left as it is: objects may be stored as %s, which this program does not know; update each of them to store it as v1, then remove the other versions from status.storedVersions of the definition", strings.Join(s.Unknown, ", "))
	case DefinitionUnknownFields:
	}
	const maxShown = 3
	fields := strings.Join(s.Unknown[:min(maxShown, len(s.Unknown))], ", ")
	if more := len(s.Unknown) - maxShown; more > 0 {
		fields += fmt.Sprintf(" and %d more", more)
	}
	return s.byResult("taken over at"+revisionText(ours)+", which removed these fields: ",
		"left as it is: another program installed it, and it has fields that this program does not know: ") + fields +
		s.byResult("", "; objects would lose them; `joiner crds apply --force` takes it over")
}

func revisionText(n int) string { return fmt.Sprintf(" revision %d", n) }

func (s DefinitionComparison) byResult(installed, pending string) string {
	if s.Installed {
		return installed
	}
	return pending
}

// CompareDefinition compares found, the CRD in the cluster, with own, the program's CRD. found is nil if the cluster
// has no such CRD.
func CompareDefinition(own, found *apiextensionsv1.CustomResourceDefinition) DefinitionComparison {
	if found == nil {
		return DefinitionComparison{Name: own.Name, State: DefinitionMissing}
	}
	out := DefinitionComparison{Name: own.Name, version: found.ResourceVersion}
	for _, stored := range found.Status.StoredVersions {
		if !slices.ContainsFunc(own.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored }) {
			out.State, out.Unknown = DefinitionUnknownVersions, append(out.Unknown, stored)
		}
	}
	ours := crds.Revision()
	theirs, err := strconv.Atoi(found.Annotations[crds.KeyRevision])
	if err == nil && theirs > 0 {
		out.Revision = theirs
	}
	switch {
	case out.Revision > ours: // written by a newer program, which knows the stored versions
		out.State, out.Unknown = DefinitionNewer, nil
	case out.State == DefinitionUnknownVersions:
	case out.Revision == ours:
		out.State = DefinitionSame
	case out.Revision > 0:
		out.State = DefinitionOlder
	default:
		out.State = DefinitionForeign
		if out.Unknown = allUnknownFields(own, found); len(out.Unknown) > 0 {
			out.State = DefinitionUnknownFields
		}
	}
	return out
}

// allUnknownFields returns the fields of found that own does not have, in the versions that both have.
func allUnknownFields(own, found *apiextensionsv1.CustomResourceDefinition) []string {
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

// unknownFields appends to list the paths of the fields that theirs has and ours lacks, sorted, and returns list.
func unknownFields(list []string, path string, ours, theirs *apiextensionsv1.JSONSchemaProps) []string {
	if ours == nil || theirs == nil || keepsAll(ours) {
		return list
	}
	for _, name := range slices.Sorted(maps.Keys(theirs.Properties)) {
		field, fieldPath := theirs.Properties[name], strings.TrimPrefix(path+"."+name, ".")
		known, ok := ours.Properties[name]
		if !ok {
			list = append(list, fieldPath)
			continue
		}
		list = unknownFields(list, fieldPath, &known, &field)
	}
	if ours.Items != nil && theirs.Items != nil {
		list = unknownFields(list, path+"[]", ours.Items.Schema, theirs.Items.Schema)
	}
	if ours.AdditionalProperties != nil && theirs.AdditionalProperties != nil {
		list = unknownFields(list, path+"{}", ours.AdditionalProperties.Schema, theirs.AdditionalProperties.Schema)
	}
	return list
}

func keepsAll(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
}

func listKind(d *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: d.Spec.Group, Version: d.Spec.Versions[0].Name, Kind: d.Spec.Names.ListKind}
}

func isNoKind(err error) bool { return meta.IsNoMatchError(err) }
