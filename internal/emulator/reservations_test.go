package emulator_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// TestCapacityReservations lists capacity reservations with the SDK, page by page and with filters, and launches an
// instance into one.
func TestCapacityReservations(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	var created []*world.CapacityReservation
	end := time.Now().Add(24 * time.Hour).Truncate(time.Second)
	b.server.Do(func(_ *world.World, now time.Time) {
		zone := b.estate.PrivateSubnets[0].Zone
		for _, r := range []world.CapacityReservation{
			{Type: "m5.large", Zone: zone, Total: 2, Tags: map[string]string{"team": "a"}},
			{Type: "m5.large", Zone: zone, Total: 1, Kind: "capacity-block", Criteria: "targeted", End: end},
		} {
			c, err := b.estate.Region.CapacityReservations.Create(now, r)
			if err != nil {
				t.Fatal(err)
			}
			created = append(created, c)
		}
	})
	pages := ec2.NewDescribeCapacityReservationsPaginator(b.ec2, &ec2.DescribeCapacityReservationsInput{MaxResults: aws.Int32(1)})
	var all []types.CapacityReservation
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.CapacityReservations...)
	}
	if len(all) != 2 {
		t.Fatalf("%d reservations, want 2", len(all))
	}
	if r := all[1]; *r.CapacityReservationId != created[1].ID ||
		r.ReservationType != types.CapacityReservationTypeCapacityBlock || !r.EndDate.Equal(end) ||
		r.EndDateType != types.EndDateTypeLimited || r.InstanceMatchCriteria != types.InstanceMatchCriteriaTargeted ||
		*r.OwnerId != "111122223333" {
		t.Errorf("the second reservation is %+v, want the created capacity block", r)
	}

	name := b.createTemplate(t, "joiner-a", types.RequestLaunchTemplateData{
		CapacityReservationSpecification: &types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: types.CapacityReservationPreferenceCapacityReservationsOnly,
			CapacityReservationTarget:     &types.CapacityReservationTarget{CapacityReservationId: aws.String(created[0].ID)},
		}})
	out, err := b.ec2.CreateFleet(t.Context(), fleet(name, 1, b.override("m5.large", 0)))
	if err != nil || len(out.Instances) != 1 {
		t.Fatalf("launch into the reservation: %+v, %v, want one instance", out, err)
	}
	i := b.instances(t.Context(), t, out.Instances[0].InstanceIds...)[0]
	if s := i.CapacityReservationSpecification; aws.ToString(i.CapacityReservationId) != created[0].ID || s == nil ||
		s.CapacityReservationPreference != types.CapacityReservationPreferenceCapacityReservationsOnly ||
		*s.CapacityReservationTarget.CapacityReservationId != created[0].ID {
		t.Errorf("the instance is in %v, with the launch parameters %+v, want the first reservation", i.CapacityReservationId, s)
	}
	filtered, err := b.ec2.DescribeCapacityReservations(t.Context(), &ec2.DescribeCapacityReservationsInput{Filters: []types.Filter{
		{Name: aws.String("tag:team"), Values: []string{"a"}}, {Name: aws.String("state"), Values: []string{"active"}},
		{Name: aws.String("instance-match-criteria"), Values: []string{"open"}},
	}})
	if err != nil || len(filtered.CapacityReservations) != 1 || *filtered.CapacityReservations[0].AvailableInstanceCount != 1 ||
		*filtered.CapacityReservations[0].TotalInstanceCount != 2 {
		t.Errorf("filtered reservations: %+v, %v, want the first, with 1 of 2 available", filtered, err)
	}

	block := fleet(name, 1, b.override("m5.large", 0))
	block.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeCapacityBlock
	out, err = b.ec2.CreateFleet(t.Context(), block)
	if err != nil || len(out.Instances) != 0 || len(out.Errors) != 1 || *out.Errors[0].ErrorCode != "InvalidFleetConfiguration" {
		t.Errorf("fleet of a capacity block from an on-demand template: %+v, %v, want InvalidFleetConfiguration", out, err)
	}
	_, err = b.ec2.DescribeCapacityReservations(t.Context(),
		&ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{"cr-0123456789abcdef0"}})
	if code(t, err) != "InvalidCapacityReservationId.NotFound" {
		t.Errorf("an unknown id: %v, want InvalidCapacityReservationId.NotFound", err)
	}
}
