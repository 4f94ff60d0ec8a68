package offerings

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
)

// ErrNoMarket is returned until EC2 has returned the instance types.
var ErrNoMarket = errors.New("the instance types are not known yet")

// RequestBuilder builds the launch request of a NodeClaim, and the facts about the launched instance for the claim's
// status. It also records unavailable offerings and the addresses that launches take. All methods are safe for
// concurrent use.
type RequestBuilder struct {
	Market    *Catalogs         // offerings of EC2
	Cluster   bootstrap.Cluster // facts about the cluster that user data contains
	Shortages *ec2.Shortages    // offerings for which EC2 reported insufficient capacity

	Taken   vpc.Addresses           // addresses that launches take and EC2 may not count yet
	Mu      sync.Mutex              // guards Subnets
	Subnets map[string][]vpc.Subnet // by class: its subnets with their free addresses, as last read
}

// Facts are the properties of a launched instance.
type Facts struct {
	Labels                requirements.Labels // labels of the node
	Capacity, Allocatable resources.Amounts   // resources of the node
	Price                 catalog.Price       // price per hour; 0 if not known

	Repriced bool // a NodeOverlay has set the price
	Overlaid bool // a NodeOverlay has set the capacity
}

// NoteSubnets records the subnets of a class as EC2 returned them.
func (o *RequestBuilder) NoteSubnets(class string, subnets []vpc.Subnet) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	if o.Subnets == nil {
		o.Subnets = map[string][]vpc.Subnet{}
	}
	o.Subnets[class] = subnets
}

// Request returns the launch request of the claim. attempt is the number of the launch attempt. The error has kind
// awserr.Shortage if all offerings that the claim accepts are unavailable now.
func (o *RequestBuilder) Request(claim *karpv1.NodeClaim, class *awsv1.EC2NodeClass, attempt int,
	now time.Time) (ec2.LaunchRequest, error) {
	const op = "choose offerings"
	market, ok := o.Market.Catalog(class, now)
	if !ok {
		return ec2.LaunchRequest{}, ErrNoMarket
	}
	pool := claim.Labels[karpv1.LabelNodePool]
	o.EndLaunch(claim) // release the addresses, offerings and zone of an earlier attempt
	subnets := o.subnetByZone(class, now)
	accepted, wrong := requirements.All(RequirementsOf(claim)...)
	if wrong != nil {
		return ec2.LaunchRequest{}, awserr.Misconfiguredf(op, "InvalidRequirement",
			"no node can satisfy the requirement on %s of NodeClaim %s", wrong.Key, claim.Name)
	}
	capacityType, picks := Choose(market.Of(pool), LaunchRequirements{
		Accepted: accepted, requests: conversion.Amounts(claim.Spec.Resources.Requests), variety: hasMinValues(claim), Subnets: subnets})
	picks = o.Market.Placements.Restrict(now, market.PlacementGroup, string(claim.UID), picks)
	picks = o.requestable(now, string(claim.UID), capacityType, market.PlacementGroup, picks)
	if len(picks) == 0 {
		return ec2.LaunchRequest{}, &awserr.Error{Op: op, Kind: awserr.Shortage, Reason: "InsufficientCapacity",
			Message: fmt.Sprintf("EC2 has no capacity for any offering that NodeClaim %s accepts: %s", claim.Name, typesText(accepted))}
	}
	groups, err := o.groups(claim, class, capacityType, picks, subnets)
	if err != nil {
		return ec2.LaunchRequest{}, awserr.Misconfiguredf(op, ReasonOf(err), "%s", err)
	}
	if err := o.setPlacement(claim, class, accepted, groups); err != nil {
		return ec2.LaunchRequest{}, err
	}
	request := ec2.LaunchRequest{
		Claim: claim.Name, ClaimUID: string(claim.UID), Attempt: attempt,
		NodePool: pool, NodeClass: class.Name,
		CapacityType: capacityType, Groups: groups, Tags: class.Spec.Tags,
		// EC2 knows only its own prices. If NodeOverlays set other prices, those prices are passed as priorities.
		ByPrice: slices.ContainsFunc(picks, func(p Pick) bool { return p.Offering.Repriced }),
	}
	// As in Karpenter, a launch with relaxed minValues ignores spec.context.
	if class.Spec.Context != nil && claim.Annotations[karpv1.AnnotationMinValuesRelaxed] != "true" {
		request.Context = *class.Spec.Context
	}
	o.Taken.Hold(now, request.ClaimUID, o.addressesBySubnet(picks, subnets))
	return request, nil
}

// requestable returns the picks that the launch may request. An offering that was unavailable recently is probed by
// only one launch at a time. launch is the UID of the claim, group the ID of the placement group.
func (o *RequestBuilder) requestable(now time.Time, launch, capacityType, group string, picks []Pick) []Pick {
	choices := make([]ec2.Choice, len(picks))
	for i, p := range picks {
		choices[i] = ec2.Choice{InstanceType: p.Type.Name, Zone: p.Offering.Zone}
	}
	var out []Pick
	for i, isAdmitted := range o.Shortages.Admit(now, launch, capacityType, group, choices) {
		if isAdmitted {
			out = append(out, picks[i])
		}
	}
	return out
}

// addressesBySubnet returns, by subnet ID, the minimum number of addresses that the launch takes if EC2 chooses that
// subnet. EC2 chooses only one of the subnets.
func (o *RequestBuilder) addressesBySubnet(picks []Pick, subnets map[string]vpc.Subnet) map[string]int {
	out := map[string]int{}
	for _, p := range picks {
		subnet, count := subnets[p.Offering.Zone].ID, o.addresses(p.Type)
		if least, ok := out[subnet]; !ok || count < least {
			out[subnet] = count
		}
	}
	return out
}

// addresses returns how many IPv4 addresses of its subnet a node takes: one for itself and one for each pod. In an IPv6
// cluster pods take no IPv4 addresses.
func (o *RequestBuilder) addresses(t catalog.Type) int {
	if o.Cluster.IPv6 {
		return 1
	}
	return 1 + int(t.Capacity.Pods)
}

// EndLaunch records that no launch for the claim is in progress any more. It releases the addresses, the probed
// offerings and the zone that were held for the launch.
func (o *RequestBuilder) EndLaunch(claim *karpv1.NodeClaim) {
	o.Taken.Release(string(claim.UID))
	o.Shortages.EndLaunch(string(claim.UID))
	o.Market.Placements.EndLaunch(string(claim.UID))
}

// HasUnavailable reports whether an offering that the claim accepts is marked as unavailable at now. If so, the next
// plan avoids that offering.
func (o *RequestBuilder) HasUnavailable(claim *karpv1.NodeClaim, class *awsv1.EC2NodeClass, now time.Time) bool {
	market, ok := o.Market.Catalog(class, now)
	accepted, wrong := requirements.All(RequirementsOf(claim)...)
	if !ok || wrong != nil {
		return false
	}
	required := LaunchRequirements{Accepted: accepted, Subnets: map[string]vpc.Subnet{}}
	for _, s := range class.Status.Subnets {
		required.Subnets[s.Zone] = vpc.Subnet{ID: s.ID}
	}
	for _, t := range required.namedTypes(market.Of(claim.Labels[karpv1.LabelNodePool])) {
		isUnavailable := func(o catalog.Offering) bool { return !o.Available && required.acceptsOffering(o) }
		if required.acceptsLabels(t.Labels) && slices.ContainsFunc(t.Offerings, isUnavailable) {
			return true
		}
	}
	return false
}

func typesText(accepted requirements.Requirements) string {
	names, ok := accepted[catalog.LabelInstanceType]
	if !ok || names.Complement {
		return "any instance type that fits its other requirements"
	}
	const shown = 5
	if n := len(names.Listed); n > shown {
		return strings.Join(names.Listed[:shown], ", ") + " and " + loop.Count(n-shown, "other type")
	}
	return strings.Join(names.Listed, ", ")
}

// groups returns the picks in groups, one for each launch template. The picks of a group have the same AMI, pod limit,
// number of EFA interfaces and capacity reservation.
func (o *RequestBuilder) groups(claim *karpv1.NodeClaim, class *awsv1.EC2NodeClass, capacityType string, picks []Pick,
	subnets map[string]vpc.Subnet) ([]ec2.Group, error) {
	type key struct {
		image       string
		pods, efa   int64
		reservation string
	}
	images := ImagesOf(class)
	index := map[key]int{}
	var out []ec2.Group
	for _, p := range picks {
		image, ok := ami.For(images, p.Type.Labels)
		if !ok {
			continue // cannot happen: the catalog has only types with an image
		}
		k := key{image.ID, p.Type.Capacity.Pods, efaOf(claim, class, p.Type), p.Offering.Reservation.ID}
		i, ok := index[k]
		if !ok {
			data, err := bootstrap.UserData(o.UserDataInput(claim, class, image, capacityType, k.pods))
			if err != nil {
				return nil, err
			}
			i = len(out)
			index[k] = i
			b := Blueprint(class, image.ID, capacityType, data, o.Cluster.IPv6)
			b.Reservation = ec2.ReservationRefOf(p.Offering.Reservation)
			if isDedicated(p.Type) {
				b.Tenancy = catalog.TenancyDedicated
			}
			if k.efa > 0 {
				b.Interfaces = efaInterfaces(k.efa)
			}
			out = append(out, ec2.Group{Blueprint: b})
		}
		out[i].Choices = append(out[i].Choices, ec2.Choice{
			InstanceType: p.Type.Name, Zone: p.Offering.Zone, SubnetID: subnets[p.Offering.Zone].ID, Price: p.Offering.Price,
		})
	}
	return out, nil
}

// subnetByZone returns, by zone, the subnet of the class with the most free addresses.
func (o *RequestBuilder) subnetByZone(class *awsv1.EC2NodeClass, now time.Time) map[string]vpc.Subnet {
	o.Mu.Lock()
	lastRead := o.Subnets[class.Name]
	o.Mu.Unlock()
	var usable []vpc.Subnet
	for _, s := range class.Status.Subnets {
		i := slices.IndexFunc(lastRead, func(n vpc.Subnet) bool { return n.ID == s.ID })
		if i >= 0 {
			usable = append(usable, lastRead[i])
			continue
		}
		usable = append(usable, vpc.Subnet{ID: s.ID, Zone: s.Zone, ZoneID: s.ZoneID})
	}
	return vpc.PerZone(o.Taken.Left(now, usable), func(s vpc.Subnet) bool { return o.Shortages.IsExhausted(now, s.ID) })
}

// NoteShortages records offerings for which EC2 reported insufficient capacity.
func (o *RequestBuilder) NoteShortages(now time.Time, shortages []ec2.Shortage) {
	o.Shortages.Note(now, shortages...)
}

// NoteLaunched records a launched instance, and reports whether its offering had been marked as unavailable.
func (o *RequestBuilder) NoteLaunched(now time.Time, i ec2.Instance, request *ec2.LaunchRequest) bool {
	wasUnavailable := o.Shortages.NoteLaunched(i)
	o.Shortages.EndLaunch(request.ClaimUID)
	o.Market.Placements.AddMember(now, i)
	o.Market.Placements.EndLaunch(request.ClaimUID)
	t, _ := o.Market.Type(request.NodeClass, request.NodePool, i.Type)
	o.Taken.Release(request.ClaimUID)
	o.Taken.Take(now, i.SubnetID, o.addresses(t))
	o.Market.reserved.AddLaunch(now, i.Reservation.ID)
	return wasUnavailable
}

// LaunchFacts returns the facts about an instance for the status of a claim of the pool.
func (o *RequestBuilder) LaunchFacts(class, pool string, i ec2.Instance) Facts {
	offering := catalog.Offering{Zone: i.Zone, ZoneID: i.ZoneID, CapacityType: i.CapacityType, Reservation: i.Reservation}
	f := Facts{Labels: requirements.Labels{catalog.LabelInstanceType: i.Type}}
	t, ok := o.Market.Type(class, pool, i.Type)
	if ok {
		f.Capacity, f.Allocatable, f.Overlaid = t.Capacity, t.Allocatable, t.Overlaid
		for key, value := range t.Labels {
			f.Labels[key] = value
		}
		for _, known := range t.Offerings {
			if known.Zone == i.Zone && known.CapacityType == i.CapacityType {
				f.Price, f.Repriced, offering.ZoneID = known.Price, known.Repriced, cmp.Or(offering.ZoneID, known.ZoneID)
			}
		}
	}
	for key, value := range offering.Labels() {
		f.Labels[key] = value
	}
	f.Labels[catalog.LabelTenancy] = cmp.Or(i.Tenancy, catalog.TenancyDefault)
	delete(f.Labels, catalog.LabelPlacementGroup) // the class may select another group than at the launch
	for key, value := range PlacementLabels(i.Placement) {
		f.Labels[key] = value
	}
	return f
}

// RequirementsOf returns the requirements of the NodeClaim, without minValues.
func RequirementsOf(claim *karpv1.NodeClaim) []requirements.Requirement {
	var out []requirements.Requirement
	for _, r := range claim.Spec.Requirements {
		out = append(out, requirements.Requirement{Key: r.Key, Operator: requirements.Operator(r.Operator), Values: r.Values})
	}
	return out
}

func hasMinValues(claim *karpv1.NodeClaim) bool {
	return slices.ContainsFunc(claim.Spec.Requirements, func(r karpv1.Requirement) bool { return r.MinValues != nil })
}
