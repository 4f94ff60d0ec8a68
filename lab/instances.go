package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/lab/authn"
	"github.com/joiner-sh/joiner/lab/instance"
	"github.com/joiner-sh/joiner/lab/kubelet"
)

// instances boots each instance that the emulated EC2 starts, and stops the instance when EC2 terminates it.
type instances struct {
	lab *Lab

	ready chan struct{} // closed once kubelets can start
	done  sync.WaitGroup

	mu       sync.Mutex
	booted   int                        // number of instances that have started to boot
	clusters []*Lab                     // clusters that the instances can join; the lab's own cluster is the first
	running  map[string]runningInstance // by instance ID
	// kubelets are the settings of all kubelets that were started, by instance ID, including those of terminated
	// instances.
	kubelets map[string]kubelet.Settings
}

// runningInstance controls an instance that EC2 has started.
type runningInstance struct {
	stop    context.CancelFunc
	restart chan struct{} // holds a value if the instance's kubelet must be restarted
}

// newInstances returns the instances of a lab. None of them boots before open is called.
func newInstances(l *Lab) *instances {
	return &instances{
		lab:      l,
		clusters: []*Lab{l},
		ready:    make(chan struct{}),
		running:  map[string]runningInstance{},
		kubelets: map[string]kubelet.Settings{},
	}
}

// nextBootNumber counts one more instance that starts to boot, and returns its number, from 0.
func (m *instances) nextBootNumber() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.booted++
	return m.booted - 1
}

// open lets instances boot, including those that EC2 launched earlier.
func (m *instances) open() { close(m.ready) }

// wait waits until all instances have stopped. The caller must have ended the lab's context, which stops the instances.
func (m *instances) wait() { m.done.Wait() }

// onStateChange is called by the emulator for each instance that changes its state. It never blocks.
func (m *instances) onStateChange(i world.Instance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch i.State {
	case world.Running:
		if _, ok := m.running[i.ID]; ok || m.lab.ctx.Err() != nil {
			return
		}
		ctx, cancel := context.WithCancel(m.lab.ctx)
		up := runningInstance{stop: cancel, restart: make(chan struct{}, 1)}
		m.running[i.ID] = up
		m.done.Add(1)
		go m.run(ctx, i, up.restart)
	case world.ShuttingDown, world.Terminated:
		if up, ok := m.running[i.ID]; ok {
			up.stop()
			delete(m.running, i.ID)
		}
		if i.State == world.Terminated {
			for _, l := range m.clusters {
				l.cloud.deleteNode(i)
			}
		}
	}
}

// Kubelet returns the settings of an instance's kubelet. The second result is false if no kubelet was started.
func (l *Lab) Kubelet(id string) (kubelet.Settings, bool) {
	l.instances.mu.Lock()
	defer l.instances.mu.Unlock()
	s, ok := l.instances.kubelets[id]
	return s, ok
}

// RestartKubelet restarts the kubelet of an instance, as systemd does. If the instance does not run, it does nothing.
func (l *Lab) RestartKubelet(id string) {
	l.instances.mu.Lock()
	defer l.instances.mu.Unlock()
	if up, ok := l.instances.running[id]; ok {
		select {
		case up.restart <- struct{}{}:
		default: // a restart is already pending
		}
	}
}

func (m *instances) run(ctx context.Context, i world.Instance, restart <-chan struct{}) {
	defer m.done.Done()
	select {
	case <-m.ready:
	case <-ctx.Done():
		return
	}
	bootTimer := time.NewTimer(m.lab.Pace.bootTime(m.nextBootNumber()))
	defer bootTimer.Stop()
	say := func(line string) { m.lab.Emulator.AppendConsole(i.ID, line+"\n") }
	settings, err := m.boot(ctx, i, say)
	if err != nil {
		say(fmt.Sprintf("lab: %v", err))
	}
	if settings == nil {
		return
	}
	select {
	case <-bootTimer.C:
	case <-ctx.Done():
		return
	}
	settings.Say = func(line string) {
		say(fmt.Sprintf("[%12.6f] kubelet[1893]: %s", time.Since(i.ChangedAt).Seconds(), line))
	}
	settings.Token = m.tokenOf(ctx, i)
	settings.Reach = m.reachOf(i)
	m.mu.Lock()
	m.kubelets[i.ID] = *settings
	m.mu.Unlock()
	for ctx.Err() == nil {
		k, err := m.fleetOf(settings.Server).Start(ctx, *settings)
		if err != nil {
			say(fmt.Sprintf("lab: %v", err))
			return
		}
		select {
		case <-ctx.Done():
		case <-restart:
		}
		k.Stop()
	}
}

// boot boots an instance from its image and its user data. It returns nil if no kubelet starts.
func (m *instances) boot(ctx context.Context, i world.Instance, say func(string)) (*kubelet.Settings, error) {
	var image world.Image
	var offered world.OfferedType
	var hasImage, isOffered, skipsUserData bool
	m.lab.Emulator.Do(func(w *world.World, _ time.Time) {
		image, hasImage = w.Region(i.Account, i.Region).Images.ByID(i.ImageID)
		offered, isOffered = w.Market(i.Region).Stock(i.Type)
		skipsUserData = w.SkipsUserData(i.ID)
	})
	if skipsUserData {
		return nil, nil
	}
	if !hasImage || !isOffered {
		return nil, fmt.Errorf("image %s or type %s does not exist", i.ImageID, i.Type)
	}
	settings := instance.Boot(ctx, instance.Instance{
		ID:             i.ID,
		Region:         i.Region,
		Zone:           i.Zone,
		PrivateIP:      i.PrivateIP,
		PrivateDNSName: i.PrivateDNSName,
		IPv6:           i.IPv6,
		UserData:       []byte(i.UserData),
		RootGiB:        podVolume(i, image.Family),
		Facts:          offered.Facts,
		NoMetadata:     i.Metadata.Endpoint == "disabled",
		Image: instance.Image{
			Name:         image.Name,
			Family:       image.Family,
			Architecture: image.Architecture,
			Version:      image.Version,
			Flaws:        image.Flaws,
		},
	}, surroundings{m.lab, i}, say)
	if settings != nil {
		settings.HopLimit, settings.Devices = 1, devicesOf(offered.Facts) // 1 is EC2's default
		if hops := i.Metadata.HopLimit; hops != nil {
			settings.HopLimit = *hops
		}
	}
	return settings, nil
}

// devicesOf returns the devices that NVIDIA's device plug-in finds on an instance.
func devicesOf(f catalog.Facts) corev1.ResourceList {
	count := int64(0)
	for _, gpu := range f.GPUs {
		if gpu.Manufacturer == "NVIDIA" {
			count += gpu.Count
		}
	}
	if count == 0 {
		return nil
	}
	return corev1.ResourceList{catalog.ResourceNVIDIA: *resource.NewQuantity(count, resource.DecimalSI)}
}

// podVolume returns the size, in GiB, of the volume for pods: the second volume for Bottlerocket, and the root volume
// otherwise.
func podVolume(i world.Instance, family string) int64 {
	device := "/dev/xvda"
	if family == "Bottlerocket" {
		device = "/dev/xvdb"
	}
	size := int64(20) // the size in EKS's AMIs
	for _, v := range i.Volumes {
		if v.Device == device {
			size = v.SizeGiB
		}
	}
	return size
}

// tokenOf returns a function that creates tokens for an instance's kubelet. The function returns the same token for 14
// minutes, which is how long `aws eks get-token` declares a token to be valid.
func (m *instances) tokenOf(ctx context.Context, i world.Instance) func() (string, error) {
	var mu sync.Mutex
	var token string
	var created time.Time
	return func() (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if token != "" && time.Since(created) < authn.TokenLife-time.Minute {
			return token, nil
		}
		next, err := m.lab.token(ctx, i.ID)
		if err != nil {
			return "", err
		}
		token, created = next, time.Now()
		return token, nil
	}
}

// reachOf returns a function that returns an error if the network blocks an instance's connection to the API server.
// The function evaluates the network at most once per second.
func (m *instances) reachOf(i world.Instance) func() error {
	var mu sync.Mutex
	var result error
	var evaluated time.Time
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(evaluated) > time.Second {
			m.lab.Emulator.Do(func(w *world.World, _ time.Time) {
				result = connectionError(w.Region(i.Account, i.Region), m.lab.Cluster, i)
			})
			evaluated = time.Now()
		}
		return result
	}
}

// connectionError returns the error of a connection from an instance to the API server; nil if the network allows the
// connection. Security groups, network ACLs, missing routes and the endpoint's access settings cause the same error: a
// timeout.
func connectionError(r *world.Region, cluster string, i world.Instance) error {
	c, err := r.EKS.Cluster(cluster)
	if err != nil {
		return nil // the cluster is not registered with this EKS, so the lab does not emulate its network
	}
	if err := checkEndpointName(r, c); err != nil {
		return err
	}
	hasEgress := false
	for _, id := range i.SecurityGroupIDs {
		if g := r.Network.SecurityGroup(id); g != nil && allowsEgress(g, 443) {
			hasEgress = true
		}
	}
	if !hasEgress || !hasRoute(r, i) || !aclAllows(r, i) || !isAdmitted(r, c, i) {
		return errors.New("dial tcp: i/o timeout")
	}
	return nil
}

// aclAllows reports whether the network ACL of the instance's subnet allows requests to the API server and their
// responses.
func aclAllows(r *world.Region, i world.Instance) bool {
	s := r.Network.Subnet(i.SubnetID)
	if s == nil {
		return true
	}
	const clientPort = 40000 // an ephemeral port of Linux
	n := r.Network.NetworkACL(s)
	return n == nil || n.Allows(true, 443) && n.Allows(false, clientPort) // true: outbound
}

// allowsEgress reports whether a security group allows outbound TCP connections to a port. It ignores the destinations
// of the group's rules.
func allowsEgress(g *network.SecurityGroup, port int64) bool {
	for _, rule := range g.Egress {
		if rule.Protocol == "-1" || rule.Protocol == "tcp" && rule.From <= port && port <= rule.To {
			return true
		}
	}
	return false
}

// hasRoute reports whether the default route of the instance's route table works for the instance. The route table is
// the table of the instance's subnet, or else the VPC's main table. Without a route table the result is true.
func hasRoute(r *world.Region, i world.Instance) bool {
	var table *network.RouteTable
	for _, t := range r.Network.RouteTables() {
		if t.VPCID != i.VPCID {
			continue
		}
		for _, subnet := range t.SubnetIDs {
			if subnet == i.SubnetID {
				table = t
			}
		}
		if t.Main && table == nil {
			table = t
		}
	}
	if table == nil {
		return true
	}
	for _, route := range table.Routes {
		if route.Destination != "0.0.0.0/0" || route.IsBlackhole {
			continue
		}
		// An internet gateway works only for instances with a public address.
		return i.PublicIP != "" || !strings.HasPrefix(route.Target, "igw-")
	}
	return false
}

// surroundings implements instance.Services for an instance of the lab.
type surroundings struct {
	lab      *Lab
	instance world.Instance
}

// Credentials returns an error if the instance has no credentials.
func (s surroundings) Credentials() error {
	_, _, _, err := s.lab.Emulator.Credentials(s.instance.ID)
	return err
}

// Cluster describes a cluster of the instance's region.
func (s surroundings) Cluster(name string) (instance.Cluster, error) {
	if err := s.Credentials(); err != nil {
		return instance.Cluster{}, err
	}
	var out instance.Cluster
	var err error
	s.lab.Emulator.Do(func(w *world.World, _ time.Time) {
		var c *ekscluster.Cluster
		if c, err = w.Region(s.instance.Account, s.instance.Region).EKS.Cluster(name); err == nil {
			out = instance.Cluster{Endpoint: c.Endpoint, CA: c.CA, CIDR: c.ServiceCIDR}
		}
	})
	return out, err
}
