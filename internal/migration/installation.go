// Package migration finds out what changes for a cluster when Joiner replaces Karpenter, or Karpenter replaces Joiner.
//
// In: a Karpenter installation: its controller, settings, definitions, objects, instances, permissions.
// Out: findings, the heaviest first, each with advice, and the commands to migrate and to go back.
// Never: a request to a cluster or to AWS, a change to either, or silence about data that could not be read.
package migration

import "time"

// Installation is an installation of Karpenter with its cluster. Lists are in any order.
type Installation struct {
	At      time.Time `json:"at"`                // when the data were read
	Cluster string    `json:"cluster,omitempty"` // name of the EKS cluster; empty: not known
	UID     string    `json:"uid,omitempty"`     // UID of the namespace kube-system; empty: not known

	Controllers []Controller `json:"controllers,omitempty"` // controllers of Karpenter and Joiner
	Definitions []Definition `json:"definitions,omitempty"` // CRDs of Karpenter's API
	Pools       []Pool       `json:"pools,omitempty"`       // NodePools
	Classes     []Class      `json:"classes,omitempty"`     // EC2NodeClasses
	Claims      []Claim      `json:"claims,omitempty"`      // NodeClaims
	Nodes       []Node       `json:"nodes,omitempty"`       // Nodes with the label of a NodePool
	// Values are the values of Karpenter's chart that were set, by path: "controller.image.tag".
	Values map[string]string `json:"values,omitempty"`
	// UnknownValues are the chart values that were set but exist neither in Karpenter's chart nor in Joiner's.
	UnknownValues []UnknownValue `json:"unknownValues,omitempty"`
	// Instances are the instances tagged with the cluster's name, and the instances of NodeClaims without this tag.
	// Nil: EC2 was not queried, and Unseen has the reason.
	Instances []Instance `json:"instances,omitempty"`
	// Permissions are the IAM permissions that the controller needs, and whether its role has them. Nil: they were not
	// checked.
	Permissions []Permission `json:"permissions,omitempty"`
	// Unseen lists data that could not be read.
	Unseen []Unseen `json:"unseen,omitempty"`
}

// Product is the product that a controller belongs to.
type Product string

// The products.
const (
	Karpenter Product = "karpenter"
	Joiner    Product = "joiner"
)

// Controller is the Deployment of Karpenter or Joiner, read from a cluster or described by a values file.
type Controller struct {
	Product   Product `json:"product"`             // Karpenter or Joiner
	Namespace string  `json:"namespace,omitempty"` // namespace of the Deployment; empty: not known
	Name      string  `json:"name,omitempty"`      // name of the Deployment; empty: not known
	Version   string  `json:"version,omitempty"`   // the image's tag: "1.14.1"; empty: not known
	Release   string  `json:"release,omitempty"`   // name of the Helm release; empty: it was not installed by Helm
	Replicas  int     `json:"replicas"`            // spec.replicas of the Deployment, 1 if unset; 0 if a values file does not set it
	// Lease is the Lease of the controller's leader election: "namespace/name". Empty: leader election is disabled, or
	// the settings have a Problem.
	Lease   string `json:"lease,omitempty"`
	Account string `json:"account,omitempty"` // name of its service account
	Role    string `json:"role,omitempty"`    // ARN of the role in the annotation of the service account
	Queue   string `json:"queue,omitempty"`   // name of the queue with interruption messages
	// Problem is why Joiner would not start with the controller's settings, in a sentence that names one setting.
	// Empty: Joiner would start.
	Problem string `json:"problem,omitempty"`
	// Ignored lists settings that Joiner accepts but does not honor.
	Ignored []Ignored `json:"ignored,omitempty"`
}

// UnknownValue is a chart value that was set but exists neither in Karpenter's chart nor in Joiner's.
type UnknownValue struct {
	Path string `json:"path"`           // "controller.resource"
	Near string `json:"near,omitempty"` // the path that is probably meant; empty: no path is similar
}

// Ignored is a setting that is accepted but not honored.
type Ignored struct {
	Setting string `json:"setting"` // name of the setting
	Value   string `json:"value"`   // the configured value
	Says    string `json:"says"`    // what Joiner does instead, or which feature it does not have
}

// Definition is a CustomResourceDefinition of the cluster, compared with Joiner's.
type Definition struct {
	Name string `json:"name"` // name of the CustomResourceDefinition
	// Held is true if the user must decide whether the definition is replaced.
	Held bool   `json:"held,omitempty"`
	Says string `json:"says"` // the result of the comparison, in a sentence for users
}

// Pool is a NodePool.
type Pool struct {
	Name        string `json:"name"`                  // name of the NodePool
	Class       string `json:"class"`                 // name of its node class
	Foreign     bool   `json:"foreign"`               // its node class is not an EC2NodeClass, so Joiner does not serve it
	Hash        string `json:"hash,omitempty"`        // annotation karpenter.sh/nodepool-hash; empty: none
	HashVersion string `json:"hashVersion,omitempty"` // annotation karpenter.sh/nodepool-hash-version; empty: none
	Object
}

// Class is an EC2NodeClass.
type Class struct {
	Name        string `json:"name"`                  // name of the EC2NodeClass
	Role        string `json:"role,omitempty"`        // IAM role of its nodes, with path; empty: the class names a profile
	Hash        string `json:"hash,omitempty"`        // annotation karpenter.k8s.aws/ec2nodeclass-hash; empty: none
	HashVersion string `json:"hashVersion,omitempty"` // annotation karpenter.k8s.aws/ec2nodeclass-hash-version; empty: none
	Object
}

// Object has the fields that all API objects share.
type Object struct {
	// Refused lists the object's violations of the CRDs; the object could be read nevertheless.
	Refused []string `json:"refused,omitempty"`
	// Unknown lists the object's fields that Joiner does not know: "spec.kubelet.topologyManagerPolicy".
	Unknown []string `json:"unknown,omitempty"`
	// NotReady is the reason why the condition Ready is not true. Empty: Ready is true, or there is no status.
	NotReady string `json:"notReady,omitempty"`
}

// Claim is a NodeClaim.
type Claim struct {
	Name       string    `json:"name"`                 // name of the NodeClaim
	Pool       string    `json:"pool,omitempty"`       // its NodePool; empty: none
	Class      string    `json:"class,omitempty"`      // its EC2NodeClass
	UID        string    `json:"clusterUID,omitempty"` // value of its annotation joiner.sh/cluster-uid
	ProviderID string    `json:"providerID,omitempty"` // "aws:///us-east-1a/i-0123"; empty: not launched yet, or not recorded yet
	Node       string    `json:"node,omitempty"`       // name of its Node; empty: the instance has not joined yet
	Expires    time.Time `json:"expires,omitzero"`     // zero: never
	Deleting   bool      `json:"deleting,omitempty"`   // it has a deletion timestamp
	Drifted    string    `json:"drifted,omitempty"`    // the reason of its condition Drifted; empty: the condition is not true
	// Hashes that Pool and Class had when the NodeClaim was created; compare Pool.Hash and Class.Hash.
	PoolHash         string `json:"poolHash,omitempty"`
	PoolHashVersion  string `json:"poolHashVersion,omitempty"`
	ClassHash        string `json:"classHash,omitempty"`
	ClassHashVersion string `json:"classHashVersion,omitempty"`
}

// Node is a Node with the label of a NodePool.
type Node struct {
	Name       string `json:"name"`                // name of the Node
	ProviderID string `json:"providerID"`          // "aws:///us-east-1a/i-0123"
	Pool       string `json:"pool"`                // label karpenter.sh/nodepool
	Disrupted  bool   `json:"disrupted,omitempty"` // it has the taint karpenter.sh/disrupted
}

// Owner is the owner of an instance, by its tags.
type Owner string

// The owners.
const (
	Ours       Owner = "ours"     // it has the tags with the cluster's name and UID: Joiner launched it
	Legacy     Owner = "legacy"   // it has the tags with the cluster's name and karpenter.sh/nodepool, and no UID: Karpenter launched it
	SameName   Owner = "namesake" // it has the tags with the cluster's name and the UID of another cluster
	Untagged   Owner = "untagged" // it lacks tags of the cluster, and has no tags of another owner
	OtherOwner Owner = "stranger" // it has the tags of another cluster, a node group or an Auto Scaling group
)

// Instance is an EC2 instance.
type Instance struct {
	ID    string `json:"id"`              // "i-0123"
	Owner Owner  `json:"owner"`           // owner by the tags of the instance
	Ended bool   `json:"ended,omitempty"` // it is terminated, or about to be
}

// Permission is an IAM action that the controller needs, and whether its role's policies allow it.
type Permission struct {
	Statement string `json:"statement"`          // Sid of the statement in Joiner's policies that allows the action
	Policy    string `json:"policy"`             // name of the policy with the statement: "launch"
	Action    string `json:"action"`             // IAM action: "ec2:RunInstances"
	Allowed   bool   `json:"allowed"`            // the role's policies allow it
	Optional  bool   `json:"optional,omitempty"` // only a setting that is off needs it
}

// Unseen is data that could not be read, and the reason.
type Unseen struct {
	What string `json:"what"` // the data that is missing
	Why  string `json:"why"`  // the reason
	// Asked is true if the data were requested, and the request was denied or failed: the data may contain a reason to
	// stop. Asked is false if they were not requested, because the input is files or there are no credentials.
	Asked bool `json:"asked,omitempty"`
}
