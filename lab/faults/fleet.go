package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

// fleetFaults are faults of instances that the cluster does not manage, of nodes that have joined, of the controller's
// settings, and of user data.
func fleetFaults() []Fault {
	agent := corev1.Taint{Key: "example.com/agent-not-ready", Effect: corev1.TaintEffectNoSchedule}
	return []Fault{
		{
			Name:             "orphan",
			What:             "an instance has the tags of the cluster, but no NodeClaim",
			Check:            "ID-4",
			Cause:            "no NodeClaim or Node refers to it",
			ExpectSuspicious: true,
			IsExclusive:      true,
			Break:            launchUnmanaged(nil)},
		{
			Name:             "same-cluster-name",
			What:             "an instance of another cluster has this cluster's name in its tags",
			Check:            "ID-3",
			Cause:            "another cluster in this account and region has the name",
			ExpectSuspicious: true,
			IsExclusive:      true,
			Break:            launchUnmanaged(map[string]string{"joiner.sh/cluster-uid": "0f0f0f0f-0000-4000-8000-00000000beef"})},
		{
			Name:          "startup-taint-stays",
			What:          "nothing removes the NodePool's startup taint from its nodes",
			Check:         "READY-2",
			Cause:         "is still on its nodes",
			NeedsInstance: true,
			Slow:          true,
			Wait:          diagnosis.MaxStartupTaintAge,
			Break: func(_ context.Context, s *Scene) error {
				s.Pool.Spec.Template.Spec.StartupTaints = []corev1.Taint{agent}
				return nil
			}},
		{
			Name:          "network-plugin-missing",
			What:          "the cluster has no network plug-in",
			Check:         "CNI-1",
			Cause:         "the cluster has no network plug-in",
			NeedsInstance: true,
			Slow:          true,
			IsExclusive:   true,
			Break:         deleteDaemonSet("aws-node", "vpc-cni")},
		{
			Name:        "stale-endpoint",
			What:        "the controller is configured with the endpoint of a deleted cluster",
			Check:       "BOOT-1",
			Cause:       "of a deleted cluster of the same name",
			IsExclusive: true,
			Break:       deployController("CLUSTER_ENDPOINT", "https://0123456789ABCDEF.gr7.us-east-1.eks.amazonaws.com")},
		{
			Name:             "custom-networking-unknown",
			What:             "the VPC CNI uses custom networking, but the controller is not configured for it",
			Check:            "NET-6",
			Cause:            "the controller does not reserve an interface for it",
			ExpectSuspicious: true, IsExclusive: true, Break: func(ctx context.Context, s *Scene) error {
				return errors.Join(deployController("RESERVED_ENIS", "0")(ctx, s),
					s.setPluginVariable(ctx, "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "true"))
			}},
		{
			Name:  "other-authority",
			What:  "custom image: the user data has another cluster's certificate authority",
			Check: "BOOT-2",
			Cause: "another cluster's certificate authority",
			Break: func(ctx context.Context, s *Scene) error {
				right, wrong, err := s.authorities()
				if err != nil {
					return err
				}
				return breakUserData(func(text string) string { return strings.Replace(text, right, wrong, 1) })(ctx, s)
			}},
		{
			Name:             "feature-gate-unknown",
			What:             "custom image: the kubelet gets a feature gate that it does not know",
			Check:            "TAINT-3", // it also checks the kubelet's flags
			Cause:            "knows no such feature gate",
			ExpectSuspicious: true,
			Break: breakUserData(func(text string) string {
				return strings.Replace(text, "args '", "args '--feature-gates=NoSuchGate=true ", 1)
			})},
		{
			Name:          "script-fails",
			What:          "custom image: a command before bootstrap.sh fails, and the script ends",
			Check:         "BOOT-13",
			Cause:         "a script of the user data fails before the kubelet starts",
			NeedsInstance: true,
			Smoke:         true,
			Break: breakUserData(func(text string) string {
				return strings.Replace(text, "/etc/eks", "set -e\nfetch-the-agent --now\n/etc/eks", 1)
			})},
	}
}

// launchUnmanaged returns a Break function that launches an instance with the cluster's tags and more tags, but without
// a NodeClaim.
func launchUnmanaged(more map[string]string) func(context.Context, *Scene) error {
	return func(ctx context.Context, s *Scene) error {
		tags := []types.Tag{{Key: aws.String("eks:eks-cluster-name"), Value: &s.Lab.Cluster},
			{Key: aws.String("karpenter.sh/nodepool"), Value: aws.String("gone")},
			{Key: aws.String("karpenter.k8s.aws/ec2nodeclass"), Value: aws.String("gone")}}
		for k, v := range more {
			tags = append(tags, types.Tag{Key: &k, Value: &v})
		}
		one, image := int32(1), s.registerImage("own-image-"+s.Name)
		out, err := ec2.NewFromConfig(s.Lab.AWS()).RunInstances(ctx, &ec2.RunInstancesInput{
			ImageId: &image, InstanceType: "m5.large", SubnetId: &s.Lab.Estate.PrivateSubnets[0].ID, MinCount: &one, MaxCount: &one,
			TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: tags}},
		})
		if err != nil {
			return fmt.Errorf("launch the unmanaged instance: %w", err)
		}
		id := *out.Instances[0].InstanceId
		s.AddUndo(func(context.Context) error {
			return s.ChangeAWS(func(_ *world.World, now time.Time) error {
				_, _, err := s.Lab.Estate.Region.Instances.Terminate(now, []string{id})
				return err
			})
		})
		// Doctor ignores new instances, because a NodeClaim gets its provider ID only after the launch.
		return s.until(ctx, time.Minute, "the instance to be old enough for doctor", func(context.Context) (bool, error) {
			return time.Since(*out.Instances[0].LaunchTime) > diagnosis.MaxClaimDelay, nil
		})
	}
}

func (s *Scene) networkPlugin(ctx context.Context) (*appsv1.DaemonSet, error) {
	out := &appsv1.DaemonSet{}
	err := s.Lab.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "aws-node"}, out)
	return out, err
}

func (s *Scene) setPluginVariable(ctx context.Context, name, value string) error {
	daemon, err := s.networkPlugin(ctx)
	if err != nil {
		return err
	}
	env := &daemon.Spec.Template.Spec.Containers[0].Env
	before := *env
	s.AddUndo(func(ctx context.Context) error {
		daemon, err := s.networkPlugin(ctx)
		if err != nil {
			return err
		}
		daemon.Spec.Template.Spec.Containers[0].Env = before
		return s.Lab.Client.Update(ctx, daemon)
	})
	*env = append([]corev1.EnvVar{{Name: name, Value: value}}, before...)
	return s.Lab.Client.Update(ctx, daemon)
}

// deployController returns a Break function that creates a Deployment like the chart's, with one more setting. Doctor
// reads the settings from the Deployment, which has no replicas, because the controller runs outside of the cluster.
func deployController(name, value string) func(context.Context, *Scene) error {
	return func(_ context.Context, s *Scene) error {
		d := newDeployment(s.Name)
		none := int32(0)
		d.Name, d.Namespace, d.Spec.Replicas = "joiner", metav1.NamespaceSystem, &none
		d.Labels = map[string]string{"app.kubernetes.io/name": "joiner"}
		pod := &d.Spec.Template.Spec
		pod.ServiceAccountName, pod.NodeSelector = "joiner", nil
		pod.Containers[0].Env = []corev1.EnvVar{{Name: "AWS_REGION", Value: s.Lab.Region},
			{Name: "CLUSTER_NAME", Value: s.Lab.Cluster}, {Name: name, Value: value}}
		s.ExtraObjects = append(s.ExtraObjects, d)
		return nil
	}
}

// authorities returns the cluster's certificate authority (right), and that of another cluster (wrong).
func (s *Scene) authorities() (right, wrong string, err error) {
	if err := s.ChangeCluster(func(c *ekscluster.Cluster) { right = c.CA }); err != nil {
		return "", "", err
	}
	wrong, err = otherAuthority()
	return right, wrong, err
}

// routeFaults are faults of the default route of the nodes' subnet: to an internet gateway or to a NAT gateway.
func routeFaults() []Fault {
	return []Fault{{
		Name:  "public-subnet-without-address",
		What:  "the nodes' subnet routes to an internet gateway, and nodes get no public address",
		Check: "NET-4",
		Cause: "its instances get no public address",
		Break: changeSubnet(func(s *Scene, _ *network.Subnet, t *network.RouteTable) {
			no := false
			t.Routes = routesOf(s.Lab.Estate, s.Lab.Estate.PublicSubnets[0].ID)
			s.Class.Spec.AssociatePublicIPAddress = &no
		})}, {
		Name:  "gateway-gone",
		What:  "the default route of the nodes' subnet goes to a NAT gateway that was deleted",
		Check: "NET-4",
		Cause: "which is gone",
		Break: changeSubnet(func(_ *Scene, _ *network.Subnet, t *network.RouteTable) { t.Routes[len(t.Routes)-1].IsBlackhole = true })}}
}
