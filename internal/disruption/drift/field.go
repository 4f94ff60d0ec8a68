package drift

import (
	"slices"
	"strings"
)

// Fields that a selector of the node class stands behind, as a list of fields to ignore names them.
const (
	FieldRequirements = "requirements"
	FieldType         = "instanceType" // it stands in no spec: it is what a node is
	FieldImages       = "amiSelectorTerms"
	FieldGroups       = "securityGroupSelectorTerms"
	FieldSubnets      = "subnetSelectorTerms"
	FieldReservations = "capacityReservationSelectorTerms"
	FieldPlacement    = "placementGroupSelector"
	FieldAuthority    = "clusterCABundle" // it stands in no spec: nodes are given it
)

// branch is a part of an object that nodes are made from, with the fields in it by whose change a node drifts.
type branch struct {
	path   string // "spec.template.spec." of a NodePool; empty for what stands in no object
	fields []string
}

// branches are all of them.
func branches() []branch {
	return []branch{
		{"", []string{FieldType, FieldAuthority}},
		{"spec.template.metadata.", []string{"labels", "annotations"}},
		{"spec.template.spec.", []string{
			"taints", "startupTaints", "nodeClassRef", "terminationGracePeriod", "expireAfter", FieldRequirements,
		}},
		{"spec.", []string{
			FieldImages, FieldGroups, FieldSubnets, FieldReservations, FieldPlacement, "amiFamily", "associatePublicIPAddress", "userData", "role",
			"instanceProfile", "tags", "kubelet", "blockDeviceMappings", "instanceStorePolicy", "networkInterfaces", "detailedMonitoring",
			"metadataOptions", "connectionTracking", "context", "cpuOptions",
		}},
	}
}

// Fields are the fields by whose change a node drifts, by the names that verdicts give them, sorted: those of spec.template of a
// NodePool, and of the spec of an EC2NodeClass.
func Fields() []string {
	var out []string
	for _, b := range branches() {
		out = append(out, b.fields...)
	}
	slices.Sort(out)
	return out
}

// FieldOf returns the name of the field that a user's word means: the name itself, or the path to it in its object, "spec.tags" and
// "spec.template.spec.taints". It reports false for a word that means none.
func FieldOf(word string) (name string, known bool) {
	for _, b := range branches() {
		name = strings.TrimPrefix(word, b.path)
		if slices.Contains(b.fields, name) {
			return name, true
		}
	}
	return "", false
}
