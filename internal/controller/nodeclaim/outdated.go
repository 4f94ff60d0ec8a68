package nodeclaim

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/diagnoser"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// An edit of a NodePool or its class makes the pool's claims outdated: the claims without a Node are replaced. After a
// first edit they are replaced without a pause. If the same pool is edited again, the next replacements wait until
// editPause has passed. The pause doubles with each edit up to maxEditPause, until an instance of the pool joins.
const (
	editPause    = 30 * time.Second
	maxEditPause = 10 * time.Minute
)

// outdatedAt returns when to replace a claim whose instance has no Node yet; zero if it is not replaced. The claim is
// replaced in two cases:
//   - A launch from its NodePool and EC2NodeClass as they are now would differ. If no cause is known that keeps the
//     instance from joining, the claim is kept until JoinGrace after the launch. So an edit does not terminate an
//     instance that is about to join.
//   - The known cause that kept the instance from joining is gone, and the instance has not joined within CureGrace.
func (c *Reconciler) outdatedAt(ctx context.Context, claim *karpv1.NodeClaim, launchedAt, now time.Time) (time.Time, error) {
	pool, class := &karpv1.NodePool{}, &awsv1.EC2NodeClass{}
	err := c.Cache.Get(ctx, client.ObjectKey{Name: claim.Labels[karpv1.LabelNodePool]}, pool)
	if err == nil {
		err = c.Cache.Get(ctx, client.ObjectKey{Name: claim.Spec.NodeClassRef.Name}, class)
	}
	if apierrors.IsNotFound(err) {
		return time.Time{}, nil // no replacement could be launched
	}
	if err != nil {
		return time.Time{}, err
	}
	if !isReadyNow(class) || pool.DeletionTimestamp != nil {
		return time.Time{}, nil
	}
	trigger, differs, err := launchOf(claim, pool, class, c.Authority)
	if err != nil {
		return time.Time{}, err
	}
	fixedAt, isCauseKnown := c.Diagnoses.FixedAt(claim)
	var at time.Time
	switch {
	case differs && isCauseKnown:
		at = now
	case differs:
		at = launchedAt.Add(lifecycle.JoinGrace)
	case !fixedAt.IsZero():
		at, trigger = fixedAt.Add(lifecycle.CureGrace), "cured at "+fixedAt.Format(time.RFC3339Nano)
	default:
		return time.Time{}, nil
	}
	until, _, lastTrigger := c.Edits.Held(now, pool.Name)
	if !until.IsZero() && lastTrigger != trigger {
		return latest(at, until), nil // another edit, before the pause has ended
	}
	if !at.After(now) && until.IsZero() {
		c.Edits.FailFor(now, pool.Name, trigger, editPause, maxEditPause)
	}
	return at, nil
}

func outdatedText(diagnoses *diagnoser.Diagnoser, claim *karpv1.NodeClaim) string {
	out := "The instance " + claim.Status.ProviderID + " has not joined the cluster, and "
	if fixedAt, _ := diagnoses.FixedAt(claim); !fixedAt.IsZero() {
		return out + "the cause has been fixed since " + fixedAt.UTC().Format(time.RFC3339) + ": the instance is replaced"
	}
	return out + "its NodePool or EC2NodeClass has changed since its launch: the instance is replaced at once"
}

func isReadyNow(class *awsv1.EC2NodeClass) bool {
	ready, ok := class.StatusConditions().Find(karpv1.ConditionReady)
	return ok && ready.Status == "True" && ready.ObservedGeneration == class.Generation && class.DeletionTimestamp == nil
}

// launchOf returns a text that identifies a launch from pool and class as they are now, and whether that launch would
// differ from the claim's. Hashes of another hash version are ignored. authority is Reconciler.Authority.
func launchOf(claim *karpv1.NodeClaim, pool *karpv1.NodePool, class *awsv1.EC2NodeClass,
	authority string) (launch string, differs bool, err error) {
	presentPool, err := conversion.CurrentPoolFields(pool)
	if err != nil {
		return "", false, err
	}
	presentClass, err := conversion.CurrentClassFields(class, authority)
	if err != nil {
		return "", false, err
	}
	recordedPool, recordedClass := conversion.RecordedFields(claim, pool)
	isImageGone := claim.Status.ImageID != "" && len(class.Status.AMIs) > 0 &&
		!slices.ContainsFunc(class.Status.AMIs, func(i awsv1.AMI) bool { return i.ID == claim.Status.ImageID })
	launch = fmt.Sprint(presentPool.Stamp, presentClass.Stamp, class.Status.AMIs)
	return launch, recordedPool.Stamp.Differs(presentPool.Stamp) || recordedClass.Stamp.Differs(presentClass.Stamp) || isImageGone, nil
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
