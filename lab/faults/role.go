package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/lab"
)

// addRole gives the scene its own node role, which the cluster does not map.
func (s *Scene) addRole() error {
	s.Class.Spec.Role = s.Name
	return s.Lab.Roles.AddNodeRole(s.Name)
}

func (s *Scene) arn() string { return s.Lab.Roles.ARN(s.Name) }

// addEntry creates an access entry. During the call it sets an authentication mode that allows access entries. EKS
// keeps the entry after addEntry has restored the previous mode.
func (s *Scene) addEntry(roleARN, kind string) error {
	return s.ChangeAWS(func(_ *world.World, now time.Time) error {
		r := s.Lab.Estate.Region
		c, err := r.EKS.Cluster(s.Lab.Cluster)
		if err != nil {
			return err
		}
		mode := c.AuthMode
		defer func() { c.AuthMode = mode }()
		c.AuthMode = ekscluster.AuthBoth
		_, err = r.EKS.CreateAccessEntry(now, s.Lab.Cluster, ekscluster.AccessEntry{Principal: roleARN, Kind: kind})
		return err
	})
}

func (s *Scene) removeEntry(roleARN string) error {
	return s.ChangeAWS(func(_ *world.World, _ time.Time) error {
		return s.Lab.Estate.Region.EKS.DeleteAccessEntry(s.Lab.Cluster, roleARN)
	})
}

// addRow adds a row for the scene's role to aws-auth. replace has pairs of strings: in the row, the first string of a
// pair is replaced by the second.
func (s *Scene) addRow(ctx context.Context, replace ...string) error {
	row := "- rolearn: " + s.arn() + "\n  username: system:node:{{EC2PrivateDNSName}}\n  groups:\n  - system:bootstrappers\n  - system:nodes\n"
	return s.changeAuthMap(ctx, func(text string) string { return text + strings.NewReplacer(replace...).Replace(row) })
}

// changeAuthMap changes the text of mapRoles in aws-auth, and adds an undo function.
func (s *Scene) changeAuthMap(ctx context.Context, change func(string) string) error {
	var config corev1.ConfigMap
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "aws-auth"}
	if err := s.Lab.Client.Get(ctx, key, &config); err != nil {
		return fmt.Errorf("read aws-auth: %w", err)
	}
	before := config.Data["mapRoles"]
	config.Data["mapRoles"] = change(before)
	if err := s.Lab.Client.Update(ctx, &config); err != nil {
		return fmt.Errorf("write aws-auth: %w", err)
	}
	s.AddUndo(func(ctx context.Context) error {
		if err := s.Lab.Client.Get(ctx, key, &config); err != nil {
			return err
		}
		config.Data["mapRoles"] = before
		return s.Lab.Client.Update(ctx, &config)
	})
	return nil
}

// recreateRole deletes the scene's role and creates it again, as Terraform does: with the same name, but another unique
// ID.
func (s *Scene) recreateRole() error {
	err := s.ChangeAWS(func(w *world.World, _ time.Time) error {
		account := w.Account(s.Lab.Account)
		r, err := account.Role(s.Name)
		if err != nil {
			return err
		}
		for _, policy := range r.Policies {
			if err := account.DetachPolicy(s.Name, policy); err != nil {
				return err
			}
		}
		return account.DeleteRole(s.Name)
	})
	if err != nil {
		return err
	}
	return s.Lab.Roles.AddNodeRole(s.Name)
}

const trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`

// addForeignRole creates a node role that the controller's policies do not name.
func (s *Scene) addForeignRole() error {
	return s.ChangeAWS(func(w *world.World, now time.Time) error {
		account := w.Account(s.Lab.Account)
		if _, err := account.CreateRole(now, identity.Role{Name: s.Name, TrustPolicy: trust}); err != nil {
			return err
		}
		for _, p := range []string{"AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly"} {
			if err := account.AttachPolicy(s.Name, "arn:"+account.Partition()+":iam::aws:policy/"+p); err != nil {
				return err
			}
		}
		return nil
	})
}

// ageEntry makes an access entry one hour older, so that it is older than a role that is created again.
func (s *Scene) ageEntry(roleARN string) error {
	return s.ChangeAWS(func(_ *world.World, _ time.Time) error {
		e, err := s.Lab.Estate.Region.EKS.AccessEntry(s.Lab.Cluster, roleARN)
		if err == nil {
			e.CreatedAt = e.CreatedAt.Add(-time.Hour)
		}
		return err
	})
}

func roleFaults() []Fault {
	return []Fault{
		{
			Name:  "class-has-controller-role",
			What:  "the EC2NodeClass gives instances the controller's role",
			Check: "AUTH-5",
			Cause: "is the role of the controller's pods",
			Break: func(_ context.Context, s *Scene) error {
				s.Class.Spec.Role = lab.ControllerRole
				return nil
			}},
		{Name: "role-missing", What: "the EC2NodeClass names a role that does not exist", Check: "AUTH-6", Cause: "there is no role",
			Break: func(_ context.Context, s *Scene) error {
				s.Class.Spec.Role = s.Name
				return nil
			},
			// Several EC2NodeClasses have roles, so only the user knows which role is right.
			Edit: func(ctx context.Context, s *Scene) error {
				var class awsv1.EC2NodeClass
				if err := s.Lab.Client.Get(ctx, client.ObjectKeyFromObject(s.Class), &class); err != nil {
					return fmt.Errorf("read the EC2NodeClass: %w", err)
				}
				class.Spec.Role = lab.NodeRole
				if err := s.Lab.Client.Update(ctx, &class); err != nil {
					return fmt.Errorf("edit the EC2NodeClass: %w", err)
				}
				return nil
			}},
		{
			Name:  "role-for-lambda",
			What:  "the node role trusts another service than EC2",
			Check: "AUTH-6",
			Cause: "EC2 is not allowed to give instances the role",
			Break: func(_ context.Context, s *Scene) error {
				return errors.Join(s.addRole(), s.addEntry(s.arn(), ekscluster.EntryEC2Linux), s.ChangeAWS(func(w *world.World, _ time.Time) error {
					return w.Account(s.Lab.Account).UpdateTrust(s.Name, strings.Replace(trust, "ec2.amazonaws.com", "lambda.amazonaws.com", 1))
				}))
			}},
		{
			Name:  "role-without-worker-policy",
			What:  "the node role lacks AmazonEKSWorkerNodePolicy",
			Check: "AUTH-6",
			Cause: "lacks AmazonEKSWorkerNodePolicy",
			Break: detachPolicies("AmazonEKSWorkerNodePolicy")},
		{
			Name:  "role-without-registry-policy",
			What:  "the node role is not allowed to pull images",
			Check: "AUTH-6",
			Cause: "lacks AmazonEC2ContainerRegistryPullOnly",
			Break: detachPolicies("AmazonEC2ContainerRegistryPullOnly")},
		{
			Name:  "role-without-policies",
			What:  "the node role has no policies at all",
			Check: "AUTH-6",
			Cause: "lacks AmazonEKSWorkerNodePolicy and AmazonEC2ContainerRegistryPullOnly",
			Break: detachPolicies("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonEKS_CNI_Policy",
				"AmazonSSMManagedInstanceCore")},
		{
			Name:  "role-not-passed",
			What:  "the controller is not allowed to pass the node role to instances",
			Check: "AUTH-8",
			Cause: "the controller is not allowed to pass the role",
			Smoke: true,
			Break: func(_ context.Context, s *Scene) error {
				s.Class.Spec.Role = s.Name
				return errors.Join(s.addForeignRole(), s.addEntry(s.arn(), ekscluster.EntryEC2Linux))
			}},
		{
			Name:  "profile-missing",
			What:  "the EC2NodeClass names an instance profile that does not exist",
			Check: "LAUNCH-1",
			Cause: "does not exist",
			Break: func(_ context.Context, s *Scene) error {
				s.Class.Spec.Role, s.Class.Spec.InstanceProfile = "", &s.Name
				return nil
			}},
		{
			Name:  "profile-without-role",
			What:  "the instance profile that the EC2NodeClass names has no role",
			Check: "AUTH-7",
			Cause: "has no role",
			Break: func(_ context.Context, s *Scene) error {
				s.Class.Spec.Role, s.Class.Spec.InstanceProfile = "", &s.Name
				return s.ChangeAWS(func(w *world.World, now time.Time) error {
					_, err := w.Account(s.Lab.Account).CreateProfile(now, identity.Profile{Name: s.Name})
					return err
				})
			}},
	}
}

// detachPolicies returns a Break function that gives the scene its own role, which is mapped but lacks the policies.
func detachPolicies(policies ...string) func(context.Context, *Scene) error {
	return func(_ context.Context, s *Scene) error {
		if err := errors.Join(s.addRole(), s.addEntry(s.arn(), ekscluster.EntryEC2Linux)); err != nil {
			return err
		}
		return s.ChangeAWS(func(w *world.World, _ time.Time) error {
			account := w.Account(s.Lab.Account)
			for _, p := range policies {
				if err := account.DetachPolicy(s.Name, "arn:"+account.Partition()+":iam::aws:policy/"+p); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
