package gc

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/iam"
)

// ProfileStore reads and deletes the instance profiles of this cluster.
type ProfileStore interface {
	Profiles(ctx context.Context) ([]iam.Profile, error)
	DeleteProfile(ctx context.Context, name string) error
}

// Instance profiles are swept only every ProfileSweepInterval, because a sweep needs one call per profile. Profiles younger
// than ProfileGrace stay, because a class may be about to record its new profile.
const (
	ProfileSweepInterval = 30 * time.Minute
	ProfileGrace         = 10 * time.Minute
)

// sweepProfiles deletes the instance profiles that no class, claim or instance uses. These are profiles of a class's
// earlier role, and profiles of classes that were deleted without our finalizer.
func (s *Collector) sweepProfiles(ctx context.Context, now time.Time, instances []ec2.Instance, claims []*karpv1.NodeClaim) error {
	if s.Profiles == nil || now.Sub(s.profilesSwept) < ProfileSweepInterval {
		return nil
	}
	s.profilesSwept = now // set before the calls: a failed sweep is repeated after ProfileSweepInterval, not in the next pass
	// Profiles are listed before classes. So a profile that a class creates between the two lists is not deleted.
	all, err := s.Profiles.Profiles(ctx)
	if err != nil {
		return fmt.Errorf("sweep instance profiles: %w", err)
	}
	var classes awsv1.EC2NodeClassList
	if err := s.Cache.List(ctx, &classes, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	used := usedProfiles(classes.Items, instances, claims)
	for _, p := range all {
		if used[p.Name] || p.Created.IsZero() || now.Sub(p.Created) < ProfileGrace {
			continue
		}
		if err := s.Profiles.DeleteProfile(ctx, p.Name); err != nil {
			return fmt.Errorf("sweep instance profiles: %w", err)
		}
		s.Metrics.Swept.WithLabelValues("instance_profile").Inc()
		s.Log.Info("deleted unused instance profile", "instanceProfile", p.Name, "role", p.Role, "created", p.Created)
	}
	return nil
}

func usedProfiles(classes []awsv1.EC2NodeClass, instances []ec2.Instance, claims []*karpv1.NodeClaim) map[string]bool {
	used := map[string]bool{}
	for _, c := range classes {
		used[c.Status.InstanceProfile] = true
		if c.Spec.InstanceProfile != nil {
			used[*c.Spec.InstanceProfile] = true
		}
	}
	for _, c := range claims {
		used[c.Annotations[awsv1.AnnotationInstanceProfile]] = true
	}
	for _, i := range instances {
		if !i.State.Ended() {
			used[i.Profile[strings.LastIndexByte(i.Profile, '/')+1:]] = true // the name at the end of the ARN
		}
	}
	return used
}
