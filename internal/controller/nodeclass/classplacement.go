package nodeclass

import (
	"context"
	"slices"
	"time"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
)

// resolvePlacement reads from EC2 the placement group that the class selects. It does nothing if the class selects
// none.
func (n *Reconciler) resolvePlacement(ctx context.Context, class *awsv1.EC2NodeClass, f *resolvedClass) {
	term, selects := offerings.PlacementTerm(class)
	if !selects {
		return
	}
	placements := &n.Offers.Market.Placements
	f.placement, f.placementErr = n.Placements.PlacementGroup(ctx, term)
	if f.placementErr != nil {
		f.placement, _ = placements.Of(class) // the last known group; it decides which reservations are usable
	} else if placements.Update(time.Now(), class, f.placement) {
		n.Batch.Ask(string(class.UID)) // pods may be waiting for room in the group
	}
}

func (f resolvedClass) writePlacement(c karpv1.ConditionSet, now time.Time) {
	const condition = awsv1.ConditionPlacementGroupReady
	switch e := awserr.Of(f.placementErr); {
	case e == nil:
		c.SetTrue(now, condition)
	case e.Kind == awserr.Misconfigured || e.Kind == awserr.Gone:
		c.SetFalse(now, condition, awsv1.ReasonPlacementGroupNotFound, awserr.StableText(f.placementErr))
	case !c.IsTrue(condition):
		c.SetFalse(now, condition, awsv1.ReasonPlacementGroupResolutionFailed, awserr.StableText(f.placementErr))
	default:
		c.SetTrue(now, condition) // an earlier success stays valid; the call is retried, and the error is logged
	}
}

// usable removes from found the reservations that launches of the class cannot use. Usable are those in the placement
// group of the class, or in no placement group if the class selects none. Instances in spread and partition groups
// never run in reservations.
func (f resolvedClass) usable(found []ec2.Reservation) []ec2.Reservation {
	return slices.DeleteFunc(found, func(r ec2.Reservation) bool { return r.PlacementGroup != f.placement.ARN })
}
