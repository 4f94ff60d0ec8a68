// Package migration says what changes for a cluster when Joiner takes Karpenter's place, and when it gives it back.
//
// In: what is known of an installation of Karpenter: its controller, settings, definitions, objects, instances, permissions.
// Out: findings, the weightiest first, each with what to do about it, and the commands that hand over and that go back.
// Never: a look at a cluster or at AWS, a change to either, or silence about what could not be seen.
package migration

import "time"

// Installation is what was seen of Karpenter, and of the cluster that it serves. Lists are in any order.
type Installation struct {
	At      time.Time `json:"at"`
	Cluster string    `json:"cluster,omitempty"` // name of the EKS cluster; empty: not known
	UID     string    `json:"uid,omitempty"`     // of the namespace kube-system; empty: not known

	Controllers []Controller `json:"controllers,omitempty"`
	Definitions []Definition `json:"definitions,omitempty"`
	Pools       []Pool       `json:"pools,omitempty"`
	Classes     []Class      `json:"classes,omitempty"`
	Claims      []Claim      `json:"claims,omitempty"`
	Nodes       []Node       `json:"nodes,omitempty"`
	// Values are those of Karpenter's chart that somebody set, by their path: "controller.image.tag".
	Values map[string]string `json:"values,omitempty"`
	// UnknownValues are those of them that no chart has.
	UnknownValues []UnknownValue `json:"unknownValues,omitempty"`
	// Instances are those that carry the cluster's name. Nil: EC2 was not asked; Unseen says why.
	Instances []Instance `json:"instances,omitempty"`
	// Permissions are what the controller needs of IAM, and whether the role that it takes over has it. Nil: nobody looked.
	Permissions []Permission `json:"permissions,omitempty"`
	// Unseen is what could not be looked at.
	Unseen []Unseen `json:"unseen,omitempty"`
}

// Product says whose a controller is.
type Product string

// The products.
const (
	Karpenter Product = "karpenter"
	Joiner    Product = "joiner"
)

// Controller is a Deployment of an autoscaler, or what a file of values makes of one.
type Controller struct {
	Product   Product `json:"product"`
	Namespace string  `json:"namespace,omitempty"`
	Name      string  `json:"name,omitempty"`
	Version   string  `json:"version,omitempty"` // the image's tag: "1.14.1"; empty: not known
	Release   string  `json:"release,omitempty"` // Helm's; empty: it was not installed by Helm
	Replicas  int     `json:"replicas"`
	// Lease is by which it makes sure that it acts alone: "namespace/name". Empty: by none.
	Lease   string `json:"lease,omitempty"`
	Account string `json:"account,omitempty"` // its service account
	Role    string `json:"role,omitempty"`    // ARN, of the service account's annotation
	Queue   string `json:"queue,omitempty"`   // of interruption notices
	// Problem is why Joiner would not start with these settings, in a sentence that names one. Empty: it would.
	Problem string `json:"problem,omitempty"`
	// Ignored are settings that Joiner takes and does not honour.
	Ignored []Ignored `json:"ignored,omitempty"`
}

// UnknownValue is a value that neither Karpenter's chart nor Joiner's has.
type UnknownValue struct {
	Path string `json:"path"`           // "controller.resource"
	Near string `json:"near,omitempty"` // the path that is probably meant; empty: none is near
}

// Ignored is a setting that is taken and not honoured.
type Ignored struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	Says    string `json:"says"` // what is missing
}

// Definition is a CustomResourceDefinition of the cluster, compared with Joiner's.
type Definition struct {
	Name string `json:"name"`
	// Held: Joiner's cannot be put in its place before somebody decides so.
	Held bool   `json:"held,omitempty"`
	Says string `json:"says"` // a sentence for users
}

// Pool is a NodePool.
type Pool struct {
	Name        string `json:"name"`
	Class       string `json:"class"`   // name of its node class
	Foreign     bool   `json:"foreign"` // its node class is of a kind that neither Karpenter for AWS nor Joiner serves
	Hash        string `json:"hash,omitempty"`
	HashVersion string `json:"hashVersion,omitempty"`
	Object
}

// Class is an EC2NodeClass.
type Class struct {
	Name        string `json:"name"`
	Role        string `json:"role,omitempty"` // of its nodes, with its path; empty: it names an instance profile
	Hash        string `json:"hash,omitempty"`
	HashVersion string `json:"hashVersion,omitempty"`
	Object
}

// Object is what all objects of the API have.
type Object struct {
	// Refused is what the definitions refuse about it; it can be read all the same.
	Refused []string `json:"refused,omitempty"`
	// Unknown are fields that Joiner does not know: "spec.kubelet.topologyManagerPolicy".
	Unknown []string `json:"unknown,omitempty"`
	// NotReady is why its condition Ready is not true. Empty: it is, or there is no status.
	NotReady string `json:"notReady,omitempty"`
}

// Claim is a NodeClaim.
type Claim struct {
	Name       string    `json:"name"`
	Pool       string    `json:"pool,omitempty"`
	Class      string    `json:"class,omitempty"`
	UID        string    `json:"clusterUID,omitempty"` // of its annotation joiner.sh/cluster-uid
	ProviderID string    `json:"providerID,omitempty"` // empty: nothing was bought for it yet, or nobody wrote it down
	Node       string    `json:"node,omitempty"`       // empty: it has not joined yet
	Expires    time.Time `json:"expires,omitzero"`     // zero: never
	Deleting   bool      `json:"deleting,omitempty"`
	Drifted    string    `json:"drifted,omitempty"` // the reason of its condition Drifted, if that is true
	// The hashes that it was made from.
	PoolHash         string `json:"poolHash,omitempty"`
	PoolHashVersion  string `json:"poolHashVersion,omitempty"`
	ClassHash        string `json:"classHash,omitempty"`
	ClassHashVersion string `json:"classHashVersion,omitempty"`
}

// Node is a Node that carries the name of a NodePool.
type Node struct {
	Name       string `json:"name"`
	ProviderID string `json:"providerID"`
	Pool       string `json:"pool"`
	Disrupted  bool   `json:"disrupted,omitempty"` // it has the taint karpenter.sh/disrupted
}

// Owner is whose an instance is, by its tags.
type Owner string

// The owners.
const (
	OurOwn   Owner = "ours"     // it carries the cluster's name and UID: Joiner bought it
	Legacy   Owner = "legacy"   // it carries the cluster's name, karpenter.sh/nodepool and no UID: Karpenter bought it
	Namesake Owner = "namesake" // it carries the cluster's name and another one's UID
	Untagged Owner = "untagged" // it lacks tags of the cluster, and has none of another owner
	Stranger Owner = "stranger" // it carries the tags of another cluster, a node group or an Auto Scaling group
)

// Instance is an instance of EC2.
type Instance struct {
	ID    string `json:"id"`
	Owner Owner  `json:"owner"`
	Ended bool   `json:"ended,omitempty"` // it is terminated, or about to be
}

// Permission is a request that the controller makes of AWS, and whether a role's policies allow it.
type Permission struct {
	Statement string `json:"statement"` // Sid of the statement of Joiner's own policies that allows it
	Policy    string `json:"policy"`    // of which policy: "launch"
	Action    string `json:"action"`
	Allowed   bool   `json:"allowed"`
	Optional  bool   `json:"optional,omitempty"` // it is needed by a setting that is off
}

// Unseen is what could not be looked at, and why.
type Unseen struct {
	What string `json:"what"`
	Why  string `json:"why"`
	// Asked: it was asked for, and the answer was a refusal or none, so that what stops the hand-over may hide there. Otherwise
	// nobody meant to look, as with files or without credentials.
	Asked bool `json:"asked,omitempty"`
}
