// Package lab runs a real Kubernetes control plane beside an emulated AWS.
//
// In: the options of the lab.
// Out: a cluster whose nodes are launched, boot and join as on EKS, and the addresses of the cluster and of the
// emulated AWS.
// Never: a call to a real cloud, a need for root, or a process or file left behind after the lab ends.
package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/lab/authn"
	"github.com/joiner-sh/joiner/lab/controlplane"
	"github.com/joiner-sh/joiner/lab/fargate"
	"github.com/joiner-sh/joiner/lab/kubelet"
	"github.com/joiner-sh/joiner/lab/pki"
	"github.com/joiner-sh/joiner/lab/process"
)

// Options configure a lab. The zero value is a small, quick lab.
type Options struct {
	Self     string // program that runs the control plane in child processes, see component.Run; empty: os.Executable
	Account  string // 12 digits; empty: emulator.DefaultAccount
	Region   string // empty: us-east-1
	Cluster  string // name of the EKS cluster; empty: lab
	AuthMode string // authentication mode of the cluster; empty: ekscluster.AuthBoth
	Bare     bool   // do not install the CRDs, because the program under test installs them
	Fargate  bool   // emulate Fargate for pods that a Fargate profile selects, see Lab.Serverless
	IPv6     bool   // Services and pods have IPv6 addresses; nodes have IPv4 and IPv6 addresses, as on EKS
	Pace     Pace   // the zero value: Quick

	// Throttle has the token buckets of AWS's API rate limits, in the format of world.EC2Throttle. nil disables
	// throttling.
	Throttle map[string]world.Bucket
	// TokenCache is how long the API server caches the authentication of a node's token. A removed mapping stays
	// effective for that time. Zero is 5 seconds. A thousand nodes need a longer time, because each review takes four
	// calls to AWS.
	TokenCache time.Duration

	// Beside is another lab. The new lab is then a second cluster with the same name in the other lab's AWS. The second
	// cluster is self-managed, because EKS allows a name only once. Both clusters share the account, region, network,
	// node role and pace. Each cluster has its own control plane, its own nodes, and its own controller with a separate
	// role. Close the new lab before the other lab. nil starts a new AWS.
	Beside *Lab
	// AnyUID leaves the cluster's UID out of the controller's policies, as if they had been written before the cluster
	// existed. The policies then also allow actions on resources of another cluster with the same name, so only the
	// controller's own checks prevent such actions.
	AnyUID bool

	// Step receives progress: Start calls it with the name of each step when the step begins, and Close with the text
	// of an error. nil disables the calls.
	Step func(string)
}

// Pace has the delays of steps that take longer on AWS.
type Pace struct {
	Pending      time.Duration // from launch until an instance is running
	Boot         time.Duration // from running until the kubelet starts
	PodStart     time.Duration // from binding a pod until it runs
	PodStop      time.Duration // from a pod's deletion until the kubelet has removed the pod
	ShuttingDown time.Duration // from TerminateInstances until an instance is terminated
	NodeGone     time.Duration // from termination until the cloud controller deletes the Node
	Profile      time.Duration // from the creation of a Fargate profile until it is active

	Boots BootTimes // how Boot varies between instances; empty: not at all
	Seed  uint64    // seed of the random boot times
}

// BootTimes names how the boot times of instances vary.
type BootTimes string

// The variations of boot times. With the same seed, every run has the same sequence of boot times, in the order in
// which instances start to boot.
const (
	BootEven       BootTimes = "even"       // 0.7 to 1.6 times Pace.Boot
	BootStragglers BootTimes = "stragglers" // the same, but one instance in ten takes 4 to 8 times Pace.Boot
)

// bootTime returns the boot time of the instance that is the number-th to boot, from 0.
func (p Pace) bootTime(number int) time.Duration {
	if p.Boots == "" {
		return p.Boot
	}
	r := rand.New(rand.NewPCG(p.Seed, uint64(number)))
	factor, rank := 0.7+0.9*r.Float64(), r.Float64()
	if p.Boots == BootStragglers && rank < 0.1 {
		factor = 4 + 40*rank // 4 to 8, because rank is below 0.1
	}
	return time.Duration(factor * float64(p.Boot))
}

// Quick returns a pace for tests.
func Quick() Pace {
	return Pace{
		Pending: 200 * time.Millisecond, Boot: 300 * time.Millisecond, PodStart: 100 * time.Millisecond,
		PodStop: 200 * time.Millisecond, ShuttingDown: 300 * time.Millisecond, NodeGone: 2 * time.Second, Profile: 500 * time.Millisecond,
	}
}

// Lifelike returns a pace for demos: all steps take about a tenth of their time on AWS.
func Lifelike() Pace {
	return Pace{
		Pending: time.Second, Boot: 2 * time.Second, PodStart: 700 * time.Millisecond,
		PodStop: time.Second, ShuttingDown: 2 * time.Second, NodeGone: 5 * time.Second, Profile: 10 * time.Second,
	}
}

// Names of roles in a lab's account.
const (
	NodeRole       = "KarpenterNodeRole"
	ControllerRole = "KarpenterController"
)

// Lab is a running lab.
type Lab struct {
	Options
	Home       string                 // folder of the kubeconfig, the logs and all other files
	Kubeconfig string                 // path of the administrator's kubeconfig
	Endpoint   string                 // URL of the emulated AWS, for AWS_ENDPOINT_URL
	Emulator   *emulator.Server       // emulated AWS
	Estate     world.ClusterResources // VPC, subnets and security groups of the cluster
	AL2Image   string                 // ID of an AL2 image for the cluster's version, owned by the account
	Config     *rest.Config           // the administrator's client configuration
	Kube       *kubernetes.Clientset  // typed client of the administrator, which uses protobuf
	Client     client.WithWatch       // client of the administrator for all kinds of Scheme
	Role       string                 // name of the controller's role
	Serverless *fargate.Fargate       // the emulated Fargate; nil unless Options.Fargate

	Roles           Roles           // IAM roles in the lab's account
	ServiceAccounts ServiceAccounts // service accounts in the cluster
	Pods            Pods            // pods whose programs run on this computer

	ctx       context.Context // ends when the lab is closed
	cancel    context.CancelFunc
	home      *process.Home
	group     *process.Group // the child processes
	plane     *controlplane.ControlPlane
	fleet     *kubelet.Fleet // the emulated kubelets
	cloud     *cloudController
	aws       *http.Server // serves the emulated AWS
	tokens    *http.Server // serves TokenReviews to the API server
	ports     *nodePorts
	auth      *awsAuth   // caches aws-auth
	instances *instances // boots the instances of the emulated EC2

	authority *pki.Authority // signs the certificates of the lab's servers
	reviews   *authn.Webhook // authenticates the tokens of nodes
	admission *http.Server   // serves Fargate's pod webhook; nil without Fargate

	ownCalls      atomic.Int64 // calls to AWS by the lab's authenticator
	awsClockAhead atomic.Int64 // time.Duration by which AWS's clock is ahead of this computer's
	AddOns        AddOns       // EKS add-ons and the CRDs in the cluster
	evidence      evidence
}

// Roles are the IAM roles of the lab's account, with their policies.
type Roles struct {
	lab     *Lab
	granted policyScope // scope of the controller's policies
}

// ServiceAccounts are the service accounts of the lab's cluster, with their tokens and roles.
type ServiceAccounts struct {
	lab              *Lab
	controllerConfig string // path of the kubeconfig of the controller's service account
}

// Pods are pods of the lab's cluster whose programs run as processes of this computer.
type Pods struct{ lab *Lab }

// AddOns are the add-ons of the lab's cluster and the CRDs.
type AddOns struct{ lab *Lab }

// evidence writes the state of a lab as text, see Lab.Evidence.
type evidence struct{ lab *Lab }

// Start starts a lab and returns once its cluster is ready. Close, or the end of this process, stops the lab.
func Start(ctx context.Context, o Options) (*Lab, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	home, err := process.NewHome()
	if err != nil {
		return nil, err
	}
	l := &Lab{Options: o, Home: home.Path, home: home}
	l.Roles.lab, l.ServiceAccounts.lab, l.Pods.lab, l.AddOns.lab, l.evidence.lab = l, l, l, l, l
	l.ctx, l.cancel = context.WithCancel(context.Background())
	if err := l.start(ctx); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// withDefaults returns the options with defaults for empty fields. With Beside, the options that both clusters share
// come from the other lab.
func (o Options) withDefaults() (Options, error) {
	if other := o.Beside; other != nil {
		o.Account, o.Region, o.Cluster, o.AuthMode = other.Account, other.Region, other.Cluster, other.AuthMode
		o.IPv6, o.Pace, o.Throttle = other.IPv6, other.Pace, other.Throttle
	}
	o.Account = cmp.Or(o.Account, emulator.DefaultAccount)
	o.Region = cmp.Or(o.Region, "us-east-1")
	o.Cluster = cmp.Or(o.Cluster, "lab")
	o.AuthMode = cmp.Or(o.AuthMode, ekscluster.AuthBoth)
	if o.Pace == (Pace{}) {
		o.Pace = Quick()
	}
	o.TokenCache = cmp.Or(o.TokenCache, 5*time.Second)
	if o.Step == nil {
		o.Step = func(string) {}
	}
	if o.Self == "" {
		self, err := os.Executable()
		if err != nil {
			return o, fmt.Errorf("find this program: %w", err)
		}
		o.Self = self
	}
	return o, nil
}

// start starts all parts of the lab, and returns once the cluster is ready. After an error the caller closes the lab.
func (l *Lab) start(ctx context.Context) error {
	var err error
	if l.group, err = process.NewGroup(l.Self, l.Home); err != nil {
		return err
	}
	l.Step("Starting the emulated AWS")
	if err := l.startAWS(); err != nil {
		return err
	}
	l.Step("Starting etcd, kube-apiserver, kube-controller-manager and kube-scheduler")
	if err := l.startControlPlane(ctx); err != nil {
		return err
	}
	l.Step("Installing the cluster's add-ons and the CRDs")
	if err := l.AddOns.install(ctx); err != nil {
		return err
	}
	if err := l.makeClient(); err != nil {
		return err
	}
	if err := l.Roles.permitController(ctx); err != nil {
		return err
	}
	if err := l.ServiceAccounts.allowController(ctx); err != nil {
		return err
	}
	if l.fleet, err = kubelet.NewFleet(l.ctx, l.Config, kubelet.Pace{PodStart: l.Pace.PodStart, PodStop: l.Pace.PodStop},
		networkPod, proxyPod); err != nil {
		return err
	}
	l.ports.fleet.Store(l.fleet)
	if err := l.cloud.start(l.ctx); err != nil {
		return err
	}
	if l.Beside != nil {
		l.instances.addCluster(l)
	} else {
		l.instances.open()
	}
	if l.Options.Fargate {
		return l.startFargate(ctx)
	}
	return nil
}

// startControlPlane starts the token webhook and the control plane, and registers the cluster with EKS.
func (l *Lab) startControlPlane(ctx context.Context) error {
	authority, err := pki.New()
	if err != nil {
		return err
	}
	l.authority = authority
	l.auth = &awsAuth{}
	webhook, err := l.startTokenWebhook(authority)
	if err != nil {
		return err
	}
	if l.ports, err = openNodePorts(l.Home, authority); err != nil {
		return err
	}
	issuer := "https://oidc.eks." + l.Region + ".amazonaws.com/id/" + clusterID(l.Home)
	l.plane, err = controlplane.Start(ctx, l.Self, l.Home, l.group, authority, controlplane.Options{
		Issuer: issuer, TokenWebhook: webhook, TokenCache: l.TokenCache, ServiceCIDR: l.serviceCIDR(), NodeProxy: l.ports.socket,
	})
	if err != nil {
		return err
	}
	l.Config, l.Kubeconfig = l.plane.Admin, l.plane.Kubeconfig
	if l.Kube, err = kubernetes.NewForConfig(kubelet.Protobuf(l.Config)); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	if err := l.auth.watch(l.ctx, l.Kube); err != nil {
		return err
	}
	if l.Beside == nil {
		if err := l.registerCluster(issuer); err != nil {
			return err
		}
	}
	return l.ServiceAccounts.publishKeys(ctx, issuer)
}

func (l *Lab) serviceCIDR() string {
	if l.IPv6 {
		return controlplane.ServiceCIDR6
	}
	return controlplane.ServiceCIDR
}

// Scheme returns a scheme with the kinds of Kubernetes, NodePool, NodeClaim and EC2NodeClass.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, karpenterv1.AddToScheme, awsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("make scheme: %w", err)
		}
	}
	return scheme, nil
}

// makeClient creates the client for all kinds of Scheme. The API server must already serve the CRDs.
func (l *Lab) makeClient() error {
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	if l.Client, err = client.NewWithWatch(l.Config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	return nil
}

// Failed returns a channel that receives an error when a program of the control plane ends unexpectedly.
func (l *Lab) Failed() <-chan error { return l.plane.Failed() }

// AWS returns a configuration for calls to the emulated AWS as the account's owner.
func (l *Lab) AWS() aws.Config {
	return awserr.ClientConfig(aws.Config{
		Region:       l.Region,
		BaseEndpoint: &l.Endpoint,
		Credentials:  credentials.NewStaticCredentialsProvider(l.Account, "lab", ""),
	})
}

// SetClock sets how far AWS's clock is ahead of this computer's clock. A negative duration sets AWS's clock behind. The
// cluster and the controller use this computer's clock.
func (l *Lab) SetClock(ahead time.Duration) { l.awsClockAhead.Store(int64(ahead)) }

func (l *Lab) awsNow() time.Time { return time.Now().Add(time.Duration(l.awsClockAhead.Load())) }

// StopAPIServer kills the API server. etcd keeps its data.
func (l *Lab) StopAPIServer() { l.plane.StopAPIServer() }

// StartAPIServer starts the API server again, at the same address, and returns once it is ready.
func (l *Lab) StartAPIServer(ctx context.Context) error { return l.plane.StartAPIServer(ctx) }

// Logs returns the path of the log with the given name, for example "kube-apiserver", "joiner" or "authenticator".
func (l *Lab) Logs(name string) string { return filepath.Join(l.Home, "logs", name+".log") }

// token returns a token with which the instance with the given ID authenticates to the cluster.
func (l *Lab) token(ctx context.Context, instanceID string) (string, error) {
	access, secret, session, err := l.Emulator.Credentials(instanceID)
	if err != nil {
		return "", err
	}
	keys := aws.Credentials{AccessKeyID: access, SecretAccessKey: secret, SessionToken: session}
	return authn.Token(ctx, keys, l.Region, l.Cluster, time.Now())
}

// Close ends the lab and removes its folder. It can be called more than once.
func (l *Lab) Close() {
	l.cancel()
	switch {
	case l.instances == nil:
	case l.Beside != nil:
		l.instances.removeCluster(l)
	default:
		l.instances.wait()
	}
	if l.group != nil {
		l.group.Close(500 * time.Millisecond)
	}
	if l.plane != nil {
		l.plane.Close()
	}
	if l.Serverless != nil {
		l.Serverless.Wait()
	}
	if l.ports != nil {
		_ = l.ports.stop()
	}
	for _, server := range []*http.Server{l.aws, l.tokens, l.admission} {
		if server != nil {
			_ = server.Close()
		}
	}
	if err := l.home.Remove(); err != nil && !errors.Is(err, os.ErrNotExist) {
		l.Step(err.Error())
	}
}
