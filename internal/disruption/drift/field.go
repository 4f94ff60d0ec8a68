package drift

import (
	"slices"
	"strings"
)

// Names of fields that Judge compares one by one, as in verdicts and in lists of ignored fields.
const (
	FieldRequirements = "requirements"
	FieldType         = "instanceType" // not a field of a spec: the instance type of the node
	FieldImages       = "amiSelectorTerms"
	FieldGroups       = "securityGroupSelectorTerms"
	FieldSubnets      = "subnetSelectorTerms"
	FieldReservations = "capacityReservationSelectorTerms"
	FieldPlacement    = "placementGroupSelector"
	FieldAuthority    = "clusterCABundle" // not a field of a spec: nodes get it in their user data
)

// branch is a part of a NodePool or EC2NodeClass, with the fields whose change makes a node drift.
type branch struct {
	path   string // such as "spec.template.spec."; empty for fields that are in no object
	fields []string
}

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

// Fields returns the sorted names of the fields whose change makes a node drift, as used in verdicts: those of
// spec.template of a NodePool, those of the spec of an EC2NodeClass, FieldType and FieldAuthority.
func Fields() []string {
	var out []string
	for _, b := range branches() {
		out = append(out, b.fields...)
	}
	slices.Sort(out)
	return out
}

// FieldOf returns the name of a field, given its name or its path: "tags" for "tags" and "spec.tags". It returns false
// for an unknown field.
func FieldOf(word string) (name string, known bool) {
	for _, b := range branches() {
		name = strings.TrimPrefix(word, b.path)
		if slices.Contains(b.fields, name) {
			return name, true
		}
	}
	return "", false
}
