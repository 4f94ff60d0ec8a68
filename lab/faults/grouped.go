package faults

import (
	"context"
	"slices"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

func groupFaults() []Fault {
	return []Fault{
		{
			Name:             "group-added",
			What:             "a user adds a security group to an instance, which then counts as drifted",
			Check:            "ID-8",
			Cause:            "which it does not select now",
			ExpectSuspicious: true, NeedsInstance: true, Break: forbidDriftReplacement, AfterCreate: addSecurityGroup},
	}
}

// forbidDriftReplacement sets a disruption budget that prevents Joiner from replacing the scene's drifted nodes.
func forbidDriftReplacement(_ context.Context, s *Scene) error {
	s.Pool.Spec.Disruption.Budgets = append(s.Pool.Spec.Disruption.Budgets,
		karpv1.Budget{Nodes: "0", Reasons: []karpv1.DisruptionReason{karpv1.DisruptionDrifted}})
	return nil
}

// addSecurityGroup adds a security group to the scene's first instance, as firewall managers do.
func addSecurityGroup(ctx context.Context, s *Scene) error {
	return s.until(ctx, time.Minute, "the first instance to run", func(context.Context) (bool, error) {
		for _, i := range s.Instances() {
			if i.State == world.Running {
				return true, s.ChangeAWS(func(w *world.World, now time.Time) error {
					g, err := s.Lab.Estate.Region.Network.CreateSecurityGroup(s.Lab.Estate.VPC.ID, "firewall-manager-"+s.Name,
						"common to all instances", nil)
					if err == nil {
						w.SetSecurityGroups(now, i.ID, append(slices.Clone(i.SecurityGroupIDs), g.ID)...)
					}
					return err
				})
			}
		}
		return false, nil
	})
}
