package world

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// Account is an AWS account: its IAM, and its regions.
type Account struct {
	identity.IAM

	world   *World
	regions map[string]*Region
}

// Region is one region of an account.
type Region struct {
	Name    string // "us-east-1"
	Account *Account

	// EventQueues are the names of the SQS queues to which EC2's events are delivered, as by an EventBridge rule.
	// Without queues, events are dropped.
	EventQueues []string

	// Each of the following fields has resources of one kind, and the calls for them.
	Capacity             Capacity
	Network              network.Network
	Images               Images
	LaunchTemplates      LaunchTemplates
	Launches             Launches
	Instances            Instances
	CapacityReservations CapacityReservations
	PlacementGroups      PlacementGroups
	Permissions          Permissions
	KMS                  KMS
	EKS                  ekscluster.EKS
	ZonalShifts          ZonalShifts
	SQS                  SQS
	SSM                  SSM

	site    *site.Site
	buckets map[string]*bucketLevel // token buckets of the API rate limits, by call
}

func newRegion(a *Account, name string) *Region {
	s := &site.Site{
		Region: name, Account: a.ID, Zones: site.ZonesOf(name),
		IDs: a.world.idGenerator(), Due: &a.world.due, Timing: &a.world.Timing,
	}
	r := &Region{Name: name, Account: a, site: s, buckets: map[string]*bucketLevel{}}
	r.Capacity.usage = usage{running: map[Offering]int{}, vcpus: map[Quota]int64{}}
	r.Network = network.NewNetwork(s)
	r.Images = Images{region: r, byID: map[string]*Image{}}
	r.LaunchTemplates = LaunchTemplates{region: r, byID: map[string]*Template{}}
	r.Launches = Launches{region: r, fleets: map[string]recordedFleet{}, runTokens: map[string]recordedRun{}}
	r.Instances = Instances{region: r, byID: map[string]*history{}}
	r.CapacityReservations = CapacityReservations{region: r}
	r.PlacementGroups = PlacementGroups{region: r}
	r.Permissions = Permissions{region: r}
	r.KMS = KMS{region: r}
	r.EKS = ekscluster.NewEKS(s, &a.IAM)
	r.ZonalShifts = ZonalShifts{region: r}
	r.SQS = SQS{region: r, queues: map[string]*Queue{}}
	r.SSM = SSM{region: r, parameters: map[string]*Parameter{}}
	return r
}

// Regions returns the names of the regions that the account uses, sorted.
func (a *Account) Regions() []string { return slices.Sorted(maps.Keys(a.regions)) }

func (r *Region) world() *World { return r.Account.world }

// arn returns an ARN of this region: arn("eks", "cluster/demo").
func (r *Region) arn(service, resource string) string { return r.site.OwnARN(service, resource) }

// ARN is like arn, with any account. The account is empty for AWS's own resources.
func (r *Region) ARN(service, account, resource string) string {
	return r.site.ARN(service, account, resource)
}

// Zones returns the zones of the region, sorted by name.
func (r *Region) Zones() []site.Zone { return r.site.Zones }

// AddZone adds a zone, for example a local zone. OfferedType.Zones determines the instance types of the zone.
func (r *Region) AddZone(z site.Zone) { r.site.Zones = append(slices.Clone(r.site.Zones), z) }
