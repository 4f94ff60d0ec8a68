package diagnosis

import (
	"strings"
	"time"
)

// ACL is a network ACL. It is stateless: requests and responses are filtered separately.
type ACL struct {
	ID      string     `json:"id"`                // "acl-…"
	Default bool       `json:"default,omitempty"` // applies to the subnets that no other ACL lists
	Subnets []string   `json:"subnets,omitempty"` // IDs of the subnets that the ACL lists
	Entries []ACLEntry `json:"entries,omitempty"` // sorted by number
}

// ACLEntry allows or denies packets. The first entry that matches a packet decides.
type ACLEntry struct {
	Number   int    `json:"number"`         // rule number; the lowest comes first
	Out      bool   `json:"out,omitempty"`  // the entry is about outgoing packets; otherwise about incoming ones
	Deny     bool   `json:"deny,omitempty"` // the entry denies packets; otherwise it allows them
	Protocol string `json:"protocol"`       // "6" is TCP, "-1" is every protocol
	CIDR     string `json:"cidr,omitempty"` // IPv4 address block of the peers
	From     int    `json:"from,omitempty"` // first port
	To       int    `json:"to,omitempty"`   // last port
}

// Cluster is the EKS cluster.
type Cluster struct {
	ARN           string    `json:"arn"`                   // empty: not known
	Status        string    `json:"status"`                // "ACTIVE"
	Version       string    `json:"version"`               // "1.33"
	Endpoint      string    `json:"endpoint"`              // URL of the API server
	CA            string    `json:"ca,omitempty"`          // base64 of PEM
	Issuer        string    `json:"issuer,omitempty"`      // OIDC issuer of service account tokens
	VPC           string    `json:"vpc"`                   // ID
	Group         string    `json:"group,omitempty"`       // ID of the cluster security group, which EKS creates
	AuthMode      string    `json:"authMode"`              // "CONFIG_MAP", "API", "API_AND_CONFIG_MAP"
	PublicAccess  bool      `json:"publicAccess"`          // the API server has a public endpoint
	PrivateAccess bool      `json:"privateAccess"`         // the API server has an endpoint in the VPC
	PublicCIDRs   []string  `json:"publicCIDRs,omitempty"` // sources allowed to reach the public endpoint; empty: any address
	ServiceCIDR   string    `json:"serviceCIDR,omitempty"` // address block of Services; empty: not known
	Created       time.Time `json:"created,omitzero"`      // zero: not known
}

// AcceptsEntries reports whether EKS honors access entries.
func (c Cluster) AcceptsEntries() bool { return strings.HasPrefix(c.AuthMode, "API") }

// ReadsAuthMap reports whether EKS honors the ConfigMap aws-auth.
func (c Cluster) ReadsAuthMap() bool { return c.AuthMode != "API" }

// Partition returns the partition in the cluster's ARN, for example "aws-cn"; "aws" if the ARN is not known.
func (c Cluster) Partition() string {
	if parts := strings.Split(c.ARN, ":"); len(parts) > 1 && parts[1] != "" {
		return parts[1]
	}
	return "aws"
}

// Entry is an EKS access entry.
type Entry struct {
	Principal string    `json:"principal"`          // ARN
	Type      string    `json:"type"`               // "EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "STANDARD", …
	Username  string    `json:"username,omitempty"` // Kubernetes user name; empty: none
	Groups    []string  `json:"groups,omitempty"`   // Kubernetes groups
	Created   time.Time `json:"created,omitzero"`   // zero: not known
}

// NodeGroup is a managed node group.
type NodeGroup struct {
	Name   string `json:"name"`             // of the node group
	Role   string `json:"role"`             // ARN
	Status string `json:"status,omitempty"` // "ACTIVE"; empty: not known
}

// FargateProfile selects the pods that run on Fargate.
type FargateProfile struct {
	Name      string            `json:"name"`                // of the profile
	Status    string            `json:"status"`              // "ACTIVE"
	Role      string            `json:"role"`                // ARN of the pod execution role
	Subnets   []string          `json:"subnets,omitempty"`   // IDs
	Selectors []FargateSelector `json:"selectors,omitempty"` // a pod needs to match one of them
	Issues    []string          `json:"issues,omitempty"`    // health issues that EKS reports
	Created   time.Time         `json:"created,omitzero"`    // zero: not known
}

// FargateSelector selects the pods of a namespace that have all of the labels. * and ? are wildcards.
type FargateSelector struct {
	Namespace string            `json:"namespace"`        // pattern of namespaces
	Labels    map[string]string `json:"labels,omitempty"` // patterns of label values by key; nil: any labels
}

// Role is an IAM role.
type Role struct {
	ARN      string    `json:"arn"`                // with its path
	Trusts   []string  `json:"trusts,omitempty"`   // principals in its trust policy: "ec2.amazonaws.com", an OIDC provider's ARN
	Policies []string  `json:"policies,omitempty"` // ARNs of attached policies
	Inline   int       `json:"inline,omitempty"`   // number of inline policies; their text is not read
	Created  time.Time `json:"created,omitzero"`   // zero: not known
}

// Profile is an instance profile.
type Profile struct {
	ARN     string    `json:"arn"`              // with its path
	Role    string    `json:"role,omitempty"`   // ARN; empty: the profile has no role
	Created time.Time `json:"created,omitzero"` // zero: not known
}

// VPC is the VPC of the cluster.
type VPC struct {
	ID           string `json:"id"`           // "vpc-…"
	DNSSupport   bool   `json:"dnsSupport"`   // the VPC resolves DNS names
	DNSHostnames bool   `json:"dnsHostnames"` // instances get DNS host names
}

// Subnet is a subnet.
type Subnet struct {
	ID           string            `json:"id"`                     // "subnet-…"
	VPC          string            `json:"vpc"`                    // ID of its VPC
	Zone         string            `json:"zone"`                   // "us-east-1a"
	Free         int               `json:"free"`                   // unassigned IPv4 addresses
	Public       bool              `json:"public,omitempty"`       // instances get a public address by default
	HostnameType string            `json:"hostnameType,omitempty"` // "ip-name", "resource-name"; empty: not known
	Tags         map[string]string `json:"tags,omitempty"`         // only tags that name clusters
}

// RouteTable is a VPC route table.
type RouteTable struct {
	ID      string   `json:"id"`                // "rtb-…"
	Main    bool     `json:"main,omitempty"`    // applies to the subnets that no other table lists
	Subnets []string `json:"subnets,omitempty"` // IDs of the subnets that the table lists
	Routes  []Route  `json:"routes,omitempty"`  // all routes of the table
}

// Route is one route.
type Route struct {
	To        string `json:"to"`                  // "0.0.0.0/0"
	Target    string `json:"target"`              // "local", "igw-…", "nat-…", "tgw-…", "vpce-…"
	Blackhole bool   `json:"blackhole,omitempty"` // the target was deleted
}

// Endpoint is a VPC endpoint.
type Endpoint struct {
	Service string `json:"service"`           // "com.amazonaws.us-east-1.sts"
	State   string `json:"state,omitempty"`   // "available"; empty: not known
	Private bool   `json:"private,omitempty"` // private DNS: the service's usual name resolves to the endpoint
}

// Group is a security group.
type Group struct {
	ID   string            `json:"id"`             // "sg-…"
	Name string            `json:"name,omitempty"` // of the group
	VPC  string            `json:"vpc,omitempty"`  // ID of its VPC
	In   []Rule            `json:"in,omitempty"`   // ingress rules
	Out  []Rule            `json:"out,omitempty"`  // egress rules
	Tags map[string]string `json:"tags,omitempty"` // only tags that name clusters
}

// Rule is a rule of a security group. Every rule allows packets.
type Rule struct {
	Protocol string   `json:"protocol"`         // "tcp" or "6", "udp"; "-1" is every protocol
	From     int      `json:"from,omitempty"`   // first port
	To       int      `json:"to,omitempty"`     // last port
	CIDRs    []string `json:"cidrs,omitempty"`  // address blocks of the peers
	Groups   []string `json:"groups,omitempty"` // IDs of the peers' security groups
	Lists    []string `json:"lists,omitempty"`  // IDs of prefix lists with the peers' address blocks
}

// Allows reports whether the rule allows TCP packets to the port, for any peer.
func (r Rule) Allows(port int) bool {
	return r.Protocol == "-1" || (r.Protocol == "tcp" || r.Protocol == "6") && r.From <= port && port <= r.To
}

// Image is an AMI.
type Image struct {
	ID           string `json:"id"`                    // "ami-…"
	Name         string `json:"name,omitempty"`        // of the image
	Architecture string `json:"architecture"`          // "amd64", "arm64"
	State        string `json:"state,omitempty"`       // "available"; empty: not known
	SnapshotGiB  int    `json:"snapshotGiB,omitempty"` // size of the root volume's snapshot
}

// Instance is an EC2 instance that is tagged with the cluster's name.
type Instance struct {
	ID          string       `json:"id"`                    // "i-…"
	Type        string       `json:"type,omitempty"`        // "m5.large"
	State       string       `json:"state"`                 // "running"
	StateReason string       `json:"stateReason,omitempty"` // why it was stopped or terminated; empty: not known
	Launched    time.Time    `json:"launched,omitzero"`     // zero: not known
	Claim       string       `json:"claim,omitempty"`       // name of the NodeClaim: from tags, or set by WithClaims
	Class       string       `json:"class,omitempty"`       // name of the EC2NodeClass: from tags, or set by WithClaims
	UID         string       `json:"uid,omitempty"`         // UID of the cluster, from tags
	Image       string       `json:"image,omitempty"`       // ID
	Subnet      string       `json:"subnet,omitempty"`      // ID
	Groups      []string     `json:"groups,omitempty"`      // IDs of its security groups
	Profile     string       `json:"profile,omitempty"`     // ARN
	PrivateDNS  string       `json:"privateDNS,omitempty"`  // host name in the VPC; empty: not known
	Console     Item[string] `json:"console,omitzero"`      // last lines of the console output
}

// Runs reports whether the instance is running or pending.
func (i Instance) Runs() bool { return i.State == "running" || i.State == "pending" }

// MaxClaimDelay is the maximum time from the launch of an instance until the status of its NodeClaim has the instance's
// provider ID.
const MaxClaimDelay = 20 * time.Second
