package world

import (
	"maps"
	"slices"
)

// Account is an AWS account: its IAM, and its regions.
type Account struct {
	ID string // 12 digits

	// NoSpotRole is an account that has never had a spot instance: the service-linked role is missing that EC2 makes for the
	// first one, and that who launches may not make.
	NoSpotRole bool

	world     *World
	partition string // "aws-cn"; empty until the first of its regions is used
	regions   map[string]*Region
	roles     map[string]*Role
	profiles  map[string]*Profile
	policies  map[string]*Policy           // its own, by ARN
	scps      []ServiceControlPolicy       // of its organization
	providers map[string]*IdentityProvider // by issuer
}

// Region is one region of an account.
type Region struct {
	Name    string // "us-east-1"
	Account *Account

	// Capacity limits how many instances EC2 has to give here.
	Capacity Capacity

	// Quotas are the account's limits of vCPUs, by kind of instance and way of
	// paying, see Quota. A kind that is absent has no limit.
	Quotas map[Quota]int64

	// EventQueues are the SQS queues that EC2's events are delivered to, by
	// name, as by an EventBridge rule.
	EventQueues []string

	zones        []Zone
	vpcs         []*VPC
	subnets      []*Subnet
	groups       []*SecurityGroup
	routeTables  []*RouteTable
	endpoints    []*Endpoint
	acls         []*NetworkACL // oldest first
	dhcp         []DHCPOptions
	keys         []*Key
	reserved     []*CapacityReservation // oldest first
	placements   []*PlacementGroup      // oldest first
	images       map[string]*Image
	imageOrder   []string
	templates    map[string]*Template // by id
	fleets       map[string]fleet     // by client token
	asked        []Asked
	machines     map[string]*history // by id
	machineOrder []string            // ids as launched
	runTokens    map[string]run      // by client token
	parameters   map[string]*Parameter
	queues       map[string]*Queue // by name
	clusters     map[string]*Cluster
	shifts       []*ZonalShift // oldest first
	buckets      map[string]*level
	usage        usage
}

func newRegion(a *Account, name string) *Region {
	return &Region{
		Name: name, Account: a,
		zones:      zonesOf(name),
		images:     map[string]*Image{},
		templates:  map[string]*Template{},
		fleets:     map[string]fleet{},
		machines:   map[string]*history{},
		runTokens:  map[string]run{},
		parameters: map[string]*Parameter{},
		queues:     map[string]*Queue{},
		clusters:   map[string]*Cluster{},
		buckets:    map[string]*level{},
		usage:      usage{running: map[Offering]int{}, cores: map[Quota]int64{}},
	}
}

// Regions returns the names of the regions that the account uses, sorted.
func (a *Account) Regions() []string { return slices.Sorted(maps.Keys(a.regions)) }

// world returns the world the region is in.
func (r *Region) world() *World { return r.Account.world }

// Partition returns the part of AWS that the account is of: that of the first region it uses, "aws" until then.
func (a *Account) Partition() string { return or(a.partition, "aws") }

// arn returns an ARN of what has no region: arn("iam", "role/node").
func (a *Account) arn(service, resource string) string {
	return "arn:" + a.Partition() + ":" + service + "::" + a.ID + ":" + resource
}

// arn returns an ARN of this region: arn("eks", "cluster/demo").
func (r *Region) arn(service, resource string) string { return r.ARN(service, r.Account.ID, resource) }

// ARN returns an ARN of this region; the account may be another one than the region's, and empty for what is AWS's own.
func (r *Region) ARN(service, account, resource string) string {
	return "arn:" + Partition(r.Name) + ":" + service + ":" + r.Name + ":" + account + ":" + resource
}
