package diagnosis

import (
	"strings"
	"time"
)

// ACL is a network ACL. It is stateless: it filters each packet by itself.
type ACL struct {
	ID      string     `json:"id"`
	Default bool       `json:"default,omitempty"` // applies to the subnets that no other ACL lists
	Subnets []string   `json:"subnets,omitempty"`
	Entries []ACLEntry `json:"entries,omitempty"` // by number
}

// ACLEntry allows or denies packets; the first entry that matches decides.
type ACLEntry struct {
	Number   int    `json:"number"`
	Out      bool   `json:"out,omitempty"` // the entry is about outgoing packets; otherwise about incoming ones
	Deny     bool   `json:"deny,omitempty"`
	Protocol string `json:"protocol"` // "6" is TCP, "-1" is every protocol
	CIDR     string `json:"cidr,omitempty"`
	From     int    `json:"from,omitempty"`
	To       int    `json:"to,omitempty"`
}

// Cluster is the EKS cluster.
type Cluster struct {
	ARN           string    `json:"arn"`
	Status        string    `json:"status"`  // "ACTIVE"
	Version       string    `json:"version"` // "1.33"
	Endpoint      string    `json:"endpoint"`
	CA            string    `json:"ca,omitempty"` // base64 of PEM
	Issuer        string    `json:"issuer,omitempty"`
	VPC           string    `json:"vpc"`
	Group         string    `json:"group,omitempty"` // ID of the cluster security group, which EKS creates
	AuthMode      string    `json:"authMode"`        // "CONFIG_MAP", "API", "API_AND_CONFIG_MAP"
	PublicAccess  bool      `json:"publicAccess"`
	PrivateAccess bool      `json:"privateAccess"`
	PublicCIDRs   []string  `json:"publicCIDRs,omitempty"` // sources allowed to reach the public endpoint; empty: any address
	ServiceCIDR   string    `json:"serviceCIDR,omitempty"`
	Created       time.Time `json:"created,omitzero"`
}

// AcceptsEntries reports whether EKS honors access entries.
func (c Cluster) AcceptsEntries() bool { return strings.HasPrefix(c.AuthMode, "API") }

// ReadsAuthMap reports whether EKS honors the ConfigMap aws-auth.
func (c Cluster) ReadsAuthMap() bool { return c.AuthMode != "API" }

// Partition returns the partition in the cluster's ARNs: "aws", "aws-cn".
func (c Cluster) Partition() string {
	if parts := strings.Split(c.ARN, ":"); len(parts) > 1 && parts[1] != "" {
		return parts[1]
	}
	return "aws"
}

// Entry is an EKS access entry.
type Entry struct {
	Principal string    `json:"principal"` // ARN
	Type      string    `json:"type"`      // "EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "STANDARD", …
	Username  string    `json:"username,omitempty"`
	Groups    []string  `json:"groups,omitempty"`
	Created   time.Time `json:"created,omitzero"`
}

// NodeGroup is a managed node group.
type NodeGroup struct {
	Name   string `json:"name"`
	Role   string `json:"role"` // ARN
	Status string `json:"status,omitempty"`
}

// FargateProfile selects the pods that run on Fargate.
type FargateProfile struct {
	Name      string            `json:"name"`
	Status    string            `json:"status"` // "ACTIVE"
	Role      string            `json:"role"`   // ARN of the pod execution role
	Subnets   []string          `json:"subnets,omitempty"`
	Selectors []FargateSelector `json:"selectors,omitempty"`
	Issues    []string          `json:"issues,omitempty"` // health issues that EKS reports
	Created   time.Time         `json:"created,omitzero"`
}

// FargateSelector selects the pods of a namespace that have all of the labels. * and ? are wildcards.
type FargateSelector struct {
	Namespace string            `json:"namespace"`
	Labels    map[string]string `json:"labels,omitempty"`
}

// Role is an IAM role.
type Role struct {
	ARN      string    `json:"arn"`
	Trusts   []string  `json:"trusts,omitempty"`   // principals that may assume it: "ec2.amazonaws.com", an OIDC provider's ARN
	Policies []string  `json:"policies,omitempty"` // ARNs of attached policies
	Inline   int       `json:"inline,omitempty"`   // number of inline policies; their text is not read
	Created  time.Time `json:"created,omitzero"`
}

// Profile is an instance profile.
type Profile struct {
	ARN     string    `json:"arn"`
	Role    string    `json:"role,omitempty"` // ARN; empty: the profile has no role
	Created time.Time `json:"created,omitzero"`
}

// VPC is the VPC of the cluster.
type VPC struct {
	ID           string `json:"id"`
	DNSSupport   bool   `json:"dnsSupport"`
	DNSHostnames bool   `json:"dnsHostnames"`
}

// Subnet is a subnet.
type Subnet struct {
	ID           string            `json:"id"`
	VPC          string            `json:"vpc"`
	Zone         string            `json:"zone"`
	Free         int               `json:"free"`                   // unassigned IPv4 addresses
	Public       bool              `json:"public,omitempty"`       // instances get a public address by default
	HostnameType string            `json:"hostnameType,omitempty"` // "ip-name", "resource-name"; empty: not known
	Tags         map[string]string `json:"tags,omitempty"`         // only tags that name clusters
}

// RouteTable is a VPC route table.
type RouteTable struct {
	ID      string   `json:"id"`
	Main    bool     `json:"main,omitempty"` // applies to the subnets that no other table lists
	Subnets []string `json:"subnets,omitempty"`
	Routes  []Route  `json:"routes,omitempty"`
}

// Route is one route.
type Route struct {
	To        string `json:"to"`                  // "0.0.0.0/0"
	Target    string `json:"target"`              // "local", "igw-…", "nat-…", "tgw-…", "vpce-…"
	Blackhole bool   `json:"blackhole,omitempty"` // the target was deleted
}

// Endpoint is a VPC endpoint.
type Endpoint struct {
	Service string `json:"service"` // "com.amazonaws.us-east-1.sts"
	State   string `json:"state,omitempty"`
	Private bool   `json:"private,omitempty"` // private DNS: the service's usual name resolves to the endpoint
}

// Group is a security group.
type Group struct {
	ID   string            `json:"id"`
	Name string            `json:"name,omitempty"`
	VPC  string            `json:"vpc,omitempty"`
	In   []Rule            `json:"in,omitempty"`
	Out  []Rule            `json:"out,omitempty"`
	Tags map[string]string `json:"tags,omitempty"` // only tags that name clusters
}

// Rule is a rule of a security group. It allows packets.
type Rule struct {
	Protocol string   `json:"protocol"` // "tcp", "udp"; "-1" is every protocol
	From     int      `json:"from,omitempty"`
	To       int      `json:"to,omitempty"`
	CIDRs    []string `json:"cidrs,omitempty"`
	Groups   []string `json:"groups,omitempty"` // ids
	Lists    []string `json:"lists,omitempty"`  // ids of prefix lists
}

// Allows reports whether the rule covers a TCP port.
func (r Rule) Allows(port int) bool {
	return r.Protocol == "-1" || (r.Protocol == "tcp" || r.Protocol == "6") && r.From <= port && port <= r.To
}

// Image is an AMI.
type Image struct {
	ID           string `json:"id"`
	Name         string `json:"name,omitempty"`
	Architecture string `json:"architecture"` // "amd64", "arm64"
	State        string `json:"state,omitempty"`
	SnapshotGiB  int    `json:"snapshotGiB,omitempty"` // size of the root volume's snapshot
}

// Instance is an EC2 instance that is tagged with the cluster's name.
type Instance struct {
	ID          string       `json:"id"`
	Type        string       `json:"type,omitempty"`
	State       string       `json:"state"` // "running"
	StateReason string       `json:"stateReason,omitempty"`
	Launched    time.Time    `json:"launched,omitzero"`
	Claim       string       `json:"claim,omitempty"` // the NodeClaim in its tags
	Class       string       `json:"class,omitempty"` // the EC2NodeClass in its tags
	UID         string       `json:"uid,omitempty"`   // the cluster UID in its tags
	Image       string       `json:"image,omitempty"`
	Subnet      string       `json:"subnet,omitempty"`
	Groups      []string     `json:"groups,omitempty"`
	Profile     string       `json:"profile,omitempty"` // ARN
	PrivateDNS  string       `json:"privateDNS,omitempty"`
	Console     Item[string] `json:"console,omitzero"` // last lines of the console output
}

// Runs reports whether the instance is running or pending.
func (i Instance) Runs() bool { return i.State == "running" || i.State == "pending" }

// Unclaimed is how long after its launch an instance may be missing from the status of its NodeClaim.
const Unclaimed = 20 * time.Second
