package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// sceneName returns the name of the objects of the scene with this number. The name does not reveal the fault, so that
// doctor cannot derive the cause from the name.
func sceneName(number int) string { return fmt.Sprintf("team-%d", number) }

// deleteAWSResources deletes the AWS resources that the fault or its fix created for the scene: the access entry, the
// role, instance profiles, images, and policies. The caller must first delete the scene's objects, and wait until the
// instances and the controller's instance profiles are deleted.
func (s *Scene) deleteAWSResources(context.Context) error {
	err := s.ChangeAWS(func(w *world.World, _ time.Time) error {
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
		if arn := "arn:" + account.Partition() + ":iam::" + s.Lab.Account + ":policy/freeze-" + s.Name; hasPolicy(account, arn) {
			errs = append(errs, account.DeletePolicy(arn))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return fmt.Errorf("delete the fault's resources in AWS: %w", err)
	}
	return s.Lab.Roles.RevokeNodeRole(s.Name)
}

func hasPolicy(account *world.Account, policy string) bool {
	_, err := account.Policy(policy)
	return err == nil
}
