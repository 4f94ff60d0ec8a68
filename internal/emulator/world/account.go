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

	// EventQueues are the SQS queues that EC2's events are delivered to, by
	// name, as by an EventBridge rule.
	EventQueues []string

	// Each of these has the resources of one subject, and the calls about them.
	Capacity             Capacity
	Network              Network
	Images               Images
	LaunchTemplates      LaunchTemplates
	Launches             Launches
	Instances            Instances
	CapacityReservations CapacityReservations
	PlacementGroups      PlacementGroups
	Permissions          Permissions
	KMS                  KMS
	EKS                  EKS
	ZonalShifts          ZonalShifts
	SQS                  SQS
	SSM                  SSM

	zones   []Zone
	buckets map[string]*level // of the API rate limits, by call
}

func newRegion(a *Account, name string) *Region {
	r := &Region{Name: name, Account: a, zones: zonesOf(name), buckets: map[string]*level{}}
	r.Capacity.usage = usage{running: map[Offering]int{}, cores: map[Quota]int64{}}
	r.Network = Network{region: r}
	r.Images = Images{region: r, byID: map[string]*Image{}}
	r.LaunchTemplates = LaunchTemplates{region: r, byID: map[string]*Template{}}
	r.Launches = Launches{region: r, fleets: map[string]fleet{}, runTokens: map[string]run{}}
	r.Instances = Instances{region: r, byID: map[string]*history{}}
	r.CapacityReservations = CapacityReservations{region: r}
	r.PlacementGroups = PlacementGroups{region: r}
	r.Permissions = Permissions{region: r}
	r.KMS = KMS{region: r}
	r.EKS = EKS{region: r, clusters: map[string]*Cluster{}}
	r.ZonalShifts = ZonalShifts{region: r}
	r.SQS = SQS{region: r, queues: map[string]*Queue{}}
	r.SSM = SSM{region: r, parameters: map[string]*Parameter{}}
	return r
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
