package diagnosis

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// IsWellKnown reports whether a label key belongs to Kubernetes, EKS, Karpenter or Joiner. Users do not define such
// labels.
func IsWellKnown(key string) bool {
	for _, owned := range []string{"kubernetes.io", "k8s.io", "karpenter.sh", "karpenter.k8s.aws", "k8s.aws",
		"eks.amazonaws.com", "joiner.sh"} {
		domain, _, ok := strings.Cut(key, "/")
		if ok && (domain == owned || strings.HasSuffix(domain, "."+owned)) {
			return true
		}
	}
	return false
}

// OwnLabels returns the user-defined labels, which are those that are not well known. It is nil if there are none.
func OwnLabels(labels map[string]string) map[string]string {
	var out map[string]string
	for k, v := range labels {
		if IsWellKnown(k) {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[k] = v
	}
	return out
}

// ClusterIdentity identifies the cluster from which the Kubernetes evidence was read.
type ClusterIdentity struct {
	UID      string `json:"uid"`                // of the namespace kube-system
	Endpoint string `json:"endpoint"`           // from the kubeconfig
	CA       string `json:"ca,omitempty"`       // PEM of kube-root-ca.crt
	Issuer   string `json:"issuer,omitempty"`   // of service account tokens
	DNSReady bool   `json:"dnsReady,omitempty"` // cluster DNS has an address that answers

	DNSAbsent Absence `json:"dnsAbsent,omitempty"` // why DNSReady is not known; empty: DNSReady is known
	DNSWhy    string  `json:"dnsWhy,omitempty"`    // the missing permission, or the error
}

// AuthMap is the role mapping in the ConfigMap aws-auth.
type AuthMap struct {
	Raw     string    `json:"raw,omitempty"`     // text of mapRoles
	Problem string    `json:"problem,omitempty"` // why mapRoles cannot be parsed; Roles is empty then
	Roles   []Mapping `json:"roles,omitempty"`   // in the order of mapRoles
}

// Mapping is one row of mapRoles.
type Mapping struct {
	ARN      string   `json:"arn"`                // rolearn
	Username string   `json:"username,omitempty"` // may contain placeholders: "system:node:{{EC2PrivateDNSName}}"
	Groups   []string `json:"groups,omitempty"`   // Kubernetes groups
}

// Controller is the installation of the autoscaler.
type Controller struct {
	Namespace      string            `json:"namespace"`            // of the Deployment
	Deployment     string            `json:"deployment,omitempty"` // name of the Deployment; empty: not known
	ServiceAccount string            `json:"account"`              // name of the service account
	Role           string            `json:"role,omitempty"`       // ARN of the IAM role; empty: not known
	RoleSource     string            `json:"how,omitempty"`        // how the pods get the role: "annotation", "pod identity"
	Settings       map[string]string `json:"settings,omitempty"`   // environment variables; only names that hold no secrets
	Tolerates      []Taint           `json:"tolerates,omitempty"`  // tolerations in the Deployment's pod template
	Pods           []ControllerPod   `json:"pods,omitempty"`       // of the Deployment
	Others         []string          `json:"others,omitempty"`     // Deployments of this or another autoscaler, "namespace/name"
}

// Workload returns the name of the Deployment. If that is not known, Workload returns the name of the service account.
func (c Controller) Workload() string { return OrElse(c.Deployment, c.ServiceAccount) }

// Recreate is the step that deletes pods of the controller so that its Deployment recreates them.
func (c Controller) Recreate(pods []ControllerPod) fix.Step {
	objects := make([]fix.Object, len(pods))
	for i, p := range pods {
		objects[i] = fix.Pod(c.Namespace, p.Name)
	}
	return fix.Delete(objects...)
}

// ControllerPod is one of the controller's own pods.
type ControllerPod struct {
	Name      string            `json:"name"`                // of the pod
	Labels    map[string]string `json:"labels,omitempty"`    // of the pod
	Scheduler string            `json:"scheduler"`           // spec.schedulerName
	Node      string            `json:"node,omitempty"`      // empty: not scheduled
	Phase     string            `json:"phase"`               // "Pending", "Running"
	Ready     bool              `json:"ready,omitempty"`     // condition Ready is True
	Created   time.Time         `json:"created,omitzero"`    // zero: not known
	DNSPolicy string            `json:"dnsPolicy,omitempty"` // spec.dnsPolicy
	Tolerates []Taint           `json:"tolerates,omitempty"` // a toleration with an empty key tolerates every taint
	Messages  []string          `json:"messages,omitempty"`  // of the pod's conditions and events
}

// Taint is a taint, or a toleration.
type Taint struct {
	Key    string `json:"key"`              // of the taint
	Value  string `json:"value,omitempty"`  // empty: none
	Effect string `json:"effect,omitempty"` // empty in a toleration: any
}

// Condition is a condition of an object's status.
type Condition struct {
	Type    string    `json:"type"`              // "Ready"
	Status  string    `json:"status"`            // "True", "False", "Unknown"
	Reason  string    `json:"reason,omitempty"`  // one word
	Message string    `json:"message,omitempty"` // for users
	Since   time.Time `json:"since,omitzero"`    // lastTransitionTime; zero: not known
}

// FindCondition returns the condition of a type; the zero value if there is none.
func FindCondition(all []Condition, kind string) Condition {
	i := slices.IndexFunc(all, func(c Condition) bool { return c.Type == kind })
	if i < 0 {
		return Condition{}
	}
	return all[i]
}

// Class is an EC2NodeClass.
type Class struct {
	Name       string            `json:"name"`                 // of the EC2NodeClass
	UID        string            `json:"uid,omitempty"`        // empty: not known
	Family     string            `json:"family,omitempty"`     // spec.amiFamily, or the family in the alias
	Role       string            `json:"role,omitempty"`       // spec.role
	Profile    string            `json:"profile,omitempty"`    // spec.instanceProfile, else status.instanceProfile
	ImageIDs   []string          `json:"imageIDs,omitempty"`   // spec.amiSelectorTerms[].id
	Images     []string          `json:"images,omitempty"`     // status.amis[].id
	Subnets    []string          `json:"subnets,omitempty"`    // IDs, from status.subnets
	Groups     []string          `json:"groups,omitempty"`     // IDs, from status.securityGroups
	SubnetTags map[string]string `json:"subnetTags,omitempty"` // of spec.subnetSelectorTerms
	GroupTags  map[string]string `json:"groupTags,omitempty"`  // of spec.securityGroupSelectorTerms
	PublicIP   *bool             `json:"publicIP,omitempty"`   // spec.associatePublicIPAddress
	HopLimit   int64             `json:"hopLimit"`             // of the metadata service; 1 by default
	NoMetadata bool              `json:"noMetadata,omitempty"` // spec.metadataOptions.httpEndpoint is "disabled"
	Keys       []string          `json:"keys,omitempty"`       // KMS keys that encrypt its volumes
	DataBytes  int               `json:"dataBytes,omitempty"`  // size of spec.userData
	RootGiB    int               `json:"rootGiB,omitempty"`    // size of the root volume in the spec; 0: the size in the image
	RootIndex  int               `json:"rootAt,omitempty"`     // index of the root volume in spec.blockDeviceMappings
	Conditions []Condition       `json:"conditions,omitempty"` // of its status
}

// Pool is a NodePool.
type Pool struct {
	Name         string            `json:"name"`                   // of the NodePool
	UID          string            `json:"uid,omitempty"`          // empty: not known
	Class        string            `json:"class"`                  // name of its EC2NodeClass
	Labels       map[string]string `json:"labels,omitempty"`       // of its nodes
	Requirements []Requirement     `json:"requirements,omitempty"` // spec.template.spec.requirements
	Taints       []Taint           `json:"taints,omitempty"`       // spec.template.spec.taints
	Startup      []Taint           `json:"startup,omitempty"`      // spec.template.spec.startupTaints
	Conditions   []Condition       `json:"conditions,omitempty"`   // of its status
	// Steps has the number of instance types that remain after each requirement, in order; empty: not counted.
	Steps []Step `json:"steps,omitempty"`
	// Loosened is the smallest change that gives instance types to a pool without any; nil if no change was found or
	// needed.
	Loosened *Loosening `json:"mend,omitempty"`
}

// Loosening adds one value to a requirement.
type Loosening struct {
	Index int    `json:"index"` // of the requirement, in spec.template.spec.requirements
	Key   string `json:"key"`   // label key
	Value string `json:"value"` // label value to add
}

// Requirement is a requirement on a label.
type Requirement struct {
	Key      string   `json:"key"`              // label key
	Operator string   `json:"operator"`         // "In", "NotIn", "Exists", …
	Values   []string `json:"values,omitempty"` // label values
}

// String returns the requirement as users write it.
func (r Requirement) String() string {
	if len(r.Values) == 0 {
		return r.Key + " " + r.Operator
	}
	return r.Key + " " + r.Operator + " [" + strings.Join(r.Values, ", ") + "]"
}

// Step is a requirement and the number of instance types that it leaves.
type Step struct {
	Name string         `json:"name"`           // the requirement, in the form of Requirement.String
	Left map[string]int `json:"left,omitempty"` // number of instance types by architecture; no key: 0
}

// Architectures returns the architectures that the pool requires with the operator In or a label, sorted; nil if none.
func (p Pool) Architectures() []string {
	for _, r := range p.Requirements {
		if r.Key == LabelArch && r.Operator == "In" {
			return slices.Sorted(slices.Values(r.Values))
		}
	}
	if arch := p.Labels[LabelArch]; arch != "" {
		return []string{arch}
	}
	return nil
}

// Claim is a NodeClaim.
type Claim struct {
	Name       string      `json:"name"`                 // of the NodeClaim
	UID        string      `json:"uid,omitempty"`        // empty: not known
	Pool       string      `json:"pool,omitempty"`       // name of its NodePool
	Class      string      `json:"class,omitempty"`      // name of its EC2NodeClass
	ProviderID string      `json:"providerID,omitempty"` // status.providerID; empty: not launched
	Created    time.Time   `json:"created,omitzero"`     // zero: not known
	Deleting   bool        `json:"deleting,omitempty"`   // it has a deletion timestamp
	Conditions []Condition `json:"conditions,omitempty"` // of its status
}

// Node is a Node.
type Node struct {
	Name       string    `json:"name"`                 // of the Node
	ProviderID string    `json:"providerID,omitempty"` // spec.providerID
	Pool       string    `json:"pool,omitempty"`       // name of its NodePool; empty: none
	Created    time.Time `json:"created,omitzero"`     // zero: not known
	Ready      bool      `json:"ready,omitempty"`      // condition Ready is True
	Message    string    `json:"message,omitempty"`    // of its condition Ready
	Taints     []Taint   `json:"taints,omitempty"`     // spec.taints
	TaintsBy   []string  `json:"taintsBy,omitempty"`   // field managers of its taints, from managedFields
	Zone       string    `json:"zone,omitempty"`       // "us-east-1a"
	Arch       string    `json:"arch,omitempty"`       // "amd64", "arm64"
	// Labels has the user-defined labels: see OwnLabels.
	Labels map[string]string `json:"labels,omitempty"`
}

// Pod is a pod that does not run.
type Pod struct {
	Namespace string `json:"namespace"`           // of the pod
	Name      string `json:"name"`                // of the pod
	UID       string `json:"uid,omitempty"`       // empty: not known
	Scheduler string `json:"scheduler,omitempty"` // spec.schedulerName
	Node      string `json:"node,omitempty"`      // empty: not scheduled
	// Owner is the owner's kind and name: "DaemonSet/aws-node". A kind of a custom resource has its API group:
	// "Rollout.argoproj.io/web".
	Owner    string            `json:"owner,omitempty"`
	Selector map[string]string `json:"selector,omitempty"` // spec.nodeSelector
	Created  time.Time         `json:"created,omitzero"`   // zero: not known
	Host     bool              `json:"host,omitempty"`     // spec.hostNetwork
	Messages []string          `json:"messages,omitempty"` // of the pod's conditions and containers
	// Events are the messages of events about the pod. Any user who can create events in the pod's namespace may have
	// written them.
	Events []string `json:"events,omitempty"`
}

// String returns "namespace/name".
func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// IsOfDaemonSet reports whether the pod belongs to a DaemonSet, of any API group.
func (p Pod) IsOfDaemonSet() bool {
	return strings.HasPrefix(p.Owner, "DaemonSet/") || strings.HasPrefix(p.Owner, "DaemonSet.")
}

// DaemonSet is a DaemonSet.
type DaemonSet struct {
	Namespace string            `json:"namespace"`      // of the DaemonSet
	Name      string            `json:"name"`           // of the DaemonSet
	Host      bool              `json:"host,omitempty"` // its pods use the host network
	Desired   int               `json:"desired"`        // number of pods that should run
	Ready     int               `json:"ready"`          // number of ready pods
	Env       map[string]string `json:"env,omitempty"`  // settings of address management; set only for aws-node
}

// Event is a warning event about a NodePool, NodeClaim or EC2NodeClass. Checks use it only if By and Namespace are the
// controller's and, while the object exists, UID is the object's.
type Event struct {
	Kind      string    `json:"kind"`                // of the object
	Name      string    `json:"name"`                // of the object
	Namespace string    `json:"namespace,omitempty"` // of the event itself
	UID       string    `json:"uid,omitempty"`       // of the object
	By        string    `json:"by,omitempty"`        // source component in the event; not verified
	Reason    string    `json:"reason"`              // one word
	Message   string    `json:"message"`             // for users
	Last      time.Time `json:"last,omitzero"`       // when the event last occurred; zero: not known
}

// Labels and taints that checks use.
const (
	LabelArch         = "kubernetes.io/arch"
	TaintUnregistered = "karpenter.sh/unregistered"
	TaintFargate      = "eks.amazonaws.com/compute-type"
)

// Lease is the leader election Lease of the controller.
type Lease struct {
	Namespace string    `json:"namespace"`         // of the Lease
	Name      string    `json:"name"`              // of the Lease
	Holder    string    `json:"holder,omitempty"`  // empty: the Lease was released
	Renewed   time.Time `json:"renewed,omitzero"`  // zero: never
	Seconds   int       `json:"seconds,omitempty"` // validity after Renewed
}

// End returns when the Lease expires if it is not renewed.
func (l Lease) End() time.Time { return l.Renewed.Add(time.Duration(l.Seconds) * time.Second) }

// SkipsLeaderElection reports whether the controller is configured to run without leader election.
func (c Controller) SkipsLeaderElection() bool {
	isDisabled, err := strconv.ParseBool(c.Settings["DISABLE_LEADER_ELECTION"])
	return err == nil && isDisabled
}

// MaxStartupTaintAge is how long a startup taint may normally stay on a node: until the image of the program that
// removes the taint is pulled, and the program has started.
const MaxStartupTaintAge = 75 * time.Second

// TaintRemoversPrefix is the text in the controller's event UnregisteredTaintMissing before the names, separated by
// commas, of the field managers that removed the taint. Package diagnosis/ready parses the event.
const TaintRemoversPrefix = "taken away by "

// UnexpectedTaintWriters returns those field managers of a node's taints that are not expected, in the order of
// managers; nil if there are none. The expected names begin with that of a component of Kubernetes, a cloud controller,
// kubectl or an autoscaler.
func UnexpectedTaintWriters(managers []string) []string {
	expected := []string{"kubelet", "kube-controller-manager", "joiner", "karpenter", "controller",
		"cloud-controller-manager", "aws-cloud-controller-manager", "kubectl"}
	var out []string
	for _, m := range managers {
		if !slices.ContainsFunc(expected, func(prefix string) bool { return strings.HasPrefix(m, prefix) }) {
			out = append(out, m)
		}
	}
	return out
}
