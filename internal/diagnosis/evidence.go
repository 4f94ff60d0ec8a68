// Package diagnosis defines the input and output types of a diagnosis: why an instance does not become a node. Package
// diagnosis/checks makes the diagnosis.
//
// In: data of EKS, IAM, EC2 and Kubernetes, each item with its source and time, or the reason why it is missing.
// Out: Evidence and its file format; symptoms of consoles; findings, ranked: check, verdict, cause, certainty, lines of
// evidence, fix.
// Never: a network call, a reading of the clock, or the verdict of a check.
package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// Format is the version of the file format of Evidence. Parse rejects newer versions.
const Format = 1

// Absence is why an item is missing. The zero value means that the item is known.
type Absence string

// The absences.
const (
	NotAsked Absence = "not asked"     // the item was not read: no access to that system, or no object to ask about
	Denied   Absence = "no permission" // the user may not read the item; Item.Why names the permission
	Missing  Absence = "not found"     // the system answered that the object does not exist
	Failed   Absence = "failed"        // the call failed; Item.Why has the error
)

// Item is one piece of evidence.
type Item[T any] struct {
	Source     string    `json:"source,omitempty"` // "eks:DescribeCluster prod", "configmap kube-system/aws-auth"
	At         time.Time `json:"at,omitzero"`      // when the item was read
	Absent     Absence   `json:"absent,omitempty"` // empty: the item is known
	Why        string    `json:"why,omitempty"`    // reason of an absence, one line
	Truncation string    `json:"cut,omitempty"`    // which part of a list was read, one line; empty: the whole list
	Value      T         `json:"value,omitzero"`   // zero if the item is absent
}

// KnownItem returns an item that is known.
func KnownItem[T any](source string, at time.Time, value T) Item[T] {
	return Item[T]{Source: source, At: at, Value: value}
}

// AbsentItem returns an item that is absent.
func AbsentItem[T any](source string, at time.Time, absent Absence, why string) Item[T] {
	return Item[T]{Source: source, At: at, Absent: absent, Why: why}
}

// Known reports whether the item was read.
func (i Item[T]) Known() bool { return i.Source != "" && i.Absent == "" }

// Is reports whether the item is absent for the given reason. The reason of the zero item is NotAsked.
func (i Item[T]) Is(a Absence) bool {
	return i.Absent == a || a == NotAsked && i.Absent == "" && i.Source == ""
}

// Gap returns an Unknown finding for a check that needs the item. what is the item's name in the cause of the finding.
// ok is false if the item is known.
func (i Item[T]) Gap(what string) (f Finding, ok bool) {
	if i.Known() {
		return Finding{}, false
	}
	f = Finding{Verdict: Unknown, Certainty: Certain}
	switch {
	case i.Absent == Denied:
		f.Cause = fmt.Sprintf("%s could not be read: the permission %s is missing", what, i.Why)
		f = f.FixedBy(fix.AdviceStep("allow %s to the user who runs joiner doctor: deploy/iam/doctor.json", i.Why))
		if verbs, isKubernetes := strings.CutPrefix(i.Why, "to "); isKubernetes { // "to get and list nodes"
			f = f.FixedBy(fix.AdviceStep("let the user who runs joiner doctor %s: kubectl create clusterrole, and a ClusterRoleBinding", verbs))
		}
	case i.Absent == Missing:
		f.Cause = what + ": there is none"
	case i.Absent == Failed:
		f.Cause = fmt.Sprintf("%s could not be read: %s", what, i.Why)
	default:
		f.Cause = "no evidence was collected about " + what
		if i.Why != "" {
			f.Cause += ": " + i.Why
		}
	}
	return f, true
}

// Evidence is the input of a diagnosis. Lists are sorted by name or ID.
type Evidence struct {
	Format  int       `json:"format"`            // see Format
	At      time.Time `json:"at"`                // when the evidence was collected
	Name    string    `json:"name"`              // of the EKS cluster
	Region  string    `json:"region"`            // AWS region; empty: not known
	Account string    `json:"account,omitempty"` // AWS account ID; empty: not known

	// From AWS.
	Cluster      Item[Cluster]            `json:"cluster,omitzero"`
	Caller       Item[string]             `json:"caller,omitzero"` // ARN of the user or role that calls AWS
	Entries      Item[[]Entry]            `json:"entries,omitzero"`
	NodeGroups   Item[[]NodeGroup]        `json:"nodeGroups,omitzero"`
	Fargate      Item[[]FargateProfile]   `json:"fargate,omitzero"`
	Roles        map[string]Item[Role]    `json:"roles,omitempty"`       // by name, without path
	Profiles     map[string]Item[Profile] `json:"profiles,omitempty"`    // by name
	PassRole     map[string]Item[bool]    `json:"passRole,omitempty"`    // by role ARN: whether the controller may pass it
	VPC          Item[VPC]                `json:"vpc,omitzero"`          // of the cluster
	Subnets      Item[[]Subnet]           `json:"subnets,omitzero"`      // of the VPC
	Routes       Item[[]RouteTable]       `json:"routes,omitzero"`       // of the VPC
	Endpoints    Item[[]Endpoint]         `json:"endpoints,omitzero"`    // of the VPC
	ACLs         Item[[]ACL]              `json:"acls,omitzero"`         // of the VPC
	Groups       Item[[]Group]            `json:"groups,omitzero"`       // security groups of the VPC
	NATAddresses Item[[]string]           `json:"natAddresses,omitzero"` // public addresses of the VPC's NAT gateways
	Images       Item[[]Image]            `json:"images,omitzero"`
	Instances    Item[[]Instance]         `json:"instances,omitzero"` // instances tagged with the cluster's name
	Impaired     Item[map[string]string]  `json:"impaired,omitzero"`  // by instance ID: which status check fails, "instance" or "system"

	// From Kubernetes.
	Identity   Item[ClusterIdentity] `json:"home,omitzero"` // cluster of the kubeconfig
	AuthMap    Item[AuthMap]         `json:"authMap,omitzero"`
	Controller Item[Controller]      `json:"controller,omitzero"`
	Lease      Item[Lease]           `json:"lease,omitzero"` // the controller's Lease; of several, the last renewed
	Classes    Item[[]Class]         `json:"classes,omitzero"`
	Pools      Item[[]Pool]          `json:"pools,omitzero"`
	Claims     Item[[]Claim]         `json:"claims,omitzero"`
	Nodes      Item[[]Node]          `json:"nodes,omitzero"`
	Pods       Item[[]Pod]           `json:"pods,omitzero"` // only pods that do not run
	Daemons    Item[[]DaemonSet]     `json:"daemons,omitzero"`
	Events     Item[[]Event]         `json:"events,omitzero"` // only warnings

	// UserData lists the problems of user data. Callers that can parse user data set it; empty: no problems.
	UserData Item[[]UserDataProblem] `json:"userData,omitzero"`
}

// UserDataProblem is one problem of an EC2NodeClass's user data.
type UserDataProblem struct {
	Class     string    `json:"class"`           // name of the EC2NodeClass
	ID        string    `json:"id"`              // ID of the check that reports the problem: "TAINT-1"
	Sentence  string    `json:"sentence"`        // what is wrong, for the user
	Certainty Certainty `json:"certainty"`       // Certain makes the finding broken, others make it suspicious
	Where     string    `json:"where,omitempty"` // "part 2, line 7, column 12"
	Fix       string    `json:"fix,omitempty"`   // the corrected line
	// Corrected is true if joiner correct corrects the problem.
	Corrected bool `json:"corrected,omitempty"`
}

// Class returns the EC2NodeClass with this name.
func (e *Evidence) Class(name string) (Class, bool) {
	i := slices.IndexFunc(e.Classes.Value, func(c Class) bool { return c.Name == name })
	if i < 0 {
		return Class{}, false
	}
	return e.Classes.Value[i], true
}
