package world

import (
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Tagging has the tags of the resources that a call creates: resource type → key → value.
type Tagging map[string]map[string]string

// Launches implements the calls of a region that launch instances: CreateFleet and RunInstances. It keeps each
// idempotency token for a day.
type Launches struct {
	region    *Region
	fleets    map[string]recordedFleet // by client token
	runTokens map[string]recordedRun   // by client token
	calls     []FleetCall              // calls of CreateFleet, oldest first
}

// launchRequest has the launch parameters of one or more equal instances.
type launchRequest struct {
	data     TemplateData // with the overrides of the request
	subnetID string
	zone     string // name
	spot     bool
	maxPrice catalog.Price // maximum spot price per hour; 0: no limit
	fleet    bool          // the request is from CreateFleet, whose errors differ
	market   string        // market of the fleet: MarketBlock or MarketInterruptible; empty: on demand or spot
	template *Template
	tags     Tagging
	fleetID  string
	token    string
	caller   string // ARN of the caller's role; empty: a user
}

// prepare validates a launch, and resolves its parameters. It returns EC2's errors. Capacity, quotas and free addresses
// are checked by admit.
func (l *Launches) prepare(now time.Time, req launchRequest) (resolvedLaunch, error) {
	launch := resolvedLaunch{
		data: req.data, tags: req.tags, template: req.template, fleetID: req.fleetID, token: req.token, caller: req.caller,
	}
	var err error
	if launch.stock, err = l.resolveType(req.data.InstanceType); err != nil {
		return resolvedLaunch{}, err
	}
	if launch.image, err = l.resolveImage(req.data.ImageID); err != nil {
		return resolvedLaunch{}, err
	}
	if !slices.Contains(launch.stock.Facts.Processor.Architectures, launch.image.Architecture) {
		return resolvedLaunch{}, failure.New("InvalidParameterValue", "The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI. Specify an instance type and an AMI that have matching architectures, and try again. You can use 'describe-instance-types' or 'describe-images' to discover the architecture of the instance type or AMI.",
			strings.Join(launch.stock.Facts.Processor.Architectures, ","), launch.image.Architecture)
	}
	if launch.subnet, err = l.resolveSubnet(req); err != nil {
		return resolvedLaunch{}, err
	}
	launch.zone = launch.subnet.Zone
	launch.offering = Offering{Type: req.data.InstanceType, Zone: launch.zone.Name, Spot: req.spot}
	if launch.placement, err = l.region.PlacementGroups.resolve(req.data, launch.stock); err != nil {
		return resolvedLaunch{}, err
	}
	if launch.target, err = l.region.CapacityReservations.resolve(req); err != nil {
		return resolvedLaunch{}, err
	}
	if launch.target == nil { // reserved capacity has no price and does not depend on what the zone offers
		if err = l.checkOffered(now, req, launch); err != nil {
			return resolvedLaunch{}, err
		}
	}
	if err = checkIPv6(req.data, launch.subnet); err != nil {
		return resolvedLaunch{}, err
	}
	if launch.groups, err = l.resolveGroups(req.data, launch.subnet); err != nil {
		return resolvedLaunch{}, err
	}
	if launch.profile, err = l.resolveProfile(now, req.data.Profile); err != nil {
		return resolvedLaunch{}, err
	}
	return launch, launch.checkVolumes()
}

// admit returns EC2's error for a launch if the placement group, the quota, the free addresses or the capacity do not
// suffice for one more instance.
func (l *Launches) admit(launch resolvedLaunch) error {
	o := launch.offering
	if err := l.region.PlacementGroups.admit(launch); err != nil {
		return err
	}
	reservation, hasRoom := l.region.CapacityReservations.forLaunch(launch)
	if !hasRoom {
		return fullReservationError()
	}
	isUnreserved := reservation == nil // an instance in a reservation uses neither the quota nor the region's capacity
	if isUnreserved && !l.region.Capacity.quotaAllows(QuotaOf(o.Type, o.Spot), launch.stock.Facts.Processor.VCPUs) {
		if o.Spot {
			return failure.New("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
		}
		return failure.New("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of %d allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.", l.region.Capacity.Quotas[QuotaOf(o.Type, o.Spot)])
	}
	if launch.subnet.Free < countIPv4(launch.data) {
		return failure.New("InsufficientFreeAddressesInSubnet",
			"There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", launch.subnet.ID)
	}
	if !isUnreserved || l.region.Capacity.remaining(o) > 0 {
		return nil
	}
	if o.Spot {
		return failure.WithStatus(500, "InsufficientInstanceCapacity", "There is no Spot capacity available that matches your request.")
	}
	return failure.WithStatus(500, "InsufficientInstanceCapacity", "We currently do not have sufficient %s capacity in the Availability Zone you requested (%s). Our system will be working on provisioning additional capacity.", o.Type, o.Zone)
}

func (l *Launches) resolveType(name string) (*OfferedType, error) {
	if name == "" {
		return nil, failure.New("MissingParameter", "The request must contain the parameter InstanceType")
	}
	if s := l.region.world().Market(l.region.Name).stock[name]; s != nil {
		return s, nil
	}
	return nil, failure.New("InvalidParameterValue", "Invalid value '%s' for InstanceType.", name)
}

func (l *Launches) resolveImage(id string) (*Image, error) {
	if id == "" {
		return nil, failure.New("MissingParameter", "The request must contain the parameter ImageId")
	}
	if i := l.region.Images.byID[id]; i != nil {
		return i, i.launchError()
	}
	if !wellFormed(id, "ami") {
		return nil, failure.New("InvalidAMIID.Malformed", "Invalid id: %q (expecting \"ami-...\")", id)
	}
	return nil, failure.New("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
}

// resolveSubnet returns the requested subnet, or a subnet of the default VPC in the requested zone.
func (l *Launches) resolveSubnet(req launchRequest) (*network.Subnet, error) {
	id := req.subnetID
	if id == "" && len(req.data.Interfaces) > 0 {
		id = req.data.Interfaces[0].SubnetID
	}
	zone := req.zone
	if zone == "" && req.data.Placement != nil {
		zone = req.data.Placement.Zone
	}
	if id == "" {
		for _, s := range l.region.Network.Subnets() {
			if l.region.Network.VPC(s.VPCID).Default && (zone == "" || s.Zone.Name == zone) {
				return s, nil
			}
		}
		return nil, failure.New("MissingInput", "No subnets found for the default VPC. Please specify a subnet.")
	}
	s := l.region.Network.Subnet(id)
	if s == nil {
		return nil, failure.New("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
	}
	if zone != "" && s.Zone.Name != zone {
		return nil, failure.New("InvalidParameterValue",
			"The availability zone %s does not match the availability zone %s of the subnet %s.", zone, s.Zone.Name, id)
	}
	return s, nil
}

// checkOffered returns an error in any of these cases:
//
//   - The zone does not offer the instance type with the capacity type.
//   - The launch is for spot, and the account lacks the service-linked role for spot instances.
//   - The spot price is above the maximum price of the request.
func (l *Launches) checkOffered(now time.Time, req launchRequest, launch resolvedLaunch) error {
	if !launch.stock.OffersIn(launch.zone.Name) {
		code := "Unsupported"
		if req.fleet {
			code = "InvalidFleetConfiguration"
		}
		return failure.New(code, "Your requested instance type (%s) is not supported in your requested Availability Zone (%s). Please retry your request by not specifying an Availability Zone or choosing another one.", launch.offering.Type, launch.zone.Name)
	}
	if req.spot && l.region.Account.NoSpotRole {
		return failure.WithStatus(403, "AuthFailure.ServiceLinkedRoleCreationNotPermitted", "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.")
	}
	p, ok := l.region.world().Market(l.region.Name).price(now, launch.offering)
	if !ok {
		return failure.New("Unsupported", "The requested configuration is currently not supported. Please check the documentation for supported configurations.")
	}
	if req.spot && req.maxPrice > 0 && req.maxPrice < p {
		return failure.New("SpotMaxPriceTooLow", "Your Spot request price of %s is lower than the minimum required Spot request fulfillment price of %s.", req.maxPrice, p)
	}
	return nil
}

// resolveGroups returns the ids of the requested security groups, sorted. If none is requested, it returns the VPC's
// group with the name "default", if the VPC has one.
func (l *Launches) resolveGroups(d TemplateData, s *network.Subnet) ([]string, error) {
	ids := slices.Clone(d.GroupIDs)
	for _, i := range d.Interfaces {
		ids = append(ids, i.GroupIDs...)
	}
	for _, name := range d.GroupNames {
		i := slices.IndexFunc(l.region.Network.SecurityGroups(),
			func(g *network.SecurityGroup) bool { return g.Name == name && g.VPCID == s.VPCID })
		if i < 0 {
			return nil, failure.New("InvalidGroup.NotFound", "The security group '%s' does not exist in VPC '%s'", name, s.VPCID)
		}
		ids = append(ids, l.region.Network.SecurityGroups()[i].ID)
	}
	if len(ids) == 0 {
		if i := slices.IndexFunc(l.region.Network.SecurityGroups(),
			func(g *network.SecurityGroup) bool { return g.Name == "default" && g.VPCID == s.VPCID }); i >= 0 {
			ids = append(ids, l.region.Network.SecurityGroups()[i].ID)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for _, id := range ids {
		g := l.region.Network.SecurityGroup(id)
		if g == nil {
			return nil, failure.New("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
		}
		if g.VPCID != s.VPCID {
			return nil, failure.New("InvalidParameter", "Security group %s and subnet %s belong to different networks.", id, s.ID)
		}
	}
	return ids, nil
}

// resolveProfile returns the instance profile; nil if none is requested. EC2 does not know a profile that is younger
// than Faults.ProfileLag.
func (l *Launches) resolveProfile(now time.Time, ref *ProfileRef) (*identity.Profile, error) {
	if ref == nil || ref.ARN == "" && ref.Name == "" {
		return nil, nil
	}
	name, given, field, noun := ref.Name, ref.Name, "name", "name" // all except name are for the message
	if name == "" {
		name, given, field, noun = identity.RoleName(ref.ARN), ref.ARN, "arn", "ARN"
	}
	p, err := l.region.Account.Profile(name)
	isAnother := ref.ARN != "" && p.ARN != ref.ARN
	isTooNew := now.Before(p.CreatedAt.Add(l.region.world().Faults.ProfileLag))
	if err != nil || isAnother || isTooNew {
		return nil, failure.New("InvalidParameterValue",
			"Value (%s) for parameter iamInstanceProfile.%s is invalid. Invalid IAM Instance Profile %s", given, field, noun)
	}
	if p.Role == "" {
		return nil, failure.New("InvalidParameterValue", "IAM Instance Profile \"%s\" has no associated IAM Roles", p.ARN)
	}
	return &p, nil
}
