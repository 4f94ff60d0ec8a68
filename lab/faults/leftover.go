package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// nameOf names the objects of a scene. It says nothing of the fault: what doctor prints must be found, not read from a name.
func nameOf(played int) string { return fmt.Sprintf("team-%d", played) }

// clean removes from AWS what was created for the scene alone, by the fault or by its fix: the access entry and the role, instance
// profiles, images, and policies. The scene's objects, instances and the controller's own profiles must be gone.
func (s *Scene) clean(context.Context) error {
	err := s.World(func(w *world.World, _ time.Time) error {
		region, account := s.Lab.Estate.Region, w.Account(s.Lab.Account)
		var errs []error
		if c, err := region.EKS.Cluster(s.Lab.Cluster); err == nil {
			for _, e := range c.AccessEntries() {
				if e.Principal == s.arn() {
					errs = append(errs, region.EKS.DeleteAccessEntry(s.Lab.Cluster, e.Principal))
				}
			}
		}
		for _, p := range account.Profiles("") {
			if p.Name == s.Name {
				if p.Role != "" {
					errs = append(errs, account.RemoveRoleFromProfile(p.Name, p.Role))
				}
				errs = append(errs, account.DeleteProfile(p.Name))
			}
		}
		if r, err := account.Role(s.Name); err == nil {
			for _, policy := range r.Policies {
				errs = append(errs, account.DetachPolicy(r.Name, policy))
			}
			errs = append(errs, account.DeleteRole(r.Name))
		}
		for _, i := range region.Images.All() {
			if i.OwnerID == s.Lab.Account && strings.HasSuffix(i.Name, "-"+s.Name) {
				region.Images.Deregister(i.ID)
			}
		}
		for _, id := range s.images {
			region.Images.Deregister(id)
		}
		if arn := "arn:" + account.Partition() + ":iam::" + s.Lab.Account + ":policy/freeze-" + s.Name; isThere(account, arn) {
			errs = append(errs, account.DeletePolicy(arn))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return fmt.Errorf("remove what is left of the fault in AWS: %w", err)
	}
	return s.Lab.Roles.RemoveNode(s.Name)
}

func isThere(account *world.Account, policy string) bool {
	_, err := account.Policy(policy)
	return err == nil
}
