package faults

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

// instanceFaults are faults of the metadata service, of hosts and of Node names.
func instanceFaults() []Fault {
	return []Fault{
		{
			Name:  "metadata-off",
			What:  "the EC2NodeClass switches the instances' metadata service off",
			Check: "IMDS-2",
			Cause: "the endpoint is switched off",
			Smoke: true,
			Break: func(_ context.Context, s *Scene) error {
				off := "disabled"
				s.Class.Spec.MetadataOptions = &awsv1.MetadataOptions{HTTPEndpoint: &off}
				return nil
			}},
		{
			Name:          "host-broken",
			What:          "the host of the first instance is broken, and EC2's status checks report it",
			Check:         "BOOT-16",
			Cause:         "its host is broken",
			NeedsInstance: true,
			Break:         breakFirstBoot("r5b.large"), AfterCreate: failStatusCheck(world.SystemCheck)},
		{
			Name:          "system-hangs",
			What:          "the operating system of the first instance hangs, and EC2's status checks report it",
			Check:         "BOOT-16",
			Cause:         "its operating system does not answer",
			NeedsInstance: true,
			Break:         breakFirstBoot("r5n.large"), AfterCreate: failStatusCheck(world.InstanceCheck)},
		{
			Name:          "node-left-behind",
			What:          "a terminated instance left a Node with the same name as the first instance",
			Check:         "TAINT-4",
			Cause:         "which another instance left behind",
			NeedsInstance: true,
			Break:         leaveNode},
	}
}

// leaveNode gives the scene its own subnet, and creates a Node with the name that the first instance in the subnet will
// have. Such a Node remains if the cloud controller has missed the termination of an old instance.
func leaveNode(ctx context.Context, s *Scene) error {
	var address netip.Addr // of the first instance in the subnet
	err := changeSubnet(func(_ *Scene, n *network.Subnet, _ *network.RouteTable) {
		address = n.CIDR.Addr()
		for range 4 { // AWS reserves the first four addresses
			address = address.Next()
		}
	})(ctx, s)
	if err != nil {
		return err
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: network.PrivateName(s.Lab.Region, address.String())},
		Spec:       corev1.NodeSpec{ProviderID: "aws:///" + s.Lab.Region + "a/i-0" + strings.Repeat("9", 16)},
	}
	s.AddUndo(func(ctx context.Context) error {
		return client.IgnoreNotFound(s.Lab.Client.Delete(ctx, node.DeepCopy()))
	})
	if err := s.Lab.Client.Create(ctx, node); err != nil {
		return fmt.Errorf("create the Node: %w", err)
	}
	const minAge = 15 * time.Second // of the Node at the launch; more than the clock skew that doctor allows
	return s.until(ctx, 2*minAge, "the Node to be old enough", func(context.Context) (bool, error) {
		return time.Since(node.CreationTimestamp.Time) > minAge, nil
	})
}

// breakFirstBoot returns a Break function that restricts the scene to one instance type, which no other scene uses. The
// first instance of the type gets the state running but does not boot.
func breakFirstBoot(instanceType string) func(context.Context, *Scene) error {
	return func(_ context.Context, s *Scene) error {
		requirements := s.Pool.Spec.Template.Spec.Requirements
		requirements[len(requirements)-1] = In(corev1.LabelInstanceTypeStable, instanceType)
		return s.ChangeAWS(func(w *world.World, _ time.Time) error {
			pool := world.CapacityPool{Type: instanceType}
			w.Faults.BootFaults = append(w.Faults.BootFaults, &world.BootFault{Pool: pool, Count: 1, SkipsUserData: true})
			return nil
		})
	}
}

// failStatusCheck returns an AfterCreate function that makes a status check of the scene's first instance fail.
func failStatusCheck(check world.StatusCheck) func(context.Context, *Scene) error {
	return func(ctx context.Context, s *Scene) error {
		return s.until(ctx, time.Minute, "the first instance to run", func(context.Context) (bool, error) {
			for _, i := range s.Instances() {
				if i.State == world.Running {
					return true, s.ChangeAWS(func(w *world.World, now time.Time) error { w.Impair(now, i.ID, check); return nil })
				}
			}
			return false, nil
		})
	}
}
