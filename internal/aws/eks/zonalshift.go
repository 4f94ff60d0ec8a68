package eks

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	shifttypes "github.com/aws/aws-sdk-go-v2/service/arczonalshift/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// ZonalShifts is the client of Amazon Application Recovery Controller for one cluster. It is safe for concurrent use.
type ZonalShifts struct {
	client *arczonalshift.Client
	arn    string // ARN of the cluster
}

// Shift is a zonal shift that is in force for the cluster.
type Shift struct {
	ZoneID string    // "use1-az1"
	Until  time.Time // zero for an autoshift, whose end is not known
}

// NewZonalShifts returns the client for the EKS cluster with the ARN, in the region and account of cfg.
func NewZonalShifts(cfg aws.Config, arn string) *ZonalShifts {
	return &ZonalShifts{client: arczonalshift.NewFromConfig(awserr.ClientConfig(cfg)), arn: arn}
}

// Shifts returns the shifts that are in force at now, sorted by zone. Of several shifts of a zone it returns the one
// that ends last. Autoshifts and practice runs are included. The error is awserr.Misconfigured if zonal shift is not
// enabled for the cluster.
func (z *ZonalShifts) Shifts(ctx context.Context, now time.Time) ([]Shift, error) {
	const op = "GetManagedResource"
	out, err := z.client.GetManagedResource(ctx, &arczonalshift.GetManagedResourceInput{ResourceIdentifier: aws.String(z.arn)})
	err = awserr.Classify(op, err)
	if awserr.Is(err, awserr.Gone) {
		return nil, awserr.Misconfiguredf(op, "ZonalShiftNotEnabled", "zonal shift is not enabled for cluster %s: run "+
			"aws eks update-cluster-config --name NAME --zonal-shift-config enabled=true, or remove --enable-zonal-shift", z.arn)
	}
	if err != nil {
		return nil, err
	}
	var found []Shift
	for _, s := range out.ZonalShifts {
		until := aws.ToTime(s.ExpiryTime)
		if s.AppliedStatus == shifttypes.AppliedStatusApplied && now.Before(until) {
			found = append(found, Shift{aws.ToString(s.AwayFrom), until})
		}
	}
	for _, s := range out.Autoshifts {
		if s.AppliedStatus == shifttypes.AutoshiftAppliedStatusApplied {
			found = append(found, Shift{ZoneID: aws.ToString(s.AwayFrom)})
		}
	}
	// The latest end comes first, and CompactFunc keeps it.
	slices.SortFunc(found, func(a, b Shift) int { return cmp.Or(cmp.Compare(a.ZoneID, b.ZoneID), -compareEnds(a, b)) })
	return slices.CompactFunc(found, func(a, b Shift) bool { return a.ZoneID == b.ZoneID }), nil
}

// compareEnds compares the ends of two shifts. A shift without an end is later than any other.
func compareEnds(a, b Shift) int {
	switch {
	case a.Until.IsZero() && b.Until.IsZero():
		return 0
	case a.Until.IsZero():
		return 1
	case b.Until.IsZero():
		return -1
	}
	return a.Until.Compare(b.Until)
}
