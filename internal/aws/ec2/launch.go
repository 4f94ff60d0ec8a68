package ec2

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// MaxChoices is the maximum number of choices in one launch: Karpenter's maximum for instance types.
const MaxChoices = 60

// LaunchRequest is the request for one instance of one NodeClaim.
type LaunchRequest struct {
	Claim     string // name of the NodeClaim
	ClaimUID  string // UID of the NodeClaim; unlike a name, a UID is never reused
	Attempt   int    // counts the attempts for the claim; Launch documents when to raise it
	NodePool  string // name of the NodePool
	NodeClass string // name of the EC2NodeClass

	// CapacityType is catalog.OnDemand, Spot or Reserved: a fleet has one capacity type. For Reserved, the blueprint of
	// each group names a reservation. All have the same market type, and differ in instance type or zone.
	CapacityType string
	// Groups are the choices, grouped by blueprint: at most MaxChoices choices in total.
	Groups []Group

	Tags    map[string]string // the user's tags; none may have a key for which ReservedTag is true
	Context string            // Context of the EC2 fleet; usually empty
	// ByPrice orders the choices strictly by Price, for prices that the user has set. If false, EC2 takes the cheapest
	// on-demand choice, or a cheap spot choice with a low risk of interruption.
	ByPrice bool
}

// Group is a set of choices that share a launch template.
type Group struct {
	Blueprint Blueprint // content of the launch template
	Choices   []Choice  // overrides of the fleet request
}

// Choice is one instance type and subnet in which EC2 may launch the instance.
type Choice struct {
	InstanceType string        // "m5.large"
	Zone         string        // "us-east-1a"
	SubnetID     string        // a subnet in the zone
	Price        catalog.Price // per hour
}

// Launch is the result of a LaunchRequest.
type Launch struct {
	// Instance is the launched instance. Fields that neither the request nor CreateFleet's response has are zero.
	Instance Instance
	// Shortages are the shortages that EC2 reported, possibly together with an instance. The caller passes them to
	// Shortages.Note.
	Shortages []Shortage
	// Spent is true if EC2 completed this attempt without an instance: only a higher Attempt can launch an instance.
	// Spent is set only together with an error.
	Spent bool
}

// Launch launches one instance. A second call with the same claim, attempt and choices returns the same instance, so a
// caller that has restarted can repeat the call. Errors are of package awserr. Two kinds have a special meaning:
//
//   - Shortage: EC2 has no capacity for any of the choices; see Launch.Shortages.
//   - InDoubt: this attempt was made before with other choices. Call LaunchedFor. If LaunchedFor still finds no
//     instance a minute after the first call, raise Attempt.
//
// Raise Attempt only in this InDoubt case, or if Launch.Spent is set. After any other error EC2 may have launched the
// instance. A call with the same Attempt then returns that instance.
func (d *Client) Launch(ctx context.Context, r LaunchRequest) (Launch, error) {
	if err := r.check(); err != nil {
		return Launch{}, err
	}
	launch, err := d.launch(ctx, r)
	if e := awserr.Of(err); e != nil && e.Reason == "LaunchTemplateNotFound" {
		// The launch template was deleted, or is not visible yet. The second call has the same client token, so
		// a later call with this token returns the instance that the second call launches.
		d.forgetTemplates(r)
		return d.launch(ctx, r)
	}
	return launch, err
}

func (r LaunchRequest) check() error {
	const op = "CreateFleet"
	choices := 0
	for _, g := range r.Groups {
		choices += len(g.Choices)
	}
	switch {
	case r.Claim == "" || r.ClaimUID == "":
		return awserr.Misconfiguredf(op, "NoClaim", "the launch names no NodeClaim")
	case choices == 0:
		return awserr.Misconfiguredf(op, "NoChoices", "no instance type and subnet to choose from for NodeClaim %s", r.Claim)
	case choices > MaxChoices:
		return awserr.Misconfiguredf(op, "TooManyChoices", "%d choices for NodeClaim %s, more than %d", choices, r.Claim, MaxChoices)
	case r.CapacityType != catalog.OnDemand && r.CapacityType != catalog.Spot && r.CapacityType != catalog.Reserved:
		return awserr.Misconfiguredf(op, "UnknownCapacityType",
			"capacity type %q of NodeClaim %s is neither on-demand nor spot nor reserved", r.CapacityType, r.Claim)
	}
	if err := r.checkReserved(); err != nil {
		return err
	}
	for key := range r.Tags {
		if ReservedTag(key) {
			return awserr.Misconfiguredf(op, "TagValidationFailed",
				"tag %q of EC2NodeClass %s is one that Joiner sets itself: remove it from spec.tags", key, r.NodeClass)
		}
	}
	return nil
}

// token returns the client token, which makes repeated calls idempotent. EC2 accepts up to 64 ASCII characters.
func (r LaunchRequest) token() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", r.ClaimUID, r.Attempt))
	return hex.EncodeToString(sum[:])[:48] // 192 bits
}

// forgetTemplates makes the next launch create the launch templates of the request again.
func (d *Client) forgetTemplates(r LaunchRequest) {
	for _, g := range r.Groups {
		if name, err := d.templateName(r.blueprint(g), d.sharedTags(r)); err == nil {
			d.templates.forget(name, nil)
		}
	}
}

// sharedTags returns the tags of a resource that several claims of the NodePool share, such as a launch template.
func (d *Client) sharedTags(r LaunchRequest) map[string]string {
	return d.cluster.Tags(r.Tags, r.NodePool, r.NodeClass, "")
}

func (r LaunchRequest) blueprint(g Group) Blueprint {
	g.Blueprint.CapacityType = r.CapacityType
	return g.Blueprint
}

func (d *Client) launch(ctx context.Context, r LaunchRequest) (Launch, error) {
	in, err := d.fleetInput(ctx, r)
	if err != nil {
		return Launch{}, fmt.Errorf("launch for NodeClaim %s: %w", r.Claim, err)
	}
	out, err := d.writes.CreateFleet(ctx, in)
	if err != nil {
		return Launch{}, fmt.Errorf("launch for NodeClaim %s: %w", r.Claim, awserr.Classify("CreateFleet", err))
	}
	launch, err := d.launchOf(r, out)
	if err != nil {
		return launch, fmt.Errorf("launch for NodeClaim %s: %w", r.Claim, err)
	}
	return launch, nil
}

// fleetInput returns the input of CreateFleet. It creates the launch templates that the launch needs.
func (d *Client) fleetInput(ctx context.Context, r LaunchRequest) (*awsec2.CreateFleetInput, error) {
	tags := toTags(d.cluster.Tags(r.Tags, r.NodePool, r.NodeClass, r.Claim))
	in := &awsec2.CreateFleetInput{
		Type:        awstypes.FleetTypeInstant,
		ClientToken: aws.String(r.token()),
		Context:     textOrNil(r.Context),
		TargetCapacitySpecification: &awstypes.TargetCapacitySpecificationRequest{
			TotalTargetCapacity:       aws.Int32(1),
			DefaultTargetCapacityType: r.targetCapacityType(),
		},
		TagSpecifications: []awstypes.TagSpecification{
			{ResourceType: awstypes.ResourceTypeInstance, Tags: tags},
			{ResourceType: awstypes.ResourceTypeVolume, Tags: tags},
			{ResourceType: awstypes.ResourceTypeFleet, Tags: tags},
		},
	}
	r.setStrategy(in)
	r.Groups = slices.DeleteFunc(slices.Clone(r.Groups), func(g Group) bool { return len(g.Choices) == 0 })
	names, err := d.ensureTemplates(ctx, r)
	if err != nil {
		return nil, err
	}
	for i, g := range r.Groups {
		in.LaunchTemplateConfigs = append(in.LaunchTemplateConfigs, awstypes.FleetLaunchTemplateConfigRequest{
			// A template's name is a hash of its content, so its content never changes and its only version is 1.
			LaunchTemplateSpecification: &awstypes.FleetLaunchTemplateSpecificationRequest{
				LaunchTemplateName: aws.String(names[i]), Version: aws.String("1")},
			Overrides: overrides(g),
		})
	}
	return in, nil
}

// ensureTemplates returns the name of each group's launch template. It creates missing templates concurrently, because
// a first launch needs many, and EC2 is slow to create each.
func (d *Client) ensureTemplates(ctx context.Context, r LaunchRequest) ([]string, error) {
	names, errs := make([]string, len(r.Groups)), make([]error, len(r.Groups))
	var wait sync.WaitGroup
	for i, g := range r.Groups {
		wait.Go(func() { names[i], errs[i] = d.ensureTemplate(ctx, r.blueprint(g), d.sharedTags(r)) })
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err // usually all templates fail for the same reason
		}
	}
	return names, nil
}

// marketType returns EC2's market type for the reservations of the launch, which is the same for all groups. It is
// empty for a launch without a reservation, and for a launch into an ordinary reservation.
func (r LaunchRequest) marketType() awstypes.MarketType {
	return r.Groups[0].Blueprint.Reservation.marketType()
}

// targetCapacityType returns the capacity type in CreateFleet's terms, where an instance in an ordinary reservation is
// an on-demand instance.
func (r LaunchRequest) targetCapacityType() awstypes.DefaultTargetCapacityType {
	switch r.marketType() {
	case awstypes.MarketTypeCapacityBlock:
		return awstypes.DefaultTargetCapacityTypeCapacityBlock
	case awstypes.MarketTypeInterruptibleCapacityReservation:
		return awstypes.DefaultTargetCapacityTypeReservedCapacity
	case awstypes.MarketTypeSpot, awstypes.MarketTypeOnDemand:
	}
	if r.CapacityType == catalog.Spot {
		return awstypes.DefaultTargetCapacityTypeSpot
	}
	return awstypes.DefaultTargetCapacityTypeOnDemand
}

func (r LaunchRequest) setStrategy(in *awsec2.CreateFleetInput) {
	switch {
	case r.marketType() == awstypes.MarketTypeCapacityBlock: // one launch uses only one block, so EC2 has no choice
	case r.marketType() == awstypes.MarketTypeInterruptibleCapacityReservation:
		in.ReservedCapacityOptions = &awstypes.ReservedCapacityOptionsRequest{
			ReservationTypes: []awstypes.FleetReservationType{awstypes.FleetReservationTypeInterruptibleCapacityReservation}}
	case r.CapacityType == catalog.Spot && r.ByPrice:
		in.SpotOptions = &awstypes.SpotOptionsRequest{AllocationStrategy: awstypes.SpotAllocationStrategyCapacityOptimizedPrioritized}
	case r.CapacityType == catalog.Spot:
		in.SpotOptions = &awstypes.SpotOptionsRequest{AllocationStrategy: awstypes.SpotAllocationStrategyPriceCapacityOptimized}
	case r.ByPrice:
		in.OnDemandOptions = &awstypes.OnDemandOptionsRequest{AllocationStrategy: awstypes.FleetOnDemandAllocationStrategyPrioritized}
	default:
		in.OnDemandOptions = &awstypes.OnDemandOptionsRequest{AllocationStrategy: awstypes.FleetOnDemandAllocationStrategyLowestPrice}
	}
}

func overrides(g Group) []awstypes.FleetLaunchTemplateOverridesRequest {
	out := make([]awstypes.FleetLaunchTemplateOverridesRequest, 0, len(g.Choices))
	for _, c := range g.Choices {
		out = append(out, awstypes.FleetLaunchTemplateOverridesRequest{
			InstanceType:     awstypes.InstanceType(c.InstanceType),
			SubnetId:         textOrNil(c.SubnetID),
			AvailabilityZone: textOrNil(c.Zone),
			ImageId:          textOrNil(g.Blueprint.ImageID),
			Priority:         aws.Float64(c.Price.Dollars()), // EC2 prefers lower values
		})
	}
	return out
}

// launchOf converts the output of CreateFleet. It returns an error if EC2 launched no instance.
func (d *Client) launchOf(r LaunchRequest, out *awsec2.CreateFleetOutput) (Launch, error) {
	var launch Launch
	var errs []*awserr.Error
	for _, e := range out.Errors {
		classified := r.reclassify(awserr.FromCode("CreateFleet", aws.ToString(e.ErrorCode), aws.ToString(e.ErrorMessage)))
		errs = append(errs, classified)
		launch.Shortages = append(launch.Shortages, r.addPlacementGroup(r.shortagesIn(e, classified))...)
	}
	for _, i := range out.Instances {
		if len(i.InstanceIds) == 0 {
			continue
		}
		launch.Instance = d.launchedInstance(r, i)
		return launch, nil
	}
	launch.Spent = true
	specific := awserr.MostSpecific(errs...)
	if specific == nil {
		return launch, &awserr.Error{Op: "CreateFleet", Kind: awserr.Transient, Reason: "EmptyAnswer",
			Message: "EC2 returned neither an instance nor an error, fleet " + aws.ToString(out.FleetId)}
	}
	if specific.Kind == awserr.Shortage {
		return launch, r.shortageError(errs, launch.Shortages)
	}
	return launch, specific
}

// shortageError returns one error for errs, of which the first has the kind Shortage. It is the first error with a
// message that lists at most five choices that have no capacity.
func (r LaunchRequest) shortageError(errs []*awserr.Error, shortages []Shortage) *awserr.Error {
	first := errs[0]
	var choices []string
	for _, s := range shortages {
		choices = append(choices, s.InstanceType+" in "+s.Zone)
	}
	slices.Sort(choices)
	choices = slices.Compact(choices)
	const shown = 5
	more := ""
	if len(choices) > shown {
		more, choices = fmt.Sprintf(" and %d more", len(choices)-shown), choices[:shown]
	}
	return &awserr.Error{Op: "CreateFleet", Kind: awserr.Shortage, Reason: first.Reason, Code: first.Code, Hint: first.Hint,
		Message: fmt.Sprintf("no %s capacity for %s%s: %s", r.CapacityType, strings.Join(choices, ", "), more, first.Message)}
}

func (d *Client) launchedInstance(r LaunchRequest, i awstypes.CreateFleetInstance) (out Instance) {
	out = Instance{
		ID:           i.InstanceIds[0],
		Type:         string(i.InstanceType),
		Zone:         aws.ToString(i.AvailabilityZone),
		ZoneID:       aws.ToString(i.AvailabilityZoneId),
		SubnetID:     aws.ToString(i.SubnetId),
		CapacityType: r.CapacityType,
		State:        Pending,
		Tags:         d.cluster.Tags(r.Tags, r.NodePool, r.NodeClass, r.Claim),
		Owner:        Ours,
	}
	defer func() { // deferred, because the code below may still set the type and zone
		b := r.blueprintOf(out.Type, out.Zone)
		out.Reservation, out.Placement, out.Tenancy = b.Reservation.catalogReservation(), b.Placement, or(b.Tenancy, catalog.TenancyDefault)
	}()
	if i.LaunchTemplateAndOverrides == nil || i.LaunchTemplateAndOverrides.Overrides == nil {
		return out
	}
	o := i.LaunchTemplateAndOverrides.Overrides
	out.ImageID = aws.ToString(o.ImageId)
	out.Zone = or(out.Zone, aws.ToString(o.AvailabilityZone))
	out.SubnetID = or(out.SubnetID, aws.ToString(o.SubnetId))
	out.Type = or(out.Type, string(o.InstanceType))
	return out
}

// or returns a, or b if a is empty.
func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
