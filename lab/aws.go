package lab

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/permissions"
	"github.com/joiner-sh/joiner/lab/component"
)

// startAWS starts the emulated AWS with an account that is ready for a cluster. With Options.Beside, it uses the
// emulated AWS of the other lab.
func (l *Lab) startAWS() error {
	if l.Beside != nil {
		return l.shareAWS(l.Beside)
	}
	l.Role = ControllerRole
	table, err := catalog.Embedded()
	if err != nil {
		return err
	}
	setup, err := world.SetupFrom(table, l.Account, l.Region, l.Cluster)
	if err != nil {
		return err
	}
	setup.IPv6 = l.IPv6
	now := time.Now()
	w, estate, err := world.New(now, setup)
	if err != nil {
		return err
	}
	w.Seed = filepath.Base(l.Home)
	w.Timing = site.Timing{Pending: l.Pace.Pending, ShuttingDown: l.Pace.ShuttingDown, Profile: l.Pace.Profile}
	w.Faults.Throttle = l.Throttle
	l.Estate = estate
	if err := l.Roles.create(now, w); err != nil {
		return err
	}
	log, err := os.OpenFile(l.Logs("aws"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of AWS calls: %w", err)
	}
	l.instances, l.cloud = newInstances(l), newCloudController(l)
	l.Emulator = &emulator.Server{
		World:      w,
		Now:        l.awsNow,
		OnInstance: l.instances.onStateChange,
		Log:        slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for AWS: %w", err)
	}
	l.Endpoint = "http://" + listener.Addr().String()
	l.aws = &http.Server{Handler: l.Emulator}
	go func() { _ = l.aws.Serve(listener) }()
	go func() { _ = l.Emulator.Run(l.ctx) }()
	return nil
}

// create creates the node role, the controller's role, and an Amazon Linux 2 image. The account owns the image: EKS
// publishes no Amazon Linux 2 image for current Kubernetes versions, so users build their own.
func (r *Roles) create(now time.Time, w *world.World) error {
	for _, role := range []struct{ name, service string }{
		{NodeRole, "ec2.amazonaws.com"}, {ControllerRole, "pods.eks.amazonaws.com"},
	} {
		if err := addRole(now, w.Account(r.lab.Account), role.name, role.service); err != nil {
			return err
		}
	}
	r.lab.AL2Image = r.lab.Estate.Region.Images.Register(world.Image{
		Name: "own-eks-node-al2-" + KubernetesMinor(), Description: "Amazon Linux 2, made by the account itself",
		Architecture: "x86_64", OwnerID: r.lab.Account, CreatedAt: now, RootDevice: "/dev/xvda",
		Volumes: []world.ImageVolume{{Device: "/dev/xvda", SizeGiB: 20, Kind: "gp3"}},
		Family:  "AL2", Variant: "standard", Version: KubernetesMinor(),
	}).ID
	return nil
}

// AddNodeRole creates a node role that the controller may pass to instances. The cluster does not map the role yet.
func (r *Roles) AddNodeRole(name string) error {
	var err error
	r.lab.Emulator.Do(func(w *world.World, now time.Time) {
		err = addRole(now, w.Account(r.lab.Account), name, "ec2.amazonaws.com")
	})
	if err != nil {
		return err
	}
	return r.updateScope(func(s *permissions.Scope) { s.NodeRoles = append(s.NodeRoles, name) })
}

// RevokeNodeRole revokes the controller's permission to pass a role that AddNodeRole created. The role still exists. It
// is not an error if AddNodeRole did not create the role.
func (r *Roles) RevokeNodeRole(name string) error {
	return r.updateScope(func(s *permissions.Scope) {
		s.NodeRoles = slices.DeleteFunc(s.NodeRoles, func(n string) bool { return n == name })
	})
}

// addRole creates a role that an AWS service may assume. A role for EC2 gets the policies of nodes.
func addRole(now time.Time, account *world.Account, name, service string) error {
	trust := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"` + service + `"},"Action":"sts:AssumeRole"}]}`
	if _, err := account.CreateRole(now, identity.Role{Name: name, TrustPolicy: trust}); err != nil {
		return fmt.Errorf("make role %s: %w", name, err)
	}
	if service != "ec2.amazonaws.com" {
		return nil
	}
	for _, policy := range []string{"AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy",
		"AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore"} {
		if err := account.AttachPolicy(name, "arn:"+account.Partition()+":iam::aws:policy/"+policy); err != nil {
			return fmt.Errorf("attach policy %s to role %s: %w", policy, name, err)
		}
	}
	return nil
}

func (l *Lab) registerCluster(issuer string) error {
	var subnets []string
	for _, s := range l.Estate.PrivateSubnets {
		subnets = append(subnets, s.ID)
	}
	var err error
	l.Emulator.Do(func(w *world.World, now time.Time) {
		_, err = w.Region(l.Account, l.Region).EKS.CreateCluster(now, ekscluster.Cluster{
			Name: l.Cluster, Version: KubernetesMinor(), Endpoint: l.plane.URL,
			CA:          base64.StdEncoding.EncodeToString(l.plane.CA),
			ServiceCIDR: l.serviceCIDR(), Issuer: issuer, AuthMode: l.AuthMode,
			RoleARN: l.Roles.ARN("eksClusterRole"),
			VPCID:   l.Estate.VPC.ID, SubnetIDs: subnets, ClusterGroupID: l.Estate.ClusterSG.ID,
		})
	})
	if err != nil {
		return fmt.Errorf("register the cluster with EKS: %w", err)
	}
	return nil
}

// ARN returns the ARN of a role of the lab's account.
func (r *Roles) ARN(name string) string {
	return "arn:" + site.Partition(r.lab.Region) + ":iam::" + r.lab.Account + ":role/" + name
}

// KubernetesMinor returns the control plane's version as EKS writes it: "1.36".
func KubernetesMinor() string {
	parts := strings.Split(strings.TrimPrefix(component.Version, "v"), ".")
	return parts[0] + "." + parts[1]
}

// clusterID derives an ID from the seed, in the format of the ID in an EKS cluster's address.
func clusterID(seed string) string {
	sum := sha256.Sum256([]byte(seed))
	return strings.ToUpper(hex.EncodeToString(sum[:16]))
}
